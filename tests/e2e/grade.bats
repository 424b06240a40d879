#!/usr/bin/env bats
# sallyport grade over the packages of tests/data/packages: formats, groups and scores, expectations, packages that are wrong.
# shellcheck disable=SC2016,SC2154 # programs in single quotes are meant for the jail; the variables are from bats and grade.bash

bats_require_minimum_version 1.5.0
load lib.bash
load grade.bash

@test "each verdict, several languages, several files, a language without a runner" {
	judge 0 "$PACKAGES/sums"
	[ "$(jq -c '.summary | [.submissions, .as_expected, .unexpected, .skipped, .judge_errors]' <<<"$summary")" = '[9,8,0,1,0]' ]
	[ "$(jq -c '.summary.verdicts' <<<"$summary")" = '{"AC":5,"WA":1,"TLE":1,"RTE":1,"SKIP":1}' ]
	[ "$(jq ".summary.time_limit_s == 1" <<<"$summary")" = true ]
	[ "$(of accepted/parts .language)" = cpp ]
	[ "$(of accepted/folder .verdict)" = AC ]
	[ "$(of accepted/old.cob .as_expected)" = null ]
	[[ "$(of accepted/old.cob .message)" == *".cob"* ]]
	[ "$(of wrong_answer/int.py .case)" = secret/02-float ]
	[ "$(of accepted/a.cpp '[.cases_run, .cases, (.expected | join(" "))] | join(" ")')" = "4 4 AC" ]
	[ "$(jq -c 'select(.submission) | .groups' <<<"$output" | sort -u)" = '[]' ]
	[ "$(jq -r 'select(.submission) | .submission' <<<"$output")" = "$(jq -r 'select(.submission) | .submission' <<<"$output" | LC_ALL=C sort)" ]
	# Compiled once: the second time everything comes out of the cache.
	judge 0 "$PACKAGES/sums" accepted
	[ "$(jq -c '.summary | [.submissions, .compiled, .from_cache]' <<<"$summary")" = '[6,0,3]' ]
}

@test "a submission shows no value of its last line" {
	small p
	rm p/submissions/accepted/a.py
	printf 'n = int(input())\nprint(n + 1)\nn\n' >p/submissions/accepted/a.py
	printf 'const n = +require("fs").readFileSync(0, "utf8"); console.log(n + 1)\nn\n' >p/submissions/accepted/b.js
	judge 0 p
	[ "$(jq -c '.summary.verdicts' <<<"$summary")" = '{"AC":2}' ]
}

@test "an interactive problem: who is to blame" {
	judge 0 "$PACKAGES/guess"
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":2,"WA":2,"TLE":1,"RTE":1}' ]
	[ "$(of wrong_answer/linear.py .message)" = "too many guesses" ]
}

@test "interactive: every way to end has its verdict" {
	mkdir -p p/output_validators p/submissions/{accepted,wrong_answer,run_time_error,time_limit_exceeded} p/data/secret
	printf 'validation: custom interactive\nlimits: {memory: 256, time_limit: 1}\n' >p/problem.yaml
	echo 37 >p/data/secret/1.in
	cat >p/output_validators/v.py <<-'END'
		import sys
		secret = int(open(sys.argv[1]).read())
		def reject(why):
		    open(sys.argv[3] + "judgemessage.txt", "w").write(why)
		    sys.exit(43)
		for line in sys.stdin:
		    word = line.split()
		    if len(word) != 2 or word[0] not in "QA" or not word[1].isdigit(): reject("not understood")
		    if word[0] == "A":
		        if sys.stdin.readline(): reject("and more")
		        sys.exit(42) if int(word[1]) == secret else reject("not that")
		    print("<" if int(word[1]) < secret else ">" if int(word[1]) > secret else "=", flush=True)
		reject("no answer")
	END
	local to=p/submissions
	printf 'l, h = 1, 100\nwhile l < h:\n m = (l + h) // 2\n print("Q", m, flush=True)\n s = input()\n if s == "<": l = m + 1\n else: h = m\nprint("A", l)\n' >$to/accepted/a.py
	echo 'print("hello")' >$to/wrong_answer/word.py
	echo 'pass' >$to/wrong_answer/silent.py
	echo 'print("A 5")' >$to/wrong_answer/wrong.py
	printf 'print("A 37")\nprint("A 37")\n' >$to/wrong_answer/more.py
	printf 'import os, time\nos.close(1)\ntime.sleep(0.2)\n' >$to/wrong_answer/closes.py
	printf 'while True: print("Q x")\n' >$to/wrong_answer/floods.py
	printf 'print("Q", 5, flush=True)\ninput()\n1 / 0\n' >$to/run_time_error/middle.py
	printf 'import sys\nprint("A 37", flush=True)\nsys.exit(1)\n' >$to/run_time_error/after.py
	printf 'print("Q 5", flush=True)\ninput()\ninput()\n' >$to/time_limit_exceeded/waits.py
	judge 0 p
	[ "$(jq -c '.summary | [.verdicts, .as_expected]' <<<"$summary")" = '[{"AC":1,"WA":6,"TLE":1,"RTE":2},10]' ]
	[ "$(jq -r 'select(.verdict == "WA") | .message' <<<"$output" | paste -sd,)" = "no answer,not understood,and more,no answer,not understood,not that" ]
	# Both sides open what they talk through by name.
	cat >$to/accepted/named.sh <<-'END'
		exec 4</dev/stdin
		l=1 h=100
		while [ $l -lt $h ]; do
			m=$(((l + h) / 2))
			echo "Q $m" >/dev/stdout
			read -r s <&4
			if [ "$s" = "<" ]; then l=$((m + 1)); else h=$m; fi
		done
		echo "A $l" | tee /dev/stderr
	END
	sed -i '1s/.*/import sys; sys.stdin = open("\/dev\/stdin"); sys.stdout = open("\/dev\/stdout", "w")/' p/output_validators/v.py
	judge 0 p accepted
	[ "$(of accepted/named.sh .verdict)" = AC ]
	# The validator talks to one run of the program after the other.
	printf 'problem_format_version: 2025-09\ntype: [interactive, multi-pass]\nlimits: {memory: 256, time_limit: 1, validation_passes: 3}\n' >p/problem.yaml
	cat >p/output_validators/v.py <<-'END'
		import os, sys
		n, first = int(open(sys.argv[1]).read()), not os.path.exists(sys.argv[3] + "seen")
		print(n, flush=True)
		if sys.stdin.readline().strip() != str(2 * n): sys.exit(43)
		if first:
		    open(sys.argv[3] + "seen", "w").close()
		    open(sys.argv[3] + "nextpass.in", "w").write("38")
		sys.exit(42)
	END
	rm $to/*/*
	rmdir $to/time_limit_exceeded
	echo 'print(int(input()) * 2)' >$to/accepted/a.py
	echo 'print(74)' >$to/wrong_answer/once.py
	printf 'n = int(input())\nassert n == 37\nprint(74)\n' >$to/run_time_error/once.py
	judge 0 p
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":1,"WA":1,"RTE":1}' ]
}

@test "submissions that misbehave: a verdict each, the others go on, nothing stays behind" {
	small p
	rm p/submissions/accepted/a.py
	mkdir p/submissions/rejected
	local to=p/submissions/rejected
	echo 'int no_main(void) { return 0; }' >$to/no_main.c
	printf 'import itertools\nfor i in itertools.count():\n open("/data/%%d" %% i, "wb").write(bytes(1 << 24))\n' >$to/fills.py
	printf 'import os, time\nif os.fork() == 0:\n time.sleep(0.5)\n print(2, flush=True)\n' >$to/orphan.py
	printf 'import os\nwhile True: os.fork()\n' >$to/forks.py
	printf 'import os\nos.kill(os.getppid(), 9)\nos.kill(-1, 9)\n' >$to/kills.py
	printf 'import sys\nsys.stderr.write("x" * (9 << 20))\nprint(2)\n' >$to/talks.py
	echo 'print(int(input()) + 1)' >p/submissions/accepted/z.py
	mkdir -p p/submissions/accepted
	judge 1 p # no_main.c is CE, which no folder of the format expects
	[ "$(of rejected/no_main.c .verdict)" = CE ]
	[ "$(of accepted/z.py .verdict)" = AC ]
	[ "$(jq -c '.summary | [.submissions, .unexpected, .judge_errors]' <<<"$summary")" = '[7,1,0]' ]
	[ "$(of rejected/orphan.py .verdict)" = WA ]
}

@test "groups with scores, a sample that counts for nothing, a partial score" {
	judge 0 "$PACKAGES/groups"
	[ "$(of accepted/a.py .score)" = 100 ]
	[ "$(of partially_accepted/small.cpp .score)" = 30 ]
	[ "$(of partially_accepted/small.cpp '.groups | map([.name, .verdict, .score]) | tojson')" = \
		'[["sample","AC",1],["secret","AC",30],["secret/1","AC",30],["secret/2","WA",0]]' ]
	[ "$(of wrong_answer/one.py .score)" = 0 ]
}

@test "several passes, constants, rules of submissions.yaml" {
	judge 0 "$PACKAGES/passes"
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":1,"WA":1,"RTE":1}' ]
	[ "$(of rejected/exit.py '.expected | join(" ")')" = RTE ]
}

# Three packages as contests' repositories hold them: legal, and not as one would write them for a test.
@test "a repository's package: links, flags, helpers of a validator, stray files, DOMjudge's settings" {
	cp -a "$PACKAGES/tour" tour
	mkdir -p tour/submissions/accepted/empty # git keeps no empty folder
	ln -s nowhere.png tour/data/secret/03-same.png
	ln -s /nowhere/statement.pdf tour/data/statement.pdf
	judge 0 tour
	local java=0
	[ ! -x /usr/bin/javac ] || java=1 # the public class in its file is called otherwise
	[ "$(jq -c '.summary | [.submissions, .as_expected, .skipped, .time_limit_s]' <<<"$summary")" = "[13,$((10 + java)),$((3 - java)),2]" ]
	[ "$(jq -c '.summary.verdicts' <<<"$summary")" = "{\"AC\":$((4 + java)),\"WA\":3,\"TLE\":2,\"RTE\":1,\"SKIP\":$((3 - java))}" ]
	[ "$(of wrong_answer/as_read.cpp '.expected | join(" ")')" = "WA RTE" ]
	[[ "$(of wrong_answer/as_read.cpp .message)" == "from "*" to "* ]]
	[[ "$(of accepted/empty .message)" == *"has no files" ]]
	# What validation needs and is not there is the package's fault, and no comparison takes its place.
	rm -r tour/output_validators
	judge 3 tour
	[[ $stderr == *"validation is custom, but output_validators/ has no program"* ]]
}

@test "2025-09: files and arguments of a case, constants, anchors, entry points, an include that wins" {
	judge 0 "$PACKAGES/lookup"
	[ "$(jq -c '.summary.verdicts' <<<"$summary")" = '{"AC":4,"WA":2,"OLE":1,"RTE":2}' ]
	for name in a.cpp own_header pair; do [ "$(of accepted/$name .score)" = 100 ]; done
	[ "$(of mixed/rough.py '[.score, .as_expected] | tojson')" = '[40,true]' ]
	[ "$(of mixed/no_args.py .case)" = secret/small/2-twice ]
	[ "$(of rejected/floods.py '[.verdict, .as_expected] | tojson')" = '["OLE",true]' ]
	cp -a "$PACKAGES/lookup" lookup
	ln -s /etc/passwd lookup/data/secret/small/1.files/more/passwd
	judge 3 lookup accepted/a.cpp
	[[ "$(of accepted/a.cpp .message)" == *"leads out of the package"* ]]
}

@test "later formats: a submission writes in its working directory only where allow_file_writing is true" {
	mkdir -p p/data/secret p/submissions/accepted p/output_validators
	case_of p/data/secret 1 1 1
	mkdir p/data/secret/1.files
	echo given >p/data/secret/1.files/given.txt
	cat >p/submissions/accepted/writes.py <<-'END'
		import os, tempfile
		assert open("given.txt").read() == "given\n"
		with tempfile.TemporaryFile() as file: file.write(b"scratch")
		def tries():
		    yield lambda: open("new.txt", "w").close()
		    yield lambda: open(__file__, "a").close()
		    yield lambda: open("given.txt", "w").close()
		    yield lambda: os.mkdir("folder")
		    yield lambda: os.rename("given.txt", "taken.txt")
		    yield lambda: os.remove("taken.txt")
		    yield lambda: os.symlink("x", "/data/link")
		done = 0
		for act in tries():
		    try: act(); done += 1
		    except OSError: pass
		print(1 if done == 7 else f"wrote {done}")
	END
	cat >p/submissions/accepted/writes.c <<-'END'
		#include <stdio.h>
		int main(void) { FILE *file = fopen("new.txt", "w"); puts(file ? "1" : "wrote 0"); return 0; }
	END
	# What a validator writes is its own affair.
	cat >p/output_validators/v.py <<-'END'
		import sys
		text = sys.stdin.read().strip()
		open(sys.argv[3] + "judgemessage.txt", "w").write(text)
		sys.exit(42 if text == "1" else 43)
	END
	mv p/output_validators p/output_validator
	local head='limits: {memory: 256, time_limit: 5}' version
	for version in 2025-09 2023-07-draft; do
		printf 'problem_format_version: %s\n%s\nallow_file_writing: true\n' $version "$head" >p/problem.yaml
		judge 0 p
		[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":2}' ]
		for more in "" "allow_file_writing: false"; do
			printf 'problem_format_version: %s\n%s\n%s\n' $version "$head" "$more" >p/problem.yaml
			judge 1 p
			[ "$(jq -r 'select(.submission) | "\(.verdict) \(.message)"' <<<"$output" | sort -u)" = "WA wrote 0" ]
		done
	done
	# Legacy packages know no such flag.
	printf 'validation: custom\n%s\nallow_file_writing: false\n' "$head" >p/problem.yaml
	rm -r p/data/secret/1.files
	rm p/submissions/accepted/writes.py
	mv p/output_validator p/output_validators
	judge 0 p
}

# of_classes FILE CLASS TEXT: a class with a main() that prints the text
of_classes() {
	printf 'class %s { public static void main(String[] args) { System.out.println("%s"); } }\n' "$2" "$3" >"$1"
}

@test "submissions.yaml names the entry point: a class in Java and C#, a file elsewhere" {
	small p
	local folder=p/submissions/accepted java=0 name
	[ ! -x /usr/bin/javac ] || java=1
	mkdir -p "$folder"/{js,jdeep,rust,java,javafile} p/submissions/compiler_error/wrong
	echo 'console.log(2)' >$folder/js/solve.js
	echo 'console.log(3)' >$folder/js/main.js
	echo 'fn main() { println!("2") }' >$folder/rust/solve.rs
	echo 'fn main() { println!("3") }' >$folder/rust/main.rs
	for name in $folder/java $folder/javafile p/submissions/compiler_error/wrong; do
		of_classes "$name/First.java" First 3
		of_classes "$name/Main.java" Main 3
	done
	of_classes $folder/java/Last.java Last 2
	of_classes $folder/javafile/last.java Other 2
	sed -i 's/^/public /' $folder/javafile/last.java # its name is not the file's
	mkdir $folder/jdeep/my
	of_classes $folder/jdeep/my/Deep.java Deep 2
	sed -i 's/^/package my; /' $folder/jdeep/my/Deep.java
	of_classes $folder/jdeep/Main.java Main 3
	cat >p/submissions/submissions.yaml <<-'END'
		accepted/js: {entrypoint: solve.js}
		accepted/rust: {entrypoint: solve.rs}
		accepted/java: {entrypoint: Last}
		accepted/javafile: {entrypoint: last.java}
		accepted/jdeep: {entrypoint: my.Deep}
		compiler_error/wrong: {entrypoint: Nowhere}
	END
	judge 0 p
	[ "$(of accepted/js .verdict)" = AC ]
	if [ -x /usr/bin/rustc ]; then
		[ "$(of accepted/rust .verdict)" = AC ]
	else
		[ "$(of accepted/rust '[.verdict, .as_expected] | tojson')" = '["SKIP",null]' ]
		[[ "$(of accepted/rust .message)" == *rust* ]]
	fi
	[ "$java" = 1 ] || skip "there is no Java: the rest was not tried"
	for name in java javafile jdeep; do [ "$(of accepted/$name .verdict)" = AC ]; done
	[[ "$(of compiler_error/wrong .message)" == 'the class Nowhere has no method "public static void main(String[] args)"'* ]]
	# What was compiled with one entry point is not taken for another.
	sed -i 's/entrypoint: Last/entrypoint: First/' p/submissions/submissions.yaml
	judge 1 p accepted/java
	[ "$(of accepted/java .verdict)" = WA ]
}

@test "constants: values and mappings, in programs and settings, not in data" {
	small p $'problem_format_version: 2025-09\nconstants: {LIMIT: 7, TEN: {value: "10.0", GERMAN: "10,0"}, not: {GERMAN: x}}\n'
	case_of p/data/secret 1 '{{LIMIT}} {{nowhere}}' '7 10.0 10,0 {{LIMIT}} {{nowhere}} {{not}} {{TEN.FRENCH}}'
	echo 'args: ["{{TEN.GERMAN}}"]' >p/data/secret/test_group.yaml
	echo 'import sys; print({{LIMIT}}, "{{TEN}}", sys.argv[1], input(), "{{" + "not}}", "{{TEN.FRENCH}}")' >p/submissions/accepted/a.py
	judge 0 p
}

@test "what a package lacks or names in vain is said: data/, inputs, large files, groups of require_pass" {
	small p $'problem_format_version: 2025-09\ntype: scoring\n'
	mkdir p/data/secret/g
	mv p/data/secret/1.* p/data/secret/g
	printf 'max_score: 100\nrequire_pass: [secret/nowhere]\n' >p/data/secret/g/test_group.yaml
	judge 0 p
	[ "$(jq -c .summary.warnings <<<"$summary")" = '["data/secret/g: require_pass names secret/nowhere, which is not a group, so no submission has points in this one"]' ]
	printf 'max_score: 100\n' >p/data/secret/g/test_group.yaml
	echo 5 >p/data/secret/g/2.ans
	printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 1234567\n' 0 >p/data/secret/g/3.in
	echo 5 >p/data/secret/g/3.ans
	judge 1 p
	[ "$(jq -c .summary.warnings <<<"$summary")" = '["data/secret/g/2.ans has no input: without its .in file it is no test case","data/secret/g/3 is a pointer of Git LFS, not the test case: git lfs pull fetches it"]' ]
	rm -r p/data
	judge 2 p
	[ "$stderr" = "sallyport: $PWD/p has no folder data/, where test cases are" ]
}

@test "a class without main is what a compiler accepts and java refuses" {
	[ -x /usr/bin/javac ] || skip "there is no Java"
	small p
	mkdir p/submissions/run_time_error
	echo 'public class main { int main() { return 0; } }' >p/submissions/run_time_error/main.java
	echo 'class A { } class B { }' >p/submissions/run_time_error/two.java
	judge 0 p run_time_error
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"RTE":2}' ]
}

@test "submissions.yaml: an unknown language is warned of" {
	small p $'problem_format_version: 2025-09\n'
	printf '#include <stdio.h>\nint main() { puts("2"); }\n' >p/submissions/accepted/b.cc
	echo 'print(2)' >p/submissions/accepted/c.py
	printf '%s\n' 'accepted/a.py: {language: Python 3}' 'accepted/b.cc: {language: C++}' 'accepted/c.py: {language: python2}' >p/submissions/submissions.yaml
	judge 0 p
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":2,"SKIP":1}' ]
	[[ "$(of accepted/c.py .message)" == *python2* ]] # a code, which no runner has
	[ "$(jq -c .summary.warnings <<<"$summary")" = '["submissions/submissions.yaml: accepted/a.py: language is a code (python3, cpp), not \"Python 3\"","submissions/submissions.yaml: accepted/b.cc: language is a code (python3, cpp), not \"C++\""]' ]
}

@test "flags of a validator are split at blanks outside quotation marks" {
	small p $'validation: custom\nvalidator_flags: --say "two words" it'"'"$'s "\n'
	mkdir p/output_validators
	echo 'import sys; open(sys.argv[3] + "judgemessage.txt", "w").write(repr(sys.argv[4:])); sys.exit(43)' >p/output_validators/v.py
	echo "output_validator_flags: \"'a b' c\"" >p/data/testdata.yaml
	judge 1 p
	[ "$(of accepted/a.py .message)" = "['--say', 'two words', \"it's\", '\"', 'a b', 'c']" ]
}

@test "Rust: programs of older editions compile" {
	[ -x /usr/bin/rustc ] || skip "rustc is not installed"
	small p
	echo 'fn twice(f: Box<Fn(i32) -> i32>) -> i32 { f(1) } fn main() { println!("{}", twice(Box::new(|n| n * 2))); }' >p/submissions/accepted/e2018.rs
	echo 'fn main() { let async = 2; match async { 0...5 => println!("{}", async), _ => {} } }' >p/submissions/accepted/e2015.rs
	echo 'fn main() { let (a, b); [a, b] = [1, 1]; println!("{}", a + b); }' >p/submissions/accepted/e2021.rs
	echo 'fn main() { let async = 2; nowhere }' >p/submissions/accepted/wrong.rs
	judge 1 p
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":4,"CE":1}' ]
	[[ "$(of accepted/wrong.rs .message)" == *"async"* ]]
}

@test "Python 2 programs are skipped" {
	small p
	local folder=p/submissions/accepted
	printf 'n = raw_input()\nprint int(n) + 1\n' >$folder/old1.py
	printf '#!/usr/bin/env python\nprint "%%d" %% 2\n' >$folder/old2.py
	printf 'for i in xrange(1):\n\tprint(2)\n' >$folder/old3.py
	printf '#!/usr/bin/python2.7\nprint(2)\n' >$folder/old4.py
	printf 'try:\n\tinput = raw_input\nexcept NameError:\n\tpass\nprint(int(input()) + 1) # raw_input()\n' >$folder/both.py
	printf '"""\nprint "2"\n"""\nxrange = range\nfor i in xrange(1): print(2)\n' >$folder/new1.py
	printf '#!/usr/bin/env python3\nprinted = "xrange(2)"\nprint (2)\n' >$folder/new2.py
	mkdir $folder/package
	touch $folder/package/__init__.py
	printf 'from other import f\nprint(f(int(input())))\n' >$folder/package/solve.py
	echo 'def f(n): return n + 1' >$folder/package/other.py
	judge 0 p
	[ "$(jq -r 'select(.submission) | "\(.submission[9:]) \(.verdict)"' <<<"$output" | paste -sd,)" = \
		"a.py AC,both.py AC,new1.py AC,new2.py AC,old1.py SKIP,old2.py SKIP,old3.py SKIP,old4.py SKIP,package AC" ]
	[[ "$(of accepted/old1.py .message)" == *"Python 2"* ]]
}

# csharp.json compiles one file for each run.
@test "C#: several files, compiled once, an entry point" {
	[ -x /usr/bin/mcs ] || skip "mcs is not installed"
	small p
	case_of p/data/secret 2 2 3
	mkdir p/submissions/accepted/cs
	echo 'static class Add { public static int One(int n) { return n + 1; } }' >p/submissions/accepted/cs/Add.cs
	echo 'using System; class Solve { static void Main() { Console.WriteLine(Add.One(int.Parse(Console.ReadLine()))); } }' >p/submissions/accepted/cs/Solve.cs
	echo 'class Wrong { static void Main() { System.Console.WriteLine(0); } }' >p/submissions/accepted/cs/Wrong.cs
	echo 'accepted/cs: {entrypoint: Solve}' >p/submissions/submissions.yaml
	judge 0 p
	[ "$(of accepted/cs '[.verdict, .cases_run] | tojson')" = '["AC",2]' ]
	[ "$(jq .summary.compiled <<<"$summary")" = 1 ]
	echo 'class Bad { static int Main() { int x = "text"; return x; } }' >p/submissions/accepted/cs/Wrong.cs
	judge 1 p accepted/cs
	[ "$(of accepted/cs .verdict)" = CE ]
	[[ "$(of accepted/cs .message)" == *CS0029* ]]
}

@test "an olympiad's package: cases of several groups, inherited settings, the grades that a source expects" {
	cp -a "$PACKAGES/coins" coins
	judge 0 coins
	[ "$(jq -r 'select(.submission) | [.submission, .score] | join(" ")' <<<"$output" | paste -sd ' ')" = \
		"accepted/a.py 100 partially_accepted/group_1.py 20 partially_accepted/small_50.cpp 50 wrong_answer/case.py 0" ]
	sed -i 's/GRADES@ AC AC WA/GRADES@ AC TLE WA/' coins/submissions/partially_accepted/small_50.cpp
	judge 1 coins partially_accepted/small_50.cpp
	[ "$(of partially_accepted/small_50.cpp .message)" = "secret/group2 is AC, which is not what @EXPECTED_GRADES@ says" ]
	sed -i 's/GRADES@ AC TLE WA/GRADES@ AC/' coins/submissions/partially_accepted/small_50.cpp # not one for each group
	judge 0 coins partially_accepted/small_50.cpp
}

@test "what editors and other systems make of a package: marks, line ends, scripts, other dialects of problem.yaml" {
	small p
	rm p/.timelimit
	printf '\xef\xbb\xbfname: {en: One}\r\nauthor: [A, B]\r\nkeywords:\r\nlimits:\r\n  memory: 256\r\nvalidator_flags: >\r\n  float_tolerance 1e-2\r\n' >p/problem.yaml
	printf "\xef\xbb\xbftimelimit='2.5' ; seconds\r\nshort-name = A\r\n" >p/domjudge-problem.ini
	printf '1\r\n' >p/data/secret/1.in
	printf '2.001\r\n' >p/data/secret/1.ans
	printf '\xef\xbb\xbf#!/usr/bin/env python3\r\nprint(int(input()) + 1)\r\n' >p/submissions/accepted/mark.py
	mkdir p/submissions/accepted/parts "p/submissions/accepted/with spaces"
	echo 'def more(n): return n + 1' >p/submissions/accepted/parts/a_helper.py # before the program, in order of names
	printf 'from a_helper import more\nprint(more(int(input())))\n' >p/submissions/accepted/parts/solve.py
	printf 'int main() { return 0; ' >"p/submissions/accepted/with spaces/my notes.txt"
	printf '#include <stdio.h>\nint main(void) { puts("2"); return 0; }\n' >"p/submissions/accepted/with spaces/my program.c"
	printf ':- initialization(main).\nmain :- write(2), nl, halt.\n' >p/submissions/accepted/prolog.pl
	judge 0 p
	[ "$(jq -c '.summary | [.verdicts, .time_limit_s]' <<<"$summary")" = '[{"AC":4,"SKIP":1},2.5]' ]
	[[ "$(of accepted/prolog.pl .message)" == *Prolog* ]]
	rm p/domjudge-problem.ini
	printf '\xef\xbb\xbf3\r\n' >p/.timelimit
	# A validator that says itself what runs it; later formats that name a validator of their own, or the default one.
	mkdir p/output_validators
	printf '#!/usr/bin/env python3\nimport sys\nsys.exit(42 if float(sys.stdin.read()) == 7 else 43)\n' >p/output_validators/validate
	echo notes >p/output_validators/README.md
	chmod +x p/output_validators/validate
	printf 'problem_format_version: 2023-07-draft\nvalidation: default\nlimits: {memory: 256}\n' >p/problem.yaml
	echo 2 >p/data/secret/1.ans
	judge 0 p accepted/a.py
	[ "$(jq -c '.summary.time_limit_s' <<<"$summary")" = 3 ]
	sed -i '/validation/d' p/problem.yaml
	judge 1 p accepted/a.py
	sed -i 's/== 7/== 2/' p/output_validators/validate
	judge 0 p accepted/a.py
	# The last drafts of 2023-07 score as 2025-09 does, with other names; what is not there is refused.
	rm -r p/output_validators
	printf 'problem_format_version: 2023-07-draft\ntype: scoring\nlimits: {memory: 256}\n' >p/problem.yaml
	mkdir p/data/secret/{a,b}
	cp p/data/secret/1.* p/data/secret/a
	mv p/data/secret/1.* p/data/secret/b
	printf 'scoring: {score: 30}\n' >p/data/secret/a/test_group.yaml
	printf 'scoring: {score: 70, require_pass: secret/a}\n' >p/data/secret/b/test_group.yaml
	echo 7 >p/data/secret/b/1.ans
	judge 1 p accepted/a.py # what is accepted there is so in every case
	[ "$(of accepted/a.py '[.score, .as_expected] | tojson')" = '[30,false]' ]
	for group in a b; do mv p/data/secret/$group/{test_group,testdata}.yaml; done # earlier ones said the same there
	judge 1 p accepted/a.py
	[ "$(of accepted/a.py '[.score, .as_expected] | tojson')" = '[30,false]' ]
	for group in a b; do mv p/data/secret/$group/{testdata,test_group}.yaml; done
	printf 'static_validation_score: 5\n' >>p/data/secret/a/test_group.yaml
	judge 2 p
	[[ $stderr == *"static validators are not supported"* ]]
}

@test "programs: extensions, entry points, include/LANGUAGE, cases that are links" {
	small p
	ln -s 1.in p/data/secret/2.in
	ln -s 1.ans p/data/secret/2.ans
	local folder=p/submissions/accepted name
	for name in a.c++ b.C c.cc d.cpp; do
		printf '#include "answer.h"\n#include <cstdio>\nint main() { std::printf("%%d", answer); }\n' >$folder/$name
	done
	printf '#include <stdio.h>\nint main(void) { puts("2"); return 0; }\n' >$folder/e.c
	echo 'import answer; print(answer.answer)' >$folder/f.py3
	echo 'echo 2' >$folder/g.bash
	for name in __main__ main entrypoint; do
		mkdir $folder/$name
		echo 'import other' >$folder/$name/$name.py
		echo 'print(2)' >$folder/$name/other.py
		echo 'print("the wrong one")' >$folder/$name/aaa.py
	done
	mkdir -p p/include/cpp p/include/python
	echo 'enum { answer = 2 };' >p/include/cpp/answer.h
	echo 'answer = 2' >p/include/python/answer.py
	judge 0 p
	[ "$(jq -c '[.summary.submissions, .summary.verdicts]' <<<"$summary")" = '[11,{"AC":11}]' ]
	[ "$(of accepted/b.C '[.language, .cases_run] | join(" ")')" = "cpp 2" ]
}

@test "jails that are made ahead: one for each run, whichever program it is of" {
	small p
	local n
	for ((n = 2; n <= 12; n++)); do case_of p/data/secret "$n" "$n" $((n + 1)); done
	echo 'import os
for place in "/tmp/there", "/data/there":
    assert not os.path.exists(place)
    open(place, "w").close()
print(int(input()) + 1)' >p/submissions/accepted/b.py
	cat >p/submissions/accepted/c.c <<-'END'
		#include <stdio.h>
		#include <unistd.h>
		int main(void)
		{
			int n;

			if (symlink("x", "/tmp/there") || symlink("x", "/data/there") || scanf("%d", &n) < 1)
				return 1;
			printf("%d\n", n + 1);
			return 0;
		}
	END
	mkdir p/submissions/run_time_error
	echo 'import os; n = int(input()); os.kill(os.getpid(), 9 if n == 7 else 0); print(n + 1)' >p/submissions/run_time_error/d.py
	judge 0 p -j 3
	[ "$(jq -c '.summary | [.submissions, .verdicts, .judge_errors]' <<<"$summary")" = '[4,{"AC":3,"RTE":1},0]' ]
	for n in a.py b.py c.c; do [ "$(of accepted/$n .cases_run)" = 12 ]; done
	[ "$(of run_time_error/d.py .case)" = secret/7 ]
}

@test "legacy groups: nested, inherited, accept_if_any_accepted, ignore_sample" {
	small p 'type: scoring'
	mkdir p/data/sample
	case_of p/data/sample 1 1 999 # nobody gets the sample right
	rm p/data/secret/1.*
	case_of p/data/secret/any 1 1 2
	case_of p/data/secret/any 2 1 999
	case_of p/data/secret/sum/deep 1 1 2
	case_of p/data/secret/sum/deep 2 3 4
	case_of p/data/secret/sum 9 5 6
	printf 'grader_flags: ignore_sample\naccept_score: 10\nrange: 0 1000\non_reject: continue\n' >p/data/testdata.yaml
	printf 'grader_flags: sum\n' >p/data/secret/testdata.yaml
	printf 'grader_flags: max accept_if_any_accepted\n' >p/data/secret/any/testdata.yaml
	printf 'accept_score: 3\n' >p/data/secret/sum/testdata.yaml
	judge 0 p
	[ "$(of accepted/a.py '.groups | map([.name, .verdict, .score]) | tojson')" = \
		'[["sample","WA",0],["secret","AC",19],["secret/any","AC",10],["secret/sum","AC",9],["secret/sum/deep","AC",6]]' ]
	[ "$(of accepted/a.py '[.verdict, .score] | tojson')" = '["AC",19]' ]
}

@test "rules of submissions.yaml for parts of the data" {
	cp -r "$PACKAGES/points" p
	rule() { # STATUS MESSAGE RULE
		echo "$3" >p/submissions/submissions.yaml
		judge "$1" p partly/small.py
		[ "$1" = 0 ] || [[ "$(of partly/small.py .message)" == *"$2"* ]]
		[ "$(of partly/small.py .as_expected)" = "$([ "$1" = 0 ] && echo true || echo false)" ]
	}
	rule 0 "" 'partly/small.py: {sample: {permitted: [AC]}, secret/1: {permitted: [AC], score: 20}, secret: {required: [WA]}}'
	rule 1 "does not permit in secret" 'partly/small.py: {secret: {permitted: [AC]}}'
	rule 1 "secret/1 has 20 points, submissions.yaml expects 30 to 40" 'partly/*.py: {secret/1: {score: [30, 40]}}'
	rule 1 "secret/1 has 20 points, submissions.yaml expects 30 to 40" 'partly/*.py: {"secret/{0,1}": {score: [30, 40]}}'
	rule 0 "" 'partly/*.py: {secret/*: {score: [0, 40]}, secret/: {permitted: [AC, WA]}}'
	rule 0 "" 'partly/small.py: {secret/3: {message: "what was not run says nothing"}}'
	rule 1 'no judge'"'"'s message in secret/1 has "nothing"' 'partly/small.py: {secret/1: {message: nothing}}'
	rule 1 "no case in secret/1 has a verdict" 'partly/small.py: {secret/1: {required: [TLE, MLE]}}'
	# What ran at the side of the rejection that ended it all says nothing either.
	small q $'problem_format_version: 2025-09\n'
	case_of q/data/secret 2 2 3
	mkdir q/submissions/wrong_answer
	printf 'import time\nn = int(input())\nassert n == 1\ntime.sleep(0.5)\nprint(7)\n' >q/submissions/wrong_answer/a.py
	echo 'wrong_answer/a.py: {secret: {permitted: [AC, WA]}}' >q/submissions/submissions.yaml
	judge 0 q -j 2 wrong_answer
	[ "$(of wrong_answer/a.py .case)" = secret/1 ]
}

@test "2025-09: names that break the rule are left out with a warning" {
	small p $'problem_format_version: 2025-09\n'
	mkdir "p/data/secret/a b" p/submissions/{wrong_answer,own+one} p/submissions/accepted/two
	case_of p/data/secret "3 4" 3 5
	case_of p/data/secret -5 3 5
	case_of "p/data/secret/a b" 1 3 5
	echo 'print(1)' >"p/submissions/wrong_answer/größe.py"
	echo 'int main() { return __builtin_puts("2") < 0; }' >p/submissions/accepted/c.c++ # an ending of the format's own list
	echo 'print(2)' | tee p/submissions/own+one/a.py "p/submissions/accepted/two/main (1).py" >/dev/null
	echo 'print(2)' >p/submissions/accepted/two/a.py
	touch p/submissions/accepted/.hidden.py
	judge 0 p
	[ "$(jq -c '[.summary.submissions, .summary.cases_run, (.summary.warnings | length)]' <<<"$summary")" = '[3,3,8]' ]
	for name in 'data/secret/-5.in' 'data/secret/-5.ans' 'data/secret/3 4.in' 'data/secret/3 4.ans' 'data/secret/a b' 'submissions/own+one' \
		'submissions/wrong_answer/größe.py' 'submissions/accepted/two/main (1).py'; do
		[[ $stderr == *"sallyport: warning: $name is left out"*"rename it"* ]]
		[ "$(jq --arg name "$name" '[.summary.warnings[] | select(startswith($name + " is left out"))] | length' <<<"$summary")" = 1 ]
	done
	# What is named on the command line is judged.
	judge 0 p "wrong_answer/größe.py"
	[ "$(jq -c '.summary | [.submissions, .verdicts]' <<<"$summary")" = '[1,{"WA":1}]' ]
	# No other format leaves them out.
	small p $'problem_format_version: 2023-07-draft\n'
	judge 1 p
	[ "$(jq -c '[.summary.submissions, .summary.warnings]' <<<"$summary")" = '[5,null]' ]
}

@test "submissions.yaml: words and patterns that say nothing are said" {
	small p $'problem_format_version: 2025-09\n'
	says() { # TEXT RULE…: the one warning
		local text=$1
		shift
		printf '%s\n' "$@" >p/submissions/submissions.yaml
		judge 0 p
		[ "$(jq -c .summary.warnings <<<"$summary")" = "[\"submissions/submissions.yaml$text\"]" ]
		[[ $stderr == "sallyport: warning: submissions/submissions.yaml"* ]]
	}
	says ': accepted/a.py: permitted has \"PASS\", which is none of AC, WA, TLE and RTE' 'accepted/a.py: {permitted: [AC, PASS]}'
	says ': accepted/a.py: required has \"MLE\", which is none of AC, WA, TLE and RTE' 'accepted/a.py: {required: [AC, MLE]}'
	says ': accepted: use_for_time_limit is true, false, lower or upper, not \"never\"' 'accepted: {use_for_time_limit: never}'
	says ': accepted/a.py: \"permited\" is not known and says nothing' 'accepted/a.py: {permited: [AC]}'
	says ': accepted/a.py: secret/9 matches no test case' 'accepted/a.py: {secret/9: {permitted: [AC]}}'
	says ': accepted/a.py: secret/*: \"language\" is not known and says nothing' 'accepted/a.py: {secret/*: {language: c}}'
	says ': accepted/b.py matches no submission' 'accepted/b.py: {permitted: [AC]}'
	says ': accepted must be a mapping; it says nothing' 'accepted: [AC]'
	says ' must be a mapping; it says nothing' '- accepted'
	for i in {1..25}; do echo "accepted/$i.py: {permitted: [AC]}"; done >p/submissions/submissions.yaml
	judge 0 p
	[ "$(jq -c '.summary.warnings | [length, last]' <<<"$summary")" = '[20,"6 more warnings"]' ]
	printf '%s\n' 'accepted: {permitted: [AC], score: 1, message: ""}' 'brute_force:' 'accepted/{a,b}.py: {model_solution: true, authors: me, sample: {permitted: [AC]}}' \
		>p/submissions/submissions.yaml
	mkdir p/data/sample
	case_of p/data/sample 1 1 2
	judge 0 p
	[ "$(jq .summary.warnings <<<"$summary")" = null ]
	[ "$stderr" = "" ]
}

@test "a score is all that a rule expects: in a folder of any name" {
	cp -r "$PACKAGES/points" p
	rm -r p/submissions/{accepted,wrong_answer}
	echo 'partly/small.py: {score: 20}' >p/submissions/submissions.yaml
	judge 0 p partly/small.py
	[ "$(of partly/small.py '[.expected, .as_expected] | tojson')" = '[null,true]' ]
	echo 'partly/small.py: {score: [30, 40]}' >p/submissions/submissions.yaml
	judge 1 p partly/small.py
	[ "$(of partly/small.py '[.score, .as_expected] | tojson')" = '[20,false]' ]
}

@test "scores of 2025-09: sum, min, require_pass, multipliers" {
	judge 0 "$PACKAGES/points"
	[ "$(of accepted/a.py .score)" = 100 ]
	[ "$(of partly/small.py .score)" = 20 ]
	[ "$(of partly/half.py .score)" = 50 ]
	[ "$(of partly/small.py '.groups[] | select(.name == "secret/3") | .name')" = "" ] # was not run: secret/2 did not pass
	[ "$(of wrong_answer/none.py '[.verdict, .score] | tojson')" = '["WA",0]' ]
}

@test "2025-09: a folder inside a group is not a group" {
	local jobs
	for jobs in 1 4; do
		judge 0 "$PACKAGES/folders" -j $jobs
		[ "$(jq -r 'select(.submission) | [.submission, .verdict, .score] | join(" ")' <<<"$output" | paste -sd ' ')" = \
			"accepted/a.py AC 100 rejected/crash.py AC 30 wrong_answer/small.py AC 20" ]
		[ "$(of accepted/a.py '.groups | map(.name) | join(" ")')" = "sample secret secret/1-sum secret/2-all" ]
	done
	cp -r "$PACKAGES/folders" p
	local to=p/submissions
	mv $to/wrong_answer/small.py $to/accepted
	sed -i '/^accepted/d' $to/submissions.yaml
	cp $to/accepted/a.py $to/rejected
	printf 'n = int(input())\nassert n != 1\nprint(n + 1 if n < 10 else 0)\n' >$to/wrong_answer/both.py
	judge 1 p --results r.db
	[ "$(of accepted/small.py .message)" = "secret/1-sum/large/1 is WA, which its folder or submissions.yaml does not permit" ]
	[ "$(of rejected/a.py .message)" = "no case has a verdict that its folder or submissions.yaml requires" ]
	[ "$(of wrong_answer/both.py .as_expected)" = false ]
	[ "$(of rejected/crash.py .as_expected)" = true ]
	jq -c 'select(.submission) | .as_expected' <<<"$output" >whole
	judge 1 p --resume --results r.db
	diff whole <(jq -c 'select(.submission) | .as_expected' <<<"$output")
	# The folder's own rule in submissions.yaml comes first, wherever it stands.
	printf 'accepted/small.py: {required: [WA]}\naccepted: {permitted: [AC, WA]}\n' >$to/submissions.yaml
	judge 0 p accepted
	[ "$(of accepted/small.py .as_expected)" = true ]
	printf 'accepted/small.py: {permitted: [AC]}\naccepted: {permitted: [AC, WA]}\n' >$to/submissions.yaml
	judge 1 p accepted/small.py
}

@test "2025-09: what a validator writes of scores in a sample is nothing" {
	small p $'problem_format_version: 2025-09\ntype: scoring\n'
	case_of p/data/sample 1 1 9 # nobody gets it right
	case_of p/data/sample 2 1 2
	mkdir p/output_validator
	cat >p/output_validator/v.py <<-'END'
		import sys
		open(sys.argv[3] + "score.txt", "w").write("none" if "sample" in sys.argv else "50")
		sys.exit(42 if open(sys.argv[2]).read() == sys.stdin.read() else 43)
	END
	echo 'output_validator_args: [sample]' >p/data/sample/test_group.yaml
	mv p/submissions/accepted p/submissions/mine
	judge 0 p
	[ "$(of mine/a.py '[.verdict, .score] | tojson')" = '["AC",50]' ]
	# In the secret data it is the judge's error.
	echo 9 >p/data/secret/1.ans
	judge 3 p
	[ "$(of mine/a.py '[.case, .message] | tojson')" = '["secret/1","the validator gave a score and did not accept"]' ]
}

@test "after a rejection the grader or one accepted case decides" {
	local jobs
	for jobs in 1 4; do
		judge 0 "$PACKAGES/lenient" -j $jobs
		[ "$(jq -c '.summary | [.verdicts, .as_expected]' <<<"$summary")" = '[{"AC":2,"WA":3},5]' ]
		[ "$(of accepted/enough.py .cases_run)" = 9 ]
		[ "$(of wrong_answer/quarter.py .cases_run)" = 4 ]
	done
}

@test "cases and groups come in the order of their names, which have no extension" {
	local name
	small p
	rm p/data/secret/*
	for name in 1 1-a 10 2 a/x b; do case_of "p/data/secret/$(dirname "$name")" "$(basename "$name")" "$name" "$name"; done
	mkdir p/submissions/wrong_answer
	rm p/submissions/accepted/a.py
	echo 'print(input())' >p/submissions/accepted/a.py
	while read -r name; do
		echo "n = input(); print(n if n in '$name'.split(',') else 'no')" >p/submissions/wrong_answer/w.py
		judge 0 p
		[ "$(of wrong_answer/w.py .case)" = "secret/${name##*>}" ]
	done <<-'END'
		0>1
		1,>1-a
		1,1-a,>10
		1,1-a,10,>2
		1,1-a,10,2,>a/x
		1,1-a,10,2,a/x,>b
	END
}

@test "legacy: the words that problem.yaml once had for on_reject" {
	local word
	small p
	case_of p/data/secret 2 2 9
	case_of p/data/secret 3 3 4
	mkdir p/submissions/partially_accepted
	mv p/submissions/accepted/a.py p/submissions/partially_accepted
	for word in "grade 20" "worst_error 20" "first_error 10"; do
		printf 'type: scoring\nlimits: {memory: 256}\ngrading: {on_reject: %s, accept_score: 10, range: 0 30}\n' "${word% *}" >p/problem.yaml
		echo 'grader_flags: always_accept' >p/data/testdata.yaml
		judge 0 p
		[ "$(of partially_accepted/a.py .score)" = "${word#* }" ]
	done
}

@test "--submission judges a program outside of the package" {
	echo 'print(sum(map(float, input().split())))' >mine.py
	judge 0 "$PACKAGES/sums" "$PWD/mine.py" wrong_answer/int.py
	[ "$(of "$PWD/mine.py" '[.verdict, .expected, .as_expected] | tojson')" = '["AC",null,null]' ]
	judge 2 "$PACKAGES/sums" nowhere.py
	[[ $stderr == *"nowhere.py is neither below submissions/ nor a file"* ]]
	judge 2 .
	[[ $stderr == *"not a problem package: it has no problem.yaml"* ]]
	# DOMjudge's packages need not have one.
	small ini
	rm ini/problem.yaml ini/.timelimit
	printf "probid = A\ntimelimit = 3\n" >ini/domjudge-problem.ini
	judge 0 ini
	[ "$(jq -c '.summary | [.verdicts, .time_limit_s == 3]' <<<"$summary")" = '[{"AC":1},true]' ]
	/usr/bin/python3 -m zipfile -c ini.zip ini
	judge 0 ini.zip
	small p
	rm -r p/data/secret/*
	judge 2 p
	[[ $stderr == *"no test cases"* ]]
	small q
	rm q/.timelimit
	rm -r q/submissions/accepted
	mkdir -p q/submissions/wrong_answer
	echo 'print(1)' >q/submissions/wrong_answer/a.py
	judge 3 q
	[[ $stderr == *"--time-limit"* ]]
	judge 0 --time-limit 3 q
}

# zip FILE PROGRAM [a]: an archive that a program in Python writes, "z" is the archive and "link" makes an entry of another kind
zip() {
	/usr/bin/python3 - "$1" <<-END
		import stat, sys, warnings, zipfile
		warnings.simplefilter("ignore")
		z = zipfile.ZipFile(sys.argv[1], "${3:-w}", zipfile.ZIP_DEFLATED)
		def link(name, target):
		    entry = zipfile.ZipInfo(name)
		    entry.create_system = 3
		    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
		    z.writestr(entry, target)
		def lie(size): # each file says that it is so large
		    z.close()
		    text = bytearray(open(sys.argv[1], "rb").read())
		    for mark, at in (b"PK\x03\x04", 22), (b"PK\x01\x02", 24):
		        found = text.find(mark)
		        while found >= 0:
		            text[found + at:found + at + 4] = size.to_bytes(4, "little")
		            found = text.find(mark, found + 1)
		    open(sys.argv[1], "wb").write(text)
		$2
		z.close()
	END
}

@test "a package as a ZIP archive: with a folder, without one, with the mark of scripts and other names" {
	export TMPDIR=$PWD/tmp
	mkdir tmp
	small p $'validation: custom\n'
	mkdir -p p/output_validators/scripts
	printf '#!/bin/sh\nread -r x && test "$x" = "$(cat "$2")" && exit 42; exit 43\n' >p/output_validators/scripts/run
	chmod +x p/output_validators/scripts/run
	mv p/data/secret/1.in "p/data/secret/größe 1.in"
	mv p/data/secret/1.ans "p/data/secret/größe 1.ans"
	/usr/bin/python3 -m zipfile -c folder.zip p
	(cd p && /usr/bin/python3 -m zipfile -c ../hello.zip problem.yaml .timelimit data submissions output_validators)
	judge 0 folder.zip
	[ "$(jq -c '.summary | [.package, .verdicts]' <<<"$summary")" = '["p",{"AC":1}]' ]
	sed -i 's/+ 1/+ 2/' p/submissions/accepted/a.py
	judge 0 hello.zip p/submissions/accepted/a.py accepted/a.py
	[ "$(jq -c '.summary | [.package, .verdicts]' <<<"$summary")" = '["hello",{"AC":1,"WA":1}]' ]
	[ "$(of p/submissions/accepted/a.py .case)" = "secret/größe 1" ]
	sp_until "" sh -c '[ -z "$(ls tmp)" ]'
	# Links, as archives of repositories have them: of cases, and of folders.
	mkdir p/data/secret/a
	mv p/data/secret/{größe\ ,a/}1.in
	mv p/data/secret/{größe\ ,a/}1.ans
	mv p/output_validators p/validators
	(cd p && /usr/bin/python3 -m zipfile -c ../links.zip problem.yaml data submissions validators)
	zip links.zip 'link("./output_validators", "validators"); link("data/secret/b/2.in", "../a/1.in"); link("data/secret/b/2.ans", "../a/1.ans")' a
	judge 1 links.zip
	[ "$(of accepted/a.py '[.verdict, .cases] | tojson')" = '["WA",2]' ]
	sp_until "" sh -c '[ -z "$(ls tmp)" ]'
}

@test "hostile archives: an error in words, nothing is written elsewhere, nothing is left" {
	export TMPDIR=$PWD/tmp/below
	mkdir -p tmp/below
	hostile() { # MESSAGE PROGRAM
		rm -f h.zip
		zip h.zip "$2"
		judge 2 h.zip
		[ "$output" = "" ]
		[[ $stderr == *"$1"* ]]
		sp_until "" sh -c '[ -z "$(ls tmp/below)" ]'
		[ "$(find . -name 'evil*')" = "" ]
	}
	hostile 'h.zip: "../evil" leads out' 'z.writestr("../evil", "")'
	hostile 'leads out' 'z.writestr("p/data/../../../../evil", "")'
	hostile 'leads out' 'z.writestr("p/./../../evil", "")'
	hostile 'is there twice' 'z.writestr("p/problem.yaml", ""); z.writestr("p/./problem.yaml", "")'
	hostile 'is a link that leads out' 'link("p/./b", "../../evil")'
	hostile '"/evil" is an absolute name' 'z.writestr("/evil", "")'
	hostile 'is a link that leads out' 'link("p", ".."); z.writestr("p/evil", "")'
	hostile 'is a link that leads out' 'link("p/data/secret/1.ans", "/etc/passwd")'
	hostile 'is a link that leads out' 'link("p/a//b", "../../../evil")'
	hostile 'is a link that leads out' 'link("p/a", "x/../../../evil")'
	hostile 'is a link that leads out' 'link("p/a", "..")'
	hostile '"p/b" is there twice' 'z.writestr("p/a/x", ""); link("p/b", "a"); link("p/b/c", "../../evil")'
	hostile 'is there twice' 'z.writestr("p/a/x", ""); link("p/a", "b")'
	hostile 'is there twice' 'z.writestr("problem.yaml", ""); z.writestr("problem.yaml", "name: x")'
	hostile 'is there twice' 'z.writestr("p/a", ""); z.writestr("p/a/evil", "")'
	hostile 'too many folders' 'z.writestr("a/" * 40 + "evil", "")'
	hostile 'more than 255 bytes' 'z.writestr("evil" * 100, "")'
	hostile 'more than 65535 entries' 'for i in range(65536): z.writestr("%d/" % i, "")'
	hostile 'no problem.yaml' 'z.writestr("a/b/problem.yaml", "")'
	hostile 'several folders with a problem.yaml' 'z.writestr("a/problem.yaml", ""); z.writestr("b/problem.yaml", "")'
	hostile 'h.zip: Unrecognized archive format' ''
	hostile 'is larger than 256 MiB' 'z.writestr("p/a", "x"); lie(1 << 30)'
	hostile 'holds more than 2 GiB' '[z.writestr("p/%d" % i, "x") for i in range(9)]; lie(255 << 20)'
	hostile 'is larger than the archive says' 'z.writestr("p/problem.yaml", "name: x" * 200000); lie(1)'
	# Shorter than it says, and a bomb, of which nothing is written.
	small p
	/usr/bin/python3 -m zipfile -c whole.zip p
	head -c 400 whole.zip >h.zip
	judge 2 h.zip
	[[ $stderr == *"h.zip"* ]]
	rm h.zip
	zip h.zip $'with z.open("bomb", "w", force_zip64=True) as f:\n\t    for i in range(2100): f.write(bytes(1 << 20))'
	judge 2 h.zip
	[[ $stderr == *"is larger than 256 MiB"* ]]
	sp_until "" sh -c '[ -z "$(ls tmp/below)" ]'
}

@test "limits of a package above the caps of a server" {
	small p
	printf 'limits: {memory: 3000, output: 20, validation_time: 400}\n' >p/problem.yaml
	echo 140 >p/.timelimit
	echo 'x = bytearray(18 << 20); print("2" + " " * len(x))' >p/submissions/accepted/long.py
	judge 0 p
}
