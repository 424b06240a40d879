# R06c | recursion without end, in Python | runner=python ends=ML:memory memory_mb=128 else=RE
import sys

sys.setrecursionlimit(10**9)


def deeper(function):
    return function(function) + 1


deeper(deeper)
