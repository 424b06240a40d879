#!/usr/bin/env bats
# The languages that are installed only when asked for (`make deps RUNNERS=all`), each with: a hello with arguments and standard input, what
# does not compile, memory and time that run out. Those that are not there are skipped.
# shellcheck disable=SC2016 # programs in single quotes are meant for the jail

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_private_jailers
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
	[ -z "${SP_DIR:-}" ] || sp_teardown
}

# needs RUNNER: skips without its interpreter.
needs() {
	local file=$SP_ROOT/jail/runners/$1.json path
	for path in $(grep -v '^//' "$file" | jq -r '.interpreters[]'); do
		[ ! -x "$path" ] || return 0
	done
	skip "$1 is not installed: $(grep -v '^//' "$file" | jq -r .install)"
}

# runs STATUS (a pattern) RUNNER CODE [OPTION…] [-- ARGUMENT…]: its JSON is in $output.
runs() {
	local status_wanted=$1 runner=$2
	printf '%s\n' "$3" >source
	shift 3
	run --separate-stderr "$SP_BIN/sallyport" run --stdin --json -l "$runner" source "$@" <in
	# shellcheck disable=SC2053,SC2154 # a pattern; bats sets stderr
	[[ $status == $status_wanted ]] || { echo "status $status: $output $stderr"; return 1; }
}

is() {
	[ "$(jq -r "$1" <<<"$output")" = "$2" ] || { echo "$1 is not $2: $output"; return 1; }
}

# language RUNNER HELLO BROKEN VERDICT WORDS GROW SLEEP: BROKEN ends with the verdict and says the words.
language() {
	local runner=$1 hello=$2 broken=$3 verdict=$4 words=$5 grow=$6 asleep=$7
	echo 'Ada' >in
	runs 0 "$runner" "$hello" -- one 'two 2'
	[[ $(jq -r .stdout <<<"$output") == *'hello Ada one two 2'* ]] || { echo "$output"; return 1; }
	is .stderr ''
	is '.denied | length' 0
	runs '@(1|255)' "$runner" "$broken" -t 60
	is .verdict "$verdict"
	[[ $(jq -r .stderr <<<"$output") == *"$words"* ]] || { echo "$output"; return 1; }
	run --separate-stderr "$SP_BIN/sallyport" run --json -l "$runner" -m 96 -t 60 - <<<"$grow"
	[[ "$(jq -r .verdict <<<"$output")" =~ ^(ML|RE|SG)$ ]] || { echo "$output"; return 1; }
	[ "$(jq -r .run.memory_peak_bytes <<<"$output")" -le $((97 << 20)) ] || { echo "$output"; return 1; }
	printf '%s\n' "$asleep" >in
	runs 124 "$runner" "$asleep" -t 1
	is .verdict TO
}

@test "a service describes all languages within 1,024 characters" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	sp_setup
	mkdir "$SP_DIR/runners"
	# Versions are asked for one after the other; a shell tells them faster, of all languages.
	for file in "$SP_ROOT"/jail/runners/*.json; do
		grep -v '^//' "$file" | jq 'del(.cache, .live, .show_run, .tools_run, .starter, .helper, .warm)
			| if .internal then . else (.version = ["/bin/sh", "-c", "echo version 34.56.789 of it"] | .interpreters = ["/bin/sh"]) end
			| if .name == "python" then .libraries = ["/bin/sh", "-c", "for n in numpy pandas matplotlib scipy scikit-learn requests openpyxl; do echo $n 1; done"] else del(.libraries) end
			| if .name == "rust" then .interpreters = ["/nonexistent"] else . end' >"$SP_DIR/runners/${file##*/}"
	done
	sed -i "s|\"runners_dir\": \"[^\"]*\"|\"runners_dir\": \"$SP_DIR/runners\"|" "$SP_CONFIG"
	sp_start_jailer
	sp_start_gateway
	sp_token alice
	sp_call list_runners '{}'
	sp_get '.result.content[0].text'
	grep -q '^Not installed, the operator can do that: rust$' < <(jq -r '.result.content[0].text' "$SP_DIR/body")
	[ "$(sp_get 'details.languages[]|select(.language=="rust")|.install')" = 'apt-get install rustc' ]
	sp_call list_runners '{"language":"rust"}'
	[[ $(jq -r '.result.content[0].text' "$SP_DIR/body") == *'not available (the operator can install it: apt-get install rustc)'* ]]
	sp_mcp tools/list '"x":1' ''
	description=$(jq -r '.result.tools[] | select(.name == "run_code") | .description' "$SP_DIR/body")
	echo "$description"
	[ "${#description}" -le 1024 ]
	[[ $description == *$'\n- python 34.56.789; numpy, pandas, matplotlib, scipy, scikit-learn, requests, openpyxl\n- bash 34.56.789, c 34.56.789'* ]]
	for name in csharp go java javascript lua perl php r ruby sql typescript; do
		[[ $description == *" $name 34.56.789"* ]]
	done
	[[ $description != *rust* ]]
	# More libraries than there is room for: no language goes for them, versions do.
	sed -i 's/requests openpyxl; do/requests openpyxl pillow seaborn sympy beautifulsoup4 lxml statsmodels networkx plotly pypdf python-docx reportlab psycopg2; do/' "$SP_DIR/runners/python.json"
	for file in "$SP_DIR"/runners/{javascript,typescript}.json; do
		jq '.libraries = ["/bin/sh", "-c", "echo csv-parser 1; echo pg 1"]' "$file" >"$SP_DIR/runner" && cp "$SP_DIR/runner" "$file"
	done
	sp_stop "$SP_GATEWAY_PID"
	sp_stop "$SP_JAILER_PID"
	sp_start_jailer
	sp_start_gateway
	sp_call list_runners '{}'
	sp_mcp tools/list '"x":1' ''
	description=$(jq -r '.result.tools[] | select(.name == "run_code") | .description' "$SP_DIR/body")
	echo "$description"
	[ "${#description}" -le 1024 ]
	[[ $description == *$'\n- python 34.56.789; numpy, pandas, matplotlib, scipy, scikit-learn, requests, openpyxl, pillow'* ]]
	[[ $description == *$'\n- javascript 34.56.789; csv-parser, pg\n'* ]]
	[[ $description == *$'\n- typescript 34.56.789'* ]]
	[[ $description == *$'\n- bash, c, cpp, csharp, go, java, lua, perl, php, r, ruby, sql' ]]
}

@test "java" {
	needs java
	language java 'import java.util.*;
		public class Hello {
			public static void main(String[] args) {
				System.out.println("hello " + new Scanner(System.in).nextLine() + " " + String.join(" ", args));
			}
		}' 'class A { int x = "text"; }' CE 'incompatible types' \
		'class Grow { public static void main(String[] a) { var all = new java.util.ArrayList<byte[]>(); for (;;) all.add(new byte[1 << 20]); } }' \
		'class Sleep { public static void main(String[] a) throws Exception { Thread.sleep(1000000); } }'
}

@test "java: main() may be in a class of any name" {
	needs java
	echo >in
	mkdir lib
	printf 'package lib;\npublic class More { public static int twice(int n) { return 2 * n; } }\n' >lib/More.java
	runs 0 java 'package com.example;
import lib.More;
class Other { void main() {} }
public final class Start {
	static class Main { }
	public static void main(String[] args) { System.out.println(Start.class.getName() + More.twice(21)); }
}' -f lib/More.java:lib/More.java
	is .stdout com.example.Start42
	runs 0 java 'class A { } class B { public static void main(String... args) { System.out.println("b"); } }'
	is .stdout b
	runs 1 java 'class A { }'
	is .verdict CE
	is .stderr 'no class has a method "public static void main(String[] args)"'
	runs 1 java 'class A { public static void main(String[] a) { throw new IllegalStateException("told"); } }'
	is .verdict RE
	[[ $(jq -r .stderr <<<"$output") == *'IllegalStateException: told'*'A.main(Main.java:1)'* ]]
}

@test "java: grade compiles a submission once" {
	needs java
	mkdir -p p/data/secret p/submissions/{accepted,wrong_answer,run_time_error}/ p/submissions/accepted/parts
	printf 'limits: {memory: 256}\n' >p/problem.yaml
	echo 5 >p/.timelimit
	for n in 1 2; do
		echo $n >p/data/secret/$n.in
		echo $((n + 1)) >p/data/secret/$n.ans
	done
	local main='public static void main(String[] a) { int n = new java.util.Scanner(System.in).nextInt();'
	echo "public class Add { $main System.out.println(n + 1); } }" >p/submissions/accepted/Add.java
	echo "package deep; class Main { $main System.out.println(Part.more(n)); } }" >p/submissions/accepted/parts/Main.java
	echo "package deep; class Part { static int more(int n) { return n + 1; } }" >p/submissions/accepted/parts/Part.java
	echo "public class Two { $main System.out.println(2); } }" >p/submissions/wrong_answer/Two.java
	echo "public class Bad { $main System.out.println(1 / 0); } }" >p/submissions/run_time_error/Bad.java
	XDG_CACHE_HOME=$PWD/cache run -0 --separate-stderr "$SP_BIN/sallyport" grade --json p
	[ "$(jq -c 'select(.submission) | [.submission, .verdict, .language]' <<<"$output" | sort | paste -sd ' ')" = \
		'["accepted/Add.java","AC","java"] ["accepted/parts","AC","java"] ["run_time_error/Bad.java","RTE","java"] ["wrong_answer/Two.java","WA","java"]' ]
}

@test "rust" {
	needs rust
	language rust 'use std::io::BufRead;
		fn main() {
			let line = std::io::stdin().lock().lines().next().unwrap().unwrap();
			println!("hello {} {}", line, std::env::args().skip(1).collect::<Vec<_>>().join(" "));
		}' 'fn main() { let x: i32 = "text"; }' CE 'mismatched types' \
		'fn main() { let mut all = Vec::new(); loop { all.push(vec![1u8; 1 << 20]); } }' 'fn main() { loop { std::thread::park(); } }'
}

@test "php" {
	needs php
	language php '<?php echo "hello ", trim(fgets(STDIN)), " ", implode(" ", array_slice($argv, 1)), "\n";' '<?php echo 1 +;' RE 'syntax error' \
		'<?php $all = []; for (;;) $all[] = str_repeat("x", 1 << 20);' '<?php sleep(1000000);'
}

@test "ruby" {
	needs ruby
	language ruby 'puts "hello #{$stdin.gets.chomp} #{ARGV.join(" ")}"' 'def f(' RE 'syntax error' 'all = []; loop { all << "x" * (1 << 20) }' 'sleep'
}

@test "perl" {
	needs perl
	language perl 'use strict; my $line = <STDIN>; chomp $line; print "hello $line @ARGV\n";' 'my $x = ;' RE 'syntax error' \
		'my @all; push @all, "x" x (1 << 20) while 1;' 'sleep 1000000;'
}

@test "lua" {
	needs lua
	language lua 'print("hello " .. io.read() .. " " .. table.concat(arg, " "))' 'x = = 1' RE 'unexpected symbol' \
		'local all = {} while true do all[#all + 1] = string.rep("x", 1 << 20) .. #all end' 'while true do end'
}

@test "r" {
	needs r
	language r 'cat("hello", readLines(file("stdin"), 1), commandArgs(trailingOnly = TRUE)); cat("\n")' 'x <- (' RE 'unexpected end of input' \
		'all <- list(); repeat all[[length(all) + 1]] <- numeric(1e5) + 1' 'Sys.sleep(1e6)'
}

@test "r: a plot is a picture, not a PDF" {
	needs r
	echo >in
	runs 0 r 'plot(1:3); hist(c(1, 2, 2))' -o out
	local made=(out/*)
	[ "${made[*]}" = "out/Rplot001.png out/Rplot002.png" ]
	[ "$(head -c 4 out/Rplot001.png | tail -c 3)" = PNG ]
}

@test "csharp" {
	needs csharp
	language csharp 'using System;
		class Hello { static void Main(string[] args) { Console.WriteLine("hello " + Console.ReadLine() + " " + string.Join(" ", args)); } }' \
		'class Bad { static int Main() { int x = "text"; return x; } }' CE 'CS0029' \
		'using System.Linq; class Grow { static void Main() { var all = new System.Collections.Generic.List<byte[]>(); for (;;) all.Add(Enumerable.Repeat((byte)1, 1 << 20).ToArray()); } }' \
		'class Sleep { static void Main() { System.Threading.Thread.Sleep(1000000); } }'
}

@test "sql" {
	needs sql
	language sql "SELECT 'hello ' || (SELECT \"Ada\" FROM (SELECT 'Ada' AS \"Ada\")) || ' ' || ?1 || ' ' || ?2 AS hello" 'SELEC 1' RE 'line 1: near "SELEC": syntax error' \
		'CREATE TABLE t(x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) INSERT INTO t SELECT zeroblob(1000000) FROM n;' \
		'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n;'
}

@test "sql: CSV files are tables" {
	needs sql
	printf 'name,price,code,born\nAda,10.5,007,\n"B|ob, C.",9,010,1990\n\nEve,,3,2000\n' >items.csv
	printf 'name\tn\nAda\t3\n' >more.tsv
	printf 'who\nAda\n' >in
	runs 0 sql 'SELECT name, price > 9.5 AS dear, code, born + 1 AS later FROM items;
-- a comment; with a semicolon
SELECT sum(n) AS n, typeof(n), (SELECT who FROM stdin) AS who FROM more JOIN items USING (name);' -f items.csv -f more.tsv
	is .stdout '| name | dear | code | later |
| --- | --- | --- | --- |
| Ada | 1 | 007 | NULL |
| B\|ob, C. | 0 | 010 | 1991 |
| Eve | NULL | 3 | 2001 |

| n | typeof(n) | who |
| --- | --- | --- |
| 3 | integer | Ada |'
	runs 0 sql $'CREATE TABLE t (x);\nINSERT INTO t VALUES (?1), (x\'00ff\'), (NULL);\nATTACH \'shop.db\' AS s; CREATE TABLE s.u AS SELECT * FROM t' -o out -- 5
	[ "$(jq -c .stdout <<<"$output")" = '""' ]
	runs 0 sql 'SELECT * FROM u; UPDATE u SET x = 6 WHERE x = 5; SELECT count(*) FROM shop.u WHERE x = 6' -f out/shop.db -o out
	is .stdout $'| x |\n| --- |\n| 5 |\n| x\'00ff\' |\n| NULL |\n\n| count(*) |\n| --- |\n| 1 |'
	cp out/shop.db other.sqlite
	runs 1 sql $'SELECT shop.u.x FROM shop.u JOIN other.u AS o ON o.x = shop.u.x;\n\nDROP TABLE none;' -f out/shop.db -f other.sqlite
	is .stdout $'| x |\n| --- |\n| 6 |\n| x\'00ff\' |'
	is .stderr 'line 3: no such table: none'
}
