#!/usr/bin/env bats
# docs/batch.md, cut out of the page and run: GNU parallel over two "machines", the container of a Kubernetes Job once for each index. The
# merged report must be the unsharded one to the byte, but for the time. Slurm has a test of its own (make slurm-test).
# shellcheck disable=SC2030,SC2031 # variables of what runs in subshells are meant to stay there

bats_require_minimum_version 1.5.0
load lib.bash

RUNS=20

setup_file() {
	local i
	sp_setup
	sp_start_jailer
	sp_stdio
	for ((i = 0; i < RUNS; i++)); do
		sp_say run_code "$(jq -cn --arg code "echo run $i $([ $i = 6 ] && echo "\$SINCE") >&$((1 + i % 2)); exit $((i % 3))" '{conversationId: "c", language: "bash", $code}')"
	done
	sp_stdio_end
	# One run differs: the variables of its language were changed.
	cp -r "$SP_ROOT/jail/runners" "$SP_DIR/runners"
	sed -i 's/"version":/"env": ["SINCE=today"], &/' "$SP_DIR/runners/bash.json"
	export SALLYPORT_JAILER_RUNNERS_DIR=$SP_DIR/runners # of the jailers of commands, too
	kill "$SP_JAILER_PID"
	wait "$SP_JAILER_PID" || true
	sp_start_jailer
	# As on a machine of the batch system: sallyport on the path, where the record is in the environment.
	mkdir "$SP_DIR/bin"
	ln -s "$SP_BIN"/sallyport* "$SP_DIR/bin"
	export PATH=$SP_DIR/bin:$PATH SALLYPORT_CONFIG=$SP_CONFIG SALLYPORT_DATA_DIR=$SP_DIR/data
	run -1 sallyport replay --all
	without_times <<<"$output" >"$SP_DIR/whole"
	grep -q "output changed *1" "$SP_DIR/whole" || grep -q "1 differ" "$SP_DIR/whole" || sp_die "$output"
}

teardown_file() {
	sp_teardown
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	mkdir shared
}

without_times() {
	sed -E 's/[0-9.]+ (s|ms)\>/TIME/g'
}

# The report, at the end of the output (shards print theirs before), is the whole one.
same() {
	without_times <<<"$output" | tail -n "$(wc -l <"$SP_DIR/whole")" | diff "$SP_DIR/whole" -
}

# block TEXT: the block of docs/batch.md that holds the text, with the folders of the page below this test's
block() {
	awk -v text="$1" '/^```/ { if (index(block, text)) printf "%s", block; block = ""; next } { block = block $0 "\n" }' "$SP_ROOT/docs/batch.md" |
		sed "s|/shared|$PWD/shared|g; s|/tmp/data|$PWD/pod/data|g"
}

# A run of shard N that is killed as soon as it has one result, once: as a machine that goes away.
dies_once() { # N
	mkdir bin
	cat >bin/sallyport <<-END
		#!/bin/bash
		if [[ \$* == *"/shard-$1.db"* ]] && mkdir "$PWD/died" 2>/dev/null; then
			fifo=\$(mktemp -u) && mkfifo "\$fifo"
			"$SP_DIR/bin/sallyport" "\$@" --jobs 1 >"\$fifo" &
			head -n 1 <"\$fifo" >"$PWD/died/line"
			kill -KILL \$!
			exit 137
		fi
		exec "$SP_DIR/bin/sallyport" "\$@"
	END
	chmod +x bin/sallyport
	export PATH=$PWD/bin:$PATH
}

@test "GNU parallel: shards merge to the whole after a task is retried" {
	command -v parallel >/dev/null && parallel --version 2>/dev/null | grep -q "GNU parallel" || skip "GNU parallel is not installed"
	export HOME=$PWD # parallel's own settings
	dies_once 3
	printf '2/:\n' >machines # this machine, two at a time, as "host" would be another one
	block "parallel --ssh" >recipe
	run -1 sh -e recipe
	same
	[ -s died/line ]
	[ "$(tail -n +2 joblog | wc -l)" -ge 16 ]
	local files=(shared/*)
	[ "${#files[@]}" = 16 ]
	[ "$(for file in shared/*.db; do sqlite3 "$file" "SELECT execution FROM result"; done | sort -u | wc -l)" = $RUNS ]
	# Once more: nothing is left to do, and the report is the same.
	run -1 sh -e recipe
	same
}

@test "Kubernetes: shards merge to the whole after a pod is evicted" {
	local job index status=0 attempts=0
	job=$(block "kind: Job")
	sed -n '/- |$/,/volumeMounts/{ s/^ *//; /^- |$/d; /^volumeMounts/d; p }' <<<"$job" >container
	grep -q JOB_COMPLETION_INDEX container
	local completions
	completions=$(sed -n 's/^ *completions: //p' <<<"$job")
	grep -q -- "--shard /$completions " container
	sallyport export --all --output shared/all.bundle
	dies_once 11
	for ((index = 0; index < completions; index++)); do
		status=137
		while [ "$status" = 137 ]; do # a new pod has nothing but what is shared
			rm -rf pod && mkdir pod
			status=0
			env -u SALLYPORT_DATA_DIR JOB_COMPLETION_INDEX="$index" sh -c "$(cat container)" >>pods.jsonl || status=$?
			attempts=$((attempts + 1))
		done
		[ "$status" = 0 ] # a difference is a result
	done
	run -2 env -u SALLYPORT_DATA_DIR JOB_COMPLETION_INDEX="$completions" sh -c "$(cat container)"
	grep -q "action: FailIndex, onExitCodes: { operator: In, values: \[2\] }" <<<"$job"
	[ -s died/line ]
	[ "$attempts" = $((completions + 1)) ]
	set --
	for file in shared/shard-*.db; do set -- "$@" --merge "$file"; done
	run -1 sallyport replay --all "$@"
	same
	rm shared/shard-11.db
	set --
	for file in shared/shard-*.db; do set -- "$@" --merge "$file"; done
	run -5 sallyport replay --all "$@"
	[[ $output == *"shard 12 of $completions is missing"* ]]
}
