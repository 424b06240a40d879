#!/usr/bin/env bats
# sallyport grade: validators, checkers, interactors and graders of a package.
# shellcheck disable=SC2016,SC2154 # programs in single quotes are meant for the jail; the variables are from bats and grade.bash

bats_require_minimum_version 1.5.0
load lib.bash
load grade.bash

@test "a validator that fails is a judge error of its case" {
	local kind
	for kind in 'sys.exit(7)' 'sys.exit(0)' 'os.abort()' 'raise ValueError' \
		'open(sys.argv[3] + "nextpass.in", "w").write("x"); sys.exit(43)'; do
		small p 'validation: custom'
		mkdir -p p/output_validators
		printf 'import os, sys\n%s\n' "$kind" >p/output_validators/v.py
		judge 13 p
		[ "$(of accepted/a.py .verdict)" = JE ]
		rm -r p
	done
	small p 'validation: custom'
	mkdir -p p/output_validators
	printf 'import sys\nopen("/etc/x", "w")\n' >p/output_validators/v.py
	judge 13 p
	[[ "$(of accepted/a.py .message)" == *"exited with status 1"* ]]
	echo 'int main( {' >p/output_validators/v.cpp
	rm p/output_validators/v.py
	judge 13 p
	[[ $stderr == *"the output validator cannot be used"* ]]
}

@test "a validator has limits of time and output" {
	local body
	for body in 'while True: pass' 'while True: print("x" * 100000)'; do
		small p $'validation: custom\nlimits: {validation_time: 1, validation_output: 1}\n'
		sed -i 1d p/problem.yaml
		mkdir -p p/output_validators
		echo "$body" >p/output_validators/v.py
		judge 13 p
		[[ "$(of accepted/a.py '[.verdict, .message] | join(" ")')" == "JE the validator failed: "* ]]
		rm -r p
	done
}

# both KIND: a validator in Python that accepts what contains KIND
both() {
	printf 'import helper, sys\nout = sys.stdin.read()\nopen(sys.argv[3] + "judgemessage.txt", "a").write("no %s")\nsys.exit(helper.ends["%s" in out])\n' "$1" "$1"
}

@test "every output validator must accept the output" {
	small p 'validation: custom'
	mkdir p/output_validators
	both 2 >p/output_validators/two.py
	both x >p/output_validators/x.py
	echo 'ends = {True: 42, False: 43}' >p/output_validators/helper.py
	echo 'print("2 x")' >p/submissions/accepted/a.py
	mkdir p/submissions/wrong_answer
	echo 'print("2")' >p/submissions/wrong_answer/two.py
	echo 'print("x")' >p/submissions/wrong_answer/x.py
	judge 0 p
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":1,"WA":2}' ]
	[ "$(of wrong_answer/two.py .message)" = "no x" ] # and nothing of what the other one wrote
	[ "$(of wrong_answer/x.py .message)" = "no 2" ]
	# A folder, in another language, with a header; and one that holds no program.
	mkdir p/output_validators/even p/output_validators/texts
	echo 'enum { NO = 43 };' >p/output_validators/even/even.h
	echo 'no program' >p/output_validators/texts/README
	printf '#include "even.h"\n#include <stdio.h>\nint main(void) { int c, n = 0; while ((c = getchar()) != EOF) n++; return n %% 2 ? NO : 42; }\n' >p/output_validators/even/even.c
	judge 0 p accepted # "2 x" and a newline
	echo 'print("2 x!")' >p/submissions/wrong_answer/odd.py
	judge 0 p wrong_answer/odd.py
	[ "$(of wrong_answer/odd.py .verdict)" = WA ]
	# One that fails is the judge's error, whatever the others say.
	echo 'import sys; sys.exit(7)' >p/output_validators/y.py
	judge 13 p accepted
	[ "$(of accepted/a.py .verdict)" = JE ]
}

@test "the parts of one validator, side by side" {
	small p 'validation: custom'
	mkdir p/output_validators
	printf 'int check(int, int);\n#include <cstdio>\nint main(int, char **argv) { int a, b; scanf("%%d", &a); fscanf(fopen(argv[2], "r"), "%%d", &b); return check(a, b); }\n' >p/output_validators/validate.cpp
	printf 'int check(int a, int b) { return a == b ? 42 : 43; }\n' >p/output_validators/check.cpp
	judge 0 p
}

@test "testlib's checkers have its arguments and exit codes" {
	small p 'validation: custom'
	mkdir p/output_validators
	cat >p/output_validators/check.cpp <<-'END'
		#include <cstdio>
		#include <cstdlib>
		static void registerTestlibCmd(int argc, char **argv) { if (argc < 4) exit(3); }
		int main(int argc, char **argv)
		{
			int a = 0, b = 0;
			registerTestlibCmd(argc, argv);
			fscanf(fopen(argv[2], "r"), "%d", &a);
			fscanf(fopen(argv[3], "r"), "%d", &b);
			return a == b ? 0 : a == 7 ? 2 : a == 8 ? 3 : 1;
		}
	END
	for n in 3 7 8; do echo "print($n)" >"p/submissions/accepted/$n.py"; done
	judge 13 p
	[ "$(jq -r 'select(.submission) | .verdict' <<<"$output" | paste -sd' ')" = "WA PE JE AC" ]
	# A copy of it that speaks the package format's codes has the format's arguments, too.
	local define
	for define in '#define  OK_EXIT_CODE	42' 'enum { _ok = 42, _wa = 43 };' '// -DOK_EXIT_CODE=42'; do
		printf '%s\nvoid registerTestlibCmd();\nint main(int, char **argv) { return argv[3][6] == 102 ? 42 : 3; } // /data/feedback/\n' \
			"$define" >p/output_validators/check.cpp
		judge 0 p accepted/3.py
	done
}

@test "testlib's checkers: one that its package wraps in a script speaks the format's codes" {
	small p 'validation: custom'
	mkdir -p p/output_validators/check p/submissions/wrong_answer
	cat >p/output_validators/check/check.cpp <<-'END'
		#include <cstdio>
		#include <cstdlib>
		static void registerTestlibCmd(int argc, char **argv) { if (argc < 4) exit(3); }
		int main(int argc, char **argv)
		{
			int a = 0, b = 0;
			registerTestlibCmd(argc, argv);
			return fscanf(fopen(argv[2], "r"), "%d", &a) == 1 && fscanf(fopen(argv[3], "r"), "%d", &b) == 1 && a == b ? 0 : 1;
		}
	END
	printf '#!/bin/sh\nc++ -o checker check.cpp\n' >p/output_validators/check/build
	printf '#!/bin/sh\ncat >out\n"$(dirname "$0")/checker" "$1" out "$2" && exit 42\nexit 43\n' >p/output_validators/check/run
	chmod +x p/output_validators/check/{build,run}
	echo 'print(7)' >p/submissions/wrong_answer/a.py
	judge 0 p
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":1,"WA":1}' ]
	# Without it, what the build makes is the checker itself.
	printf '#!/bin/sh\nc++ -o run check.cpp\n' >p/output_validators/check/build
	rm p/output_validators/check/run
	judge 0 p
}

@test "testlib's interactors write a file besides the output" {
	small p 'validation: custom interactive'
	mkdir -p p/output_validators p/submissions/{wrong_answer,run_time_error}
	cat >p/output_validators/interact.cpp <<-'END'
		#include <cstdio>
		static FILE *in, *tout, *ans;
		static void registerInteraction(int argc, char **argv)
		{
			in = fopen(argv[1], "r");
			tout = fopen(argv[2], "w");
			ans = argc > 3 ? fopen(argv[3], "r") : nullptr;
		}
		int main(int argc, char **argv)
		{
			int n = 0, wanted = 0, got = 0;
			registerInteraction(argc, argv);
			if (!in || !tout || !ans || fscanf(in, "%d", &n) != 1 || fscanf(ans, "%d", &wanted) != 1)
				return 3;
			printf("%d\n", n);
			fflush(stdout);
			fprintf(tout, "%d\n", wanted);
			fclose(tout);
			if (scanf("%d", &got) != 1) return 8;
			return got == wanted ? 0 : 1;
		}
	END
	echo 'print(7)' >p/submissions/wrong_answer/a.py
	echo 'input()' >p/submissions/wrong_answer/silent.py
	echo 'input(); raise SystemExit(1)' >p/submissions/run_time_error/a.py
	judge 0 p
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":1,"WA":2,"RTE":1}' ]
}

@test "legacy: a rejected case has the score of its group" {
	small p $'type: scoring\nvalidation: custom score\nvalidator_flags: [-a, 7]\n'
	case_of p/data/secret 2 5 9
	case_of p/data/secret 3 6 7
	printf 'on_reject: continue\ngrading: custom\nreject_score: 2\n' >p/data/secret/testdata.yaml
	mkdir p/output_validators p/graders
	cat >p/output_validators/v.py <<-'END'
		import sys
		assert sys.argv[4:] == ["-a", "7"]
		open(sys.argv[3] + "score.txt", "w").write("30")
		sys.exit(42 if open(sys.argv[2]).read() == sys.stdin.read() else 43)
	END
	printf 'import sys\nprint("AC", sum({"AC": 1, "WA": 100, "RTE": 1000, "TLE": 10000}[l.split()[0]] * float(l.split()[1]) for l in sys.stdin))\n' >p/graders/g.py
	printf 'n = int(input())\nif n == 6: x = bytearray(300 << 20)\nprint(n + 1)\n' >p/submissions/accepted/a.py
	judge 0 p
	[ "$(of accepted/a.py .score)" = 2230 ]
}

@test "a package may bring its own grader" {
	small p $'type: scoring\nvalidation: custom\n'
	case_of p/data/secret 2 5 9
	printf 'grading: custom\non_reject: continue\n' >p/data/secret/testdata.yaml
	mkdir -p p/graders p/output_validators/scripts
	cat >p/graders/grade.py <<-'END'
		import sys
		results = [line.split() for line in sys.stdin]
		print("AC", 10 * sum(r[0] == "AC" for r in results))
	END
	printf '#!/bin/sh\necho "exit 43" > no\necho "read x; test \\"\\$x\\" = \\"\\$(cat \\$2)\\" && exit 42; . /data/no" > check\n' >p/output_validators/scripts/build
	printf '#!/bin/sh\n. /data/check\n' >p/output_validators/scripts/run
	chmod +x p/output_validators/scripts/*
	judge 0 p
	[ "$(of accepted/a.py .score)" = 10 ]
	local said
	for said in "AC nan" "AC inf" "AC" "OK 3" ""; do
		printf 'print("%s")\n' "$said" >p/graders/grade.py
		judge 13 p
		[ "$(of accepted/a.py '[.verdict, .score, .message] | tojson')" = '["JE",0,"data/secret: the grader printed no verdict and score"]' ]
	done
}
