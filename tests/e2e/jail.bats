#!/usr/bin/env bats
# The jailer as a program, and the suites of the jail (test_jail, _limits, _data, _denied, _shared, _host) in every mode that is not the one that the runner of
# the tests has (modes.bash). The probes are in probes.bats.
#
# Takes over a minute: five unit suites run again in each of three modes.

bats_require_minimum_version 1.5.0

load modes

suites() {
	local suite
	for suite in test_jail test_jail_limits test_jail_data test_jail_denied test_jail_shared test_jail_host; do
		run as_user "$TESTS/$suite"
		not_passed
		[ "$status" -eq 0 ]
	done
}

# With the gauge of the host around each test (tests/unit/gauged.h).
attacks() {
	local suite
	for suite in test_jail_siege test_jail_attacks; do
		run as_user "$TESTS/$suite"
		echo "$output"
		[ "$status" -eq 0 ]
	done
}

@test "rootless: a range of ids of its own, a delegated cgroup" {
	need_root
	command -v newuidmap >/dev/null || skip "newuidmap is not installed (uidmap)"
	delegate
	export RANGE="sptest:3000000:65536"
	run as_user "$JAILER" --version
	[ "$status" -eq 0 ]
	suites
	attacks
}

@test "single id: no range, a delegated cgroup" {
	need_root
	delegate
	suites
	attacks
}

@test "weaker limits: no cgroup at all, allowed by the configuration" {
	need_root
	export TEST_CONFIG=$DIR/weaker.json TEST_CONFIG_JAILER='"weaker_limits":true'
	echo "{\"jailer\":{\"weaker_limits\":true}}" >"$TEST_CONFIG"
	suites
}

@test "weaker limits: every language runs with the memory that it has by default" {
	need_root
	local language code
	echo '{"jailer":{"weaker_limits":true,"runners_dir":"'"$ROOT/jail/runners"'"},"data_dir":"'"$DIR"'/data"}' >"$DIR/weaker.json"
	while read -r language code; do
		run as_user "$BIN/sallyport" run --config "$DIR/weaker.json" -l "$language" - <<<"${code//@/$'\n'}"
		[[ $output != *"interpreter of $language is missing"* ]] || continue
		echo "$language: $output"
		[ "$status" -eq 0 ]
		[[ $output == *42* ]]
	done <<-'END'
		bash echo 42
		python print(42)
		javascript console.log(42)
		typescript console.log(42 as number)
		c #include <stdio.h>@int main(void) { return printf("42\n") != 3; }
		cpp #include <iostream>@int main() { std::cout << 42 << std::endl; }
		go package main@import "fmt"@func main() { fmt.Println(42) }
		java class Main { public static void main(String[] a) { System.out.println(42); } }
		rust fn main() { println!("42"); }
		php <?php echo 42;
		ruby puts 42
		perl print 42;
		lua print(42)
		r cat(42)
		csharp class A { static void Main() { System.Console.WriteLine(42); } }
		sql select 42;
	END
}

@test "no cgroup and no permission for weaker limits: refused, with the remedy" {
	need_root
	echo '{"jailer":{"socket":"'"$DIR"'/socket"}}' >"$DIR/config.json"
	run as_user "$JAILER" --config "$DIR/config.json"
	[ "$status" -eq 1 ]
	[[ $output == *"no cgroup to limit memory"*"Delegate=yes"*"jailer.weaker_limits"* ]]
}

# As two containers do that have the host's cgroups, and each a /run of its own: both are instance 0.
@test "a second jailer that does not see the first's locks is refused" {
	[ "$(id -u)" = 0 ] || skip "needs root to mount a second /run"
	[ -w /sys/fs/cgroup ] || [ -w /sys/fs/cgroup/memory ] || skip "the cgroups are not ours"
	apart() { # in a process of its own
		# shellcheck disable=SC2016 # for the inner shell
		exec unshare -m sh -c 'mkdir -p /run/sallyport-jailer && mount -t tmpfs -o mode=755 none /run/sallyport-jailer && exec "$@"' sh "$@"
	}
	jq -n --arg group "$GROUP" --arg socket "$DIR/socket" '{jailer: {cgroup: $group, socket: $socket, id_base: 2013265920, id_count: 65536}}' >"$DIR/config.json"
	apart "$JAILER" --config "$DIR/config.json" >"$DIR/log" 2>&1 3>&- &
	local first=$!
	echo "$first" >"$DIR/pids"
	answers() { echo 'echo ran' | "$BIN/sallyport" run --config "$DIR/config.json" -l bash - >"$DIR/ran" 2>&1 && [ "$(cat "$DIR/ran")" = ran ]; }
	until answers; do
		kill -0 "$first" || { cat "$DIR/log"; false; }
		read -r -t 0.02 <> <(:) || true
	done
	run apart "$JAILER" --check --config "$DIR/config.json"
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $(jq -rs '.[] | select(.step == "cgroup" and (.ok | not)).what' <<<"$output") == *"another jailer, which keeps its locks in another folder"*"jailer.cgroup"* ]]
	for _ in 1 2 3 4 5; do answers; done # more than groups are made ahead
	# It is gone, and its place is free, also when it was killed.
	kill -KILL "$first"
	wait "$first" || true
	run apart "$JAILER" --check --config "$DIR/config.json"
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "the jailer's options" {
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
	run "$JAILER" --fd 3 --fd 4 --fd 5 --fd 6 --fd 7 --fd 8 --fd 9 --fd 10 --fd 11 # one more than JAIL_SHARED_MAX
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

@test "--check: the start up to the first jail, one JSON object a step" {
	need_root
	run "$JAILER" --check --fd 3
	[ "$status" -eq 2 ]
	"$JAILER" --check >"$DIR/said"
	[ "$(jq -s 'map((.step | type) + (.ok | type) + (.weaker | type) + (.what | type)) | unique | join(" ")' "$DIR/said")" = '"stringbooleanbooleanstring"' ]
	[[ $(jq -rs '.[-1].step + " " + .[-1].what' "$DIR/said") == "jailer root, cgroup v"[12] ]]
	[ "$(jq -r 'select(.step == "jail") | .ok' "$DIR/said")" = true ]
	[ "$(jq -r 'select(.runner == "bash") | .what' "$DIR/said")" = "$(/bin/bash --version | head -n 1)" ]
	# without a cgroup it goes on, to see what else is missing
	run --separate-stderr as_user "$JAILER" --check
	[ "$status" -eq 1 ]
	[ "$(jq -rs 'map(select(.ok | not) | .step + ":" + .remedy) | join(" ")' <<<"$output")" = "cgroup:cgroup jailer:jailer" ]
	[ "$(jq -r 'select(.step == "jail") | .ok' <<<"$output")" = true ]
	# what fails ends it
	echo '{"limits":{"wall_seconds":-1}}' >"$DIR/config.json"
	run --separate-stderr "$JAILER" --check --config "$DIR/config.json"
	[ "$status" -eq 1 ]
	[ "$(jq -rs 'map(.step) | join(" ")' <<<"$output")" = "kernel open files configuration jailer" ]
	[[ $(jq -r 'select(.step == "configuration") | .what' <<<"$output") == *wall_seconds* ]]
	mkdir -p "$DIR/runners"
	echo '{"name":"bash","source":"main.sh","interpreters":["/bin/none"],"run":["/bin/none"],"version":["/bin/none"],"install":"apt-get install none"}' >"$DIR/runners/bash.json"
	echo "{\"jailer\":{\"runners_dir\":\"$DIR/runners\"}}" >"$DIR/config.json"
	run --separate-stderr "$JAILER" --check --config "$DIR/config.json"
	[ "$status" -eq 1 ]
	[ "$(jq -rs 'map(select(.step == "runner" or .step == "runners") | .step + " " + .what) | join(", ")' <<<"$output")" = "runner its interpreter is missing, runners no program can be run" ]
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
	check '{"name":"x","source":"x","interpreters":["/bin/sh"],"run":["a"],"install":"i","seccomp":"all"}' \
		'seccomp: must be one of "base", "native", "python", "javascript", "go", "compiler"'
	check '{"name":"x","source":"x","interpreters":["/bin/sh"],"run":["a"],"install":"i","seccomp_compile":"base"}' 'seccomp_compile: goes with "compile"'
	check '{"name":"x","source":"x","interpreters":["/bin/sh"],"run":["a"],"install":"i","live":["a"]}' 'starter: goes with "live"'
	check '{"name":"x","source":"x","interpreters":["/bin/sh"],"run":["a"],"install":"i","show_run":["a"]}' 'starter: goes with "show_run"'
	check '{"name":"x","source":"x","interpreters":["/bin/sh"],"run":["a"],"install":"i","starter":"sql.py","live":["a"],"compile":["a"]}' 'live: does not go with a compile step'
	echo '{"name":"x","source":"x","interpreters":["/bin/sh"],"run":["a"],"install":"i","aliases":["x"]}' >"$DIR/runners/bad.json"
	cp "$DIR/runners/bad.json" "$DIR/runners/twice.json"
	run "$JAILER" --config "$DIR/config.json"
	[ "$status" -eq 1 ]
	[[ $output == *"two runners are called x"* ]]
}
