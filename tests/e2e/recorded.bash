# recorded.bash - what the tests of recorded runs share: a jailer for all tests of a file, an empty record for each, runs over stdio.
# shellcheck shell=bash disable=SC2034,SC2154 # for who loads it; `stderr` is from bats

setup_file() {
	sp_setup
	sp_start_jailer
}

teardown_file() {
	sp_teardown
}

# For setup; `sp_stdio` then begins the record.
empty_record() {
	rm -rf "${SP_DIR:?}/data" "$SP_DIR/in"
	mkdir "$SP_DIR/data"
}

say() { # LANGUAGE CODE [MORE]
	sp_say run_code "$(jq -cn --arg language "$1" --arg code "$2" --argjson more "${3:-{\}}" '{conversationId: "c", $language, $code} + $more')"
}

# cli STATUS COMMAND ARGUMENT…: lines in $output, the summary of the last one in $summary
cli() {
	local wanted=$1 command=$2
	shift 2
	run "-$wanted" --separate-stderr "$SP_BIN/sallyport" "$command" --config "$SP_CONFIG" --json "$@"
	echo "$output" "$stderr"
	summary=$(tail -1 <<<"$output" | jq -c '.summary | del(.seconds)' 2>/dev/null) || true
}

id() { # CODE
	sp_sql "SELECT id FROM execution WHERE instr(code, '$1')"
}

alter() { # SET CODE
	sqlite3 "$SP_DIR/data/sallyport.db" "UPDATE execution SET $1 WHERE instr(code, '$2')"
}

# replay STATUS ARGUMENT…
replay() {
	local wanted=$1
	shift
	cli "$wanted" replay "$@"
}

# class_of CODE: class and what hid something, of the execution whose code contains CODE
class_of() {
	jq -r --arg id "$(id "$1")" 'select(.id == $id) | [.class, .hidden_by[]] | join(" ")' <<<"$output"
}
