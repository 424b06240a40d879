#include <iostream>
#include <string>
int main() {
	int low = 1, high = 1000;
	for (std::string answer; answer != "correct";) {
		int guess = (low + high) / 2;
		std::cout << guess << std::endl;
		std::cin >> answer;
		(answer == "lower" ? high : low) = answer == "lower" ? guess - 1 : guess + 1;
	}
}
