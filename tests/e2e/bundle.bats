#!/usr/bin/env bats
# shellcheck disable=SC2016 # dollars in the programs are not for this shell
# sallyport export and import: into an empty database and replayed there; twice; bundles of somebody who means harm.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	sp_setup
	sp_start_jailer
	sp_stdio
	sed 's|"data_dir": "data"|"data_dir": "other"|' "$SP_CONFIG" >"$SP_DIR/other.json"
}

teardown() {
	sp_teardown
}

say() { # LANGUAGE CODE [MORE]
	sp_say run_code "$(jq -cn --arg language "$1" --arg code "$2" --argjson more "${3:-{\}}" '{conversationId: "c", $language, $code} + $more')"
}

cli() { # STATUS CONFIG COMMAND ARGUMENT…
	local wanted=$1 config=$2 command=$3
	shift 3
	run "-$wanted" --separate-stderr "$SP_BIN/sallyport" "$command" --config "$SP_DIR/$config.json" "$@"
	# shellcheck disable=SC2154 # bats sets stderr
	echo "$output" "$stderr"
}

# refuse WORD SQL…: the bundle changed so is refused with that word, and nothing is written
refuse() {
	local word=$1
	shift
	cp "$SP_DIR/b" "$SP_DIR/bad"
	sqlite3 "$SP_DIR/bad" "$@"
	cli 2 other import "$SP_DIR/bad"
	[[ $stderr == *"$word"* ]]
	[ ! -e "$SP_DIR/other" ]
}

@test "to an empty database and back: ids, files, sandboxes, replayed there" {
	say python 'open("f", "w").write("x" * 100000); print("y" * 100000)'
	say python 'print(open("f").read()[:3])'
	say python 'z = 41' '{"session": true}'
	say python 'print(z + 1)' '{"session": true}'
	sp_stdio_end
	cli 0 sallyport export --output "$SP_DIR/b" --all --json
	[ "$output" = '{"summary":{"executions":4}}' ]
	cli 0 other import "$SP_DIR/b" --json
	[ "$output" = '{"summary":{"executions":4,"new":4,"already_there":0}}' ]
	cli 0 other import "$SP_DIR/b" --json
	[ "$output" = '{"summary":{"executions":4,"new":0,"already_there":4}}' ]
	[ "$(sp_sql 'SELECT id FROM execution ORDER BY id')" = "$(sqlite3 "$SP_DIR/other/sallyport.db" 'SELECT id FROM execution ORDER BY id')" ]
	cli 0 other replay --all --json
	[ "$(tail -1 <<<"$output" | jq .summary.identical)" = 4 ]
	# The last run of a sandbox brings the ones before it.
	cli 0 sallyport export -o "$SP_DIR/one" "$(sp_sql "SELECT id FROM execution WHERE sandbox_seq = 2")"
	[ "$(sqlite3 "$SP_DIR/one" 'SELECT count(*) FROM execution')" = 2 ]
	cli 2 sallyport export --all
	cli 2 sallyport export -o "$SP_DIR/none"
	[ ! -e "$SP_DIR/none" ]
}

# env_is JSON: the environment of the bundle's execution, without the variable that Sallyport adds
env_is() {
	[ "$(sqlite3 "$SP_DIR/b" 'SELECT env FROM execution' | jq -c 'del(.FILE_BASE_URL)')" = "$1" ]
}

@test "environment values stay here unless asked for; replay elsewhere takes them from its caller" {
	say bash 'echo $PLACE ${#KEY} $KEY' '{"environment": {"PLACE": "top-shelf"}, "secrets": {"KEY": "open sesame"}}'
	sp_stdio_end
	cli 0 sallyport export -o "$SP_DIR/b" --all
	run -1 grep -aq "sesame" "$SP_DIR/b"
	env_is '{"PLACE":false,"KEY":null}'
	cli 0 other import "$SP_DIR/b"
	cli 0 other replay --all
	[[ $output == *"left out: PLACE, KEY (give them with --secret)"* ]]
	KEY='open sesame' cli 0 other replay --all --secret KEY --secret PLACE=top-shelf
	[[ $output == *"1 identical, 0 differ, 0 not replayable"* ]]
	cli 0 sallyport export -o "$SP_DIR/b" --all --with-env
	env_is '{"PLACE":"top-shelf","KEY":null}'
}

@test "a bundle that is not as it must be: an error, nothing is written" {
	say python 'open("f", "w").write("x" * 100000)'
	say python 'print(1)'
	sp_stdio_end
	cli 0 sallyport export -o "$SP_DIR/b" --all
	refuse hash "UPDATE blob SET data = zeroblob(100000)"
	refuse "out of /data" "UPDATE execution_file SET name = '../../etc/passwd'"
	refuse "out of /data" "UPDATE execution_file SET name = '/etc/passwd'"
	refuse "out of /data" "UPDATE execution SET entry = 'a/../../b'"
	refuse tables "CREATE TRIGGER t AFTER INSERT ON blob BEGIN DELETE FROM blob; END"
	refuse tables "CREATE VIEW v AS SELECT 1"
	refuse tables "ALTER TABLE execution ADD COLUMN more ANY"
	refuse "version 9" "PRAGMA user_version = 9"
	refuse "not a bundle" "PRAGMA application_id = 7"
	refuse larger "UPDATE execution SET code = zeroblob(70000)"
	refuse "not as it must be" "UPDATE execution SET args = '[' "
	refuse "not as it must be" "UPDATE execution SET owner = '../x'"
	refuse "an id" "DELETE FROM execution_file; UPDATE execution SET id = 'x' WHERE id = (SELECT max(id) FROM execution)"
	refuse missing "DELETE FROM blob"
	refuse size "UPDATE execution_file SET size = 1"
	head -c 10000 "$SP_DIR/b" >"$SP_DIR/bad"
	cli 2 other import "$SP_DIR/bad"
	head -c 10000 /dev/urandom >"$SP_DIR/bad"
	cli 2 other import "$SP_DIR/bad"
	cli 2 other import "$SP_DIR/nothing"
	cli 2 other import "$SP_DIR/b" "$SP_DIR/bad"
	[ ! -e "$SP_DIR/other" ]
	cli 0 other import "$SP_DIR/b"
}

# All 800 with CRUXEVAL=800.
@test "CRUXEval: recorded, replayed, carried into an empty database, replayed there: all identical" {
	local data=${TESTDATA:-$SP_ROOT/../shared/data}/cruxeval.jsonl.xz count=${CRUXEVAL:-60} task
	[ -e "$data" ] || skip "no $data"
	while read -r task; do
		sp_say run_code "$task"
	done < <(xzcat "$data" | head -n "$count" | jq -c '{conversationId: "c", language: "python", code: (.code + "\nprint(repr(f(" + .input + ")))")}')
	sp_stdio_end
	cli 0 sallyport replay --all --json
	[ "$(tail -1 <<<"$output" | jq .summary.identical)" = "$count" ]
	cli 0 sallyport export -o "$SP_DIR/b" --all
	cli 0 other import "$SP_DIR/b" --json
	[ "$(jq .summary.new <<<"$output")" = "$count" ]
	cli 0 other replay --all --json
	[ "$(tail -1 <<<"$output" | jq .summary.identical)" = "$count" ]
}
