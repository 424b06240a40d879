#!/usr/bin/env bats
# The jail on cgroup v2, in a virtual machine (tests/vm/run): each test here is a program that ran in there, in one of the ways in which
# a jailer can come to its cgroup. All of them ran in one boot; the guest's own TAP says more and is shown on failure.
#
# Takes over a minute: the processors are emulated (docs/hacking.md has the cost of each mode).

setup_file() {
	cd "$BATS_TEST_DIRNAME/../.." || return
	export CONSOLE=$BATS_FILE_TMPDIR/console NO_MACHINE CODE
	NO_MACHINE=$(tests/vm/run --missing)
	# The guest is to run what will run; with sanitizers it does not fit.
	[[ $(realpath "${B:-build}") != */san* ]] || NO_MACHINE="a build without sanitizers"
	[ -z "$NO_MACHINE" ] || return 0
	CODE=0
	tests/vm/run "${B:-build}" >"$CONSOLE" 2>"$CONSOLE.err" || CODE=$?
	[ "$CODE" -ne 77 ] || NO_MACHINE=$(tail -1 "$CONSOLE.err")
}

# This bats cannot skip in setup_file.
setup() {
	[ -z "$NO_MACHINE" ] || skip "no virtual machine, missing: ${NO_MACHINE//$'\n'/, }"
}

# Lanes that take minutes; the same tests run on the host, too, where live sandboxes freeze by v2 as well.
long() {
	[ "${TEST_VM:-}" = all ] || skip "takes minutes: TEST_VM=all tries it"
}

# ran MODE PROGRAM: the guest's plan is fulfilled, nothing failed, and it ended with 0.
ran() {
	sed -n "/^# section $1 $2\$/,/^# exit/p" "$CONSOLE" >"$BATS_TEST_TMPDIR/section"
	awk '
		/^1\.\./ { planned = substr($1, 4) }
		/^not ok .*# SKIP/ { skipped++; next }
		/^ok [0-9]/ { passed++ } # doctor says "ok", too
		/^not ok / { failed++ }
		/^# exit 0,/ { ended = 1 }
		END {
			printf "%d passed, %d failed, %d skipped of %d\n", passed, failed, skipped, planned
			exit !(ended && planned && !failed && passed && passed + skipped == planned)
		}' "$BATS_TEST_TMPDIR/section" && return
	cat "$BATS_TEST_TMPDIR/section"
	grep -q "^# end" "$CONSOLE" || { echo "the guest did not come to its end:" && tail -20 "$CONSOLE" && tail -20 "$CONSOLE.err"; }
	return 1
}

@test "v2 as root: what the cgroup counts and limits" { ran root test_jail_cgroup; }
@test "v2 as root: reading from a disk" { ran disk test_jail_cgroup; }
@test "v2 as root: verdicts and files" { ran root test_jail; }
@test "v2 as root: limits" { ran root test_jail_limits; }
@test "v2 as root: nothing is left on the host" { ran root test_jail_host; }
@test "v2 as root: the gauge of the host shows what it is there for" { ran root test_jail_gauge; }
@test "v2 as root: tables and memory that the host has once" { ran root test_jail_probe; }
@test "v2, Linux 6.1: Landlock" { ran root test_landlock && grep -q "^ok .* writable" "$BATS_TEST_TMPDIR/section"; }
@test "files of unknown formats: nothing is started with the package's settings" { ran modules sysctl; }
@test "a core_pattern that is a program: it is not started for guests" { long && ran cores test_jail_probe && ran cores core_pattern; }
@test "v2 as root: the probes of resources and processes" { long && ran probes test_jail_probe; }
@test "v2 as root: nothing grows from jail to jail" { long && ran probes test_jail_host; }
@test "v2 as root: the clock is set meanwhile" { long && ran probes test_jail_attacks; }
@test "v2 in a container's cgroup namespace" { long && ran container test_jail_cgroup; }
@test "v2 in a cgroup that a user shares with others: they move to a leaf" { long && ran shared test_jail_cgroup; }
@test "v2 in that leaf, the next time" { long && ran shared-again test_jail_cgroup; }
@test "v2 in a unit of its own, as systemd delegates it" { ran service test_jail_cgroup; }
@test "v2 as a user with a delegated subtree" { ran delegated test_jail_cgroup; }
@test "v2 as a user with a delegated subtree: the probes of memory" { ran delegated test_jail_probe; }
@test "v2 as a user with a single id: what the cgroup counts and limits" { ran single test_jail_cgroup; }
@test "v2 as a user with a single id: a live sandbox, frozen between its runs" { ran single test_jail_live; }
@test "v2 as a user with a single id: frozen guests end with their jail and with the jailer" { ran single test_jail_live_host; }
@test "v2 as root: doctor and selftest" { long && ran operator sallyport; }
@test "v2 as root: programs in joined jails see the same" { long && ran warm test_jail_warm; }
@test "v2 as a user with a delegated subtree: programs get input and arguments in joined jails" { long && ran warm-user test_jail_warm; }
@test "v2 as a user with a single id: no jail is joined" { long && ran warm-single test_jail_warm; }
@test "v2 as root: live sandboxes" { long && ran live test_jail_live; }
@test "v2 as root: how live sandboxes end" { long && ran live test_jail_live_end; }
@test "v2 as root: frozen guests seen from the host" { long && ran live test_jail_live_host; }
@test "v2 as a user with a delegated subtree: live sandboxes" { long && ran live-user test_jail_live; }

# What runs in there without a test here has not failed either, and every lane came to its end.
@test "v2: the machine itself has nothing to complain of" {
	cat "$CONSOLE.err"
	[ "$CODE" -eq 0 ]
}
