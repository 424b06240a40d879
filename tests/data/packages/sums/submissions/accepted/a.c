#include <math.h>
#include <stdio.h>
int main(void) { double a, b; scanf("%lf %lf", &a, &b); printf("%f\n", fabs(a + b)); return 0; }
