/* @EXPECTED_RESULTS@: TIMELIMIT */
#include <unistd.h>
#include <stdio.h>
int main(void) { int n; scanf("%d", &n); if (n > 1000) pause(); for (int i = 1; i <= n; i++) printf("%d\n", i); }
