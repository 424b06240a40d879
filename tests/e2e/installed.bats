#!/usr/bin/env bats
# The packages of `make deb` on Debian 12 under systemd, in a virtual machine (tests/vm/installed), called from outside as a client calls:
# over HTTPS, through nginx as it is shipped. What docs/operator.md tells an operator to type is what is typed here: the blocks below
# "<!-- tested: NAME -->" are taken from that page. Minutes: TEST_VM=all tries it.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	cd "$BATS_TEST_DIRNAME/../.." || return
	export MACHINE=${TEST_MACHINE:-$BATS_FILE_TMPDIR/machine} NO_MACHINE DEBS=build/deb
	NO_MACHINE=$(tests/vm/installed --missing)
	[ "${TEST_VM:-}" = all ] || NO_MACHINE="TEST_VM=all (it takes minutes)"
	[ -z "$NO_MACHINE" ] || return 0
	export SP_DEADLINE=900 # of a machine whose processor is emulated; what is waited for comes, or the service has ended
	[ -n "${TEST_MACHINE:-}" ] || { make deb && tests/vm/next_package "$DEBS-next"; } >"$BATS_FILE_TMPDIR/deb.log" 2>&1 || { tail -20 "$BATS_FILE_TMPDIR/deb.log" >&2 && return 1; }
	[ -n "${TEST_MACHINE:-}" ] || tests/vm/installed start "$MACHINE" 3>&- # TEST_MACHINE: a folder where one was started; it is left running
	tests/vm/installed copy "$MACHINE" "$DEBS"/sallyport_*.deb
	tests/vm/installed run "$MACHINE" mkdir -p /root/next
	tests/vm/installed copy "$MACHINE" "$DEBS-next"/sallyport_*.deb
	tests/vm/installed run "$MACHINE" 'mv /root/sallyport_99* /root/next/'
}

teardown_file() {
	[ -n "$NO_MACHINE$TEST_MACHINE" ] || tests/vm/installed stop "$MACHINE"
}

teardown() {
	[ -z "${SP_DIR:-}" ] || sp_teardown
}

machine() { [ -z "$NO_MACHINE" ] || skip "no virtual machine, missing: ${NO_MACHINE//$'\n'/, }"; }
in_machine() { tests/vm/installed run "$MACHINE" "$@"; }
token() { cat "$MACHINE/token"; }

# A block of the operator's page, with this machine's name, typed there: types NAME [FOLDER [SED'S COMMAND]]
page() { sp_page "$1" | sed 's/sallyport\.example\.org/localhost/g'; }
types() {
	page "$1" >"$BATS_TEST_TMPDIR/page"
	[ -s "$BATS_TEST_TMPDIR/page" ]
	sed "${3:-}" "$BATS_TEST_TMPDIR/page" | in_machine "cd ${2:-/root} && bash -eux" >"$BATS_TEST_TMPDIR/said" 2>"$BATS_TEST_TMPDIR/typed" || { cat "$BATS_TEST_TMPDIR/typed" "$BATS_TEST_TMPDIR/said" && false; }
}

# https PATH [CURL'S WORDS…]
https() {
	curl -sS --max-time 240 --cacert "$MACHINE/ca.pem" --connect-to "localhost:443:127.0.0.1:$(<"$MACHINE/port.https")" "https://localhost$1" "${@:2}"
}

# run_code CODE [MORE MEMBERS] -> the reply
run_code() {
	jq -nc --arg code "$1" "{jsonrpc: \"2.0\", id: 1, method: \"tools/call\", params: {name: \"run_code\",
		arguments: ({conversationId: \"c\", language: \"python\", code: \$code} + ${2:-{\}})}}" |
		https '/mcp?results=structured' -H "Authorization: Bearer $(token)" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -d @-
}
details() { jq -c .result.structuredContent; }
answers() { details <<<"$(run_code 'print(1)')" | jq -e '.verdict == "OK"' >/dev/null; }
active() { in_machine systemctl is-active -q "$@"; }
in_record() { in_machine "cd / && runuser -u sallyport -- sallyport $* --config /etc/sallyport/sallyport.conf"; }

@test "the page's commands, pasted in order: installed, set up, a token, the first call" {
	machine
	types install
	page setup | in_machine 'bash -eu' >"$MACHINE/setup" || { cat "$MACHINE/setup" && false; }
	awk '$1 == "Token:" { print $2 }' "$MACHINE/setup" >"$MACHINE/token"
	grep -q '^sp_' "$MACHINE/token"
	in_machine cat /etc/ssl/sallyport/fullchain.pem >"$MACHINE/ca.pem"
	# What setup prints as the first call is one.
	sed -n '/^curl /,$p' "$MACHINE/setup" | in_machine bash -eu >"$BATS_TEST_TMPDIR/first"
	jq -e '.result.content[0].text == "42\n"' "$BATS_TEST_TMPDIR/first"
	in_machine 'systemctl is-active sallyport-jailer sallyport-gateway nginx'
	in_machine dpkg -L sallyport >"$BATS_TEST_TMPDIR/files"
	local file
	for file in bin/sallyport bin/sallyport-gateway bin/sallyport-jailer lib/sysusers.d/sallyport.conf lib/tmpfiles.d/sallyport.conf lib/sysctl.d/30-sallyport.conf \
		share/man/man1/sallyport.1.gz share/man/man1/sallyport-replay.1.gz share/man/man5/sallyport.conf.5.gz share/man/man8/sallyport-jailer.8.gz share/bash-completion/completions/sallyport share/sallyport/nginx/sallyport.conf; do
		grep -qx "/usr/$file" "$BATS_TEST_TMPDIR/files" || { echo "the package has no $file" && false; }
	done
}

@test "a chart is downloaded over HTTPS" {
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

@test "the id of a reply finds its run in every log" {
	machine
	jq -nc '{jsonrpc: "2.0", id: 1, method: "tools/call", params: {name: "run_code", arguments: {conversationId: "c", language: "python", code: "1/0"}}}' |
		https '/mcp?results=structured' -H "Authorization: Bearer $(token)" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -d @- \
			-D "$BATS_TEST_TMPDIR/head" -o /dev/null
	local id
	id=$(tr -d '\r' <"$BATS_TEST_TMPDIR/head" | awk 'tolower($1) == "x-request-id:" { print $2; exit }')
	[[ $id =~ ^[0-9a-f]{32}$ ]]
	types request /root "s/ID/$id/"
	cat "$BATS_TEST_TMPDIR/said"
	grep -q '"POST /mcp HTTP' "$BATS_TEST_TMPDIR/said"
	grep -q 'sallyport-gateway\[[0-9]*\]:.*request' "$BATS_TEST_TMPDIR/said"
	grep -q 'sallyport-jailer\[[0-9]*\]:' "$BATS_TEST_TMPDIR/said"
	in_record log --json | jq -es "any(.[]; .request_id == \"$id\")"
}

@test "the page's commands: certificate, services, tokens" {
	machine
	in_machine "cd /root && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj '/CN=another authority' -addext subjectAltName=DNS:localhost -keyout privkey.pem -out fullchain.pem 2>/dev/null"
	types certificate
	in_machine cat /root/fullchain.pem >"$MACHINE/ca.pem"
	[ "$(in_machine stat -c %a /etc/ssl/sallyport/privkey.pem)" = 600 ]
	sp_until "" answers # nginx's new workers
	types services
	grep -q 'sallyport-jailer.service' "$BATS_TEST_TMPDIR/said"
	sp_until "" answers
	types tokens /root "s/^sallyport token revoke ID/sallyport token revoke \$(sallyport token list | awk '\/laptop\/ { id = \$1 } END { print id }')/"
	local laptop
	laptop=$(grep -oE 'sp_alice_[A-Za-z0-9_-]+' "$BATS_TEST_TMPDIR/said" | head -1)
	[ "$(https /mcp -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $laptop" -H 'Content-Type: application/json' -d '{}')" = 401 ]
	answers
}

@test "the page's commands: looking at what ran, doctor" {
	machine
	# shellcheck disable=SC2016 # the machine expands it
	types look /root 's/ID/"$(sallyport log --json --limit 1 | jq -r .id)"/'
	cat "$BATS_TEST_TMPDIR/said"
	in_machine 'sallyport doctor --json' >"$BATS_TEST_TMPDIR/doctor"
	jq -e '.checks[] | select(.name == "machine").found | startswith("a virtual machine: QEMU")' "$BATS_TEST_TMPDIR/doctor"
	jq -e '.checks[] | select(.name == "container").found | startswith("not in one")' "$BATS_TEST_TMPDIR/doctor"
	[ "$(in_machine systemd-detect-virt --vm)" = qemu ]
}

@test "the page's commands: JavaScript and TypeScript come with the second package" {
	machine
	in_machine mkdir -p /root/node
	tests/vm/installed copy "$MACHINE" "$DEBS"/sallyport-runner-node_*.deb
	in_machine 'mv /root/sallyport-runner-node_* /root/node/'
	types javascript /root/node
	sp_until "" answers
	says_42() { run_code "$2" "{language: \"$1\", timeout_seconds: 200}" | tee "$BATS_TEST_TMPDIR/reply" && jq -e '.result.content[0].text == "42\n"' "$BATS_TEST_TMPDIR/reply"; }
	says_42 javascript 'console.log(require("papaparse").parse("40,2").data[0].map(Number).reduce((a, b) => a + b))'
	says_42 typescript 'const n: number = 6; console.log(n * 7)'
	in_machine 'apt-get remove -y sallyport-runner-node >/dev/null 2>&1 && systemctl restart sallyport-jailer && rm -r /root/node'
	sp_until "" answers
	run_code 'console.log(1)' '{language: "javascript"}' | tee "$BATS_TEST_TMPDIR/reply"
	jq -e '.result.isError' "$BATS_TEST_TMPDIR/reply"
}

@test "logs are rotated by Debian's rule" {
	machine
	in_machine 'test -s /var/log/nginx/sallyport.log && logrotate -f /etc/logrotate.d/nginx && journalctl --rotate -q'
	in_machine 'ls /etc/logrotate.d; test -s /var/log/nginx/sallyport.log.1 && ! test -s /var/log/nginx/sallyport.log'
	answers
	logged() { in_machine 'grep -q "POST /mcp" /var/log/nginx/sallyport.log'; }
	sp_until "" logged
	# shellcheck disable=SC2016 # the machine expands it
	in_machine 'id=$(tail -1 /var/log/nginx/sallyport.log | grep -oE "[0-9a-f]{32}$") && journalctl -u sallyport-gateway -o cat -n 50 | grep -q "request_id=$id"'
	in_machine '! lsof 2>/dev/null | grep -q sallyport.log.1; journalctl --verify -q || true; ls /var/log/journal/*/system@*.journal'
}

@test "the page's commands: what was erased stays erased after a restore" {
	machine
	local before kept
	run_code 'print("to be forgotten")' >/dev/null
	before=$(in_record log --limit 10000 --json | jq -r .id | sort)
	types backup
	types erase /root 's/ann/alice/; s/90d/0s/'
	kept=$(in_machine sallyport forget --list --json | jq -rs length)
	[ "$kept" -ge 1 ]
	types restore
	[ "$(in_record log --limit 10000 --json | jq -r .id | sort)" = "$before" ]
	[ "$(in_machine 'stat -c "%U:%G %a" /var/lib/sallyport')" = 'sallyport:www-data 2750' ]
	# shellcheck disable=SC2016 # the machine expands it
	run in_machine 'sallyport show "$(sallyport log --json --limit 1 | jq -r .id)" --code'
	[[ $output != *"to be forgotten"* ]]
	sp_until "" answers # with the token from before
	in_machine 'cd / && sallyport verify' | tee "$BATS_TEST_TMPDIR/verify"
	in_machine 'rm -r /var/lib/sallyport.old /backup'
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
@test "a restart of each service loses nothing acknowledged" {
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
	# Nobody's run was taken away.
	[ "$(grep -h '^{' "$BATS_TEST_TMPDIR"/replies.* | jq -c 'select(.result.structuredContent.verdict == "XX")' | wc -l)" = 0 ]
	in_record log --limit 10000 --json | jq -r 'select(.verdict == "OK").id' | sort >"$BATS_TEST_TMPDIR/recorded"
	run comm -23 "$BATS_TEST_TMPDIR/acknowledged" "$BATS_TEST_TMPDIR/recorded"
	echo "$output"
	[ -z "$output" ]
}

@test "each service comes back after kill -9" {
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

@test "the audit log is signed every minute" {
	machine
	local size
	page signer | in_machine 'bash -eu' | tee "$BATS_TEST_TMPDIR/vkey" | grep -q '^localhost/audit+'
	signed() { in_machine test -s /var/lib/sallyport-audit/checkpoint; }
	sp_until "" signed
	answers
	size=$(in_machine sed -n 2p /var/lib/sallyport-audit/checkpoint)
	larger() { [ "$(in_machine sed -n 2p /var/lib/sallyport-audit/checkpoint)" -gt "$size" ]; }
	sp_until "" larger # by the timer
	in_machine 'sallyport verify --config /etc/sallyport/sallyport.conf --signer /var/lib/sallyport-audit'
	in_machine '! runuser -u sallyport -- cat /var/lib/sallyport-audit/key; ! runuser -u sallyport-audit -- sh -c "echo >>/var/lib/sallyport/sallyport.db"'
	in_machine 'cd /var/lib/sallyport && sqlite3 sallyport.db "SELECT sql || char(59) FROM sqlite_schema WHERE name = \"audit_fixed\"" >/root/trigger &&
		sqlite3 sallyport.db "DROP TRIGGER audit_fixed; UPDATE audit SET entry = replace(entry, \"token.add\", \"token.axx\")"'
	refused() { in_machine 'systemctl is-failed -q sallyport-checkpoint && journalctl -u sallyport-checkpoint -o cat | grep -q "history was rewritten"'; }
	sp_until "" refused
	# Put back, it signs again.
	in_machine 'cd /var/lib/sallyport && sqlite3 sallyport.db "UPDATE audit SET entry = replace(entry, \"token.axx\", \"token.add\")" && sqlite3 sallyport.db </root/trigger && systemctl start sallyport-checkpoint'
	# While the gateway is stopped, too: its last entry is signed.
	size=$(in_machine sed -n 2p /var/lib/sallyport-audit/checkpoint)
	in_machine 'systemctl stop sallyport-gateway.socket sallyport-gateway && systemctl start sallyport-checkpoint'
	larger
	in_machine 'systemctl start sallyport-checkpoint && systemctl start sallyport-gateway.socket sallyport-gateway' # nothing new is no error
	sp_until "" answers
}

# A run is under way; then this is typed, and waits until the run has ended: lets_end SYSTEMCTL'S WORDS…
lets_end() {
	run_code $'import time\nopen("/data/began", "w")\ntime.sleep(12)\nprint("end")' >"$BATS_TEST_TMPDIR/reply" 3>&- &
	local client=$!
	under_way() { [ "$(in_machine "sqlite3 -readonly /var/lib/sallyport/sallyport.db \"SELECT count(*) FROM execution WHERE state = 'running'\"")" = 1 ]; }
	sp_until "$client" under_way
	in_machine systemctl "$@"
	wait "$client"
	cat "$BATS_TEST_TMPDIR/reply"
	details <"$BATS_TEST_TMPDIR/reply" | jq -e '.verdict == "OK"'
}

@test "systemctl stop waits for a run that is under way" {
	machine
	lets_end stop sallyport-gateway.socket sallyport-gateway
	in_machine systemctl start sallyport-gateway.socket sallyport-gateway
	sp_until "" answers
}

@test "a restart of the jailer lets a run end" {
	machine
	local before
	before=$(in_machine systemctl show -P MainPID sallyport-gateway)
	lets_end restart sallyport-jailer
	sp_until "" answers
	[ "$(in_machine systemctl show -P MainPID sallyport-gateway)" != "$before" ]
}

@test "programs that eat all memory end without the services" {
	machine
	[ "$(in_machine systemctl show -P MemoryMax sallyport-gateway)" = $((2 << 30)) ]
	local before n
	before=$(in_machine systemctl show -P MainPID sallyport-jailer sallyport-gateway)
	for n in 1 2 3 4; do run_code 'x = []
while True: x.append(bytearray(1 << 20))' "{conversationId: \"m$n\"}" >"$BATS_TEST_TMPDIR/reply.$n" 3>&- & done
	wait
	for n in 1 2 3 4; do details <"$BATS_TEST_TMPDIR/reply.$n" | jq -e '.verdict == "ML" or .verdict == "RE"'; done
	[ "$(in_machine systemctl show -P MainPID sallyport-jailer sallyport-gateway)" = "$before" ]
}

@test "a full disk refuses calls until there is room" {
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

@test "the page's commands: drained, stopped, started, served again" {
	machine
	# shellcheck disable=SC2016 # the machine expands it
	types drain /root '/^# … and/,$d'
	run ! active sallyport-gateway
	[ "$(https /healthz -o /dev/null -w '%{http_code}')" = 503 ] # nobody wakes it
	run ! active sallyport-gateway
	types drain /root '1,/^# … and/d'
	sp_until "" answers
}

schema() { in_machine "sqlite3 -readonly /var/lib/sallyport/sallyport.db 'PRAGMA user_version'"; }
version() { in_machine "dpkg-query -W -f '\${Version}' sallyport"; }

@test "the page's commands: an upgrade can be taken back" {
	machine
	local schema before since id
	schema=$(schema)
	before=$(in_record log --limit 10000 --json | jq -r .id | sort)
	types upgrade /root/next
	[ "$(version)" = 99.0.0 ]
	sp_until "" answers # the gateway was started again, and has upgraded the database
	[ "$(schema)" = $((schema + 1)) ]
	in_machine "ls /var/lib/sallyport/sallyport.db.version-$schema.*Z && journalctl -u sallyport-gateway -o cat | grep -q 'database upgraded'"
	since=$(in_record log --limit 10000 --json | jq -r .id | sort)
	[ -z "$(comm -23 <(echo "$before") <(echo "$since"))" ]
	[ "$(wc -l <<<"$since")" -gt "$(wc -l <<<"$before")" ]

	# The older release alone refuses the newer database, and says what to do.
	types rollback /root '/restore --before-upgrade/d; /^systemctl start/d'
	run in_record token list
	echo "$output"
	[ "$status" -ne 0 ]
	[[ $output == *"newer"* ]]
	types upgrade /root/next
	sp_until "" answers
	types rollback
	cat "$BATS_TEST_TMPDIR/said"
	[ "$(version)" != 99.0.0 ]
	[ "$(schema)" = "$schema" ]
	[ "$(in_record log --limit 10000 --json | jq -r .id | sort)" = "$before" ]
	sp_until "" answers
	in_machine "ls /var/lib/sallyport/sallyport.db.undone-$((schema + 1)).*Z"
	id=$(comm -13 <(echo "$before") <(echo "$since") | head -1)
	in_machine "sqlite3 -readonly /var/lib/sallyport/sallyport.db.undone-* \"SELECT verdict FROM execution WHERE id = '$id'\"" | grep -q OK

	# Removed: nginx goes on with its other sites; configuration, site and record stay.
	in_machine 'apt-get remove -y sallyport >/dev/null 2>&1; ! test -e /usr/bin/sallyport; test -e /etc/sallyport/sallyport.conf; test -e /etc/nginx/sites-available/sallyport.conf; nginx -t -q && systemctl restart nginx; test -e /var/lib/sallyport/sallyport.db'
	types install
	page setup | in_machine 'bash -eu' >"$MACHINE/setup"
	sp_until "" answers # with the token from before
}

# The rootfs is the machine's own, because nothing can be downloaded here: tests/e2e/rootfs.bats has a real one.
@test "the page's commands: a language with another root file system" {
	machine
	types rootfs /root 's|^debootstrap.*|mkdir -p /srv/sallyport/trixie; mount --bind / /srv/sallyport/trixie|'
	in_machine 'sed -i "s|\"name\": \"python\",|\"name\": \"python13\", \"rootfs\": \"/srv/sallyport/trixie\",|; s|\"aliases\": \[[^]]*\]|\"aliases\": []|" /etc/sallyport/runners/python13.json
		sed -i "s|\"socket\": \"/run/sallyport-jailer|\"runners_dir\": \"/etc/sallyport/runners\", &|" /etc/sallyport/sallyport.conf
		systemctl restart sallyport-jailer'
	sp_until "" answers
	run_code 'print("from the rootfs")' '{language: "python13"}' | tee "$BATS_TEST_TMPDIR/reply"
	jq -e '.result.content[0].text == "from the rootfs\n"' "$BATS_TEST_TMPDIR/reply"
	in_machine 'sed -i "s|\"runners_dir\": \"/etc/sallyport/runners\", ||" /etc/sallyport/sallyport.conf; systemctl restart sallyport-jailer; umount -l /srv/sallyport/trixie'
}

@test "the record survives a purge" {
	machine
	in_machine 'apt-get purge -y sallyport >/dev/null 2>&1; test -e /var/lib/sallyport/sallyport.db; test -e /etc/ssl/sallyport/privkey.pem; ! test -e /usr/bin/sallyport; ! test -e /etc/sallyport/site.env; ! test -e /etc/nginx/sites-available/sallyport.conf; nginx -t -q'
	types install
	page setup | in_machine 'bash -eu' >"$MACHINE/setup"
	sp_until "" answers # with the token from before
}
