#!/usr/bin/env python3
import sys
n = int(open("/dev/stdin").readline())
sys.stdout.write(" ".join(map(str, range(1, n + 1))))
