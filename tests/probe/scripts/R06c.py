# R06c | recursion without end, in Python | runner=python ends=ML:memory memory_mb=128 else=RE heavy=1
import sys

sys.setrecursionlimit(10**9)


def deeper(function):
    return function(function) + 1


deeper(deeper)
