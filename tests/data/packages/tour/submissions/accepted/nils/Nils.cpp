#include "lib/Steps.hpp"
#include <iostream>
int main() { int n; std::cin >> n; steps(n, [](int i) { std::cout << i << '\n'; }); }
