#!/usr/bin/env bats
# What stays in memory after a request: nothing of large requests; nothing of secrets in the jailer; what stays in the gateway is out of reach.
# shellcheck disable=SC2016 # dollars in the programs are not for this shell

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_setup
	sp_start_jailer
	SALLYPORT_LIMITS_BODY_MB=32 sp_start_gateway
	sp_token alice
}

teardown() {
	[ -n "$GROUP" ] || return 0 # a test with a stack of its own
	sp_teardown
	[ ! -d "$GROUP" ] || rmdir "$GROUP"
}
teardown_file() {
	sp_teardown
}

readonly LARGE=11000000 AT_ONCE=6 ROUNDS=4 KEPT_KB=16384

resident_kb() {
	awk '$1 == "RssAnon:" { print $2 }' "/proc/$SP_GATEWAY_PID/status"
}

upload() { # NUMBER
	env -i PATH="$PATH" REQUEST_METHOD=POST REQUEST_URI=/mcp SCRIPT_NAME=/mcp HTTP_HOST=127.0.0.1:8080 CONTENT_TYPE=application/json \
		HTTP_AUTHORIZATION="Bearer $SP_TOKEN" HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD=tools/call HTTP_MCP_NAME=upload_file \
		CONTENT_LENGTH="$(stat -c %s "$SP_DIR/large")" cgi-fcgi -bind -connect "$SP_SOCKET" <"$SP_DIR/large" >"$SP_DIR/reply.$1" 3>&-
}

@test "memory of large requests goes back to the system" {
	local round number before pids
	[[ $SP_BIN != */san/* ]] || skip "a sanitizer keeps what was freed for a while"
	{
		printf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"upload_file","arguments":{"conversationId":"c","filename":"f","content":"'
		head -c "$LARGE" /dev/zero | base64 -w0
		printf '"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'
	} >"$SP_DIR/large"
	sp_call upload_file '{"conversationId":"c","filename":"a","content":"YQ=="}'
	before=$(resident_kb)
	for ((round = 0; round < ROUNDS; round++)); do
		pids=()
		for ((number = 0; number < AT_ONCE; number++)); do
			upload "$number" &
			pids+=($!)
		done
		wait "${pids[@]}"
		[ "$(grep -l "uploaded successfully ($LARGE bytes)" "$SP_DIR"/reply.* | wc -l)" = "$AT_ONCE" ]
	done
	goes_back() { [ "$(resident_kb)" -lt $((before + KEPT_KB)) ]; }
	sp_until "$SP_GATEWAY_PID" goes_back || { echo "$before kB before, $(resident_kb) kB after"; false; }
}

peak_kb() {
	awk '$1 == "VmHWM:" { print $2 }' "/proc/$SP_GATEWAY_PID/status"
}

# A memory cgroup with the limit of the gateway's unit in GROUP, of version 1 or 2; false: none can be made here.
make_group() {
	local most mount
	most=$(($(sed -n 's/^MemoryMax=\([0-9]*\)G$/\1/p' "$SP_ROOT/debian/sallyport.sallyport-gateway.service") << 30))
	for mount in /sys/fs/cgroup/memory /sys/fs/cgroup; do
		GROUP=$mount/sp-memory-$BASHPID
		mkdir "$GROUP" 2>/dev/null || continue
		! echo "$most" 2>/dev/null >"$GROUP/$([ "$mount" = /sys/fs/cgroup ] && echo memory.max || echo memory.limit_in_bytes)" || return 0
		rmdir "$GROUP"
	done
	return 1
}
oom_kills() {
	cat "$GROUP"/memory.{oom_control,events} 2>/dev/null | sed -n 's/^oom_kill //p'
}

# Calls of bob's until the file `calm` is there, small ones and large ones: the status of each.
honest() {
	local wait=$SP_DIR/calm small='{"conversationId":"b","filename":"s","content":"YQ=="}' n calm=0
	SP_DIR=$SP_DIR/honest SP_TOKEN=$BOB
	mkdir -p "$SP_DIR"
	head -c 750000 /dev/zero | base64 -w0 | jq -Rc '{conversationId: "b", filename: "l", content: .}' >"$SP_DIR/arguments"
	for ((n = 0; n < 2 || !calm; n++)); do
		[ ! -e "$wait" ] || calm=1
		sp_call upload_file "$([ $((n % 4)) = 1 ] && cat "$SP_DIR/arguments" || echo "$small")" || SP_STATUS=none
		echo "$SP_STATUS $(sp_get .result.isError)"
	done
}

# Forty bodies of 30 MiB at once; the first argument: what their answers must be. Calls of another token are answered meanwhile.
forty() {
	local number pids=() before honest
	echo 5 >"/proc/$SP_GATEWAY_PID/clear_refs" # the peak begins again
	before=$(peak_kb)
	rm -f "$SP_DIR"/{reply.*,calm}
	honest >"$SP_DIR/honest.said" 3>&- &
	honest=$!
	for ((number = 0; number < 40; number++)); do
		upload "$number" &
		pids+=($!)
	done
	wait "${pids[@]}"
	touch "$SP_DIR/calm"
	wait "$honest"
	[ "$(grep -lE "$1" "$SP_DIR"/reply.* | wc -l)" = 40 ]
	echo "# $before kB before, $(peak_kb) kB at most, $(wc -l <"$SP_DIR/honest.said") calls of another token" >&3
	[ "$(peak_kb)" -lt $((before + 256 * 1024)) ]
	[ "$(sort -u "$SP_DIR/honest.said")" = "200 false" ]
}

@test "forty large bodies of one token leave memory for other tokens" {
	[[ $SP_BIN != */san/* ]] || skip "a sanitizer keeps what was freed for a while"
	make_group || skip "no memory cgroup can be made here: needs root, and a cgroup file system with the controller memory"
	sp_setup
	sp_two_owners
	mkdir "$SP_DIR/grouped"
	printf '#!/bin/sh\necho $$ >%s/cgroup.procs\nexec %s "$@"\n' "$GROUP" "$SP_BIN/sallyport-gateway" >"$SP_DIR/grouped/sallyport-gateway"
	chmod +x "$SP_DIR/grouped/sallyport-gateway"
	SP_BIN=$SP_DIR/grouped SALLYPORT_LIMITS_BODY_MB=32 sp_start_gateway
	grep -qx "$SP_GATEWAY_PID" "$GROUP/cgroup.procs"
	{
		printf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"upload_file","arguments":{"conversationId":"c","filename":"f","content":"'
		head -c 23592960 /dev/zero | base64 -w0
		printf '"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'
	} >"$SP_DIR/large"
	forty '^Status: 429|uploaded successfully'
	grep -q 'uploaded successfully' "$SP_DIR"/reply.*
	# Of a token that no large body can be for, none is read.
	SP_TOKEN=$("$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner alice --scope network) forty '^Status: 403'
	[ "$(oom_kills)" = 0 ]
	sp_call list_files '{"conversationId":"c"}'
	[ "$SP_STATUS" = 200 ]
}

# search FILE PID…: how often these processes and all below them have the file's text in memory, and how many processes these are.
search() {
	/usr/bin/python3 - "$@" <<-'END'
		import os, re, sys
		wanted = open(sys.argv[1], 'rb').read()
		todo, found, looked = sys.argv[2:], 0, 0
		while todo:
		    pid = todo.pop()
		    try:
		        for task in os.listdir(f'/proc/{pid}/task'):
		            todo += open(f'/proc/{pid}/task/{task}/children').read().split()
		        maps, memory = open(f'/proc/{pid}/maps').readlines(), open(f'/proc/{pid}/mem', 'rb', 0)
		    except (FileNotFoundError, ProcessLookupError): # it has ended
		        continue
		    looked += 1
		    for line in maps:
		        begin, end, rights = re.match(r'(\w+)-(\w+) (\S+)', line).groups()
		        if rights[0] != 'r' or '[v' in line or int(end, 16) - int(begin, 16) > 1 << 30: # a sanitizer's shadow
		            continue
		        try:
		            memory.seek(int(begin, 16))
		            content = memory.read(int(end, 16) - int(begin, 16))
		        except (OSError, ValueError): # unmapped meanwhile, or a device
		            continue
		        found += content.count(wanted)
		print(found, looked)
	END
}

@test "secrets and environments of a run are in no memory of the jailer or of a jail when it has ended" {
	[ "$(id -u)" = 0 ] || skip "only root reads the memory of others"
	local n
	printf 'never-in-memory-%s' "$(openssl rand -hex 12)" >"$SP_DIR/secret"
	printf 'nor-in-memory-%s' "$(openssl rand -hex 12)" >"$SP_DIR/variable"
	arguments() { # CODE
		jq -nc --rawfile secret "$SP_DIR/secret" --rawfile variable "$SP_DIR/variable" --arg code "$1" \
			'{conversationId: "c", language: "bash", code: $code, secrets: {KEY: $secret}, environment: {PLAIN: $variable}}'
	}
	# While it runs the search finds them.
	(
		json=$(arguments "sleep $SP_ASLEEP; true")
		SP_DIR=$SP_DIR/call && mkdir "$SP_DIR"
		sp_call run_code "$json"
	) 3>&- &
	local call=$!
	sp_until "$call" sp_asleep
	[[ $(search "$SP_DIR/secret" "$SP_JAILER_PID") != "0 "* ]]
	sp_wake
	wait "$call"
	for n in 1 2 3 4 5 6; do
		sp_call run_code "$(arguments 'echo ${#KEY} ${#PLAIN}')"
		[ "$(sp_get details.stdout)" = "40 38" ]
	done
	gone() { [[ $(search "$SP_DIR/$1" "$SP_JAILER_PID") == "0 "[1-9]* ]]; }
	for n in secret variable; do
		sp_until "$SP_JAILER_PID" gone "$n" || { search "$SP_DIR/$n" "$SP_JAILER_PID"; false; }
	done
}

@test "the gateway's memory cannot be read by another process of its account" {
	local unprivileged=(setpriv --bounding-set=-all --inh-caps=-all)
	[ "$(id -u)" = 0 ] || unprivileged=()
	mkdir "$SP_DIR/bin"
	printf '#!/bin/sh\nexec %s "$@"\n' "${unprivileged[*]} $SP_BIN/sallyport-gateway" >"$SP_DIR/bin/sallyport-gateway"
	chmod +x "$SP_DIR/bin/sallyport-gateway"
	sp_stop "$SP_GATEWAY_PID"
	SP_BIN=$SP_DIR/bin sp_start_gateway
	readable() { "${unprivileged[@]}" head -c 1 "/proc/$1/maps"; }
	"${unprivileged[@]}" sleep "$SP_DEADLINE" 3>&- &
	local sleeper=$!
	sp_until "$sleeper" readable "$sleeper" # a process that is dumpable
	kill "$sleeper"
	run ! readable "$SP_GATEWAY_PID"
	[[ $output == *"Permission denied"* ]]
}
