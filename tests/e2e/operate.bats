#!/usr/bin/env bats
# What an operator asks beside a gateway that serves: what runs now, end this one, which files, where was that word, what happened in
# this conversation.

# shellcheck disable=SC2016,SC2034 # dollars in the programs are not for this shell; SP_TOKEN is read by lib.bash
bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	export SALLYPORT_LIMITS_SYNCHRONOUS_SECONDS=60 # what may take longer is a task
	sp_serve alice
}

teardown() {
	sp_teardown
}

# A run that sleeps, in the background; sets ID when it sleeps.
run_long() {
	(sp_run_bash "echo begun; sleep $SP_ASLEEP" >"$SP_DIR/long" 2>&1) 3>&- &
	LONG=$!
	sp_until "" sp_asleep
	ID=$(sp_sql "SELECT id FROM execution WHERE state = 'running'")
}

@test "ps shows runs with what they printed" {
	run sp_cli ps
	[ "$status" -eq 0 ]
	[[ $output != *running* ]]
	run_long
	[ "$(sp_cli ps --json | jq -c '[.id == "'"$ID"'", .state, .owner, .conversation, .language, .printed_bytes, .program, .pid == '"$SP_GATEWAY_PID"']')" = \
		'[true,"running","alice","talk","bash",6,"gateway",true]' ]
	run sp_cli ps
	[[ $output == *"$ID"*running*alice*talk*bash*"6 B"*"gateway, process $SP_GATEWAY_PID"* ]]
	[ -z "$(sp_cli ps --owner bob --json)" ]
	kill -KILL "$SP_GATEWAY_PID"
	sp_until "" sp_gone "$SP_GATEWAY_PID"
	run --separate-stderr sp_cli ps # who may write the record finds the run over
	[ "$status" -eq 0 ]
	[[ $output != *"$ID"* ]]
	[ "$(sp_cli show "$ID" --json | jq -r .verdict)" = XX ]
	run sp_cli cancel "$ID"
	[ "$status" -eq 5 ]
	[[ $output == *"run $ID is over already (XX)"* ]]
	wait "$LONG" || true
}

@test "cancel: a run ends with CX, the log says who asked" {
	run_long
	run sp_cli cancel "${ID:0:20}" --reason 'ticket 7'
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$output" = "run $ID was cancelled" ]
	wait "$LONG"
	grep -q CX "$SP_DIR/long"
	sp_none_asleep
	[ "$(sp_cli show "$ID" --stdout)" = begun ]
	sp_sql "SELECT kind || ' ' || (entry ->> 'a') FROM audit WHERE object = 'execution:$ID' ORDER BY n"
	[ "$(sp_sql "SELECT kind || ' ' || (entry ->> 'a') FROM audit WHERE object = 'execution:$ID' ORDER BY n" | paste -sd,)" = \
		"run.begin token:$(sp_sql "SELECT id FROM token"),run.cancel cli:$(id -u),run.end token:$(sp_sql "SELECT id FROM token")" ]
	[[ $(sp_sql "SELECT detail FROM audit_detail JOIN audit USING (n) WHERE kind = 'run.cancel'") == *'"ticket 7"'* ]]
	[[ $(cat "$SP_DIR/gateway.log") == *"run cancelled by the operator id=$ID"* ]]
	run sp_cli cancel "$ID"
	[ "$status" -eq 5 ]
	[[ $output == *"run $ID is over already (CX)"* ]]
	run sp_cli cancel 0123
	[ "$status" -eq 3 ]
	run sp_cli cancel
	[ "$status" -eq 2 ]
	run sp_cli verify
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "cancel: one that waits for its turn never begins" {
	run_long
	sp_mcp tools/call '"name":"run_code","arguments":{"conversationId":"talk","language":"bash","code":"echo second","timeout_seconds":100}' run_code
	cat "$SP_DIR/body"
	[ "$(sp_get '.result.taskId | length')" = 36 ]
	run sp_cli ps
	echo "$output"
	local second
	second=$(sp_cli ps --json | jq -r 'select(.state == "waiting").id')
	[ -n "$second" ]
	run sp_cli cancel "$second"
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$output" = "run $second was cancelled before it began" ]
	sp_cli cancel "$ID"
	wait "$LONG"
	[ "$(sp_sql 'SELECT count(*) FROM execution')" = 1 ]
}

@test "files lists a conversation's files" {
	run sp_cli files
	[ "$status" -eq 0 ]
	[[ $output == *"0 files"* ]]
	sp_call upload_file '{"conversationId":"talk","filename":"in.txt","content":"dXBsb2FkZWQ="}'
	sp_call upload_file '{"conversationId":"other","filename":"in.txt","content":"ZWxzZQ=="}'
	sp_run_bash 'mkdir -p sub; printf "a\0b" >sub/made; echo 1 >twice; ln -s / link'
	local first=$ID
	sp_run_bash 'echo 22 >twice'
	sp_cli files --json | jq -c '[.owner, .conversation, .name, .size, .run]' >"$SP_DIR/list"
	cat "$SP_DIR/list"
	[ "$(cat "$SP_DIR/list")" = '["alice","other","in.txt",4,null]
["alice","talk","in.txt",8,null]
["alice","talk","sub/made",3,"'"$first"'"]
["alice","talk","twice",3,"'"$ID"'"]' ]
	run sp_cli files --owner alice -c talk
	[[ $output == *"$first"*sub/made*"$ID"*twice*"3 files, 14 B, in 1 conversations"* ]]
	[ -z "$(sp_cli files --owner bob --json)" ]
	[ "$(sp_cli files --owner alice -c talk sub/made | od -An -tx1)" = ' 61 00 62' ]
	mkdir "$SP_DIR/out" && ln -s /nowhere "$SP_DIR/out/twice" # replaced, not followed
	[ "$(sp_cli files --owner alice -c talk -o "$SP_DIR/out")" = '3 files, 14 B' ]
	[ "$(cat "$SP_DIR/out/in.txt")" = uploaded ] && [ "$(cat "$SP_DIR/out/twice")" = 22 ] && [ -f "$SP_DIR/out/sub/made" ]
	run sp_cli files --owner alice -c talk nothing
	[ "$status" -eq 3 ]
	run sp_cli files in.txt
	[ "$status" -eq 2 ]
	[[ $output == *"give --owner and --conversation"* ]]
	run sp_cli files --json -o "$SP_DIR/out" --owner alice -c talk
	[ "$status" -eq 2 ]
}

@test "doctor takes the word of the jailer that serves" {
	local report
	report=$(sp_cli doctor --json)
	[ "$(jq '[.checks[] | select(.name == "cgroup" or .name == "guest ids" or .name == "id-map helper")] | length' <<<"$report")" = 0 ]
	[[ $(jq -r '.checks[] | select(.name == "jailer").found' <<<"$report") == *"/jailer.sock, "*", cgroup "* ]]
	[ "$(jq '[.checks[] | select(.name == "runner" and .state != "ok")] | length' <<<"$report")" = 0 ]
}

@test "log --text finds code and output" {
	sp_run_bash 'echo "in the output: $((6 * 7)) dwarves"'
	local first=$ID
	sp_run_bash 'echo >&2 "an error of wizards"; false'
	[ "$(sp_cli log --json --text '42 dwarves' | jq -r .id)" = "$first" ]
	[ "$(sp_cli log --json --text 'of wizards' | jq -r .id)" = "$ID" ]
	sp_cli gc --yes
	[ "$(sp_sql 'SELECT through FROM searched')" = 2 ]
	[ "$(sp_cli log --json --text '42 dwarves' | jq -r .id)" = "$first" ]
	[ "$(sp_cli log --json --text '6 * 7' | jq -r .id)" = "$first" ]
	[ -z "$(sp_cli log --json --text 'Dwarves')" ]
	[ -z "$(sp_cli replay --text '42 dwarves' --json 2>/dev/null | jq -r '.id // empty')" ] # a replay is chosen by code
	sp_cli forget --execution "$first" --yes
	[ -z "$(sp_cli log --json --text '42 dwarves')" ]
	[ "$(sp_cli log --json --text 'of wizards' | jq -r .id)" = "$ID" ]
	run sp_cli verify
	[ "$status" -eq 0 ]
}

@test "show --conversation tells a conversation's steps" {
	sp_call upload_file '{"conversationId":"talk","filename":"in.txt","content":"b25lCnR3bwo="}'
	sp_run_bash 'sed -i s/two/2/ in.txt; echo new >made; echo said'
	local first=$ID
	sp_call upload_file '{"conversationId":"talk","filename":"late.txt","content":"bGF0ZQo="}'
	sp_run_bash 'rm made; echo >&2 gone'
	run sp_cli show --conversation talk
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"1  20"*"$first  bash  OK"*"put by the client: in.txt"*"sed -i"*"standard output"*"said"*"-two"*"+2"*"+++ b/made"*"+new"* ]]
	[[ $output == *"2  20"*"$ID  bash  OK"*"put by the client: late.txt"*"rm made"*"standard error"*"gone"*"--- a/made"*"+++ /dev/null"* ]]
	[[ ${output#*2  20} != *"put by the client: in.txt"* ]]
	[ "$(sp_cli show --conversation talk --json | jq -c '[.step, .id, .put, .removed, (.diff | length > 0)]' | paste -sd' ')" = \
		"[1,\"$first\",[\"in.txt\"],[],true] [2,\"$ID\",[\"late.txt\"],[],true]" ]
	sp_cli forget --execution "$first" --yes
	run sp_cli show --conversation talk --owner alice
	[ "$status" -eq 0 ]
	[[ $output == *"the content of run $first was removed"* ]]
	[[ $output != *"put by the client"* ]]
	run sp_cli show --conversation nothing
	[ "$status" -eq 3 ]
	run sp_cli show --conversation talk "$ID"
	[ "$status" -eq 2 ]
	run sp_cli show
	[ "$status" -eq 2 ]
	SP_TOKEN=$(sp_cli token add --owner bob --json | jq -r .token)
	sp_run_bash 'true'
	run sp_cli show --conversation talk
	[ "$status" -eq 5 ]
	[[ $output == *"name one with --owner"* ]]
}

@test "log.format json: every line is an object" {
	sp_stop "$SP_GATEWAY_PID"
	sp_stop "$SP_JAILER_PID"
	rm -f "$SP_DIR"/*.log
	export SALLYPORT_LOG_FORMAT=json
	sp_start_jailer
	sp_start_gateway
	sp_run_bash 'echo secret-output' >/dev/null
	sp_stop "$SP_GATEWAY_PID"
	sp_stop "$SP_JAILER_PID"
	local program
	for program in gateway jailer; do
		cat "$SP_DIR/$program.log"
		[ "$(jq -s 'length > 0 and all(.[]; .ts and .level and .event and .program == "'$program'")' "$SP_DIR/$program.log")" = true ]
		run ! grep -q secret-output "$SP_DIR/$program.log"
	done
	SALLYPORT_LOG_FORMAT=xml run "$SP_BIN/sallyport" doctor --config "$SP_CONFIG"
	[[ $output == *"log.format"*"must be text or json"* ]]
	SALLYPORT_LOG_LEVEL=loud SALLYPORT_LOG_FORMAT=text run "$SP_BIN/sallyport" doctor --config "$SP_CONFIG"
	[[ $output == *"log.level"*"must be debug, info, warn or error"* ]]
	SALLYPORT_LOG_FORMAT=text SALLYPORT_LOG_LEVEL=error sp_start_jailer
	rm "$SP_DIR/gateway.log"
	SALLYPORT_LOG_FORMAT=text SALLYPORT_LOG_LEVEL=error sp_start_gateway
	[ ! -s "$SP_DIR/gateway.log" ]
}

# Whatever a client can write says "geheim" somewhere.
everything_secret() {
	local token=$SP_TOKEN
	sp_call run_code '{"conversationId":"geheim-talk","language":"python","code":"import os, sys # geheim-code\nprint(\"geheim-output\", sys.argv, sys.stdin.read())\nopen(\"geheim-made.txt\", \"w\").write(\"geheim-made\")\nsys.exit(\"geheim-error\")",
		"args":["geheim-argument"],"stdin":"geheim-input","environment":{"GEHEIM":"geheim-value"},"secrets":{"S":"geheim-secret"},
		"files":[{"filename":"geheim-file.txt","content":"geheim-content"}]}'
	[ "$(sp_get details.verdict)" = RE ]
	sp_call run_code '{"conversationId":"geheim-talk","language":"python","code":"import ctypes; ctypes.CDLL(None).unshare(0x10000000) # geheim-denied"}'
	sp_call list_files '{"conversationId":"geheim-talk"}'
	[[ $(cat "$SP_DIR/body") == *geheim-made.txt* ]]
	sp_call geheim_tool '{}'
	sp_call run_code '{"geheim-member":"geheim"}'
	echo '{"jsonrpc":"2.0","id":"geheim-id","method":"geheim/method","params":{"geheim":1}}' | sp_http POST /mcp HTTP_USER_AGENT=geheim-agent
	echo '{"geheim-broken' | sp_http POST /mcp
	sp_http GET /geheim-path QUERY_STRING=geheim-query </dev/null
	sp_http GET /files/geheim-hash/geheim-name </dev/null
	SP_TOKEN=${token%_*}_geheim sp_http POST /mcp <<<'{}'
	[ "$SP_STATUS" = 401 ]
}

# Servers whose settings, questions, answers and files say it, too: one of them talks, one is away.
talkative_servers() {
	jq -n --rawfile code "$BATS_TEST_DIRNAME/talkative_server.py" '{mcpServers: {
		talk: {command: "/usr/bin/python3", args: ["-c", $code], env: {KEY: "geheim-key"}, data: "keep", tools: {allow: ["note"]}},
		away: {url: "http://127.0.0.1:1/geheim?key=geheim-url", headers: {Authorization: "Bearer geheim-header"}, private: true}}}' >"$SP_DIR/servers.json"
	chmod 600 "$SP_DIR/servers.json"
	export SALLYPORT_UPSTREAM_FILE=$SP_DIR/servers.json
}

tools_secret() {
	local what SP_TOKEN
	SP_TOKEN=$(sp_cli token add --owner alice --servers talk,away --json | jq -r .token)
	for what in geheim-answer geheim-failure geheim-error geheim-broken geheim-end; do
		sp_call run_code "$(jq -nc --arg what "$what" '{conversationId: "geheim-tools", language: "python", servers: ["talk"],
			code: "try:\n    print(tools.talk.note(what=\"\($what)\"))\nexcept Exception as e:\n    print(e)"}')"
		[ "$(sp_get details.verdict)" = OK ]
	done
	[ "$(sp_sql "SELECT group_concat(DISTINCT state) FROM (SELECT state FROM tool_call ORDER BY state)")" = done,failed ]
	sp_call run_code '{"conversationId":"geheim-tools","language":"python","servers":["away"],"code":"print(tools.away.geheim_tool(geheim=1))"}'
	[ "$(sp_sql "SELECT count(*) FROM tool_call WHERE result LIKE '%geheim-answer to geheim-failure%'")" -gt 0 ]
}

@test "no log has contents or tokens at the most talkative level" {
	local format
	talkative_servers
	for format in text json; do
		sp_stop "$SP_GATEWAY_PID"
		sp_stop "$SP_JAILER_PID"
		rm -f "$SP_DIR"/*.log
		export SALLYPORT_LOG_FORMAT=$format SALLYPORT_LOG_LEVEL=debug
		sp_start_jailer
		sp_start_gateway
		everything_secret
		tools_secret
		sp_cli log --text geheim-code >"$SP_DIR/found" 2>"$SP_DIR/cli.log"
		[ -s "$SP_DIR/found" ]
		sp_until "" grep -q 'run done' "$SP_DIR/jailer.log"
		grep -q debug "$SP_DIR/jailer.log"
		grep -qE 'rpc("?[=:]"?)\(unknown\)' "$SP_DIR/gateway.log"
		grep -q 'upstream server asks' "$SP_DIR/gateway.log"
		grep -q 'upstream notification' "$SP_DIR/gateway.log"
		grep -q 'upstream server failed' "$SP_DIR/gateway.log"
		run ! grep -i geheim "$SP_DIR"/*.log
		echo "$output"
		run ! grep -F "${SP_TOKEN##*_}" "$SP_DIR"/*.log
	done
}
