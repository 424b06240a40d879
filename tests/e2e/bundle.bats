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

@test "a bundle goes to an empty database and back" {
	say python 'open("f", "w").write("x" * 100000); print("y" * 100000)'
	say python 'print(open("f").read()[:3])'
	say python 'z = 41' '{"session": true}'
	say python 'print(z + 1)' '{"session": true}'
	sp_stdio_end
	cli 0 sallyport export --output "$SP_DIR/b" --all --json
	[ "$output" = '{"summary":{"executions":4,"erased":0}}' ]
	cli 0 other import "$SP_DIR/b" --json
	[ "$output" = '{"summary":{"executions":4,"new":4,"already_there":0}}' ]
	cli 0 other import "$SP_DIR/b" --json
	[ "$output" = '{"summary":{"executions":4,"new":0,"already_there":4}}' ]
	[ "$(sqlite3 "$SP_DIR/other/sallyport.db" "SELECT count(*) FROM audit WHERE kind = 'import'")" = 1 ]
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

@test "a bundle carries tags" {
	local db=$SP_DIR/other/sallyport.db first
	say python 'print(1)'
	say python 'print(2)'
	sp_stdio_end
	first=$(sp_sql 'SELECT min(id) FROM execution')
	cli 0 sallyport export -o "$SP_DIR/old" --all
	cli 0 sallyport tag nightly --all
	cli 0 sallyport tag team/red "$first"
	cli 0 sallyport export -o "$SP_DIR/b" --all
	cli 0 other import "$SP_DIR/old" --json
	[ "$output" = '{"summary":{"executions":2,"new":2,"already_there":0}}' ]
	[ "$(sqlite3 "$db" 'SELECT count(*) FROM execution_tag')" = 0 ]
	cli 0 other tag mine "$first"
	cli 0 other import "$SP_DIR/b"
	[ "$(sqlite3 "$db" 'SELECT tag, count(*) FROM execution_tag GROUP BY tag' | paste -sd ' ')" = 'mine|1 nightly|2 team/red|1' ]
	cli 0 other log --tag team/red --json
	[ "$(jq -r .id <<<"$output")" = "$first" ]
	cli 0 other replay --tag nightly --json
	[ "$(tail -1 <<<"$output" | jq .summary.identical)" = 2 ]
	# Once more is no change, and each change is in the log.
	cli 0 other import "$SP_DIR/b"
	[ "$(sqlite3 "$db" "SELECT json_extract(entry, '$.f.added'), json_extract(entry, '$.f.tags') FROM audit WHERE kind = 'import' ORDER BY n" | paste -sd ' ')" = '2|0 0|3' ]
	# A selection takes the tags of its runs only.
	cli 0 sallyport export -o "$SP_DIR/one" --tag team/red
	[ "$(sqlite3 "$SP_DIR/one" 'SELECT tag FROM execution_tag ORDER BY tag' | paste -sd ' ')" = 'nightly team/red' ]
	cli 0 sallyport promote --suite "$SP_DIR/suite" "$first"
	cli 2 other import "$SP_DIR/suite"
	cli 0 other import --unverified "$SP_DIR/suite" --json
	[ "$output" = '{"summary":{"executions":1,"new":0,"already_there":1}}' ]
	sqlite3 "$SP_DIR/old" "PRAGMA user_version = 7"
	cli 2 other import "$SP_DIR/old"
	[[ $stderr == *"version 7, this program knows 9: write it anew"* ]]
	sqlite3 "$SP_DIR/old" "PRAGMA user_version = 10"
	cli 2 other import "$SP_DIR/old"
	[[ $stderr == *"version 10, this program knows 9: install a newer release"* ]]
}

# env_is JSON: the environment of the bundle's execution, without the variable that Sallyport adds
env_is() {
	[ "$(sqlite3 "$SP_DIR/b" 'SELECT env FROM execution' | jq -c 'del(.FILE_BASE_URL)')" = "$1" ]
}

@test "environment values are exported only on request" {
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

@test "several at once into a folder without a database: one makes it, all are told what is there" {
	local i pids=()
	say python 'print(1)'
	sp_stdio_end
	cli 0 sallyport export -o "$SP_DIR/b" --all
	for i in 1 2 3 4 5 6 7 8; do
		"$SP_BIN/sallyport" import --json --config "$SP_DIR/other.json" "$SP_DIR/b" >"$SP_DIR/imported-$i" 3>&- &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i"; done
	[ "$(cat "$SP_DIR"/imported-? | jq -s -c '[map(.summary.new) | add, length]')" = '[1,8]' ]
}

@test "what is no file is not replaced by a bundle" {
	say python 'print(1)'
	sp_stdio_end
	mkfifo "$SP_DIR/pipe"
	cli 2 sallyport export -o "$SP_DIR/pipe" --all
	[ -p "$SP_DIR/pipe" ]
	cli 2 sallyport export -o "$SP_DIR" --all
	ln -s "$SP_DIR/target" "$SP_DIR/link"
	: >"$SP_DIR/target"
	cli 0 sallyport export -o "$SP_DIR/link" --all
	[ -L "$SP_DIR/link" ]
	[ -s "$SP_DIR/target" ]
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
	refuse "version 7" "PRAGMA user_version = 7"
	refuse tables "DROP TABLE execution_tag"
	refuse tables "DROP TABLE suite_case"
	refuse tables "DROP TABLE token"
	refuse "a token is not" "INSERT INTO token (id, owner, name, scopes, hash) VALUES ('$(printf %036d 0)', 'alice', '', '', '$(printf %064d 0)')"
	refuse "a conversation has no owner" "INSERT INTO conversation VALUES ('c')"
	refuse "lets the owner alice in, with tokens: say --move" "INSERT INTO owner VALUES ('alice'); UPDATE execution SET owner = 'alice'"
	refuse "a run is another owner's" "INSERT INTO owner VALUES ('alice')"
	refuse "several owners" "INSERT INTO owner VALUES ('alice'), ('bob'); UPDATE execution SET owner = 'alice'"
	refuse "a tag is not" "INSERT INTO execution_tag VALUES ('x', 'nightly')"
	for tag in "''" "'a b'" "'$(printf %065d 0)'" "char(27) || '[2J'" "7" "'a' || char(0)"; do
		refuse "a tag is not" "INSERT INTO execution_tag SELECT id, $tag FROM execution"
	done
	refuse "version 10" "PRAGMA user_version = 10"
	refuse "not a bundle" "PRAGMA application_id = 7"
	refuse larger "UPDATE execution SET code = zeroblob(70000)"
	refuse "not as it must be" "UPDATE execution SET args = '[' "
	refuse "not as it must be" "UPDATE execution SET owner = '../x'"
	for what in "args = '{}'" "args = '[1]'" "limits = '[]'" "result = '[]'" "env = '[]'" "env = '{\"A\":1}'" "env = '{\"A=B\":\"x\"}'" "env = '{\"\":\"x\"}'"; do
		refuse "not as it must be" "UPDATE execution SET $what"
	done
	refuse "an id" "DELETE FROM execution_file; UPDATE execution SET id = 'x' WHERE id = (SELECT max(id) FROM execution)"
	refuse missing "DELETE FROM blob"
	refuse size "UPDATE execution_file SET size = 1"
	local run="(SELECT min(id) FROM execution)" call="INSERT INTO tool_call (execution, seq, server, tool, arguments, result) VALUES"
	refuse "a call of a tool" "$call ('x', 1, 's', 't', '{}', '')"
	refuse "a call of a tool" "$call ($run, 'x', 's', 't', '{}', '')"
	refuse "a call of a tool" "$call ($run, 1, 's', 't', '{', '')"
	refuse "a call of a tool" "$call ($run, 1, 's', 't', '{}', zeroblob(16777217))"
	refuse "a server of a run" "INSERT INTO execution_server VALUES ($run, 0, 's', 's', '', 'no such list')"
	refuse "does not have its hash" "INSERT INTO tool_list VALUES ('$(printf %064d 0)', '[]', 1)"
	refuse "does not have its hash" "UPDATE runtime SET description = json_set(description, '$.kernel', '9')"
	refuse "ran on is missing" "DELETE FROM runtime"
	head -c 10000 "$SP_DIR/b" >"$SP_DIR/bad"
	cli 2 other import "$SP_DIR/bad"
	head -c 10000 /dev/urandom >"$SP_DIR/bad"
	cli 2 other import "$SP_DIR/bad"
	cli 3 other import "$SP_DIR/nothing"
	cli 2 other import "$SP_DIR/b" "$SP_DIR/bad"
	[ ! -e "$SP_DIR/other" ]
	# What only the schema's own constraints refuse: nothing of it is in the record.
	for what in "verdict = 'ZZ'" "created_us = 'x'" "run_cpu_user_us = 'x'"; do
		cp "$SP_DIR/b" "$SP_DIR/bad"
		sqlite3 "$SP_DIR/bad" "UPDATE execution SET $what WHERE id = (SELECT max(id) FROM execution)"
		cli 2 other import --unverified "$SP_DIR/bad"
		[ "$(sqlite3 "$SP_DIR/other/sallyport.db" 'SELECT count(*) FROM execution')" = 0 ]
	done
	cli 0 other import "$SP_DIR/b"
}

@test "a bundle's runs that cannot be repeated are named" {
	local i network first
	for ((i = 0; i < 4; i++)); do say python "print($i)"; done
	sp_stdio_end
	cli 0 sallyport export -o "$SP_DIR/b" --all
	first=$(sp_sql 'SELECT min(id) FROM execution')
	network=$(sp_sql 'SELECT max(id) FROM execution')
	sqlite3 "$SP_DIR/b" "UPDATE execution SET limits = '{\"wall_us\":-1}' WHERE id = '$first'; UPDATE execution SET network = 1 WHERE id = '$network'"
	cli 0 other import --unverified "$SP_DIR/b"
	cli 0 other replay --all --json
	[ "$(tail -1 <<<"$output" | jq -c '[.summary.identical, .summary.not_replayable]')" = '[2,2]' ]
	[[ $(jq -r "select(.id == \"$first\") | .reason" <<<"$output") == *"the row's limits: wall_us"* ]]
	[[ $(jq -r "select(.id == \"$network\") | .reason" <<<"$output") == *"network, which this server does not allow"* ]]
	# A row that was spoilt in the database itself, too.
	for what in '[' '{}' '[1]'; do
		sqlite3 "$SP_DIR/other/sallyport.db" "PRAGMA ignore_check_constraints = ON; UPDATE execution SET args = '$what' WHERE id <> '$first' AND id <> '$network'"
		cli 0 other replay --all --json
		[ "$(tail -1 <<<"$output" | jq .summary.not_replayable)" = 4 ]
	done
}

@test "a bundle for which there is no room on the disk: nothing of it is written" {
	[ "$(id -u)" = 0 ] || skip "mounting a small file system needs root"
	say python 'import random; open("f", "wb").write(random.randbytes(3000000))'
	sp_stdio_end
	cli 0 sallyport export -o "$SP_DIR/b" --all
	mkdir "$SP_DIR/narrow"
	jq '.data_dir = "narrow/data"' "$SP_CONFIG" >"$SP_DIR/narrow.json"
	# shellcheck disable=SC2016 # the inner shell expands them
	SP_DIR=$SP_DIR run -0 unshare -m bash -c '
		import() { "$SP_BIN/sallyport" import --config "$SP_DIR/narrow.json" "$SP_DIR/b"; }
		mount -t tmpfs -o size=5m none "$SP_DIR/narrow" || exit 77
		import
		echo "status $?"
		[ "$(sqlite3 "$SP_DIR/narrow/data/sallyport.db" "SELECT count(*) FROM execution")" = 0 ] || exit 78
		[ -z "$(find "$SP_DIR/narrow/data/blobs" -type f -size +1000k)" ] || exit 79
		mount -o remount,size=20m "$SP_DIR/narrow" && import'
	echo "$output"
	[[ $output == *"there is no room for it on the disk of "*"status 6"*"1 executions, 1 of them new"* ]]
}

# All 800 with CRUXEVAL=800.
@test "CRUXEval: recorded runs are identical elsewhere" {
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

# broken VERDICT SQL: the export changed so does not verify, and that verdict says so
broken() {
	cp "$SP_DIR/b" "$SP_DIR/bad"
	sqlite3 "$SP_DIR/bad" "$2"
	run -1 "$SP_BIN/sallyport" verify "$SP_DIR/bad" --json --signer "$SP_DIR/signer"
	[ "$(jq -r ".$1.state" <<<"$output")" = broken ] || { echo "$2: $output" && false; }
}

@test "verify finds what was altered in an export" {
	say python 'open("f", "w").write("x" * 100000); print("y" * 70000)'
	say python 'print(2)'
	sp_stdio_end
	cli 0 sallyport checkpoint --state "$SP_DIR/signer" --init test.example/audit
	cli 0 sallyport checkpoint --state "$SP_DIR/signer"
	cli 0 sallyport export --all -o "$SP_DIR/b" --checkpoint "$SP_DIR/signer/checkpoint"
	mv "$SP_DIR/data" "$SP_DIR/away"
	run -0 "$SP_BIN/sallyport" verify "$SP_DIR/b" --json --key "$(cat "$SP_DIR/signer/vkey")" --anchor "$SP_DIR/signer/checkpoint"
	[ "$(jq -r '[.tree, .signatures, .anchors, .coverage, .content] | map(.state) | unique[]' <<<"$output")" = holds ]
	[ "$(jq -c '[.entries, .covered]' <<<"$output")" = '[5,5]' ]
	run -0 "$SP_BIN/sallyport" verify "$SP_DIR/b"
	[[ $output == *"tree        holds"*"signatures  not checked"*"no public key"* ]]
	broken tree "UPDATE audit SET entry = replace(entry, 'finished', 'finishes') WHERE kind = 'run.end'"
	broken tree "UPDATE audit SET n = n + 1 WHERE n = (SELECT max(n) FROM audit)"
	broken tree "UPDATE audit SET at_us = at_us + 1 WHERE n > 0"
	broken tree "UPDATE audit SET proof = zeroblob(length(proof)) WHERE n > 0"
	broken tree "UPDATE audit SET proof = NULL WHERE n > 0"
	broken tree "UPDATE audit_head SET root = zeroblob(32)"
	broken signatures "UPDATE audit_head SET checkpoint = replace(checkpoint, char(10) || size || char(10), char(10) || (size + 1) || char(10))"
	broken coverage "DELETE FROM audit WHERE kind = 'run.end'"
	broken coverage "DELETE FROM audit WHERE n > 0"
	broken coverage "UPDATE execution SET verdict = 'RE'"
	broken coverage "UPDATE execution SET run_wall_us = run_wall_us + 1"
	broken coverage "DELETE FROM execution_file; DELETE FROM execution"
	broken content "UPDATE audit SET detail = replace(detail, 'code', 'edoc')"
	broken content "UPDATE audit SET salt = NULL WHERE n > 0"
	broken content "UPDATE execution SET stdout = replace(stdout, '2', '3') WHERE stdout IS NOT NULL"
	broken content "UPDATE execution SET code = code || ' '"
	broken content "UPDATE execution_file SET mode = mode + 1 WHERE phase = 'after'"
	broken content "UPDATE blob SET data = zeroblob(length(data)) WHERE length(data) = 70001"
	# Another signer's key; a file that is no export.
	cli 0 sallyport checkpoint --state "$SP_DIR/other" --init test.example/audit
	run -1 "$SP_BIN/sallyport" verify "$SP_DIR/b" --key "$(cat "$SP_DIR/other/vkey")"
	sqlite3 "$SP_DIR/b" 'DROP TABLE audit_head'
	run -2 "$SP_BIN/sallyport" verify "$SP_DIR/b"
}

@test "an export that its checkpoint does not cover is refused" {
	say python 'print(1)'
	cli 0 sallyport checkpoint --state "$SP_DIR/signer" --init test.example/audit
	cli 0 sallyport checkpoint --state "$SP_DIR/signer"
	say python 'print(2)'
	sp_stdio_end
	cli 8 sallyport export --all -o "$SP_DIR/b" --checkpoint "$SP_DIR/signer/checkpoint"
	[[ $stderr == *"sign first"* ]]
	[ ! -e "$SP_DIR/b" ]
	cli 0 sallyport export "$(sp_sql 'SELECT min(id) FROM execution')" -o "$SP_DIR/b" --checkpoint "$SP_DIR/signer/checkpoint"
	cli 0 sallyport export --all -o "$SP_DIR/b"
	run -0 "$SP_BIN/sallyport" verify "$SP_DIR/b"
	[[ $output == *"tree        holds"*"no checkpoint"*"coverage    holds"*"content     holds"* ]]
	# Imported elsewhere, the runs have entries of that log.
	cli 0 other import "$SP_DIR/b"
	run -0 "$SP_BIN/sallyport" verify --blobs "$SP_DIR/other"
}

@test "export by filters leaves out what was erased" {
	say bash 'echo one'
	say bash 'echo two'
	local first second
	first=$(sp_sql 'SELECT min(id) FROM execution')
	second=$(sp_sql 'SELECT max(id) FROM execution')
	cli 0 sallyport forget --execution "$first" --yes
	cli 3 sallyport export "$first" -o "$SP_DIR/b"
	[[ $stderr == *"was removed on"* ]]
	[ ! -e "$SP_DIR/b" ]
	cli 0 sallyport export --all -o "$SP_DIR/b"
	[[ $output == "1 executions exported"*"1 were left out: their content was erased"* ]]
	cli 0 sallyport export --all -o "$SP_DIR/b" --json
	[ "$(jq -c .summary <<<"$output")" = '{"executions":1,"erased":1}' ]
	cli 0 other import "$SP_DIR/b"
	[ "$(sqlite3 "$SP_DIR/other/sallyport.db" 'SELECT id FROM execution')" = "$second" ]
}

@test "an edited bundle is refused, or marked for ever" {
	local db=$SP_DIR/other/sallyport.db first
	say python 'print(1)'
	say python '1 / 0'
	sp_stdio_end
	first=$(sp_sql 'SELECT min(id) FROM execution')
	cli 0 sallyport export -o "$SP_DIR/b" --all
	cp "$SP_DIR/b" "$SP_DIR/edited"
	sqlite3 "$SP_DIR/edited" "UPDATE execution SET verdict = 'OK', exit_code = 0 WHERE verdict = 'RE'"
	cp "$SP_DIR/b" "$SP_DIR/bare"
	sqlite3 "$SP_DIR/bare" "DELETE FROM audit; DELETE FROM audit_head"
	for what in edited bare; do
		cli 2 other import "$SP_DIR/$what"
		[[ $stderr == *"--unverified takes it all the same"* ]]
		[ ! -e "$SP_DIR/other" ]
	done
	cli 0 other import --unverified "$SP_DIR/edited"
	[ "$(sqlite3 "$db" "SELECT count(*) FROM execution_tag WHERE tag = 'unverified'")" = 2 ]
	[ "$(sqlite3 "$db" "SELECT json_extract(entry, '$.f.unverified') FROM audit WHERE kind = 'import'")" = 2 ]
	cli 0 other log --tag unverified --json
	[ "$(wc -l <<<"$output")" = 2 ]
	# Nobody takes the mark away, and it goes along.
	cli 2 other tag unverified --remove "$first"
	cli 2 other tag unverified "$first"
	cli 0 other export -o "$SP_DIR/again" --all
	rm -r "$SP_DIR/other"
	cli 0 other import "$SP_DIR/again"
	[ "$(sqlite3 "$db" "SELECT count(*) FROM execution_tag WHERE tag = 'unverified'")" = 2 ]
	rm -r "$SP_DIR/other"
	cli 0 other import "$SP_DIR/b"
	[ "$(sqlite3 "$db" "SELECT count(*) FROM execution_tag")" = 0 ]
}

# killed POINT CONFIG COMMAND ARGUMENT…: SIGKILL at a system call; false where the command got through
killed() {
	local point=$1 config=$2 command=$3
	shift 3
	! strace -f -o /dev/null -e trace="${point%:*}" -e inject="${point%:*}:signal=KILL:when=${point#*:}" \
		"$SP_BIN/sallyport" "$command" --config "$SP_DIR/$config.json" "$@" >/dev/null 2>&1
}

# has FOLDER OWNER: how many tokens, conversations, files and runs of the owner are there, and runs that belong to a conversation
has() {
	[ "$(sqlite3 -readonly "$SP_DIR/$1/sallyport.db" 'PRAGMA user_version' 2>/dev/null || echo 0)" != 0 ] || { echo '0|0|0|0|0' && return; } # not made yet
	sqlite3 "$SP_DIR/$1/sallyport.db" "SELECT (SELECT count(*) FROM token WHERE owner = '$2'), (SELECT count(*) FROM conversation WHERE owner = '$2'),
		(SELECT count(*) FROM file JOIN conversation ON id = conversation WHERE owner = '$2'), count(*), count(conversation) FROM execution WHERE owner = '$2'"
}

@test "an owner's move can be killed at any step" {
	local owner point kills=0 all
	say python 'open("f", "w").write("x" * 100000); print("y" * 100000)'
	say python 'print(open("f").read()[:3])'
	sp_stdio_end
	owner=$(sp_sql 'SELECT DISTINCT owner FROM execution')
	cli 0 sallyport token add --owner "$owner"
	all=$(has data "$owner")
	[ "$all" = '1|1|1|2|2' ]
	cli 5 sallyport export --move --owner "$owner" -o "$SP_DIR/b"
	cli 0 sallyport drain --owner "$owner"
	for words in --all "--owner bob" "--language python" "$(sp_sql 'SELECT min(id) FROM execution')"; do
		# shellcheck disable=SC2086
		cli 2 sallyport export --move --owner "$owner" -o "$SP_DIR/b" $words
	done
	for point in chmod:1 pwrite64:1 pwrite64:9 pwrite64:30 fdatasync:1 fdatasync:2 rename:1; do
		! killed "$point" sallyport export --move --owner "$owner" -o "$SP_DIR/b" || kills=$((kills + 1))
		[ ! -e "$SP_DIR/b" ] || cli 0 sallyport verify "$SP_DIR/b"
		[ "$(has data "$owner")" = "$all" ]
		cli 0 sallyport verify --blobs
		rm -f "$SP_DIR/b"
	done
	[ "$kills" -ge 5 ]
	cli 0 sallyport export --move --owner "$owner" -o "$SP_DIR/b" --json
	[ "$(jq -c .summary <<<"$output")" = "{\"executions\":2,\"owner\":\"$owner\",\"tokens\":1,\"snippets\":0,\"conversations\":1,\"files\":1,\"erased\":0}" ]
	# Tokens come in only where somebody said so.
	cli 2 other import "$SP_DIR/b"
	[[ $stderr == *"lets the owner $owner in, with tokens: say --move"* ]]
	cli 2 other import --move "$SP_DIR/b" "$SP_DIR/b"
	[ ! -e "$SP_DIR/other" ]
	kills=0
	for point in pwrite64:1 pwrite64:20 pwrite64:60 pwrite64:100 fdatasync:1 fdatasync:3 fdatasync:5 renameat:1 linkat:1 unlinkat:1; do
		! killed "$point" other import --move "$SP_DIR/b" || kills=$((kills + 1))
		if [ "$(has other "$owner")" != "$all" ]; then
			[ "$(has other "$owner")" = '0|0|0|0|0' ]
			cli 0 other import --move "$SP_DIR/b"
		fi
		[ "$(has other "$owner")" = "$all" ]
		cli 0 other verify --blobs
		cli 5 other import --move "$SP_DIR/b"
		rm -r "$SP_DIR/other"
	done
	[ "$kills" -ge 6 ]
	cli 0 other import --move "$SP_DIR/b" --json
	[ "$(jq -c .summary <<<"$output")" = "{\"executions\":2,\"new\":2,\"already_there\":0,\"owner\":\"$owner\",\"tokens\":1,\"snippets\":0,\"conversations\":1,\"files\":1}" ]
	cli 0 other replay --all
	printf '# hosts\n%s h1;\n' "$owner" >"$SP_DIR/map"
	cp "$SP_DIR/map" "$SP_DIR/map.h1"
	printf '# hosts\n%s h2;\n' "$owner" >"$SP_DIR/map.h2"
	for point in write:1 fsync:1 rename:1; do
		killed "$point" sallyport owners place "$owner" h2 --table "$SP_DIR/map"
		cmp "$SP_DIR/map" "$SP_DIR/map.h1" || cmp "$SP_DIR/map" "$SP_DIR/map.h2"
	done
	cli 0 sallyport owners place "$owner" h2 --table "$SP_DIR/map"
	cmp "$SP_DIR/map" "$SP_DIR/map.h2"
	for point in pwrite64:1 pwrite64:4 fdatasync:1; do
		killed "$point" sallyport owners leave "$owner" || true
		cli 0 sallyport verify --blobs
	done
	cli 0 sallyport owners leave "$owner"
	[ "$(has data "$owner")" = '1|0|0|2|0' ]
	cli 0 sallyport verify --blobs
}
