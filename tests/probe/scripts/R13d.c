// R13d | a source that includes the host's files | runner=c ends=CE compile_ms=10000 heavy=1
#include "/etc/shadow"
#include "/proc/1/environ"
int main(void) { return 0; }
