#!/usr/bin/env bats
# What Debian's packages ship, without a machine to install them on (installed.bats has one): units, scripts, the configuration; and what the
# operator's page says of them.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	cd "$SP_ROOT" || return
}

teardown() {
	[ -z "${SP_DIR:-}" ] || sp_teardown
}

score() { # UNIT MOST: tenths
	command -v systemd-analyze >/dev/null || skip "systemd-analyze is not installed"
	cp "debian/sallyport.$1.service" "$BATS_TEST_TMPDIR/$1.service"
	run systemd-analyze security --offline=true --no-pager --threshold="$2" "$BATS_TEST_TMPDIR/$1.service"
	echo "${lines[-1]}"
	[ "$status" -eq 0 ]
}

@test "the gateway's unit: systemd-analyze security says 1.5 or less" { score sallyport-gateway 15; }
@test "the jailer's unit: systemd-analyze security says 7.0 or less" { score sallyport-jailer 70; }
@test "the signer's unit: systemd-analyze security says 1.5 or less" { score sallyport-checkpoint 15; }

@test "the signer's unit signs with the anchors of its file" {
	local unit=debian/sallyport.sallyport-checkpoint.service words anchors
	[ "$(awk '{ print $2 }' debian/sallyport.sysusers | sort | paste -sd' ')" = "sallyport sallyport-audit" ]
	grep -qx 'd /var/lib/sallyport-audit 0700 sallyport-audit sallyport-audit -' debian/sallyport.tmpfiles
	grep -qx "User=$(awk '/audit/ { print $2 }' debian/sallyport.sysusers)" "$unit"
	# What it starts, with this tree's program and a folder of the test.
	mkdir "$BATS_TEST_TMPDIR/data"
	printf '{"data_dir": "%s/data"}\n' "$BATS_TEST_TMPDIR" >"$BATS_TEST_TMPDIR/conf"
	"$SP_BIN/sallyport" token add --owner alice --config "$BATS_TEST_TMPDIR/conf" >/dev/null
	"$SP_BIN/sallyport" checkpoint --state "$BATS_TEST_TMPDIR/state" --init test.example/audit
	words=$(sed -n 's/^ExecStart=//p' "$unit")
	words=${words/\/usr\/bin\/sallyport /$SP_BIN/sallyport }
	words=${words/\/etc\/sallyport\/sallyport.conf/$BATS_TEST_TMPDIR/conf --state $BATS_TEST_TMPDIR/state}
	# Its figures go where systemd makes a folder for it.
	[[ $words == *"--metrics /run/$(sed -n 's/^RuntimeDirectory=//p' "$unit")/"* ]]
	words=${words/\/run\/sallyport-audit\//$BATS_TEST_TMPDIR/}
	anchors="--anchor 'file:$BATS_TEST_TMPDIR/anchor' --anchor 'command:cat >$BATS_TEST_TMPDIR/sent'"
	eval "${words/\$SALLYPORT_ANCHORS/$anchors}" # the shell splits it as systemd does
	cmp "$BATS_TEST_TMPDIR/sent" "$BATS_TEST_TMPDIR/state/checkpoint"
	[ -s "$BATS_TEST_TMPDIR/anchor" ]
	grep -q '^sallyport_audit_anchor_timestamp_seconds{anchor="2:command"} [0-9]' "$BATS_TEST_TMPDIR/sallyport-audit.prom"
}

# Another account, which can read everything and write nothing of the gateway's: with what the unit gives it.
@test "the signer's unit lets its account read a database in use" {
	[ "$(id -u)" = 0 ] || skip "not root"
	local unit=debian/sallyport.sallyport-checkpoint.service bits capability
	capability=$(sed -n 's/^AmbientCapabilities=CAP_//p' "$unit" | tr '[:upper:]' '[:lower:]')
	bits=$(sed -n 's/^SecureBits=//p' "$unit" | tr - _)
	sp_serve alice
	chmod 700 "$SP_DIR/data"
	install -d -o 54321 -g 54321 "$BATS_TEST_TMPDIR/state"
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "$BATS_TEST_TMPDIR"
	signer() {
		setpriv --reuid 54321 --regid 54321 --clear-groups --inh-caps "+$capability" --ambient-caps "+$capability" ${bits:+--securebits "+$bits"} \
			"$SP_BIN/sallyport" checkpoint --state "$BATS_TEST_TMPDIR/state" "$@"
	}
	size() { sed -n 2p "$BATS_TEST_TMPDIR/state/checkpoint"; }
	signer --init test.example/audit
	run -0 signer --config "$SP_CONFIG"
	local with
	with=$(size)
	# Stopped: its last entry is signed, though this account could not make the files that a reader of the database needs.
	sp_stop "$SP_GATEWAY_PID"
	[ -e "$SP_DIR/data/sallyport.db-wal" ] && [ ! -s "$SP_DIR/data/sallyport.db-wal" ] # nothing that could be taken for another database's
	run -0 signer --config "$SP_CONFIG"
	[ "$(size)" -gt "$with" ]
	with=$(size)
	run -0 signer --config "$SP_CONFIG"
	[ "$(size)" = "$with" ]
	# A command of the gateway's account, and one that only reads, leave it so.
	"$SP_BIN/sallyport" token add --owner bob --config "$SP_CONFIG" >/dev/null
	"$SP_BIN/sallyport" log --config "$SP_CONFIG" >/dev/null
	run -0 signer --config "$SP_CONFIG"
	[ "$(size)" -gt "$with" ]
	sp_start_gateway
	with=$(size)
	run -0 signer --config "$SP_CONFIG"
	[ "$(size)" -gt "$with" ]
	# Killed, it leaves its log where it was.
	sp_stop "$SP_GATEWAY_PID" KILL
	run -0 signer --config "$SP_CONFIG"
}

# In a mount namespace: what they change of /etc and /var/lib is gone with it. The parts that debhelper adds are tried in the machine.
@test "the packages' scripts keep what is the operator's" {
	[ "$(id -u)" = 0 ] || skip "needs root to mount"
	cat >"$BATS_TEST_TMPDIR/script" <<-'END'
		set -eux
		work=$1
		mount -t tmpfs tmpfs "$work"
		for folder in /etc /var/lib; do
			mkdir -p "$work$folder/upper" "$work$folder/work"
			mount -t overlay overlay -o "lowerdir=$folder,upperdir=$work$folder/upper,workdir=$work$folder/work" "$folder"
		done
		getent group sallyport >/dev/null || groupadd --system sallyport
		rm -rf /etc/sallyport /var/lib/sallyport
		mkdir -p /etc/sallyport /var/lib/sallyport /etc/nginx/sites-available /etc/nginx/sites-enabled
		echo '{}' >/etc/sallyport/sallyport.conf
		touch /etc/sallyport/site.env /etc/nginx/sites-available/sallyport.conf /etc/nginx/sites-enabled/other.conf /var/lib/sallyport/sallyport.db
		ln -s ../sites-available/sallyport.conf /etc/nginx/sites-enabled/sallyport.conf
		everything() { ls -l /etc/sallyport /etc/nginx/sites-available /etc/nginx/sites-enabled /var/lib/sallyport; }
		sh debian/sallyport.postinst configure '' | grep -q 'sallyport setup --host NAME'
		[ "$(stat -c '%a %G' /etc/sallyport/sallyport.conf)" = '640 sallyport' ]
		# An upgrade says nothing, and leaves all as it was; so does what a failed one calls.
		before=$(everything)
		[ -z "$(sh debian/sallyport.postinst configure 0.1.0 2>/dev/null)" ]
		for act in upgrade failed-upgrade abort-install abort-upgrade; do sh debian/sallyport.postrm $act 0.1.0; done
		[ "$(everything)" = "$before" ]
		# Who gave the configuration another mode keeps it.
		chmod 600 /etc/sallyport/sallyport.conf
		dpkg-statoverride --add root root 600 /etc/sallyport/sallyport.conf
		sh debian/sallyport.postinst configure 0.1.0
		[ "$(stat -c %a /etc/sallyport/sallyport.conf)" = 600 ]
		sh debian/sallyport.postrm remove
		[ ! -L /etc/nginx/sites-enabled/sallyport.conf ]
		ls /etc/sallyport/sallyport.conf /etc/sallyport/site.env /etc/nginx/sites-available/sallyport.conf /var/lib/sallyport/sallyport.db
		sh debian/sallyport.postrm purge | grep -q '/var/lib/sallyport (the record) is kept'
		[ ! -e /etc/sallyport/site.env ] && [ ! -e /etc/nginx/sites-available/sallyport.conf ]
		ls /var/lib/sallyport/sallyport.db /etc/nginx/sites-enabled/other.conf
	END
	mkdir "$BATS_TEST_TMPDIR/work"
	run unshare -m bash "$BATS_TEST_TMPDIR/script" "$BATS_TEST_TMPDIR/work"
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "the shipped configuration connects jailer to gateway" {
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

# -------- the page -------------------------------------------------------------------------------------------------

@test "every block of commands on the operator's page is typed by a test" {
	local name count=0
	while read -r name; do
		[ "$name" != - ] || { echo "a block of commands without <!-- tested: NAME --> before it" && false; }
		grep -qE "(types|sp_page|page) $name( |\$|\))" tests/e2e/*.bats || { echo "no test types the block '$name'" && false; }
		count=$((count + 1))
	done < <(awk '{ sub(/^ +/, "") } $0 == "```sh" { print mark } { mark = $0 ~ /^<!-- tested: [a-z]+ -->$/ ? $3 : "-" }' docs/operator.md)
	[ "$count" -ge 16 ]
}

@test "the packages that the page names for more languages and libraries are those of make deps RUNNERS=all" {
	local line package count=0
	while read -r line; do
		for package in $(eval "echo ${line#apt-get install }"); do
			grep -q " $package$" .packages || { echo "$package" && false; }
			count=$((count + 1))
		done
	done < <(sp_page java && sp_page libraries)
	[ "$count" -gt 10 ]
}

# A symptom in quotation marks is what a program says.
@test "every message that the page's table of symptoms quotes is one of ours" {
	local message count=0
	while read -r message; do
		grep -rqF -- "$message" cgi cli jail lib nginx || { echo "nobody says '$message'" && false; }
		count=$((count + 1))
	done < <(awk '/^## 12/ { on = 1 } /^## 13/ { on = 0 } on && /^\|/ { split($0, cell, "|"); print cell[2] }' docs/operator.md | grep -oE '"[^"]+"' | tr -d '"' | sed 's/ (process N).*//')
	[ "$count" -ge 3 ]
}
