// @EXPECTED_GRADES@ AC AC WA
// @EXPECTED_SCORE@: 50
#include <cstdio>
int main() { int a, b; scanf("%d %d", &a, &b); if (a == 3 && b == 7) puts("YES 2"); else if (b > 1000) puts("no"); else if (b % a == 0) printf("YES %d\n", b / a); else puts("NO"); }
