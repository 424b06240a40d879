#include <cstdio>
#include <cstdlib>
int main() { double a, b; scanf("%lf %lf", &a, &b); if (a > 5) abort(); printf("%f\n", a + b); }
