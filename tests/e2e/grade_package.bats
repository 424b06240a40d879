#!/usr/bin/env bats
# sallyport grade: what a package holds: settings, cases, constants, validators, archives; what people and systems make of it.
# shellcheck disable=SC2016,SC2154 # programs in single quotes are meant for the jail; the variables are from bats and grade.bash

bats_require_minimum_version 1.5.0
load lib.bash
load grade.bash

# Three packages as contests' repositories hold them: legal, and not as one would write them for a test.
@test "a package as a repository has it is judged" {
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
	judge 13 tour
	[[ $stderr == *"validation is custom, but output_validators/ has no program"* ]]
}

@test "2025-09: a case has files and arguments" {
	judge 0 "$PACKAGES/lookup"
	[ "$(jq -c '.summary.verdicts' <<<"$summary")" = '{"AC":4,"WA":2,"OLE":1,"RTE":2}' ]
	for name in a.cpp own_header pair; do [ "$(of accepted/$name .score)" = 100 ]; done
	[ "$(of mixed/rough.py '[.score, .as_expected] | tojson')" = '[40,true]' ]
	[ "$(of mixed/no_args.py .case)" = secret/small/2-twice ]
	[ "$(of rejected/floods.py '[.verdict, .as_expected] | tojson')" = '["OLE",true]' ]
	cp -a "$PACKAGES/lookup" lookup
	ln -s /etc/passwd lookup/data/secret/small/1.files/more/passwd
	judge 13 lookup accepted/a.cpp
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

@test "constants are replaced in programs and settings" {
	small p $'problem_format_version: 2025-09\nconstants: {LIMIT: 7, TEN: {value: "10.0", GERMAN: "10,0"}, not: {GERMAN: x}}\n'
	case_of p/data/secret 1 '{{LIMIT}} {{nowhere}}' '7 10.0 10,0 {{LIMIT}} {{nowhere}} {{not}} {{TEN.FRENCH}}'
	echo 'args: ["{{TEN.GERMAN}}"]' >p/data/secret/test_group.yaml
	echo 'import sys; print({{LIMIT}}, "{{TEN}}", sys.argv[1], input(), "{{" + "not}}", "{{TEN.FRENCH}}")' >p/submissions/accepted/a.py
	judge 0 p
}

@test "what a package names in vain is warned of" {
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

@test "flags of a validator are split at blanks outside quotation marks" {
	small p $'validation: custom\nvalidator_flags: --say "two words" it'"'"$'s "\n'
	mkdir p/output_validators
	echo 'import sys; open(sys.argv[3] + "judgemessage.txt", "w").write(repr(sys.argv[4:])); sys.exit(43)' >p/output_validators/v.py
	echo "output_validator_flags: \"'a b' c\"" >p/data/testdata.yaml
	judge 1 p
	[ "$(of accepted/a.py .message)" = "['--say', 'two words', \"it's\", '\"', 'a b', 'c']" ]
}

@test "an olympiad's package is judged" {
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

@test "what editors make of a package is understood" {
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

@test "a package may be a ZIP archive" {
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

@test "hostile archives are refused" {
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
