#!/usr/bin/env bats
# The suites of the jail and the probes with jailer.warm: each program waits for a jail that has been joined (TEST_WARM), and runs in the
# interpreter that waits there ("on"), or in a new one in its place ("exec").
#
# Takes over a minute: five suites run twice, the probes once.

bats_require_minimum_version 1.5.0

load modes

suites() { # MODE
	local suite
	export TEST_WARM=1 TEST_CONFIG_JAILER="\"weaker_limits\":false,\"warm\":\"$1\""
	for suite in test_jail test_jail_data test_jail_denied test_jail_tools test_jail_live; do
		run "$TESTS/$suite"
		echo "$output"
		[ "$status" -eq 0 ]
	done
}

@test "the suites of the jail, in interpreters that waited" {
	need_root
	suites on
}

@test "the suites of the jail, with a new interpreter in the place of one that waited" {
	need_root
	suites exec
}

# X09d tells that two runs have different hash seeds: copies of one template have the same (docs/isolation.md).
@test "the probes hold in interpreters that waited, but for the hash seed" {
	need_root
	local -a names
	export TEST_WARM=1 TEST_CONFIG_JAILER='"weaker_limits":false,"warm":"on"'
	mapfile -t names < <({ "$TESTS/jail_probe" --list | sed 's/ | .*//' && sed -snE '1s,^[#/]+ ([A-Z][0-9]{2}[a-z]?) \| .*,\1,p' "$TESTS"/probes/*; } | grep -vx X09d)
	[ "${#names[@]}" -ge 140 ]
	run "$TESTS/test_jail_probe" "${names[@]}"
	echo "$output"
	[ "$status" -eq 0 ]
}
