# grade.bash - what the tests of sallyport grade share.
# shellcheck shell=bash disable=SC2034,SC2154 # for who loads it; `stderr` is from bats

setup_file() {
	export PACKAGES=$SP_ROOT/tests/data/packages XDG_CACHE_HOME=$BATS_FILE_TMPDIR/cache
	sp_private_jailers
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# judge STATUS ARGUMENT…: lines in $output, the summary in $summary
judge() {
	local status_wanted=$1
	shift
	run "-$status_wanted" --separate-stderr "$SP_BIN/sallyport" grade --json "$@"
	# shellcheck disable=SC2154 # bats sets stderr
	echo "$output" "$stderr"
	summary=$(tail -1 <<<"$output")
}

# of SUBMISSION FILTER: a member of its line
of() {
	jq -r --arg name "$1" "select(.submission == \$name) | $2" <<<"$output"
}

# case_of FOLDER NAME INPUT ANSWER
case_of() {
	mkdir -p "$1"
	printf '%s\n' "$3" >"$1/$2.in"
	printf '%s\n' "$4" >"$1/$2.ans"
}

# small FOLDER: a package with one secret case, input 1, answer 2, and nothing else
small() {
	mkdir -p "$1"/submissions/accepted
	case_of "$1/data/secret" 1 1 2
	printf 'limits: {memory: 256}\n%s' "${2:-}" >"$1/problem.yaml"
	echo 5 >"$1/.timelimit"
	echo 'print(int(input()) + 1)' >"$1/submissions/accepted/a.py"
}
