// R13a | a source that includes random bytes without end | runner=c ends=CE compile_ms=3000
#include "/dev/random"
int main(void) { return 0; }
