#!/usr/bin/env bats
# sallyport replay: classes, normalisers, flaky programs, other interpreters, tags. (--results: replay_results.bats)
# shellcheck disable=SC2016 # dollars in the programs are not for this shell
# shellcheck disable=SC2154 # bats sets stderr

bats_require_minimum_version 1.5.0
load lib.bash
load recorded.bash

setup() {
	empty_record
	sp_stdio
}

@test "each class of difference is found" {
	say python 'print("same")'
	say python 'import time; print("at", "%.3f" % time.time(), object())'
	say python 'print("out")'
	say python 'import sys; print("err", file=sys.stderr)'
	say bash 'exit 3 # code'
	say bash 'true # verdict'
	say bash 'echo x >/data/file'
	say python 'import random; print(random.random())'
	sp_stdio_end
	alter "stdout = replace(stdout, 'out', 'oot')" 'print("out")'
	alter "stderr = 'other'" sys.stderr
	alter "exit_code = 4" '# code'
	alter "verdict = 'RE', exit_code = 1" '# verdict'
	sqlite3 "$SP_DIR/data/sallyport.db" "UPDATE execution_file SET name = 'elif' WHERE phase = 'after'"
	replay 1 --all
	[ "$(class_of same)" = identical ]
	[ "$(class_of time.time)" = "equal_after_normalising addresses times" ]
	[ "$(class_of 'print("out")')" = output_changed ]
	[ "$(class_of sys.stderr)" = stderr_changed ]
	[ "$(class_of '# code')" = exit_changed ]
	[ "$(class_of '# verdict')" = verdict_changed ]
	[ "$(class_of /data/file)" = files_changed ]
	[ "$(class_of random)" = flaky ]
	[ "$(jq -c '[.identical, .equal_after_normalising, .different, .flaky, .not_replayable, .failed]' <<<"$summary")" = '[1,1,5,1,0,0]' ]
	[ "$(jq -c '.classes | [.[]] | add' <<<"$summary")" = 8 ]
	[ "$(head -1 <<<"$output" | jq -c keys_unsorted)" = '["id","language","class","differences","hidden_by"]' ]
	[ "$(jq -r 'select(.id) | .id' <<<"$output")" = "$(sp_sql 'SELECT id FROM execution ORDER BY id')" ]
	# What is not compared does not count; a normaliser that is off hides nothing.
	replay 0 --all --compare=-verdict,-exit,-stderr,-files,-stdout --normalise none
	[ "$(jq -c .classes <<<"$summary")" = '{"identical":8}' ]
	run -1 "$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all
	[[ ${lines[0]} == "recorded"*OK*RE* ]]
	[[ ${lines[1]} =~ ^OK\ +[0-9]+ ]]
	[[ ${lines[-1]} == "1 identical, 1 equal after normalising, 5 differ, 0 not replayable, 1 flaky" ]]
}

@test "a file's mode and the message count, ids come from standard input" {
	say bash 'echo x >/data/f; chmod 700 /data/f # mode'
	say bash 'exit 3 # message'
	say bash 'true'
	sp_stdio_end
	sqlite3 "$SP_DIR/data/sallyport.db" "UPDATE execution_file SET mode = 420 WHERE phase = 'after'"
	alter "message = message || ' The jail refused it: ptrace.'" '# message'
	replay 1 --all
	[ "$(class_of '# mode')" = files_changed ]
	[ "$(class_of '# message')" = exit_changed ]
	[[ $(jq -r '.differences[]?.now' <<<"$output") == *"mode 700"*"status 3."* ]]
	"$SP_BIN/sallyport" log --config "$SP_CONFIG" --json >log.jsonl
	[ "$(jq -r .id log.jsonl | "$SP_BIN/sallyport" replay --config "$SP_CONFIG" --json - | tail -1 | jq -c .summary.different)" = 2 ]
	[ "$("$SP_BIN/sallyport" replay --config "$SP_CONFIG" --json - <log.jsonl | tail -1 | jq -c .summary.different)" = 2 ]
}

@test "CPU time and memory are compared on request" {
	say python 'import json; print("slow")'
	say python 'import json; print("fast")'
	say python 'import json; print("large")'
	sp_stdio_end
	alter "run_cpu_user_us = 500, run_cpu_system_us = 0" '"slow"'
	alter "run_cpu_user_us = 60000000" '"fast"'
	alter "run_memory_peak = 4096" '"large"'
	replay 0 --all
	[ "$(jq .identical <<<"$summary")" = 3 ]
	replay 1 --all --compare default,cpu
	[ "$(class_of '"slow"')" = slower ]
	[ "$(class_of '"fast"')" = faster ]
	# Only what was altered counts: the third run's own time may be anything on a busy machine.
	fast=$(sp_sql "SELECT json_object('id', id, 'us', run_cpu_user_us + run_cpu_system_us) FROM execution WHERE instr(code, 'fast')")
	[ "$(jq -r --argjson fast "$fast" 'select(.id == $fast.id) | .differences[0] | [.what, .recorded] | join(": ")' <<<"$output")" = "CPU time in µs: $(jq .us <<<"$fast")" ]
	replay 1 --text large --compare memory
	[ "$(class_of '"large"')" = more_memory ]
}

@test "normalisers are switched by name" {
	say python 'import time; print(time.time())'
	say python 'print({"a", "b", "c", "d", "e", "f"})'
	sp_stdio_end
	replay 0 --all
	[ "$(class_of time.time)" = "equal_after_normalising times" ]
	replay 1 --language python --text time.time --normalise=-times
	[ "$(class_of time.time)" = flaky ]
	replay 2 --all --normalise colours
	[[ $stderr == *colours* ]]
	replay 2 --all --compare colour
	replay 2 --all --only slow
	replay 0 --all --compare verdict,exit
	[ "$(jq .identical <<<"$summary")" = 2 ]
}

@test "a project has its own normalisers" {
	say bash 'echo "build $RANDOM$RANDOM"'
	sp_stdio_end
	replay 1 --all
	echo '{"normalisers": [{"name": "build-id", "version": 3, "pattern": "build [0-9]+", "replacement": "[BUILD]"}]}' >"$SP_DIR/n.json"
	replay 0 --all --normalisers "$SP_DIR/n.json"
	[ "$(class_of RANDOM)" = "equal_after_normalising build-id" ]
	replay 1 --all --normalisers "$SP_DIR/n.json" --normalise=-build-id
	# Another pattern under the same name and version is another key.
	sed 's/build \[/Build [/' "$SP_DIR/n.json" >"$SP_DIR/m.json"
	replay 1 --all --resume --normalisers "$SP_DIR/m.json"
	run -0 "$SP_BIN/sallyport" promote --config "$SP_CONFIG" --suite "$SP_DIR/s" --all --normalise build-id --normalisers "$SP_DIR/n.json"
	run -0 "$SP_BIN/sallyport" grade --config "$SP_CONFIG" "$SP_DIR/s" --normalisers "$SP_DIR/n.json"
	run -2 "$SP_BIN/sallyport" grade --config "$SP_CONFIG" "$SP_DIR/s"
	run -0 "$SP_BIN/sallyport" normalisers --normalisers "$SP_DIR/n.json" --json
	[ "$(tail -1 <<<"$output" | jq -c '[.name, .version[:2], .default, .pattern]')" = '["build-id","3:",true,"build [0-9]+"]' ]
	[ "$(head -1 <<<"$output" | jq -c '[.name, .version, .default]')" = '["newlines","1",true]' ]
	run -0 "$SP_BIN/sallyport" normalisers --normalisers "$SP_DIR/n.json"
	[[ ${lines[-1]} == build-id*"build [0-9]+" ]]
	echo '{' >"$SP_DIR/n.json"
	replay 2 --all --normalisers "$SP_DIR/n.json"
}

@test "repeats find what is flaky though it was as recorded at first" {
	say bash 'echo $((RANDOM % 2))'
	sp_stdio_end
	replay 1 --all --repeat 40
	[ "$(class_of RANDOM)" = flaky ]
	replay 1 --all --repeat 40 --only flaky
	[ "$(jq .flaky <<<"$summary")" = 1 ]
	replay 0 --all --repeat 40 --only failed
	[ "$(jq -c .classes <<<"$summary")" = '{}' ]
}

@test "--fail-fast ends with the first that differs" {
	for i in 1 2 3 4; do say bash "echo $i"; done
	sp_stdio_end
	alter "stdout = 'x'" "echo 2"
	replay 1 --all -j 1 --fail-fast
	[ "$(jq -c .classes <<<"$summary")" = '{"identical":1,"output_changed":1}' ]
	[[ $stderr == *"2 were not looked at"* ]]
}

@test "filters choose what log shows with them" {
	local filter
	say python 'print("one")'
	say bash 'exit 3'
	sp_say run_code '{"conversationId": "d", "language": "bash", "code": "echo three"}'
	sp_stdio_end
	sqlite3 "$SP_DIR/data/sallyport.db" "UPDATE execution SET created_us = created_us - 7200000000, finished_us = finished_us - 7200000000 WHERE instr(code, 'one')"
	"$SP_BIN/sallyport" tag --config "$SP_CONFIG" mine --language bash
	for filter in "--language bash" "--verdict RE" "--verdict OK --conversation c" "--conversation d" "--since 1h" "--until 1h" "--text three" "--tag mine" \
		"--tag mine --verdict OK" "--owner local" "--owner nobody" "--task 1234"; do
		# shellcheck disable=SC2086 # words
		replay 0 $filter
		# shellcheck disable=SC2086
		diff <(jq -r 'select(.id) | .id' <<<"$output") <("$SP_BIN/sallyport" log --config "$SP_CONFIG" --json $filter | jq -r .id | sort)
		echo "$filter: $(jq -s 'map(select(.id)) | length' <<<"$output")"
	done | tee "$BATS_TEST_TMPDIR/counts"
	[ "$(grep -c ': [12]$' "$BATS_TEST_TMPDIR/counts")" = 9 ]
}

@test "--runner finds the first bad interpreter" {
	local good=/usr/bin/python3 bad=/bin/echo tried
	say python 'print(6 * 7)'
	say bash 'echo other'
	sp_stdio_end
	replay 0 --all --runner "python=$good"
	[ "$(jq -c 'select(.runner)' <<<"$output")" = "{\"runner\":\"python=$good\"}" ]
	[ "$(jq -c '.identical' <<<"$summary")" = 2 ]
	replay 1 --all --runner "python=$good" --runner "python=$bad"
	[ "$(jq -c 'select(.runner) | .runner' <<<"$output" | paste -sd ' ')" = "\"python=$good\" \"python=$bad\"" ]
	[ "$(jq -r 'select(.class) | .class' <<<"$output" | sort | uniq -c | xargs)" = "3 identical 1 output_changed" ]
	replay 1 --all --first-bad --runner "python=$good" --runner="python=$good" --runner "python=$good" --runner "python=$bad" --runner "python=$bad" \
		--runner "python=$bad" --runner "python=$bad"
	[ "$(jq -r 'select(.first_bad) | .first_bad' <<<"$output")" = "python=$bad" ]
	tried=$(jq -r 'select(.runner) | .runner' <<<"$output" | wc -l)
	[ "$tried" = 3 ]
	replay 0 --all --first-bad --runner "python=$good"
	[ "$(tail -1 <<<"$output")" = '{"first_bad":null}' ]
	replay 2 --all --runner python3
	replay 2 --all --runner python=python3
	replay 2 --all --runner cobol=/bin/sh
	[[ $stderr == *"no runner of that name"* ]]
}

@test "--runner: an interrupted replay leaves no program behind" {
	local ended pid said=$SP_DIR/said signal
	say bash "sleep $SP_ASLEEP" &
	pid=$!
	sp_wake
	wait "$pid"
	say bash 'echo 1'
	sp_stdio_end
	for signal in TERM KILL; do
		(exec "$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all --results "$SP_DIR/ended.db" \
			--runner bash=/bin/bash --runner bash=/bin/bash 3>&- >"$said" 2>&1) &
		pid=$!
		sp_until "$pid" sp_asleep
		kill "-$signal" "$pid"
		ended=0
		wait "$pid" || ended=$?
		[ "$ended" = "$([ $signal = TERM ] && echo 5 || echo 137)" ]
		sp_until "" sp_none_asleep
		[ "$(grep -c '^==' "$said")" = 1 ]
	done
	# None of a long list of arguments is forgotten.
	mapfile -t many < <(yes -- -q | head -n 5000)
	replay 0 "${many[@]}" --runner bash=/bin/bash "$(sp_sql "SELECT id FROM execution WHERE instr(code, 'echo')")"
	[ "$(jq .identical <<<"$summary")" = 1 ]
	replay 2 --all --first-bad
	replay 2 --all --runner bash=/bin/bash --runner bash=/bin/bash --report "tap=$SP_DIR/r.tap"
}

@test "a suspect is slower only if it is so in turn" {
	local slow=$BATS_TEST_TMPDIR/slow recorded now
	cp -r "$SP_ROOT/jail/runners" "$slow"
	jq '(.run, .show_run) |= ["/bin/bash", "-c", "for ((i = 0; i < 300000; i++)); do :; done; exec \"$0\" \"$@\""] + .' "$SP_ROOT/jail/runners/python.json" \
		>"$slow/python.json"
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR"
	chmod -R a+rX "$slow"
	say python 'print("suspect")'
	sp_stdio_end
	# The machine that recorded it was ten times as fast, it seems.
	alter "run_cpu_user_us = 500, run_cpu_system_us = 0, run_memory_peak = 4096" suspect
	replay 1 --all --compare default,cpu
	[ "$(class_of suspect)" = slower ]
	replay 1 --all --compare default,memory
	[ "$(class_of suspect)" = more_memory ]
	replay 0 --all --compare default,cpu,memory --runner python=/usr/bin/python3
	[ "$(class_of suspect)" = identical ]
	SALLYPORT_JAILER_SOCKET='' SALLYPORT_JAILER_RUNNERS_DIR=$slow replay 1 --all --compare default,cpu --old-runners "$SP_ROOT/jail/runners"
	[ "$(class_of suspect)" = slower ]
	recorded=$(jq -r 'select(.class == "slower") | .differences[0].recorded' <<<"$output")
	now=$(jq -r 'select(.class == "slower") | .differences[0].now' <<<"$output")
	[ "$recorded" -gt 500 ]
	[ "$now" -gt $((recorded * 12 / 10)) ]
	# The other way round: the slow one is what was there before.
	alter "run_cpu_user_us = 60000000" suspect
	replay 1 --all --compare default,cpu --old-runners "$slow"
	[ "$(class_of suspect)" = faster ]
	[ "$(jq -r 'select(.class == "faster") | .differences[0].recorded' <<<"$output")" -lt 60000000 ]
	# An old side that cannot run is no result.
	jq '(.run, .show_run) = ["/nowhere"]' "$SP_ROOT/jail/runners/python.json" >"$slow/python.json"
	replay 13 --all --compare default,cpu --old-runners "$slow"
	[[ "$(jq -r 'select(.class == "sandbox_error") | .reason' <<<"$output")" == "under the old runner: "* ]]
	replay 3 --all --compare default,cpu --old-runners /nowhere
	[[ $stderr == *nowhere* ]]
}

# policy_of_replay ARGUMENT…: how the kernel schedules the command (5: idle), and whether the group of its jail is idle, while a program of it runs.
policy_of_replay() {
	local replay path
	"$SP_BIN/sallyport" replay --config "$SP_CONFIG" --json -j 1 "$@" >"$SP_DIR/out" 2>"$SP_DIR/err" 3>&- &
	replay=$!
	sp_until "$replay" sp_asleep
	path=$(sed -n 's/^[0-9]*:\(cpu\|cpu,cpuacct\)://p; s/^0:://p' "/proc/$(pgrep -fx "sleep $SP_ASLEEP")/cgroup" | head -1)
	policy=$(cut -d' ' -f41 "/proc/$replay/stat")
	idle=$(cat "/sys/fs/cgroup/cpu$path/cpu.idle" 2>/dev/null || cat "/sys/fs/cgroup$path/cpu.idle" 2>/dev/null || echo unknown)
	sp_wake
	wait "$replay"
}

@test "replays are idle where a gateway serves" {
	sp_say run_code "$(jq -cn --arg code "sleep $SP_ASLEEP; echo done" '{conversationId: "c", language: "bash", $code, timeout_seconds: 300}')" &
	local saying=$!
	sp_wake
	wait "$saying"
	sp_stdio_end
	policy_of_replay --all
	[ "$policy" = 0 ] && [ "$idle" != 1 ]
	sp_start_gateway
	policy_of_replay --all
	[ "$policy" = 5 ] && [ "$idle" != 0 ]
	policy_of_replay --all --priority normal
	[ "$policy" = 0 ] && [ "$idle" != 1 ]
	policy_of_replay --all --priority idle
	sp_stop "$SP_GATEWAY_PID"
	[ "$policy" = 5 ]
	[ "$(tail -1 "$SP_DIR/out" | jq .summary.different)" = 0 ]
}

@test "what a run ran on is stored once" {
	local python interpreter
	say python 'print("one")'
	say python 'print("two")'
	say bash 'echo three'
	sp_stdio_end
	rm "$SP_DIR/in"
	sp_stdio # another start meets what is there
	say python 'print("four")'
	sp_stdio_end
	[ "$(sp_sql 'SELECT count(*), count(runtime), count(DISTINCT runtime) FROM execution')" = '4|4|2' ]
	[ "$(sp_sql 'SELECT count(*) FROM runtime')" = 2 ]
	python=$(sp_sql "SELECT description FROM runtime WHERE description ->> 'runner' = 'python'")
	interpreter=$(jq -r .interpreter <<<"$python")
	[ "$(jq -r .sha256 <<<"$python")" = "$(sha256sum "$interpreter" | cut -d' ' -f1)" ]
	[ "$(jq -r .kernel <<<"$python")" = "$(uname -r)" ]
	[ "$(jq -r .version <<<"$python")" = "$(/usr/bin/python3 --version)" ]
	[ "$(jq -r .architecture <<<"$python")" = "$(uname -m)" ]
	[ "$(jq -r .processor <<<"$python")" = "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" ]
	[ "$(jq -r .libraries.numpy <<<"$python")" = "$(/usr/bin/python3 -c 'import numpy; print(numpy.__version__)')" ]
	run -0 "$SP_BIN/sallyport" show --config "$SP_CONFIG" "$(sp_sql "SELECT id FROM execution WHERE instr(code, 'four')")"
	grep -qE '^ran on +interpreter +/' <<<"$output"
	grep -qE "^ +kernel +$(uname -r)$" <<<"$output"
	run -0 "$SP_BIN/sallyport" show --json --config "$SP_CONFIG" "$(sp_sql "SELECT id FROM execution WHERE instr(code, 'four')")"
	[ "$(jq -c .runtime <<<"$output")" = "$python" ]
	# Nothing differs in what it ran on.
	alter "stdout = 'eno'" one
	replay 1 --all
	[ "$(jq -c 'select(.class == "output_changed") | .runtime' <<<"$output")" = '[]' ]
	[ "$(jq -c 'select(.class == "identical") | .runtime' <<<"$output" | sort -u)" = null ]
	sqlite3 "$SP_DIR/data/sallyport.db" "UPDATE runtime SET description = json_set(description, '$.kernel', '2.4.0', '$.processor', 'Z80', '$.libraries.numpy', '0.1', '$.libraries.gone', '7')"
	replay 1 --all
	[ "$(jq -c 'select(.class == "output_changed") | .runtime | map([.what, .recorded]) | sort' <<<"$output")" = '[["kernel","2.4.0"],["library gone","7"],["library numpy","0.1"],["processor","Z80"]]' ]
	run -1 "$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all
	grep -q "^  ran on another kernel: recorded 2.4.0, now $(uname -r)$" <<<"$output"
}

@test "tags are given by ids or filters" {
	say python 'print("one")'
	say python 'print("two")'
	say bash 'echo three'
	local one cli=("$SP_BIN/sallyport")
	on() {
		local command=$1
		shift
		"${cli[@]}" "$command" --config "$SP_CONFIG" --json "$@"
	}
	codes() {
		on log "$@" | jq -r .id | while read -r id; do sp_sql "SELECT code FROM execution WHERE id = '$id'"; done | sort | xargs
	}
	one=$(sp_sql "SELECT id FROM execution WHERE instr(code, 'one')")
	[ "$(on tag nightly --language python | jq -c .)" = '{"tag":"nightly","executions":2,"changed":2}' ]
	[ "$(on tag nightly "$one" | jq .changed)" = 0 ]
	[ "$(on tag v1.2:smoke/a "${one:0:30}" | jq .changed)" = 1 ]
	[ "$(on tag | jq -sc '[.[] | [.tag, .executions]]')" = '[["nightly",2],["v1.2:smoke/a",1]]' ]
	[ "$(codes --tag nightly)" = "print(one) print(two)" ]
	[ "$(codes --tag v1.2:smoke/a)" = "print(one)" ]
	[ "$(codes --tag none)" = "" ]
	replay 0 --tag nightly
	[ "$(jq .identical <<<"$summary")" = 2 ]
	replay 0 --tag nightly --text two
	[ "$(jq .identical <<<"$summary")" = 1 ]
	on export --output "$BATS_TEST_TMPDIR/b" --tag v1.2:smoke/a
	[ "$(sqlite3 "$BATS_TEST_TMPDIR/b" 'SELECT id FROM execution')" = "$one" ]
	# By another tag, and away again.
	[ "$(on tag other --tag nightly | jq .changed)" = 2 ]
	[ "$(on tag --remove nightly "$one" | jq .changed)" = 1 ]
	[ "$(codes --tag nightly)" = "print(two)" ]
	[ "$(on tag --remove nightly --all | jq -c '[.executions, .changed]')" = '[3,1]' ]
	[ "$(on tag | jq -sc 'map(.tag)')" = '["other","v1.2:smoke/a"]' ]
	# What is wrong changes nothing.
	for name in "" "a b" "a,b" "$(printf 'x%.0s' {1..65})"; do run -2 on tag "$name" --all; done
	run -2 on tag good
	run -2 on tag --remove
	run -3 on tag good 00000000-0000-7000-8000-000000000000
	[ "$(on tag | jq -s length)" = 2 ]
	run -0 "${cli[@]}" verify --config "$SP_CONFIG"
	[ "$(sp_sql "SELECT count(*) FROM audit WHERE kind = 'admin.act'")" = 5 ]
}
