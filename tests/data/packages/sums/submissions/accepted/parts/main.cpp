#include "sum.hpp"
#include <iostream>
int main() { double a, b; std::cin >> a >> b; std::cout.precision(12); std::cout << sum(a, b) << "\n"; }
