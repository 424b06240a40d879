// R13c | an object file of a gibibyte | runner=c ends=CE compile_ms=15000 heavy=1
char large[1UL << 30] = {1};
int main(void) { return large[5]; }
