// @EXPECTED_RESULTS@: WRONG-ANSWER, RUN-ERROR
#include <cstdio>
int main() { int x; scanf("%d", &x); while (scanf("%d", &x) == 1) printf("%d ", x); }
