#!/usr/bin/env bats
# shellcheck disable=SC2016 # dollars in the programs are not for this shell
# Tasks through the gateway, both forms: begin, ask, fetch, cancel, list; whose they are, how long and how many are kept, and what is left
# of them when the gateway is killed.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_setup
	# Many are begun one after the other: on a busy machine the first one may not be over when the last one comes.
	export SALLYPORT_LIMITS_SYNCHRONOUS_SECONDS=60 SALLYPORT_LIMITS_TASK_SECONDS_MAX=7200 SALLYPORT_LIMITS_IN_FLIGHT=100
	sp_start_jailer
	sp_start_gateway
	sp_two_owners
}

teardown_file() {
	sp_teardown
}

setup() {
	SESSION='' # of this test
	SP_GATEWAY_PID=$(tail -n 1 "$SP_DIR/pids") # a test before may have started another one
}

# A request of the legacy era in a session of its own revision: legacy METHOD PARAMS
legacy() {
	printf '{"jsonrpc":"2.0","id":7,"method":"%s","params":%s}' "$1" "$2" | sp_http POST /mcp HTTP_MCP_SESSION_ID="$SESSION"
}

open_session() {
	printf '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"%s","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
		"${1:-2025-11-25}" | sp_http POST /mcp
	SESSION=$(sed -n 's/^Mcp-Session-Id: //p' "$SP_DIR/head")
	[ -n "$SESSION" ]
}

# A request of the modern era that declares the extension: modern METHOD PARAMS-WITHOUT-BRACES [NAME]; BARE=1: without the extension
modern() {
	local extension='"extensions":{"io.modelcontextprotocol/tasks":{}}'
	[ -z "$BARE" ] || extension=
	printf '{"jsonrpc":"2.0","id":8,"method":"%s","params":{%s,"_meta":{%s,"io.modelcontextprotocol/clientCapabilities":{%s}}}}' "$1" "$2" \
		'"io.modelcontextprotocol/protocolVersion":"2026-07-28"' "$extension" |
		sp_http POST /mcp HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD="$1" HTTP_MCP_NAME="$3"
}

# begin CODE [TTL]: a bash program as a task of the legacy form; sets TASK
begin() {
	local ttl=
	[ -z "$2" ] || ttl="\"ttl\":$2"
	legacy tools/call "$(jq -nc --arg code "$1" --argjson task "{$ttl}" \
		'{name: "run_code", arguments: {conversationId: "c", language: "bash", code: $code}, task: $task}')"
	TASK=$(sp_get .result.task.taskId)
	[ ${#TASK} = 36 ]
}

# The same in the modern form, which is a task because it may take long; ends when it is cancelled. Sets TASK
begin_long() {
	modern tools/call "\"name\":\"run_code\",\"arguments\":{\"conversationId\":\"long\",\"language\":\"bash\",\"code\":\"echo begun; sleep 200\",\"timeout_seconds\":100}" run_code
	TASK=$(sp_get .result.taskId)
	[ ${#TASK} = 36 ]
}

status_is() {
	legacy tasks/get "{\"taskId\":\"$TASK\"}"
	[ "$(sp_get .result.status)" = "$1" ]
}

# Has the program of $TASK printed its first line?
has_begun() {
	[ -s "$SP_DIR/data/running/$(sp_sql "select execution from task where id = '$TASK'").out" ]
}

is_recorded() {
	[ "$(sp_sql "select state from execution where id = (select execution from task where id = '$TASK')")" = finished ]
}

unknown() {
	legacy tasks/get "{\"taskId\":\"$TASK\"}"
	[ "$(sp_get .error.code)" = -32602 ]
}

@test "legacy: a task's result is fetched" {
	open_session
	[ "$(sp_get '.result.capabilities.tasks.requests.tools.call | type')" = object ]
	legacy tools/list '{}'
	[ "$(sp_get '.result.tools[] | select(.name == "run_code").execution.taskSupport')" = optional ]
	[ "$(sp_get '.result.tools[] | select(.name == "upload_file").execution.taskSupport')" = forbidden ]
	begin 'echo "$((6 * 7))"; echo x >made.txt' 60000
	[ "$(sp_get .result.task.status)" = working ]
	[ "$(sp_get .result.task.ttl)" = 60000 ]
	[[ $(sp_get .result.task.createdAt) == 20*T*Z ]]
	legacy tasks/result "{\"taskId\":\"$TASK\"}" # waits for it
	[ "$(sp_get details.stdout)" = 42 ]
	[ "$(sp_get 'details.files.created[0].name')" = made.txt ]
	[ "$(sp_get .result.isError)" = false ]
	[ "$(sp_get '.result._meta["io.modelcontextprotocol/related-task"].taskId')" = "$TASK" ]
	status_is completed
	legacy tasks/list '{}'
	[ "$(sp_get ".result.tasks[] | select(.taskId == \"$TASK\").status")" = completed ]
}

@test "log and show name the runs that were tasks" {
	export SALLYPORT_CONFIG=$SP_CONFIG
	open_session
	begin 'echo shown'
	legacy tasks/result "{\"taskId\":\"$TASK\"}"
	local id done=$TASK
	id=$(sp_get details.execution_id)
	[ "$("$SP_BIN/sallyport" log --json --task "$TASK" | jq -r '.id, .task, .task_state' | xargs)" = "$id $TASK completed" ]
	"$SP_BIN/sallyport" show "$id" | grep -qx "task          $TASK, completed"
	sp_call run_code '{"conversationId":"c","language":"bash","code":"echo no task"}'
	id=$(sp_get details.execution_id)
	"$SP_BIN/sallyport" show "$id" >"$SP_DIR/shown"
	run ! grep -q '^task' "$SP_DIR/shown"
	[ "$("$SP_BIN/sallyport" show --json "$id" | jq -c '[.task, .task_state]')" = '[null,null]' ]
	begin_long
	[ "$("$SP_BIN/sallyport" log --json --task "${TASK:0:30}" | jq -r .task_state)" = working ]
	modern tasks/cancel "\"taskId\":\"$TASK\"" "$TASK"
	sp_until "$SP_GATEWAY_PID" is_recorded
	"$SP_BIN/sallyport" log --conversation long -n 1 | grep -q ' CX  *cancelled '
	[ "$("$SP_BIN/sallyport" log --json --task 0 -n 100 | jq -r 'select(.task == null)' | wc -l)" = 0 ]
	# A task goes when its time is up; that there was one stays known. (Its row is taken away here: time itself would be a day.)
	sqlite3 -cmd '.timeout 60000' "$SP_DIR/data/sallyport.db" "delete from task where id = '$done'"
	"$SP_BIN/sallyport" log --task "$done" | grep -q ' OK  *expired '
}

@test "replay and export choose runs by token or task" {
	export SALLYPORT_CONFIG=$SP_CONFIG
	local token=$SP_TOKEN first second other
	named() { "$SP_BIN/sallyport" token add --owner carol --name "$1" --results structured --json; }
	ids() { # ARGUMENT…: what a replay of them ran, all as recorded
		run -0 --separate-stderr "$SP_BIN/sallyport" replay --json "$@"
		jq -r 'select(.id) | "\(.id) \(.class)"' <<<"$output" | sort | sed 's/ identical$//' | xargs
	}
	ran() { # CODE: by the token at hand; the execution's id
		sp_call run_code "$(jq -nc --arg code "$1" '{conversationId: "shared", language: "bash", code: $code}')"
		sp_get details.execution_id
	}
	first=$(named one) second=$(named two)
	SP_TOKEN=$(jq -r .token <<<"$first")
	local one_a one_b two
	one_a=$(ran 'echo one a')
	SP_TOKEN=$(jq -r .token <<<"$second")
	two=$(ran 'echo two')
	open_session
	begin 'echo a task'
	legacy tasks/result "{\"taskId\":\"$TASK\"}"
	other=$(sp_get details.execution_id)
	SP_TOKEN=$(jq -r .token <<<"$first")
	one_b=$(ran 'echo one b')
	SP_TOKEN=$token
	[ "$(ids --token "$(jq -r .id <<<"$first")")" = "$one_a $one_b" ]
	[ "$(ids --token "$(jq -r .id <<<"$second")")" = "$two $other" ]
	[ "$(ids --token "$(jq -r .id <<<"$second")" --text two)" = "$two" ]
	[ "$(ids --owner carol)" = "$one_a $two $other $one_b" ]
	[ "$(ids --task "$TASK")" = "$other" ]
	[ "$(ids --token "$(jq -r .id <<<"$first")" --task "$TASK")" = "" ]
	[ "$(ids --token nobody)" = "" ]
	run -0 "$SP_BIN/sallyport" export --output "$BATS_TEST_TMPDIR/one" --token "$(jq -r .id <<<"$first")" --json
	[ "$(SALLYPORT_DATA_DIR=$BATS_TEST_TMPDIR/there SALLYPORT_CONFIG='' "$SP_BIN/sallyport" import "$BATS_TEST_TMPDIR/one" --json | jq .summary.executions)" = 2 ]
}

@test "legacy: a program that fails makes the task fail" {
	open_session
	begin 'echo no >&2; exit 3'
	legacy tasks/result "{\"taskId\":\"$TASK\"}"
	[ "$(sp_get .result.isError)" = true ]
	[ "$(sp_get details.exit_code)" = 3 ]
	[ "$(sp_get details.stderr)" = no ]
	status_is failed
	# In the modern form that is a task which has completed.
	modern tasks/get "\"taskId\":\"$TASK\"" "$TASK"
	[ "$(sp_get .result.status)" = completed ]
	[ "$(sp_get .result.result.isError)" = true ]
	[ "$(sp_get .result.error)" = null ]
}

@test "legacy: cancelling a task ends the run" {
	open_session
	begin_long
	sp_until "$SP_GATEWAY_PID" has_begun
	legacy tasks/cancel "{\"taskId\":\"$TASK\"}"
	[ "$(sp_get .result.status)" = cancelled ]
	legacy tasks/result "{\"taskId\":\"$TASK\"}"
	[ "$(sp_get details.verdict)" = CX ]
	[ "$(sp_get details.stdout)" = begun ]
	[ "$(sp_sql "select verdict from execution where id = (select execution from task where id = '$TASK')")" = CX ]
	legacy tasks/cancel "{\"taskId\":\"$TASK\"}"
	[ "$(sp_get .error.code)" = -32602 ]
	status_is cancelled
}

@test "tasks of others are unknown, word for word" {
	open_session
	begin 'echo secret'
	legacy tasks/result "{\"taskId\":\"$TASK\"}"
	[ "$(sp_get details.stdout)" = secret ]
	export SP_TOKEN=$BOB
	open_session
	for method in tasks/get tasks/result tasks/cancel; do
		legacy $method "{\"taskId\":\"$TASK\"}"
		sp_get '.error | del(.data.requestId)' | sed "s/$TASK/ID/" >"$SP_DIR/theirs"
		legacy $method '{"taskId":"0193d4f0-0000-7000-8000-000000000000"}'
		sp_get '.error | del(.data.requestId)' | sed 's/0193d4f0-0000-7000-8000-000000000000/ID/' | cmp - "$SP_DIR/theirs"
		[ "$(sp_get .error.code)" = -32602 ]
	done
	legacy tasks/list '{}'
	[ "$(sp_get '.result.tasks | length')" = 0 ]
	modern tasks/get "\"taskId\":\"$TASK\"" "$TASK"
	[ "$(sp_get .error.code)" = -32602 ]
	modern tasks/cancel "\"taskId\":\"$TASK\"" "$TASK"
	[ "$(sp_get .error.code)" = -32602 ]
	export SP_TOKEN=$ALICE
}

@test "a task has a time to live" {
	open_session
	begin 'true'
	[ "$(sp_get .result.task.ttl)" = 3600000 ]
	begin 'true' 999999999999
	[ "$(sp_get .result.task.ttl)" = 7200000 ]
	for ttl in 0 -1 1.5 '"1"'; do
		legacy tools/call "{\"name\":\"run_code\",\"arguments\":{},\"task\":{\"ttl\":$ttl}}"
		[ "$(sp_get .error.code)" = -32602 ]
	done
	begin 'true' 1
	sp_until "$SP_GATEWAY_PID" unknown
	legacy tasks/result "{\"taskId\":\"$TASK\"}"
	[ "$(sp_get .error.code)" = -32602 ]
	# A task that is at work does not expire.
	begin 'echo begun; sleep 100' 1
	sp_until "$SP_GATEWAY_PID" has_begun
	status_is working
	legacy tasks/cancel "{\"taskId\":\"$TASK\"}"
	[ "$(sp_get .result.status)" = cancelled ]
	sp_until "$SP_GATEWAY_PID" unknown
}

@test "tasks are refused where they are not for" {
	open_session 2025-06-18
	[ "$(sp_get .result.capabilities.tasks)" = null ]
	legacy tools/call '{"name":"run_code","arguments":{"conversationId":"c","language":"bash","code":"echo 1"},"task":{}}'
	[ "$(sp_get details.stdout)" = 1 ]
	legacy tasks/list '{}'
	[ "$(sp_get .error.code)" = -32601 ]
	legacy tools/list '{}'
	[ "$(sp_get '.result.tools[0].execution')" = null ]
	open_session
	legacy tools/call '{"name":"upload_file","arguments":{"conversationId":"c","filename":"a","content":"YQ=="},"task":{}}'
	[ "$(sp_get .error.code)" = -32601 ]
	legacy tools/call '{"name":"run_code","arguments":{"conversationId":"c","language":"bash","code":"echo 1"},"task":7}'
	[ "$(sp_get .error.code)" = -32602 ]
	# A refusal is a result and leaves no task.
	local before
	before=$(sp_sql 'select max(id) from task')
	legacy tools/call '{"name":"run_code","arguments":{"conversationId":"c","language":"cobol","code":"x"},"task":{}}'
	[ "$(sp_get .result.isError)" = true ]
	[ "$(sp_sql "select count(*) from task where id > '$before'")" = 0 ]
	legacy tasks/get '{}'
	[ "$(sp_get .error.code)" = -32602 ]
	SP_TOKEN=$("$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner alice --scope files --json | jq -r .token)
	legacy tasks/list '{}'
	[ "$SP_STATUS" = 403 ]
	export SP_TOKEN=$ALICE
}

@test "the list of tasks has pages" {
	export SP_TOKEN=$BOB
	open_session
	for _ in {1..51}; do begin ':'; done
	legacy tasks/list '{}'
	[ "$(sp_get '.result.tasks | length')" = 50 ]
	[ "$(sp_get '.result.tasks[0].taskId')" = "$TASK" ]
	cursor=$(sp_get .result.nextCursor)
	legacy tasks/list "{\"cursor\":\"$cursor\"}"
	[ "$(sp_get '.result.tasks | length')" = 1 ]
	[ "$(sp_get .result.nextCursor)" = null ]
	for bad in "${cursor}0" "A${cursor:1}" "g" "$TASK"; do
		legacy tasks/list "{\"cursor\":\"$bad\"}"
		[ "$(sp_get .error.code)" = -32602 ]
	done
	# A cursor is its owner's.
	export SP_TOKEN=$ALICE
	open_session
	legacy tasks/list "{\"cursor\":\"$cursor\"}"
	[ "$(sp_get .error.code)" = -32602 ]
}

@test "modern: a long run is a task, or is refused in words" {
	begin_long
	[ "$(sp_get .result.resultType)" = task ]
	[ "$(sp_get .result.status)" = working ]
	[ "$(sp_get .result.ttlMs)" = 3600000 ]
	[ "$(sp_get '.result | has("task") or has("ttl") or has("result")')" = false ]
	modern tasks/get "\"taskId\":\"$TASK\"" "$TASK"
	[ "$(sp_get .result.resultType)/$(sp_get .result.status)" = complete/working ]
	modern tasks/update "\"taskId\":\"$TASK\",\"inputResponses\":{\"x\":{}}" "$TASK"
	[ "$(sp_get .result.resultType)" = complete ]
	for _ in 1 2; do # the second one changes nothing
		modern tasks/cancel "\"taskId\":\"$TASK\"" "$TASK"
		[ "$(sp_get .result.resultType)" = complete ]
		[ "$(sp_get '.result | has("status")')" = false ]
	done
	modern tasks/get "\"taskId\":\"$TASK\"" "$TASK"
	[ "$(sp_get .result.status)" = cancelled ]
	# A short one is answered, extension or not.
	modern tools/call '"name":"run_code","arguments":{"conversationId":"s","language":"bash","code":"echo 1"},"task":{"ttl":1}' run_code
	[ "$(sp_get details.stdout)" = 1 ]
	# Who does not know tasks cannot have a long run.
	BARE=1 modern tools/call '"name":"run_code","arguments":{"conversationId":"s","language":"bash","code":"echo 1","timeout_seconds":61}' run_code
	[ "$SP_STATUS/$(sp_get .error.code)" = 400/-32021 ]
	[ "$(sp_get '.error.data.requiredCapabilities.extensions | keys[0]')" = io.modelcontextprotocol/tasks ]
	BARE=1 modern tasks/get '"taskId":"no-such"' no-such
	[ "$SP_STATUS/$(sp_get .error.code)" = 400/-32021 ]
	open_session
	legacy tools/call '{"name":"run_code","arguments":{"conversationId":"s","language":"bash","code":"echo 1","timeout_seconds":61}}'
	[ "$(sp_get .result.isError)" = true ]
	[[ $(sp_get '.result.content[0].text') == "timeout_seconds: 61 is more than the 60 s that a call is waited for: "* ]]
	legacy tools/call '{"name":"run_code","arguments":{"conversationId":"s","language":"bash","code":"echo 1","timeout_seconds":61},"task":{}}'
	TASK=$(sp_get .result.task.taskId)
	legacy tasks/result "{\"taskId\":\"$TASK\"}"
	[ "$(sp_get details.stdout)" = 1 ]
	for method in tasks/result tasks/list; do
		modern $method "\"taskId\":\"$TASK\"" "$TASK"
		[ "$SP_STATUS/$(sp_get .error.code)" = 404/-32601 ]
	done
}

@test "the gateway is killed: a finished task has its result, one at work has failed and says so" {
	open_session
	begin 'echo kept; exit 1'
	done=$TASK
	legacy tasks/result "{\"taskId\":\"$done\"}"
	jq -S '.result | del(._meta)' "$SP_DIR/body" >"$SP_DIR/first"
	begin_long
	sp_until "$SP_GATEWAY_PID" has_begun
	sp_stop "$SP_GATEWAY_PID" KILL
	sp_start_gateway
	legacy tasks/result "{\"taskId\":\"$done\"}"
	jq -S '.result | del(._meta)' "$SP_DIR/body" | cmp - "$SP_DIR/first"
	status_is failed
	[[ $(sp_get .result.statusMessage) == "the gateway ended before this task did; what it printed until then is kept as execution "* ]]
	local execution
	execution=$(sp_get .result.statusMessage)
	[ "$("$SP_BIN/sallyport" show --config "$SP_CONFIG" --json "${execution##* }" | jq -r .stdout_text)" = begun ]
	legacy tasks/result "{\"taskId\":\"$TASK\"}"
	[ "$(sp_get .error.code)" = -32603 ]
	[[ $(sp_get .error.message) == *"the gateway ended before this task did"* ]]
	modern tasks/get "\"taskId\":\"$TASK\"" "$TASK"
	[ "$(sp_get .result.status)/$(sp_get .result.error.code)" = failed/-32603 ]
	legacy tasks/cancel "{\"taskId\":\"$TASK\"}"
	[ "$(sp_get .error.code)" = -32602 ]
}

@test "the same key gives the same result to a task, too" {
	open_session
	for i in 1 2; do
		legacy tools/call '{"name":"run_code","arguments":{"conversationId":"k","language":"bash","code":"echo $RANDOM$RANDOM","idempotencyKey":"k"},"task":{}}'
		TASK=$(sp_get .result.task.taskId)
		legacy tasks/result "{\"taskId\":\"$TASK\"}"
		sp_get details.stdout >"$SP_DIR/key$i"
	done
	cmp "$SP_DIR/key1" "$SP_DIR/key2"
	[ "$(sp_sql "select count(*) from execution where conversation_name = 'k'")" = 1 ]
}

@test "execute_code as a task answers in its own form, after a restart too" {
	sp_stop "$SP_GATEWAY_PID"
	SALLYPORT_TOOLS_SETS=isolator sp_start_gateway
	open_session
	legacy tools/call '{"name":"execute_code","arguments":{"language":"bash","entrypoint_code":"echo out; echo err >&2"},"task":{}}'
	TASK=$(sp_get .result.task.taskId)
	legacy tasks/result "{\"taskId\":\"$TASK\"}"
	[ "$(sp_get '.result.content[0].text')" = $'--- stdout ---\nout\n--- stderr ---\nerr' ]
	sp_stop "$SP_GATEWAY_PID"
	SALLYPORT_TOOLS_SETS=isolator sp_start_gateway
	legacy tasks/result "{\"taskId\":\"$TASK\"}"
	[ "$(sp_get '.result.content[0].text')" = $'--- stdout ---\nout\n--- stderr ---\nerr' ]
	# Switched off it can't be shown, and says so.
	sp_stop "$SP_GATEWAY_PID"
	sp_start_gateway
	legacy tasks/result "{\"taskId\":\"$TASK\"}"
	[[ $(sp_get .error.message) == *"the tool execute_code is switched off"* ]]
}

@test "an owner's tasks are bounded" {
	sp_stop "$SP_GATEWAY_PID"
	SALLYPORT_LIMITS_TASKS=60 sp_start_gateway # bob has 51
	export SP_TOKEN=$BOB
	open_session
	for _ in {1..9}; do begin ':'; done
	legacy tools/call '{"name":"run_code","arguments":{"conversationId":"c","language":"bash","code":"touch ran"},"task":{}}'
	[ "$(sp_get .result.isError)" = true ]
	[[ $(sp_get '.result.content[0].text') == "60 tasks of yours are kept already"* ]]
	[ "$(sp_sql "select count(*) from execution where code = 'touch ran'")" = 0 ]
	export SP_TOKEN=$ALICE
	open_session
	begin 'true'
}

@test "an orderly stop lets the run of a task end" {
	open_session
	begin "echo begun; sleep $SP_ASLEEP; echo done"
	sp_until "$SP_GATEWAY_PID" sp_asleep
	kill -TERM "$SP_GATEWAY_PID"
	sp_wake
	sp_stop "$SP_GATEWAY_PID"
	sp_start_gateway
	status_is completed
	legacy tasks/result "{\"taskId\":\"$TASK\"}"
	[ "$(sp_get details.stdout)" = $'begun\ndone' ]
}

@test "stdio: a task's end is announced" {
	local line rest='' told=''
	next_answer() { # in $line; what was told before, in $told
		while read -r -t "$SP_DEADLINE" line <&"${STDIO[0]}" && [[ $line == *'"method":"notifications/'* ]]; do
			told+=$line$'\n'
		done
	}
	mkdir "$SP_DIR/home"
	[ "$(id -u)" = 0 ] || export SALLYPORT_JAILER_WEAKER_LIMITS=true
	coproc STDIO { XDG_DATA_HOME=$SP_DIR/home "$SP_BIN/sallyport" stdio 2>"$SP_DIR/stdio.log"; }
	local server=$STDIO_PID # bash forgets its own when it ends
	echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
		>&"${STDIO[1]}"
	next_answer
	[ "$(jq -c .result.capabilities.tasks.list <<<"$line")" = '{}' ]
	echo '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_code","arguments":{"conversationId":"c","language":"bash","code":"echo 42"},"task":{}}}' \
		>&"${STDIO[1]}"
	next_answer
	printf '{"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"%s","_meta":{"sallyport/results":"structured"}}}\n' "$(jq -r .result.task.taskId <<<"$line")" >&"${STDIO[1]}"
	next_answer
	[ "$(jq -r "${SP_DETAILS}details.stdout" <<<"$line")" = 42 ]
	exec {rest}<&"${STDIO[0]}"
	eval "exec ${STDIO[1]}>&-"
	told+=$(cat <&"$rest")
	[ "$(jq -r 'select(.method == "notifications/tasks/status") | .params.status' <<<"$told")" = completed ]
	wait "$server" || [ $? = 127 ] # reaped already
}
