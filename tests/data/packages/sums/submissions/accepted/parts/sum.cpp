#include "sum.hpp"
double sum(double a, double b) { return a + b; }
