// R13a | a source that includes random bytes without end | runner=c ends=CE compile_ms=1500 heavy=1
#include "/dev/random"
int main(void) { return 0; }
