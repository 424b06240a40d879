#!/usr/bin/env bats
# `sallyport worker`: two of them with an nginx before them that `worker --front` has described; clients see one service whatever becomes of
# a worker, and the records of both become one.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_setup
	export FOLDER=$SP_DIR SHARED=$SP_DIR/shared NGINX
	NGINX=$(PATH=$PATH:/usr/sbin command -v nginx)
	mkdir "$SHARED"
	chmod 755 "$SHARED"
	start_worker 1
	start_worker 2
	mkdir "$FOLDER/front"
	FRONT=$(free_port)
	export FRONT
	"$SP_BIN/sallyport" worker --front --listen "127.0.0.1:$FRONT" --announce "$SHARED" >"$FOLDER/front/nginx.conf"
	[ "$(id -u)" != 0 ] || sed -i '1i user root;' "$FOLDER/front/nginx.conf"
	"$NGINX" -p "$FOLDER/front" -e "$FOLDER/front/error.log" -c nginx.conf -g 'daemon off;' >"$FOLDER/front/out" 2>&1 3>&- &
	echo $! >"$FOLDER/front/pid"
	sp_until "" answers "http://127.0.0.1:$FRONT/"
}

teardown_file() {
	local n
	kill "$(cat "$FOLDER/front/pid")" 2>/dev/null || true
	for n in 1 2; do kill "$(cat "$FOLDER/pid.$n")" 2>/dev/null || true; done
	for n in 1 2; do sp_until "" sp_gone "$(cat "$FOLDER/pid.$n")"; done
	SP_DIR=$FOLDER sp_teardown
}

free_port() { /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
answers() { curl -sf -o "$FOLDER/answer" "$1"; }

# start_worker N: its port in port.N, its pid in pid.N
start_worker() {
	local port
	port=$(cat "$FOLDER/port.$1" 2>/dev/null || free_port)
	echo "$port" >"$FOLDER/port.$1"
	SALLYPORT_DOORS_PLACES=1 SALLYPORT_JAILER_CGROUP=sp-worker-$$-$1 "$SP_BIN/sallyport" worker --config "$SP_CONFIG" --listen "127.0.0.1:$port" --name 127.0.0.1 --dir "$FOLDER/w$1" \
		--trust 127.0.0.0/8 --owner trainer --announce "$SHARED" >"$FOLDER/out.$1" 2>&1 3>&- &
	echo $! >"$FOLDER/pid.$1"
	sp_until "$!" grep -q serves "$FOLDER/out.$1" || { cat "$FOLDER/out.$1" "$FOLDER"/w"$1"/log/* >&2; return 1; }
}

# run_code ADDRESS CODE [MEMBERS]: the status in $status, the answer in $answer
run_code() {
	local reply=$FOLDER/reply.$BASHPID
	status=$(curl -s -o "$reply" -w '%{http_code}' "http://127.0.0.1:$1/run_code" -d "$(jq -cn --arg code "$2" "{language: \"python\", code: \$code} + {${3:-}}")")
	answer=$(cat "$reply")
}
runs() { run_code "$FRONT" 'print(5)' && [ "$status" = 200 ]; }
of() { sqlite3 -readonly "$FOLDER/$1/data/sallyport.db" "$2"; }
worker() { cat "$FOLDER/port.$1"; }

@test "a worker has the doors under the addresses of their clients" {
	run_code "$(worker 1)" 'print(1)'
	[ "$status" = 200 ]
	[ "$(jq -r .run_result.stdout <<<"$answer")" = 1 ]
	[ "$(curl -s "http://127.0.0.1:$(worker 1)/api/v2/execute" -d '{"language": "python", "version": "*", "files": [{"content": "print(2)"}]}' | jq -r .run.stdout)" = 2 ]
	[ "$(curl -s "http://127.0.0.1:$(worker 1)/common_evaluate_batch" -d '{"completion": "print(input())", "config": {"language": "python", "provided_data": {"test_cases": {"type": "stdin_stdout", "input": ["x"], "output": ["x"]}}}}' | jq -r .accepted)" = true ]
	[ "$(curl -s "http://127.0.0.1:$(worker 1)/")" = '"pong"' ]
	[ "$(curl -s "http://127.0.0.1:$(worker 1)/readyz" | jq -r .ready)" = true ]
	[ "$(of w1 'SELECT group_concat(DISTINCT owner) FROM execution')" = trainer ]
	for path in mcp admin/ metrics v1/exec files/x; do
		[ "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$(worker 1)/$path" -d '{}')" = 404 ]
	done
	[ "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$(worker 1)/t/wrong/run_code" -d '{}')" = 401 ]
	run -1 grep -rq wrong "$FOLDER/w1/log"
	[ "$(cat "$SHARED/addr_127.0.0.1_$(worker 1).txt")" = "127.0.0.1:$(worker 1)" ]
}

@test "a front shares requests among workers" {
	local n before
	before=$(of w2 'SELECT count(*) FROM execution')
	for n in {1..8}; do
		(run_code "$FRONT" "print($n)" && [ "$(jq -r .run_result.stdout <<<"$answer")" = "$n" ]) &
		pids[n]=$!
	done
	for n in {1..8}; do wait "${pids[n]}"; done
	[ "$(of w2 'SELECT count(*) FROM execution')" -gt "$before" ]
}

@test "a 503 of a worker means that nothing has begun" {
	# Whoever waits too long on worker 1 has not begun: 504 for its own clients, 503 for a front.
	local held
	(run_code "$(worker 1)" "import subprocess; subprocess.run(['sleep', '$SP_ASLEEP'])" 'run_timeout: 100') &
	held=$!
	sp_until "" sp_asleep
	run_code "$(worker 1)" 'print(1)' 'run_timeout: 0.001, compile_timeout: 0.001'
	[ "$status" = 504 ]
	status=$(curl -s -o /dev/null -w '%{http_code}' -H 'X-Sallyport-Front: 1' "http://127.0.0.1:$(worker 1)/run_code" -d '{"language": "python", "code": "1", "run_timeout": 0.001, "compile_timeout": 0.001}')
	[ "$status" = 503 ]
	pkill -fx "sleep $SP_ASLEEP"
	wait "$held"
}

running() { [ "$(of "w$1" "SELECT count(*) FROM execution WHERE state = 'running'")" = 1 ]; }
woken() { # the program wherever it runs; true when its answer has come
	pkill -fx "sleep $SP_ASLEEP" || true
	[ -s "$FOLDER/moved" ]
}

@test "a request of a worker that is killed goes to the other one" {
	local n lost=1 all=0
	(run_code "$FRONT" "import subprocess; subprocess.run(['sleep', '$SP_ASLEEP']); print('moved')" 'run_timeout: 100'; echo "$status $(jq -r .run_result.stdout <<<"$answer")" >"$FOLDER/moved") &
	local client=$!
	sp_until "" sp_asleep
	running 1 || lost=2
	kill -KILL "$(cat "$FOLDER/pid.$lost")"
	sp_until "" running $((3 - lost))
	sp_until "" woken
	wait "$client"
	[ "$(cat "$FOLDER/moved")" = '200 moved' ]
	for n in 1 2 3; do
		run_code "$FRONT" "print($n)"
		[ "$status" = 200 ]
		[ "$(jq -r .run_result.stdout <<<"$answer")" = "$n" ]
	done
	# Its record is brought in later, when its disk is back. The program that it lost has no verdict of its own there.
	start_worker "$lost"
	for n in 1 2; do
		SALLYPORT_DATA_DIR=$FOLDER/w$n/data sp_cli export --since 1h --output "$FOLDER/w$n.bundle"
		SALLYPORT_DATA_DIR=$FOLDER/together sp_cli import "$FOLDER/w$n.bundle"
		all=$((all + $(of "w$n" 'SELECT count(*) FROM execution')))
	done
	[ "$(sqlite3 "$FOLDER/together/sallyport.db" 'SELECT count(*) FROM execution')" = "$all" ]
	SALLYPORT_DATA_DIR=$FOLDER/together sp_cli verify
	[ "$(sqlite3 "$FOLDER/together/sallyport.db" "SELECT count(*) FROM execution WHERE instr(code, 'moved')")" = 2 ]
	[ "$(sqlite3 "$FOLDER/together/sallyport.db" "SELECT count(*) FROM execution WHERE instr(code, 'moved') AND verdict = 'OK'")" = 1 ]
}

@test "a worker that is stopped takes its file away" {
	kill "$(cat "$FOLDER/pid.2")"
	sp_until "" sp_gone "$(cat "$FOLDER/pid.2")"
	[ ! -e "$SHARED/addr_127.0.0.1_$(worker 2).txt" ]
	sp_until "" runs # a worker that did not answer three times gets nothing for three seconds
}

@test "a front whose workers are all gone says that nothing has begun, in the words of each client" {
	kill "$(cat "$FOLDER/pid.1")"
	sp_until "" sp_gone "$(cat "$FOLDER/pid.1")"
	run_code "$FRONT" 'print(6)'
	[ "$status" = 504 ]
	[[ $answer == *'has not begun'* ]]
	[ "$(curl -s -o "$FOLDER/reply" -w '%{http_code}' "http://127.0.0.1:$FRONT/api/v2/execute" -d '{}')" = 503 ]
	grep -q 'has not begun' "$FOLDER/reply"
}

@test "command lines that are wrong" {
	local line
	while read -r line; do
		# shellcheck disable=SC2086 # words
		run -2 "$SP_BIN/sallyport" worker $line
		echo "$line: $output"
	done <<-END
		--trust 10.0.0.0/8
		--listen nowhere
		--listen :0
		--listen :3333 --trust x
		--listen :3333 --trust 10.0.0.0/8 --owner A
		--listen :3333 --owner trainer
		--listen :3333 127.0.0.1:1
		--front --listen :3333
		--front --listen :3333 127.0.0.1
	END
}
