#include <cstdio>
int main() { double a, b; scanf("%lf %lf", &a, &b); printf("%.9e\n", a + b); }
