#include "table.hpp"
#include <iomanip>
#include <iostream>
int main(int, char **argv) { auto t = read_table(); int n; std::string k; std::cin >> n; std::cout << std::setprecision(12); while (std::cin >> k) std::cout << t[k] * std::stod(argv[1]) << '\n'; }
