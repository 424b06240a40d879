#!/usr/bin/env bats
# The jailer as a program, and the suites of the jail (test_jail, _data, _denied, _host, _probe) in every mode that is not the one that
# the runner of the tests has: rootless with a range of ids, with a single id, without a cgroup. They need root to prepare (a delegated
# cgroup, an account that exists only in a mount namespace), and are skipped without.

bats_require_minimum_version 1.5.0

setup() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	BIN=${SP_BIN:-$ROOT/${B:-build}/bin}
	TESTS=$BIN/../tests
	JAILER=$BIN/sallyport-jailer
	DIR=$(mktemp -d /tmp/sp-jail-XXXXXX)
	chmod 0755 "$DIR"
	GROUP=sp-test-$$
	TEST_UID=61234
}

teardown() {
	local controller
	for controller in memory pids cpu cpuacct; do
		[ ! -d "/sys/fs/cgroup/$controller/$GROUP" ] || find "/sys/fs/cgroup/$controller/$GROUP" -depth -type d -exec rmdir {} +
	done
	rm -rf "$DIR"
}

need_root() {
	[ "$(id -u)" = 0 ] || skip "needs root to prepare another account's cgroup"
	[ -d /sys/fs/cgroup/memory ] || skip "delegates cgroup v1, which is not mounted here"
	setpriv --reuid="$TEST_UID" --regid="$TEST_UID" --clear-groups test -r "$ROOT/jail/runners/python.json" -a -x "$JAILER" ||
		skip "this checkout cannot be reached by another account"
}

delegate() {
	local controller
	for controller in memory pids cpu cpuacct; do
		mkdir "/sys/fs/cgroup/$controller/$GROUP"
		chown "$TEST_UID" "/sys/fs/cgroup/$controller/$GROUP" "/sys/fs/cgroup/$controller/$GROUP/"{cgroup.procs,tasks}
	done
}

# as_user PROGRAM…: in the delegated cgroup (if there is one), as an account that exists only in a mount namespace of its own. $RANGE: its
# lines of /etc/subuid and /etc/subgid.
as_user() {
	sed "/^sptest:/d; \$a sptest:x:$TEST_UID:$TEST_UID::/tmp:/bin/sh" /etc/passwd >"$DIR/passwd"
	echo "${RANGE:-}" >"$DIR/subid"
	# shellcheck disable=SC2016 # expanded by the inner shell
	GROUP=$GROUP DIR=$DIR TEST_UID=$TEST_UID unshare -m bash -c '
		set -e
		for file in subuid subgid; do mount --bind "$DIR/subid" /etc/$file; done
		mount --bind "$DIR/passwd" /etc/passwd
		for controller in memory pids cpu cpuacct; do
			[ ! -d "/sys/fs/cgroup/$controller/$GROUP" ] || echo $$ >"/sys/fs/cgroup/$controller/$GROUP/cgroup.procs"
		done
		exec setpriv --reuid=$TEST_UID --regid=$TEST_UID --clear-groups env -i PATH="$PATH" TEST_CONFIG="$TEST_CONFIG" \
			TEST_CONFIG_JAILER="$TEST_CONFIG_JAILER" "$@"' bash "$@" 3>&-
}

suites() {
	local suite
	for suite in test_jail test_jail_data test_jail_denied test_jail_host test_jail_probe; do
		run as_user "$TESTS/$suite"
		echo "$output" | grep -v -e '^\[ RUN' -e ' OK \]' | head -n 40 || true
		[ "$status" -eq 0 ]
	done
}

@test "rootless: a range of ids of its own, a delegated cgroup" {
	need_root
	command -v newuidmap >/dev/null || skip "newuidmap is not installed (uidmap)"
	delegate
	RANGE="sptest:3000000:65536"
	run as_user "$JAILER" --version
	[ "$status" -eq 0 ]
	suites
}

@test "single id: no range, a delegated cgroup" {
	need_root
	delegate
	suites
}

@test "weaker limits: no cgroup at all, allowed by the configuration" {
	need_root
	export TEST_CONFIG=$DIR/weaker.json TEST_CONFIG_JAILER='"weaker_limits":true'
	echo "{\"jailer\":{\"weaker_limits\":true}}" >"$TEST_CONFIG"
	suites
}

@test "no cgroup and no permission for weaker limits: refused, with the remedy" {
	need_root
	echo '{"jailer":{"socket":"'"$DIR"'/socket"}}' >"$DIR/config.json"
	run as_user "$JAILER" --config "$DIR/config.json"
	[ "$status" -eq 1 ]
	[[ $output == *"no cgroup to limit memory"*"Delegate=yes"*"jailer.weaker_limits"* ]]
}

@test "options: help, version, and what is wrong" {
	run "$JAILER" --help
	[ "$status" -eq 0 ]
	[[ $output == *"--config PATH"*"Exit status"* ]]
	run "$JAILER" --version
	[ "$status" -eq 0 ]
	[[ $output == "sallyport-jailer "* ]]
	run "$JAILER" --dance
	[ "$status" -eq 2 ]
	run "$JAILER" --fd x
	[ "$status" -eq 2 ]
	run "$JAILER" more
	[ "$status" -eq 2 ]
	run "$JAILER" --config /nonexistent
	[ "$status" -eq 1 ]
	[[ $output == *"/nonexistent"* ]]
	echo '{}' >"$DIR/empty.json"
	run "$JAILER" --config "$DIR/empty.json"
	[ "$status" -eq 1 ]
	[[ $output == *"jailer.socket"* ]]
}

@test "selftest: every probe holds, here as in our tests" {
	echo '{"jailer":{"weaker_limits":'"$([ "$(id -u)" = 0 ] && echo false || echo true)"'}}' >"$DIR/config.json"
	run --separate-stderr "$BIN/sallyport" selftest --config "$DIR/config.json" --json
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$(jq '.held and (.probes | length >= 30) and all(.probes[]; .held)' <<<"$output")" = true ]
	[ "$(jq -r '.probes[].name' <<<"$output")" = "$("$TESTS/jail_probe" --list | cut -f 1)" ]
	run "$BIN/sallyport" selftest --config "$DIR/config.json"
	[ "$status" -eq 0 ]
	[[ $output == *"held   K02  "*" held, 0 broken" ]]
}

@test "the table of probes in docs/security.md is that of the probes" {
	run "$ROOT/tests/probe/table.sh" "$TESTS/jail_probe"
	[ "$status" -eq 0 ]
	[ "$(grep -E '^\| ([A-Z][0-9]{2}|probe) \|' "$ROOT/docs/security.md")" = "$(grep -v '^|---' <<<"$output")" ]
}

@test "selftest: what does not hold is said, and what is not there" {
	mkdir -p "$DIR/bin" "$DIR/libexec/sallyport"
	cp "$BIN/sallyport" "$DIR/bin"
	echo '{"jailer":{"program":"'"$JAILER"'","weaker_limits":'"$([ "$(id -u)" = 0 ] && echo false || echo true)"',
		"runners_dir":"'"$ROOT/jail/runners"'"}}' >"$DIR/config.json"
	run "$DIR/bin/sallyport" selftest --config "$DIR/config.json"
	[ "$status" -ne 0 ]
	[[ $output == *"the probes are not there: make install"* ]]
	cat >"$DIR/libexec/sallyport/jail_probe" <<-'EOF'
		#!/bin/bash
		case $1 in
		--list) printf "X01\tholds\nX02\tleaks\n" ;;
		X01) echo held ;;
		*) echo "BROKEN: open /etc/shadow worked"; exit 1 ;;
		esac
	EOF
	run "$DIR/bin/sallyport" selftest --config "$DIR/config.json"
	[ "$status" -eq 1 ]
	[[ $output == *"held   X01  holds"*"BROKEN X02  leaks"*"open /etc/shadow worked"*"1 held, 1 broken" ]]
}

@test "runner files that are wrong are named" {
	mkdir "$DIR/runners"
	echo "{\"jailer\":{\"socket\":\"$DIR/socket\",\"runners_dir\":\"$DIR/runners\"}}" >"$DIR/config.json"
	check() {
		echo "$1" >"$DIR/runners/bad.json"
		run "$JAILER" --config "$DIR/config.json"
		echo "$output"
		[ "$status" -eq 1 ]
		[[ $output == *"bad.json"*"$2"* ]]
	}
	check '{' 'not JSON'
	check '{"name":"x"}' 'source'
	check '{"name":"x","source":"../x","interpreters":["/bin/sh"],"run":["a"],"install":"i"}' 'source'
	check '{"name":"x","source":"x","interpreters":["sh"],"run":["a"],"install":"i"}' 'interpreters'
	check '{"name":"x","source":"x","interpreters":["/bin/sh"],"run":["a"],"install":"i","env":["A"]}' 'env'
	check '{"name":"x","source":"x","interpreters":["/bin/sh"],"run":["a"],"install":"i","more":1}' 'more'
	echo '{"name":"x","source":"x","interpreters":["/bin/sh"],"run":["a"],"install":"i","aliases":["x"]}' >"$DIR/runners/bad.json"
	cp "$DIR/runners/bad.json" "$DIR/runners/twice.json"
	run "$JAILER" --config "$DIR/config.json"
	[ "$status" -eq 1 ]
	[[ $output == *"two runners are called x"* ]]
}
