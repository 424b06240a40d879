#!/usr/bin/env bats
# What a host may lack: user namespaces, room on the disk. Each time a refusal that names it, never a run with less isolation or without record.
# (No cgroup: jail.bats. No more processes: test_jail_scarce. A full disk under the store: test_store_crash.)

# shellcheck disable=SC2016,SC2034 # dollars in the programs are not for this shell; SP_TOKEN is read by lib.bash
bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	sp_setup
	export SALLYPORT_RETENTION_FREE_MB=0 SALLYPORT_RETENTION_FREE_INODES=0 # what is below the floor is tried here
}

teardown() {
	sp_teardown
}

@test "no user namespaces: refused, the remedy is named" {
	[ "$(id -u)" = 0 ] || skip "needs root to make another account's namespace"
	setpriv --reuid=61234 --regid=61234 --clear-groups test -x "$SP_BIN/sallyport-jailer" || skip "this checkout cannot be reached by another account"
	mkdir "$SP_DIR/run"
	chmod 777 "$SP_DIR/run"
	# In a user namespace of its own that may have none below it; the jailer is an ordinary account there.
	run setpriv --reuid=61234 --regid=61234 --clear-groups unshare -U --map-user=1000 --map-group=1000 --keep-caps bash -c '
		echo 0 >/proc/sys/user/max_user_namespaces || exit 77
		echo "echo ran" | env -i XDG_RUNTIME_DIR="$0/run" SALLYPORT_JAILER_WEAKER_LIMITS=true "$1/sallyport" run -l bash -' "$SP_DIR" "$SP_BIN" 3>&-
	[ "$status" -ne 77 ] || skip "user.max_user_namespaces cannot be set here"
	echo "$output"
	[ "$status" -eq 125 ]
	[[ $output == *"does not allow user namespaces"*"user.max_user_namespaces"* ]]
	[[ $output != *ran* ]]
}

@test "a private jailer names the limit that it lacks" {
	[ "$(id -u)" = 0 ] || skip "needs root to become an account that has no processes yet"
	setpriv --reuid=61237 --regid=61237 --clear-groups test -x "$SP_BIN/sallyport-jailer" || skip "this checkout cannot be reached by another account"
	limited() { # who looks for leaks needs a process for it
		echo 'echo ran' >"$SP_DIR/program.sh"
		run setpriv --reuid=61237 --regid=61237 --clear-groups env -i SALLYPORT_JAILER_WEAKER_LIMITS=true ASAN_OPTIONS=detect_leaks=0 \
			bash -c "ulimit $1; exec '$SP_BIN/sallyport' run -l bash -" <"$SP_DIR/program.sh"
		echo "$output"
		[ "$status" -eq 125 ]
		[[ $output != ran* ]]
	}
	limited "-n 100"
	[[ $output == *"100 open files are too few for a jailer"*"LimitNOFILE"* ]]
	limited "-u 1"
	[[ $output == *"starting the jailer"*"Resource temporarily unavailable"* ]]
}

@test "no room in files (ulimit -f): told in words, by whoever meets it first" {
	echo 'echo ran' >"$SP_DIR/program.sh"
	# Each writes into a pipe: a file of bats' could not be written either.
	limited() {
		run bash -c '(ulimit -f "$1"; "$2/sallyport" run -l bash - <"$3/program.sh" 2>&1; echo "exit $?") | cat' - "$1" "$SP_BIN" "$SP_DIR"
		echo "$output"
		[[ $output == *"File too large (see ulimit -f"* ]]
		[[ $output == *"exit 125" ]]
		[[ $output != *ran* ]]
	}
	limited 0 # this program's own files
	limited 1 # the jailer's
	# Enough for them, with the program mcp of 0.9 MB that the jailer keeps: programs get what is left, and the signal as usual.
	echo 'grep -E "^Sig(Ign|Blk)" /proc/self/status; head -c 2000000 /dev/zero >big; echo "$?"; wc -c <big' >"$SP_DIR/program.sh"
	run bash -c '(ulimit -f 1000; "$1/sallyport" run -l bash - <"$2/program.sh" 2>"$2/err") | cat' - "$SP_BIN" "$SP_DIR"
	echo "$output"
	[[ $output == *"SigIgn:"*"0000000000000000"*$'\n153\n1024000' ]]
	# Output that does not fit.
	echo 'head -c 3000000 /dev/zero' >"$SP_DIR/program.sh"
	run bash -c '(ulimit -f 1000; "$1/sallyport" run -l bash - <"$2/program.sh" 2>&1 >/dev/null; echo "exit $?") | cat' - "$SP_BIN" "$SP_DIR"
	echo "$output"
	[[ $output == *'"write the output": File too large'*"exit 125" ]]
}

# Whatever is met first by a command that begins the record: no inode, no byte, no descriptor, a disk that is mounted read-only.
@test "a first command names what the host lacks" {
	[ "$(id -u)" = 0 ] || skip "needs root to mount a small disk"
	cat >"$SP_DIR/tries" <<-'EOF'
		add() { "$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner alice 2>&1 | tail -1; }
		on_disk() { # OPTIONS
			mount -t tmpfs -o "$1" none "$SP_DIR/data"
			echo "$1: $(add)"
		}
		gone() { umount "$SP_DIR/data"; }
		for inodes in 1 2 3 4 5 6 7 8 9; do on_disk "nr_inodes=$inodes" && gone; done
		for kib in 4 8 64 300 400; do on_disk "size=${kib}k" && gone; done
		on_disk ro && gone
		on_disk size=8m && mount -o remount,ro "$SP_DIR/data" && echo "remount: $(add)"
		gone
		for limit in 6 7 8 9 10 11 12 13 14 15; do
			rm -rf "$SP_DIR/few"
			echo "limit $limit: $( (ulimit -n "$limit" && SALLYPORT_DATA_DIR=$SP_DIR/few exec "$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner alice) 2>&1 | tail -1)"
		done
	EOF
	run env ASAN_OPTIONS=detect_leaks=0 unshare -m bash "$SP_DIR/tries"
	echo "$output"
	[ "$(grep -c '^nr_inodes=.*: No space left on device$' <<<"$output")" = 9 ]
	[ "$(grep -cE '^size=[0-9]+k:.*(: No space left on device$|: no space left on its disk; make room outside)' <<<"$output")" = 5 ]
	[ "$(grep -cE '^(ro|remount): .*: Read-only file system$' <<<"$output")" = 2 ]
	[ "$(grep -c '^limit .*: Too many open files (see ulimit -n, LimitNOFILE= of systemd)$' <<<"$output")" = 10 ]
}

@test "a database that meets ulimit -f says so" {
	"$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner alice >"$SP_DIR/token"
	# Into a pipe: a file of bats' could not be written either.
	run bash -c '(ulimit -f 40; "$1/sallyport" token add --config "$2" --owner bob 2>&1; echo "exit $?") | cat' - "$SP_BIN" "$SP_CONFIG"
	echo "$output"
	[[ $output == *"the database cannot be read or written (SQLite: disk I/O error, code "*"): File too large (see ulimit -f, LimitFSIZE= of systemd)"*"exit 10" ]]
}

# Starts the gateway with its data on a disk of 4 MiB that nobody else sees; $SP_TOKEN is made there.
start_on_small_disk() { # [OPTIONS of the file system]
	SP_DISK=${1:-size=4m} unshare -m bash -c '
		mount -t tmpfs -o "$SP_DISK" none "$SP_DIR/data"
		"$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner alice --json >"$SP_DIR/token"
		exec "$SP_BIN/sallyport-gateway" --config "$SP_CONFIG"' >>"$SP_DIR/gateway.log" 2>&1 3>&- &
	SP_GATEWAY_PID=$!
	echo "$SP_GATEWAY_PID" >>"$SP_DIR/pids"
	sp_until "$SP_GATEWAY_PID" sp_gateway_answers || sp_die "the gateway does not start"
	SP_TOKEN=$(jq -r .token "$SP_DIR/token")
}

# In the mount namespace of the gateway.
disk() { nsenter -t "$SP_GATEWAY_PID" -m "$@"; }

# refused LIMIT: a run and an upload are refused with a sentence that names the limit, and nothing is recorded.
refused() {
	local rows
	rows=$(disk sqlite3 "$SP_DIR/data/sallyport.db" 'SELECT count(*) FROM execution')
	sp_call run_code '{"conversationId":"c","language":"bash","code":"echo ran"}'
	cat "$SP_DIR/body"
	[[ $(cat "$SP_DIR/body") == *"$1"*"the operator must"* ]]
	[[ $(cat "$SP_DIR/body") != *'"ran'* ]]
	sp_call upload_file '{"conversationId":"c","filename":"a","content":"eA=="}'
	cat "$SP_DIR/body"
	[[ $(cat "$SP_DIR/body") == *"$1"* ]]
	[ "$(disk sqlite3 "$SP_DIR/data/sallyport.db" 'SELECT count(*) FROM execution')" = "$rows" ]
}

runs() {
	sp_call run_code '{"conversationId":"c","language":"bash","code":"echo fine"}'
	cat "$SP_DIR/body"
	[ "$(sp_get details.stdout)" = fine ]
}

ready() { sp_http GET /readyz </dev/null && [ "$SP_STATUS" = "$1" ]; }

@test "a floor of free space: /readyz and doctor warn before nothing runs below it" {
	[ "$(id -u)" = 0 ] || skip "needs root to mount a small disk"
	sp_start_jailer
	export SALLYPORT_RETENTION_FREE_MB=8 SALLYPORT_RETENTION_FREE_INODES=100 SALLYPORT_HEALTH_DISK_MB=16
	start_on_small_disk size=32m,nr_inodes=2000
	doctor() { disk "$SP_BIN/sallyport" doctor --config "$SP_CONFIG" --json >"$SP_DIR/doctor" || true; jq -r '.checks[] | select(.name == "disk") | .state' "$SP_DIR/doctor"; }
	sp_until "" ready 200
	runs
	# Bytes: first the warning, then the floor.
	disk dd if=/dev/zero of="$SP_DIR/data/fill" bs=1M count=18 2>/dev/null
	sp_until "" ready 503
	[[ $(sp_get .checks.disk.error) == *"less than health.disk_mb (16)"* ]]
	[ "$(doctor)" = weaker ]
	runs
	disk dd if=/dev/zero of="$SP_DIR/data/more" bs=1M count=6 2>/dev/null
	refused "below 8 MiB (retention.free_mb)"
	[ "$(doctor)" = missing ]
	disk rm "$SP_DIR/data/fill" "$SP_DIR/data/more"
	sp_until "" ready 200
	runs
	# Inodes.
	make_files() { disk bash -c 'mkdir -p "$0/many"; for ((i = 0; i < $1; i++)); do : >"$0/many/$1.$i"; done' "$SP_DIR/data" "$1"; }
	left() { disk df --output=iavail "$SP_DIR/data" | tail -1; }
	make_files $(($(left) - 150))
	sp_until "" ready 503
	[[ $(sp_get .checks.disk.error) == *"less than twice retention.free_inodes (100)"* ]]
	runs
	make_files $(($(left) - 90))
	refused "below 100 (retention.free_inodes)"
	disk rm -r "$SP_DIR/data/many"
	sp_until "" ready 200
	runs
}

@test "a full disk refuses runs that cannot be recorded" {
	[ "$(id -u)" = 0 ] || skip "needs root to mount a small disk"
	sp_start_jailer
	start_on_small_disk
	sp_call run_code '{"conversationId":"c","language":"bash","code":"echo fine"}'
	[ "$(sp_get details.stdout)" = fine ]
	sp_call run_code '{"conversationId":"c","language":"bash","code":"head -c 6000000 /dev/urandom >big; echo too much"}'
	[ "$(sp_get 'details.files | [.created, .not_kept[0].name] | tojson')" = '[[],"big"]' ]
	[[ $(sp_get 'details.files.not_kept[0].reason') == *"No space left on device"* ]]
	# Not even a row fits: the program does not run.
	disk dd if=/dev/zero of="$SP_DIR/data/fill" bs=4k 2>/dev/null || true
	sp_call run_code '{"conversationId":"c","language":"bash","code":"echo ran"}'
	cat "$SP_DIR/body"
	[ "$(sp_get details)" = null ]
	[[ $(cat "$SP_DIR/body") == *"no space left on its disk; make room"* ]]
	[[ $(cat "$SP_DIR/body") != *'"ran'* ]]
	disk rm "$SP_DIR/data/fill"
	sp_call run_code '{"conversationId":"c","language":"bash","code":"ls -A /data; echo fine again"}'
	cat "$SP_DIR/body"
	[ "$(sp_get details.stdout)" = "fine again" ]
}

# A task of which the end cannot be written: its client waits, and hears how it ended as soon as there is room.
@test "a full disk: the end of a task is written when there is room" {
	[ "$(id -u)" = 0 ] || skip "needs root to mount a small disk"
	local task session
	sp_start_jailer
	start_on_small_disk
	legacy() {
		printf '{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}' "$1" "$2" | sp_http POST /mcp HTTP_MCP_SESSION_ID="$session"
	}
	legacy initialize '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}'
	session=$(sed -n 's/^Mcp-Session-Id: //p' "$SP_DIR/head")
	legacy tools/call '{"name":"run_code","task":{},"arguments":{"conversationId":"c","language":"bash","code":"sleep '"$SP_ASLEEP"'","timeout_seconds":300}}'
	task=$(sp_get .result.task.taskId)
	sp_until "$SP_GATEWAY_PID" sp_asleep
	disk dd if=/dev/zero of="$SP_DIR/data/fill" bs=4k 2>/dev/null || true
	sp_wake
	sp_until "$SP_GATEWAY_PID" grep -q "the end of a task is not recorded yet.*$task" "$SP_DIR/gateway.log"
	legacy tasks/get "{\"taskId\":\"$task\"}"
	[ "$(sp_get .result.status)" = working ]
	disk rm "$SP_DIR/data/fill"
	legacy tasks/result "{\"taskId\":\"$task\"}" # waits for it
	# Written by the task's thread, or by the store that ends abandoned runs: whoever is first when there is room.
	[[ $(sp_get .error.message) =~ "no space left on its disk"|"could not be recorded: the disk was full" ]]
	legacy tasks/get "{\"taskId\":\"$task\"}"
	[ "$(sp_get .result.status)" = failed ]
	[ "$(grep -c "the end of a task is not recorded yet" "$SP_DIR/gateway.log")" = 1 ]
}
