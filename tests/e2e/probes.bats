#!/usr/bin/env bats
# The escape probes in every mode (modes.bash): as the tests run them, with the host looked at, and as `sallyport selftest` does. The table of
# docs/probes.md is made of what they say (tests/probe/table.sh); UPDATE=1 writes it there.
#
# Takes over a minute: 149 attacks in six modes, some of which go on until a limit of time or memory stops them.

bats_require_minimum_version 1.5.0

load modes

names() {
	{ "$TESTS/jail_probe" --list | sed 's/ | .*//' && sed -snE '1s,^[#/]+ ([A-Z][0-9]{2}[a-z]?) \| .*,\1,p' "$TESTS"/probes/*; } | LC_ALL=C sort
}

# For selftest: a probe that comes to its end does, however busy the machine is.
patient_config() {
	echo '{"jailer":{"weaker_limits":'"$([ "$(id -u)" = 0 ] && echo false || echo true)"'},"limits":{"wall_seconds":120}}' >"$DIR/config.json"
}

# probes NAME: in the mode that is prepared; what they say goes to a file for the table.
probes() {
	mkdir -p "$BATS_FILE_TMPDIR"
	: >"$BATS_FILE_TMPDIR/$1"
	chmod 0666 "$BATS_FILE_TMPDIR/$1"
	chmod 0755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "$(dirname "$BATS_FILE_TMPDIR")"
	export TEST_PROBE_RESULTS=$BATS_FILE_TMPDIR/$1
	local suite
	for suite in ${SUITES:-test_jail_probe test_jail_attacks}; do
		run as_user "$TESTS/$suite"
		not_passed
		[ "$status" -eq 0 ]
	done
}

@test "probes, rootless: a range of ids of its own, a delegated cgroup" {
	need_root
	command -v newuidmap >/dev/null || skip "newuidmap is not installed (uidmap)"
	delegate
	export RANGE="sptest:3000000:65536"
	probes rootless
}

@test "probes, single id: no range, a delegated cgroup" {
	need_root
	delegate
	export AS_GROUPS=--groups=4,61240 # such an account cannot take them from its guests
	probes single
}

# live_probes NAME: as probes, in live sandboxes.
live_probes() {
	export TEST_PROBE_LIVE=1 SUITES=test_jail_probe
	delegate
	delegate_freezer
	probes "$1"
	[ -s "$BATS_FILE_TMPDIR/$1" ]
}

@test "probes, live sandboxes, rootless" {
	need_root
	command -v newuidmap >/dev/null || skip "newuidmap is not installed (uidmap)"
	export RANGE="sptest:3000000:65536"
	live_probes rootless-live
}

@test "probes, live sandboxes, single id" {
	need_root
	export AS_GROUPS=--groups=4,61240
	live_probes single-live
}

@test "probes, weaker limits: no cgroup at all" {
	need_root
	export AS_GROUPS=--groups=4,61240
	export TEST_CONFIG_JAILER='"weaker_limits":true'
	probes weaker
}

@test "probes, live sandboxes: frozen when the run has ended, interpreters that stay" {
	need_root
	mkdir -p "$BATS_FILE_TMPDIR"
	TEST_PROBE_LIVE=1 TEST_PROBE_RESULTS=$BATS_FILE_TMPDIR/live run "$TESTS/test_jail_probe"
	not_passed
	[ "$status" -eq 0 ]
}

@test "selftest: every probe holds, here as in our tests" {
	patient_config
	run --separate-stderr "$BIN/sallyport" selftest --config "$DIR/config.json" --no-live --json
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$(jq '.held and (.probes | length >= 146) and all(.probes[]; .result != "BROKEN")' <<<"$output")" = true ]
	[ "$(jq -r '.probes[].name' <<<"$output")" = "$(names)" ]
	mkdir -p "$BATS_FILE_TMPDIR"
	jq -r '.probes[] | .name + " " + .result' <<<"$output" >"$BATS_FILE_TMPDIR/root"
}

@test "the table of probes in docs/probes.md is what they said" {
	need_root
	run "$ROOT/tests/probe/table.sh" "$TESTS" "$BATS_FILE_TMPDIR"
	[ "$status" -eq 0 ]
	echo "$output" >"$DIR/table"
	if [ "${UPDATE:-}" ]; then
		sed -i -e '/^<!-- probes -->$/,/^<!-- \/probes -->$/{//!d}' -e "/^<!-- probes -->\$/r $DIR/table" "$ROOT/docs/probes.md"
	fi
	diff <(sed -n '/^<!-- probes -->$/,/^<!-- \/probes -->$/{//!p}' "$ROOT/docs/probes.md") "$DIR/table"
}

@test "selftest names the probe that does not hold" {
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
		--list) printf "X01 | holds | \nX02 | leaks | \nX03 | ends | ends=RE:3\n" ;;
		X01) echo held ;;
		X03) exit 3 ;;
		*) echo "BROKEN: open /etc/shadow worked"; exit 1 ;;
		esac
	EOF
	run "$DIR/bin/sallyport" selftest --config "$DIR/config.json" --no-live
	[ "$status" -eq 1 ]
	[[ $output == *"held   X01   holds"*"BROKEN X02   leaks"*"open /etc/shadow worked"*"held   X03   ends"*"2 held, 1 broken" ]]
	sed -i 's/ends=RE:3/ends=XY/' "$DIR/libexec/sallyport/jail_probe"
	run "$DIR/bin/sallyport" selftest --config "$DIR/config.json"
	[ "$status" -ne 0 ]
	[[ $output == *"probe X03: unknown term ends with value XY"* ]]
}

@test "beside the peers: the same probes, who holds what" {
	[ "$(id -u)" = 0 ] || skip "the peers' account is made by root"
	command -v bwrap >/dev/null || skip "bubblewrap is not installed"
	UPDATE='' run "$ROOT/tests/probe/peers.sh" "$BIN/.." '^(F05|K03|N01|X08)$'
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"| probe | tries | Sallyport | bubblewrap "* ]]
	[[ $output == *"| F05 | leave the root | held | held |"* ]]
	[[ $output == *"| K03 | io_uring | held | io_uring_setup worked |"* ]]
	[[ $output == *"| | **held, of 4** | 4 | 3 |"* ]]
}

@test "selftest with names: only those" {
	patient_config
	run "$BIN/sallyport" selftest --config "$DIR/config.json" --no-live K03 N0
	[ "$status" -eq 0 ]
	[[ $output == *"held   K03   io_uring"*"held   N01 "*" held, 0 broken" ]]
	[[ $output != *"K02"* && $output != *"live"* ]]
	run -2 "$BIN/sallyport" selftest --config "$DIR/config.json" --live --no-live K03
	[[ $output == *"--live and --no-live leave nothing to try" ]]
	run "$BIN/sallyport" selftest --config "$DIR/config.json" Z
	[ "$status" -ne 0 ]
	[[ $output == *"no probe has a name that begins with Z" ]]
}

# X01 looks for what another one left.
@test "selftest: in live sandboxes, too, where the jailer can freeze" {
	patient_config
	run --separate-stderr "$BIN/sallyport" selftest --config "$DIR/config.json" --json K03 P05a X01
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$(jq '.held and all(.probes[]; .result == "held")' <<<"$output")" = true ]
	if [ "$(jq .live <<<"$output")" = true ]; then
		[ "$(jq -r '.probes[] | "\(.name) \(.live)"' <<<"$output" | xargs)" = "K03 false P05a false X01 false K03 true P05a true X01 true" ]
		run -0 "$BIN/sallyport" selftest --config "$DIR/config.json" K03
		[[ $output == *"held   K03 "*"in live sandboxes:"*"held   K03 "*"2 held, 0 broken" ]]
	else
		[ "$(id -u)" != 0 ]
	fi
	run -0 --separate-stderr "$BIN/sallyport" selftest --config "$DIR/config.json" --json --live K03 || [ "$(id -u)" != 0 ]
	[ "$(jq -c '[.probes[].live]' <<<"$output")" = "[true]" ]
}

@test "selftest: a jailer that keeps no live sandboxes is said" {
	need_root
	echo '{"jailer":{"weaker_limits":true}}' >"$DIR/config.json"
	chmod 0755 "$DIR"
	chmod 0644 "$DIR/config.json"
	user=(setpriv --reuid=61234 --regid=61234 --clear-groups env -i PATH="$PATH" "$BIN/sallyport" selftest --config "$DIR/config.json")
	run -0 "${user[@]}" K03
	[[ $output == *"held   K03 "*"1 held, 0 broken"*"keeps no live sandboxes, because it cannot freeze them (sallyport doctor): not tried there" ]]
	run -8 "${user[@]}" --live K03
	[[ $output == *"keeps no live sandboxes"* ]]
}
