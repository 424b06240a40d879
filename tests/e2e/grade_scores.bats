#!/usr/bin/env bats
# sallyport grade: groups and scores, and the rules of submissions.yaml.
# shellcheck disable=SC2016,SC2154 # programs in single quotes are meant for the jail; the variables are from bats and grade.bash

bats_require_minimum_version 1.5.0
load lib.bash
load grade.bash

@test "groups have scores" {
	judge 0 "$PACKAGES/groups"
	[ "$(of accepted/a.py .score)" = 100 ]
	[ "$(of partially_accepted/small.cpp .score)" = 30 ]
	[ "$(of partially_accepted/small.cpp '.groups | map([.name, .verdict, .score]) | tojson')" = \
		'[["sample","AC",1],["secret","AC",30],["secret/1","AC",30],["secret/2","WA",0]]' ]
	[ "$(of wrong_answer/one.py .score)" = 0 ]
}

@test "legacy groups inherit their settings" {
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

@test "scores of 2025-09 follow each aggregation" {
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
	judge 13 p
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
