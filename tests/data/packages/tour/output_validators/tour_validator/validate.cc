// Any permutation in which neighbours differ by at most the limit of the flags.
#include "validate.hpp"
#include <cstring>
#include <set>
int main(int argc, char **argv)
{
	int n, limit = 0, x, before = 0;
	std::string word;
	std::set<int> seen;

	start(argc, argv);
	for (int i = 4; i + 1 < argc; i++)
		if (!strcmp(argv[i], "limit"))
			limit = atoi(argv[i + 1]);
	if (limit != 4)
		exit(7);
	judge_in >> n;
	for (int i = 0; i < n; i++, before = x) {
		if (!(std::cin >> x))
			reject("only %d numbers\n", i);
		if (x < 1 || x > n || !seen.insert(x).second)
			reject("%d is out of range, or comes twice\n", x);
		if (i > 0 && abs(x - before) > limit)
			reject("from %d to %d\n", before, x);
	}
	if (std::cin >> word)
		reject("trailing output: %s\n", word.c_str());
	accept();
}
