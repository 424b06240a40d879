// @EXPECTED_SCORE@: 30
#include <iostream>
int main() { int n; std::cin >> n; std::cout << (n < 100 ? n * n : 0) << "\n"; }
