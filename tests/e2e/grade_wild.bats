#!/usr/bin/env bats
# sallyport grade: what packages and programs of real contests are like.
# shellcheck disable=SC2016,SC2154 # programs in single quotes are meant for the jail; the variables are from bats and grade.bash

bats_require_minimum_version 1.5.0
load lib.bash
load grade.bash

@test "programs older and newer than the runners: integers of any length in Python, C++23, Java in Latin-1" {
	small p 'validation: custom'
	mkdir p/output_validators
	printf 'import sys\nassert int("7" * 5000)\nsys.exit(42 if input() == "2" else 43)\n' >p/output_validators/v.py
	printf 'n = int(input())\nprint(int(str(10**5000 + n)) - 10**5000 + 1)\n' >p/submissions/accepted/large.py
	printf '#include <iostream>\nint main() { std::string s; std::cin >> s; std::cout << s.contains("1") + 1; }\n' >p/submissions/accepted/new.cpp
	printf '// Bj\xf6rn\npublic class latin { public static void main(String[] a) { System.out.println("\xf6".length() + 1); } }\n' >p/submissions/accepted/latin.java
	judge 0 p
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":4}' ]
}
