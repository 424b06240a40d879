#!/usr/bin/env bats
# What was acknowledged is there after a power cut: strace writes down what gateway and command write and sync, power_cut.py makes the disks
# that a cut may leave at each acknowledgement. From the first start on, over a kill and a second start.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	sp_setup
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # LeakSanitizer cannot work in what strace follows
	rmdir "$SP_DIR/data" # the first start makes it
	# A disk that does sync: the tests' folder may be in memory, which is all the same here, since every call is seen.
	CALLS=openat,write,pwrite64,pwritev,writev,ftruncate,fallocate,fsync,fdatasync,rename,renameat,renameat2,linkat,unlink,unlinkat,mkdir,mkdirat
	TRACE=(strace -D -ff -ttt -T -y -xx -s 40000000 -e "trace=$CALLS,sendfile,copy_file_range" -e signal=none)
	: >"$SP_DIR/acks"
}

teardown() {
	sp_teardown
}

acknowledged() {
	if [ -z "$2" ] || [ "$2" = null ]; then
		sp_die "no $1: $(cat "$SP_DIR/body")"
	fi
	echo "$EPOCHREALTIME $1 $2" >>"$SP_DIR/acks"
}

traced() {
	"${TRACE[@]}" -o "$SP_DIR/trace.$((++TRACED))" "$SP_BIN/sallyport" "$@" --config "$SP_CONFIG"
}

start_traced() {
	"${TRACE[@]}" -o "$SP_DIR/trace.$((++TRACED))" "$SP_BIN/sallyport-gateway" --config "$SP_CONFIG" >>"$SP_DIR/gateway.log" 2>&1 3>&- &
	SP_GATEWAY_PID=$!
	echo "$SP_GATEWAY_PID" >>"$SP_DIR/pids"
	sp_until "$SP_GATEWAY_PID" sp_gateway_answers || sp_die "the gateway does not start"
}

token() {
	traced token add --owner "$1" --json >"$SP_DIR/token"
	acknowledged token "$(jq -r .id "$SP_DIR/token")"
}

upload() {
	sp_call upload_file "{\"conversationId\":\"c\",\"filename\":\"$1\",\"content\":\"$(head -c 3000 /dev/urandom | base64 -w0)\"}"
	[ "$(sp_get .result.isError)" != true ]
	acknowledged upload "$1"
}

run_one() {
	sp_call run_code "{\"conversationId\":\"c\",\"language\":\"bash\",\"code\":\"echo $1 | tee made-$1; cat made-* | wc -c\"}"
	acknowledged run "$(sp_get details.execution_id)"
}

revoke() {
	traced token revoke "$1" >/dev/null
	acknowledged revoked "$1"
}

# Legacy sessions and tasks: the client keeps using its session after the kill.
session() {
	echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' |
		sp_http POST /mcp
	SESSION=$(sed -n 's/^Mcp-Session-Id: //p' "$SP_DIR/head")
	acknowledged session "$SESSION"
}

task() {
	echo '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"run_code","task":{},"arguments":{"conversationId":"t","language":"bash","code":"echo"}}}' |
		sp_http POST /mcp HTTP_MCP_SESSION_ID="$SESSION"
	TASK=$(sp_get .result.task.taskId)
	acknowledged task "$TASK"
	printf '{"jsonrpc":"2.0","id":8,"method":"tasks/result","params":{"taskId":"%s"}}' "$TASK" | # waits for it
		sp_http POST /mcp HTTP_MCP_SESSION_ID="$SESSION"
	[ "$(sp_get .result.isError)" != true ]
	acknowledged completed "$TASK"
}

@test "what was acknowledged survives a power cut, from the first start on" {
	local first second
	token alice # makes the data folder
	SP_TOKEN=$(jq -r .token "$SP_DIR/token")
	export SP_TOKEN
	sp_start_jailer
	start_traced
	session
	for n in 1 2; do
		upload "file-$n"
		run_one "$n"
	done
	token bob
	first=$(jq -r .id "$SP_DIR/token")
	task
	revoke "$first"
	kill -KILL "$SP_GATEWAY_PID"
	sp_until "" sp_gone "$SP_GATEWAY_PID"
	start_traced
	run_one 3 # the first that this process commits for a client
	token carol
	second=$(jq -r .id "$SP_DIR/token")
	sp_stop "$SP_GATEWAY_PID"
	start_traced
	upload file-3
	revoke "$second"
	task
	run_one 4
	sp_stop "$SP_GATEWAY_PID" # at an orderly end the log is folded into the database
	echo "$EPOCHREALTIME token $first" >>"$SP_DIR/acks"
	/usr/bin/python3 "$SP_ROOT/tests/e2e/power_cut.py" "$SP_DIR/trace" "$SP_DIR/data" "$SP_DIR/acks" "$SP_DIR/image"
	# The programs work with the last of the images, of which the disk kept some.
	sed 's|"data_dir": "data"|"data_dir": "image"|' "$SP_CONFIG" >"$SP_DIR/image.json"
	[ "$("$SP_BIN/sallyport" log --config "$SP_DIR/image.json" --json | jq -r .state | sort | uniq -c | awk '{print $2}')" = finished ]
	[ "$("$SP_BIN/sallyport" token list --config "$SP_DIR/image.json" --json | jq -s 'map(select(.revoked)) | length')" = 2 ]
}

# How often this trace syncs the log before it prints.
syncs_before_output() {
	local log
	log=$(printf %s sallyport.db-wal | od -An -tx1 | tr -d ' \n' | sed 's/../.x&/g')
	sort -n "$SP_DIR/$1".* | awk -v sync="(fsync|fdatasync).[0-9]+<[^>]*$log>.* = 0" '
		$2 ~ /^write\(1</ { exit } $0 ~ sync { count++ } END { print count + 0 }'
}

# A gateway holds the database open: at the command's end nothing is folded into the database, which would sync as well.
@test "commands sync what they print, each time" {
	local id
	sp_token alice
	sp_start_gateway
	traced token add --owner bob --json >"$SP_DIR/token" # trace.1
	id=$(jq -r .id "$SP_DIR/token")
	traced token revoke "$id" >/dev/null # trace.2
	[ "$(syncs_before_output trace.1)" -ge 2 ] # its instance, and what was asked
	[ "$(syncs_before_output trace.2)" -ge 2 ] # its instance, and what was asked
}

# A power cut soon after the first start of `make run` finds the configuration whole or not there.
@test "make run syncs the configuration that it makes before it has its name" {
	local script file synced named
	sp_stop_all() { kill -TERM "$script" 2>/dev/null || true; wait "$script" || true; }
	chmod 0755 "$SP_DIR"
	mkdir "$SP_DIR/state"
	strace -D -f -y -e trace=fsync,fdatasync,sync,syncfs,rename,renameat,renameat2 -e signal=none -o "$SP_DIR/trace" \
		"$SP_ROOT/nginx/dev.sh" --bin "$SP_BIN" --state "$SP_DIR/state" 0 >"$SP_DIR/run.log" 2>&1 3>&- &
	script=$!
	sp_until "$script" test -s "$SP_DIR/state/sallyport.conf" || { sp_stop_all; sp_die "$(cat "$SP_DIR/run.log")"; }
	sp_stop_all
	file=$SP_DIR/state/sallyport.conf
	named=$(grep -nE "rename.*\"$file.new\".*\"$file\"" "$SP_DIR/trace" | head -1 | cut -d: -f1)
	synced=$(grep -nE "f(data)?sync\([0-9]+<$file.new>\) += 0" "$SP_DIR/trace" | head -1 | cut -d: -f1)
	[ "$synced" -lt "$named" ]
}

# What the second start finds is what it would write: it writes nothing, and what cannot be written is named by the gateway.
@test "make run leaves its configuration whole on a disk without room" {
	[ "$(id -u)" = 0 ] || skip "needs root to mount a small disk"
	chmod 0755 "$SP_DIR"
	mkdir "$SP_DIR/disk"
	# shellcheck disable=SC2016 # dollars are for the inner shell
	run unshare -m bash -c '
		serve() { # UNTIL…: the supervisor, ended when the condition is true
			"$SP_ROOT/nginx/dev.sh" --bin "$SP_BIN" --state "$SP_DIR/disk/state" 0 >"$SP_DIR/run.log" 2>&1 3>&- &
			local pid=$! n
			for ((n = 0; n < 1200; n++)); do ! kill -0 "$pid" 2>/dev/null || "$@" || { sleep 0.1 && continue; }; break; done
			kill -TERM "$pid" 2>/dev/null
			wait "$pid"
		}
		mount -t tmpfs -o size=64m,mode=755 none "$SP_DIR/disk" || exit 77
		serve grep -q ^logs: "$SP_DIR/run.log" || { cat "$SP_DIR/run.log"; exit 78; }
		cd "$SP_DIR/disk/state" && cp -r sallyport.conf nginx.conf sallyport token "$SP_DIR/" || exit 79
		head -c 64M /dev/zero >>"$SP_DIR/disk/fill" 2>/dev/null
		serve false
		cat "$SP_DIR/run.log"
		! grep -E "^sed|^cp|^install|^mv" "$SP_DIR/run.log" || exit 80
		for file in sallyport.conf nginx.conf sallyport token; do diff -r "$file" "$SP_DIR/$file" || exit 81; done
		[ -z "$(find . -name "*.new")" ] || exit 82'
	echo "$output" | tail -n 30
	[ "$status" -eq 0 ]
	[[ $output == *"No space left on device"* || $output == *"no space left on its disk"* || $output == *"cannot be written: make room"* ]]
}

# carried KIND PLACE BEFORE AFTER COMMAND…: the images of what the command writes at PLACE
carried() {
	local kind=$1 place=$SP_DIR/$2 before=$3 after=$4 copy=()
	shift 4
	rm -rf "$SP_DIR"/cut.* "$SP_DIR/copy"
	if [ -d "$place" ]; then cp -r "$place" "$SP_DIR/copy" && copy=("$SP_DIR/copy"); fi
	"${TRACE[@]}" -o "$SP_DIR/cut" -e trace="$CALLS,syncfs" "$@" >"$SP_DIR/said" 2>&1 || sp_die "$(cat "$SP_DIR/said")"
	echo "$EPOCHREALTIME done $kind" >"$SP_DIR/acks"
	/usr/bin/python3 "$SP_ROOT/tests/e2e/power_cut.py" "$SP_DIR/cut" "$place" "$SP_DIR/acks" "$SP_DIR/image" "$kind" "$before" "$after" "${copy[@]}"
}

# The record in this folder by the schema before the newest step. What its columns said of runs is lost, so `verify` holds no longer.
made_older() {
	local db=$SP_DIR/$1/sallyport.db
	sqlite3 "$db" "SELECT 'DROP ' || type || ' ' || name || ';' FROM sqlite_schema WHERE type IN ('view', 'trigger')" | sqlite3 "$db"
	sqlite3 "$db" "ALTER TABLE execution DROP COLUMN door; ALTER TABLE execution DROP COLUMN caller; ALTER TABLE execution DROP COLUMN grading;
		DROP TABLE oauth_token; DROP TABLE oauth_code; DROP TABLE oauth_login; DROP TABLE oauth_client;
		DROP TABLE oauth_grant; PRAGMA writable_schema = ON;
		UPDATE sqlite_schema SET sql = replace(substr(sql, 1, instr(sql, 'text_kb') - 1), 'servers    TEXT,', 'servers    TEXT') || ') STRICT'
			WHERE name = 'token'; PRAGMA user_version = 26"
}

@test "backup, restore, export, import and upgrade leave the old or the new behind a power cut" {
	local cli=("$SP_BIN/sallyport")
	sp_token alice
	sp_start_jailer
	sp_start_gateway
	sed 's|"data_dir": "data"|"data_dir": "back"|' "$SP_CONFIG" >"$SP_DIR/back.json"
	sed 's|"data_dir": "data"|"data_dir": "into"|' "$SP_CONFIG" >"$SP_DIR/into.json"
	run_one 1
	run_one 2
	carried backup save none 2 "${cli[@]}" backup --key --config "$SP_CONFIG" "$SP_DIR/save"
	carried bundle two.bundle none 2 "${cli[@]}" export --all --config "$SP_CONFIG" -o "$SP_DIR/two.bundle"
	run_one 3
	carried backup save 2 3 "${cli[@]}" backup --key --config "$SP_CONFIG" "$SP_DIR/save"
	carried record back none 3 "${cli[@]}" restore --config "$SP_DIR/back.json" "$SP_DIR/save"
	"${cli[@]}" export --all --config "$SP_CONFIG" -o "$SP_DIR/three.bundle"
	"${cli[@]}" import --config "$SP_DIR/into.json" "$SP_DIR/two.bundle"
	carried record into 2 3 "${cli[@]}" import --config "$SP_DIR/into.json" "$SP_DIR/three.bundle"
	"${cli[@]}" verify --blobs --config "$SP_DIR/into.json"
	"${cli[@]}" verify --blobs --config "$SP_DIR/back.json"
	made_older back
	carried upgrade back 26:3 27:3 "${cli[@]}" stdio --config "$SP_DIR/back.json" </dev/null
}
