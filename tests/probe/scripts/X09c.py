# X09c | random numbers are the same twice, in Python | runner=python twice=differs heavy=1
import random

print(random.random())
print("held")
