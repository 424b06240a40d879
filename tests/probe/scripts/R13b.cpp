// R13b | templates in each other without end | runner=cpp ends=CE compile_ms=10000
template <unsigned long n, class T> struct deeper { typedef typename deeper<n + 1, deeper<n, T> >::type type; };
deeper<0, int>::type never;
int main() { return 0; }
