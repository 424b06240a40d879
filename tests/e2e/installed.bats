#!/usr/bin/env bats
# The packages of `make deb` on Debian 12 under systemd, in a virtual machine (tests/vm/installed), called from outside as a client calls:
# over HTTPS, through nginx as it is shipped. What docs/operator.md tells an operator to type is what is typed here: the blocks below
# "<!-- tested: NAME -->" are taken from that page. Minutes: TEST_VM=all tries it. The last tests, about the units, need no machine.

load lib.bash

setup_file() {
	cd "$BATS_TEST_DIRNAME/../.." || return
	export MACHINE=$BATS_FILE_TMPDIR/machine NO_MACHINE DEBS=build/deb
	NO_MACHINE=$(tests/vm/installed --missing)
	[ "${TEST_VM:-}" = all ] || NO_MACHINE="TEST_VM=all (it takes minutes)"
	[ -z "$NO_MACHINE" ] || return 0
	make deb >"$BATS_FILE_TMPDIR/deb.log" 2>&1 || { tail -20 "$BATS_FILE_TMPDIR/deb.log" >&2 && return 1; }
	tests/vm/installed start "$MACHINE" 3>&-
	tests/vm/installed copy "$MACHINE" "$DEBS"/sallyport_*.deb
}

teardown_file() {
	[ -n "$NO_MACHINE" ] || tests/vm/installed stop "$MACHINE"
}

machine() { [ -z "$NO_MACHINE" ] || skip "no virtual machine, missing: ${NO_MACHINE//$'\n'/, }"; }
in_machine() { tests/vm/installed run "$MACHINE" "$@"; }
token() { cat "$MACHINE/token"; }

# A block of the operator's page.
page() {
	awk -v name="<!-- tested: $1 -->" '$0 == name { wanted = 1 } wanted && /^ *```$/ { exit } open { print } wanted && /^ *```sh$/ { open = 1 }' docs/operator.md |
		sed "s/sallyport\.example\.org/localhost/g"
}

# https PATH [CURL'S WORDS…]
https() {
	curl -sS --max-time 240 --cacert "$MACHINE/ca.pem" --connect-to "localhost:443:127.0.0.1:$(<"$MACHINE/port.https")" "https://localhost$1" "${@:2}"
}

# run_code CODE [MORE MEMBERS] -> the reply
run_code() {
	jq -nc --arg code "$1" "{jsonrpc: \"2.0\", id: 1, method: \"tools/call\", params: {name: \"run_code\",
		arguments: ({conversationId: \"c\", language: \"python\", code: \$code} + ${2:-{\}})}}" |
		https /mcp -H "Authorization: Bearer $(token)" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -d @-
}
details() { jq -c '.result._meta["sallyport/result"] // .result.structuredContent'; }
answers() { details <<<"$(run_code 'print(1)')" | jq -e '.verdict == "OK"' >/dev/null; }
active() { in_machine systemctl is-active -q "$@"; }
in_record() { in_machine "cd / && runuser -u sallyport -- sallyport $* --config /etc/sallyport/sallyport.conf"; }

@test "the page's commands, pasted in order: installed, set up, a token, the first call" {
	machine
	page install | grep -q apt
	page install | in_machine 'cd /root && bash -eux' >"$BATS_TEST_TMPDIR/said" 2>&1 || { cat "$BATS_TEST_TMPDIR/said" && false; }
	page setup | in_machine 'bash -eu' >"$MACHINE/setup" || { cat "$MACHINE/setup" && false; }
	awk '$1 == "Token:" { print $2 }' "$MACHINE/setup" >"$MACHINE/token"
	grep -q '^sp_' "$MACHINE/token"
	in_machine cat /etc/ssl/sallyport/fullchain.pem >"$MACHINE/ca.pem"
	# What setup prints as the first call is one.
	sed -n '/^curl /,$p' "$MACHINE/setup" | in_machine bash -eu >"$BATS_TEST_TMPDIR/first"
	jq -e '.result.content[0].text == "42\n"' "$BATS_TEST_TMPDIR/first"
	in_machine 'systemctl is-active sallyport-jailer sallyport-gateway nginx'
}

@test "a chart is downloaded over HTTPS; the request has one id in every log" {
	machine
	local reply url id
	reply=$(run_code $'import matplotlib\nmatplotlib.use("Agg")\nimport matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.savefig("/data/chart.png")' '{timeout_seconds: 200}')
	echo "$reply"
	url=$(grep -oE 'https://localhost/files/[0-9a-f]{64}/chart.png' <<<"$reply" | head -1)
	https "${url#https://localhost}" -o "$BATS_TEST_TMPDIR/chart.png" -D "$BATS_TEST_TMPDIR/head"
	cat "$BATS_TEST_TMPDIR/head"
	[ "$(head -c 4 "$BATS_TEST_TMPDIR/chart.png" | tail -c 3)" = PNG ]
	grep -qi '^strict-transport-security: max-age' "$BATS_TEST_TMPDIR/head"
	id=$(tr -d '\r' <"$BATS_TEST_TMPDIR/head" | awk 'tolower($1) == "x-request-id:" { print $2; exit }')
	in_machine "grep -q $id /var/log/nginx/sallyport.log && journalctl -u sallyport-gateway -o cat | grep -q request_id=$id"
}

@test "no token and no address of a download stands in nginx's logs or the journal" {
	machine
	local hash secret
	hash=$(in_record log --json | jq -rs 'map(.hash // empty) | first // "none"')
	secret=$(token)
	in_machine "! grep -rF -e '${secret##*_}' /var/log/nginx && ! journalctl -o cat | grep -F '${secret##*_}'"
	in_machine '! grep -rE "/files/[0-9a-f]{64}" /var/log/nginx'
	[ -n "$hash" ]
}

# Clients that call all the time and try again where they are asked to. What was answered with OK must be in the record.
@test "each service is restarted in each order under load: nothing acknowledged is lost" {
	machine
	local client before stop=$BATS_TEST_TMPDIR/stop
	load_of() {
		local n=0 reply
		while [ ! -e "$stop" ]; do
			reply=$(run_code "print('call $1 $((n++))')") || reply=
			details <<<"$reply" 2>/dev/null | jq -r 'select(.verdict == "OK").execution_id' >>"$BATS_TEST_TMPDIR/done.$1" 2>/dev/null || true
			echo "$reply" >>"$BATS_TEST_TMPDIR/replies.$1"
		done
	}
	for client in 1 2 3; do load_of "$client" 3>&- & done
	# shellcheck disable=SC2016 # the machine expands it
	in_machine 'for services in "jailer gateway" "gateway jailer" "jailer" "gateway"; do
		for s in $services; do systemctl restart sallyport-$s; done; systemctl reload-or-restart nginx; systemctl is-active -q sallyport-jailer; done' || touch "$BATS_TEST_TMPDIR/failed"
	before=$(cat "$BATS_TEST_TMPDIR"/done.* | wc -l)
	more() { [ "$(cat "$BATS_TEST_TMPDIR"/done.* | wc -l)" -gt $((before + 2)) ]; }
	sp_until "" more # after the last restart, too
	touch "$stop"
	wait
	[ ! -e "$BATS_TEST_TMPDIR/failed" ]
	cat "$BATS_TEST_TMPDIR"/done.* | sort >"$BATS_TEST_TMPDIR/acknowledged"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/acknowledged")" -ge 6 ]
	in_record log --limit 10000 --json | jq -r 'select(.verdict == "OK").id' | sort >"$BATS_TEST_TMPDIR/recorded"
	run comm -23 "$BATS_TEST_TMPDIR/acknowledged" "$BATS_TEST_TMPDIR/recorded"
	echo "$output"
	[ -z "$output" ]
}

@test "kill -9 of each service: it comes back by itself, and so do the answers" {
	machine
	local service
	for service in jailer gateway; do
		in_machine "kill -9 \$(systemctl show -P MainPID sallyport-$service)"
		sp_until "" active "sallyport-$service"
		sp_until "" answers
	done
}

@test "a jailer that hangs is restarted by the watchdog" {
	machine
	local before
	in_machine 'mkdir -p /run/systemd/system/sallyport-jailer.service.d && printf "[Service]\nWatchdogSec=10\nTimeoutAbortSec=2\n" >/run/systemd/system/sallyport-jailer.service.d/test.conf && systemctl daemon-reload && systemctl restart sallyport-jailer'
	before=$(in_machine systemctl show -P MainPID sallyport-jailer)
	in_machine "kill -STOP $before"
	another() { active sallyport-jailer && [ "$(in_machine systemctl show -P MainPID sallyport-jailer)" != "$before" ]; }
	sp_until "" another
	in_machine 'journalctl -u sallyport-jailer -o cat | grep -qi watchdog; rm /run/systemd/system/sallyport-jailer.service.d/test.conf; systemctl daemon-reload; systemctl restart sallyport-jailer'
	sp_until "" answers
}

@test "systemctl stop waits for a run that is under way" {
	machine
	run_code $'import time\nopen("/data/began", "w")\ntime.sleep(8)\nprint("end")' >"$BATS_TEST_TMPDIR/reply" 3>&- &
	local client=$!
	runs() { in_machine 'pgrep -f "^/usr/bin/python3" >/dev/null'; }
	sp_until "$client" runs
	in_machine systemctl stop sallyport-gateway.socket sallyport-gateway
	wait "$client"
	details <"$BATS_TEST_TMPDIR/reply" | jq -e '.verdict == "OK"'
	in_machine systemctl start sallyport-gateway.socket sallyport-gateway
}

@test "programs that eat all memory are ended, the services are not" {
	machine
	local before n
	before=$(in_machine systemctl show -P MainPID sallyport-jailer sallyport-gateway)
	for n in 1 2 3 4; do run_code 'x = []
while True: x.append(bytearray(1 << 20))' "{conversationId: \"m$n\"}" >"$BATS_TEST_TMPDIR/reply.$n" 3>&- & done
	wait
	for n in 1 2 3 4; do details <"$BATS_TEST_TMPDIR/reply.$n" | jq -e '.verdict == "ML" or .verdict == "RE"'; done
	[ "$(in_machine systemctl show -P MainPID sallyport-jailer sallyport-gateway)" = "$before" ]
}

@test "a full disk: calls are refused with a message, and work again when there is room" {
	machine
	# shellcheck disable=SC2016 # the machine expands it
	in_machine 'fallocate -l $(($(df --output=avail -B1 / | tail -1) - 1000000)) /root/full; dd if=/dev/zero of=/root/fuller bs=64k 2>/dev/null; sync; true'
	run_code 'print(1)' >"$BATS_TEST_TMPDIR/reply" || true
	cat "$BATS_TEST_TMPDIR/reply"
	in_machine rm /root/full /root/fuller
	run ! jq -e '.result.isError == false' "$BATS_TEST_TMPDIR/reply"
	sp_until "" answers
}

@test "after a reboot everything is there" {
	machine
	local before boot
	before=$(in_record log --limit 10000 --json | wc -l)
	boot=$(in_machine cat /proc/sys/kernel/random/boot_id)
	in_machine 'systemctl reboot' || true
	tests/vm/installed run "$MACHINE" -O exit 2>/dev/null || true
	booted() { [ "$(in_machine cat /proc/sys/kernel/random/boot_id 2>/dev/null)" != "$boot" ] && in_machine true 2>/dev/null; }
	sp_until "$(<"$MACHINE/pid")" booted
	sp_until "" answers
	[ "$(in_record log --limit 10000 --json | wc -l)" -gt "$before" ]
}

@test "removed and purged, the record stays; installed again, it is served again" {
	machine
	in_machine 'apt-get purge -y sallyport >/dev/null 2>&1; test -e /var/lib/sallyport/sallyport.db; ! test -e /usr/bin/sallyport; ! test -e /etc/sallyport/site.env; nginx -t -q'
	page install | in_machine 'cd /root && bash -eux' >"$BATS_TEST_TMPDIR/said" 2>&1
	page setup | in_machine 'bash -eu' >"$MACHINE/setup"
	answers # with the token from before
}

# -------- what needs no machine ------------------------------------------------------------------------------------

score() { # UNIT MOST: tenths
	command -v systemd-analyze >/dev/null || skip "systemd-analyze is not installed"
	cp "debian/sallyport.$1.service" "$BATS_TEST_TMPDIR/$1.service"
	run systemd-analyze security --offline=true --no-pager --threshold="$2" "$BATS_TEST_TMPDIR/$1.service"
	echo "${lines[-1]}"
	[ "$status" -eq 0 ]
}

@test "the gateway's unit: systemd-analyze security says 1.5 or less" { score sallyport-gateway 15; }
@test "the jailer's unit: systemd-analyze security says 7.0 or less" { score sallyport-jailer 70; }

@test "the shipped configuration is one, and its jailer and gateway find each other" {
	run env SALLYPORT_DATA_DIR="$BATS_TEST_TMPDIR" "$SP_BIN/sallyport" token list --config debian/sallyport.conf
	echo "$output"
	[[ $output != *"is not a member"* && $output != *"Invalid"* ]]
	local socket
	socket=$(sed -n 's/.*"socket": "\(.*\)",/\1/p' debian/sallyport.conf)
	[ "$socket" = /run/sallyport-jailer/jailer.sock ]
	grep -qx 'RuntimeDirectory=sallyport-jailer' debian/sallyport.sallyport-jailer.service
	grep -q "$(sed -n 's/^ListenStream=//p' debian/sallyport.sallyport-gateway.socket)" nginx/sallyport.conf
}

@test "setup: what is wrong is named" {
	run nginx/setup.sh --host
	[ "$status" -eq 2 ]
	run nginx/setup.sh --host 'a b'
	[ "$status" -eq 2 ]
	[[ $output == *"is not a host name"* ]]
	run nginx/setup.sh --bogus
	[ "$status" -eq 2 ]
	run nginx/setup.sh --help
	[ "$status" -eq 0 ]
	run "$SP_BIN/sallyport" setup --host localhost
	[ "$status" -ne 0 ]
	[[ $output == *"setup is for an installed package"* ]]
}
