# modes.bash - what jail.bats and probes.bats share: a jailer in every mode that is not the one that the runner of the tests has, namely
# rootless with a range of ids, with a single id, without a cgroup. They need root to prepare (a delegated cgroup, an account that exists only in
# a mount namespace), and are skipped without.
# shellcheck shell=bash disable=SC2034,SC2154 # for who loads it; `output` is from bats

setup() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	BIN=${SP_BIN:-$ROOT/${B:-build}/bin}
	TESTS=$BIN/../tests
	JAILER=$BIN/sallyport-jailer
	DIR=$(mktemp -d /tmp/sp-jail-XXXXXX)
	chmod 0755 "$DIR"
	GROUP=sp-test-$$
	TEST_UID=61234
	# Live sandboxes are frozen by cgroup v2, which may be mounted beside v1.
	FREEZER=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
}

# What a suite of cmocka said (in `output`) without what passed: of 149 probes, the one that did not hold.
not_passed() {
	echo "$output" | grep -av -e '^\[ RUN' -e ' OK \]' -e '^ok ' | head -n 40 || true
}

# A group and those in it: whoever was killed in there may not be quite gone.
remove_group() {
	local end=$((SECONDS + 120))
	until [ ! -d "$1" ] || find "$1" -depth -type d -exec rmdir {} + 2>/dev/null; do
		[ "$SECONDS" -lt "$end" ] || return 1
		read -r -t 0.02 <> <(:) || true
	done
}

teardown() {
	local controller
	[ ! -e "$DIR/pids" ] || xargs kill -KILL <"$DIR/pids" 2>/dev/null || true
	for controller in memory pids cpu cpuacct; do
		remove_group "/sys/fs/cgroup/$controller/$GROUP"
	done
	remove_group "${FREEZER:-/nowhere}/$GROUP"
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

# A part of the v2 hierarchy, too, without any controller: for live sandboxes.
delegate_freezer() {
	[ -n "$FREEZER" ] || skip "no cgroup2 is mounted beside v1: nothing can be frozen"
	mkdir "$FREEZER/$GROUP"
	chown "$TEST_UID" "$FREEZER/$GROUP" "$FREEZER/$GROUP/cgroup.procs"
}

# as_user PROGRAM…: in the delegated cgroup (if there is one), as an account that exists only in a mount namespace of its own. $RANGE: its
# lines of /etc/subuid and /etc/subgid.
as_user() {
	sed "/^sptest:/d; \$a sptest:x:$TEST_UID:$TEST_UID::/tmp:/bin/sh" /etc/passwd >"$DIR/passwd"
	echo "${RANGE:-}" >"$DIR/subid"
	# shellcheck disable=SC2016 # expanded by the inner shell
	GROUP=$GROUP DIR=$DIR TEST_UID=$TEST_UID FREEZER=$FREEZER unshare -m bash -c '
		set -e
		for file in subuid subgid; do mount --bind "$DIR/subid" /etc/$file; done
		mount --bind "$DIR/passwd" /etc/passwd
		for controller in memory pids cpu cpuacct; do
			[ ! -d "/sys/fs/cgroup/$controller/$GROUP" ] || echo $$ >"/sys/fs/cgroup/$controller/$GROUP/cgroup.procs"
		done
		[ ! -d "${FREEZER:-/nowhere}/$GROUP" ] || echo $$ >"$FREEZER/$GROUP/cgroup.procs"
		exec setpriv --reuid=$TEST_UID --regid=$TEST_UID "${AS_GROUPS:---clear-groups}" env -i PATH="$PATH" TEST_CONFIG="$TEST_CONFIG" \
			TEST_CONFIG_JAILER="$TEST_CONFIG_JAILER" TEST_PROBE_RESULTS="${TEST_PROBE_RESULTS:-}" \
			TEST_PROBE_LIVE="${TEST_PROBE_LIVE:-}" "$@"' bash "$@" 3>&-
}
