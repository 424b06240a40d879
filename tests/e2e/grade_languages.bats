#!/usr/bin/env bats
# sallyport grade: programs of each language: extensions, entry points, older editions.
# shellcheck disable=SC2016,SC2154 # programs in single quotes are meant for the jail; the variables are from bats and grade.bash

bats_require_minimum_version 1.5.0
load lib.bash
load grade.bash

# of_classes FILE CLASS TEXT: a class with a main() that prints the text
of_classes() {
	printf 'class %s { public static void main(String[] args) { System.out.println("%s"); } }\n' "$2" "$3" >"$1"
}

@test "submissions.yaml names the entry point" {
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
@test "C#: several files are compiled once" {
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

@test "programs follow the format's rules of files" {
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

@test "C++: a program of any standard compiles" {
	small p
	printf '#include <bits/stdc++.h>\nusing namespace std;\nint data[10], size, n;\nint main() { cin >> n; data[size++] = n; cout << data[0] + size << endl; }\n' >p/submissions/accepted/old.cpp
	printf '#include <bits/stdc++.h>\nusing namespace std;\nint main() { int n; cin >> n; vector<int> v{n}; cout << ssize(v) + n + ranges::max(v) - n << endl; }\n' >p/submissions/accepted/new.cpp
	printf '#include <bits/stdc++.h>\nusing namespace std;\nint main() { ranges::sort(none); }\n' >p/submissions/accepted/wrong.cpp
	printf '#include <cstdio>\nint main() { char line[10]; int n; gets(line); sscanf(line, "%%d", &n); printf("%%d\\n", n + 1); }\n' >p/submissions/accepted/older.cpp
	judge 1 p
	[ "$(of accepted/older.cpp .verdict)" = AC ]
	[ "$(of accepted/old.cpp '[.verdict, .message] | tojson')" = '["AC",""]' ]
	[ "$(of accepted/wrong.cpp .verdict)" = CE ]
	[[ "$(of accepted/wrong.cpp .message)" == *"none"* ]]
	[[ "$(of accepted/wrong.cpp .message)" != *"ranges"*"not been declared"* ]] # what the newer standard says
	judge 0 p accepted/old.cpp
	[ "$(jq .summary.from_cache <<<"$summary")" = 1 ]
}
