#!/usr/bin/env bats
# sallyport without a stack: usage, exit codes, doctor, and that manual and completion know what the program knows.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	unset SALLYPORT_CONFIG
	[ "$(id -u)" = 0 ] || export SALLYPORT_JAILER_WEAKER_LIMITS=true
}

sallyport() {
	"$SP_BIN/sallyport" "$@"
}

commands() {
	sallyport help | sed -n 's/^  \([a-z]*\) .*/\1/p'
}

@test "usage: no command, unknown command, help, version" {
	run -2 sallyport
	[[ $output == *"Commands:"* ]]
	run -2 sallyport frob
	[[ $output == "sallyport: unknown command 'frob': see sallyport help" ]]
	run -2 sallyport help frob
	run -0 sallyport --help
	[[ $output == *replay* ]]
	run -0 sallyport --version
	[[ $output =~ ^sallyport\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
	[ "$(sallyport version --json | jq -r .version)" = "${output#sallyport }" ]
	[ "$(sallyport help run)" = "$(sallyport run --help)" ]
}

@test "every command explains itself with an example and exit codes" {
	local command
	for command in $(commands); do
		run -0 sallyport "$command" --help
		[[ $output == "Usage: sallyport $command"*Options:*--config*--json*Example*"Exit codes:"* ]]
		run -2 sallyport "$command" --no-such-option
		[[ $output == "sallyport: unknown option '--no-such-option': see sallyport $command --help" ]]
	done
	[ "$(commands | wc -l)" -ge 8 ]
}

@test "sallyport(1) describes every command and option, and no others" {
	local page=$SP_ROOT/docs/sallyport.1 command
	for command in $(commands); do
		grep -q "^\.Cm $command" "$page"
	done
	diff <(for command in $(commands); do sallyport "$command" --help; done | grep -oE '^  (-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u) \
		<(grep -oE '^\.It Fl .*' "$page" | grep -oE 'Fl -[a-z-]+' | sed 's/^Fl /-/' | sort -u)
}

@test "completion offers commands, options, verbs" {
	# shellcheck source=docs/sallyport.bash-completion
	source "$SP_ROOT/docs/sallyport.bash-completion"
	complete_words() {
		COMP_WORDS=("$SP_BIN/sallyport" "$@")
		COMP_CWORD=$#
		_sallyport
		echo "${COMPREPLY[*]}"
	}
	[ "$(complete_words rep)" = replay ]
	[ "$(complete_words run --out)" = --output-dir ]
	[ "$(complete_words log --verdict T)" = TO ]
	[ "$(complete_words token r)" = revoke ]
	touch only-file.py
	[ "$(complete_words run only)" = only-file.py ]
}

@test "the record: no data folder, no database, wrong configuration" {
	run -2 sallyport log
	[[ $output == "sallyport: there is no data_dir: name a configuration with --config or SALLYPORT_CONFIG" ]]
	mkdir data
	echo '{"data_dir": "data"}' >config.json
	run -3 sallyport log --config config.json
	[[ $output == sallyport:* ]]
	echo '{"data_dri": "data"}' >wrong.json
	run -2 sallyport log --config wrong.json
	[[ $output == *data_dri* ]]
	run ! sallyport log --config missing.json
	[[ $output == *"missing.json"*"No such file"* ]]
	SALLYPORT_FROB=1 run -2 sallyport log --config config.json
	[[ $output == *SALLYPORT_FROB* ]]
}

@test "the first token makes the database, which then can be read" {
	mkdir data
	echo '{"data_dir": "data"}' >config.json
	run -0 sallyport token add --config config.json --owner alice --name "my laptop"
	[[ $output == sp_alice_* ]]
	run -0 sallyport token list --config config.json
	[[ $output == *alice*never*valid*"my laptop"* ]]
	run -2 sallyport token add --config config.json --owner 'Al ice'
	[[ $output == sallyport:*owner* ]]
	run -0 sallyport log --config config.json --json
	[ -z "$output" ]
}

@test "root does not make somebody else's database" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	mkdir data
	chown nobody data
	echo '{"data_dir": "data"}' >config.json
	run -4 sallyport token add --config config.json --owner alice
	[[ $output == *"belongs to user"*"sudo -u"* ]]
	[ -z "$(ls data)" ]
}

@test "doctor: every line is ok, weaker or missing; what is not ok has a remedy" {
	run --separate-stderr sallyport doctor --json
	[ "$status" -le 1 ]
	local report=$output
	[ "$(jq '[.checks[] | select(.state != "ok" and .remedy == null)] | length' <<<"$report")" = 0 ]
	[ "$(jq '[.checks[] | select(.state == "missing")] | length > 0' <<<"$report")" = "$([ "$status" = 1 ] && echo true || echo false)" ]
	[ "$(jq -r '[.checks[].state] | unique - ["ok","weaker","missing"] | length' <<<"$report")" = 0 ]
	local name
	for name in kernel "open files" configuration "runner files" "guest ids" cgroup swap "live sandboxes" "egress relay" porter "root mounts" overlays "user namespace" \
		seccomp landlock jail jailer core_pattern legacy_tiocsti yama container nginx "data folder" network; do
		[ "$(jq --arg name "$name" '[.checks[] | select(.name == $name)] | length' <<<"$report")" = 1 ]
	done
	[ "$(jq -r '.checks[] | select(.name == "jail" or .name == "user namespace") | .state' <<<"$report" | sort -u)" = ok ]
	# What the kernel starts as root for a guest: on one before 6.14, if it may.
	local release expected=ok
	release=$(uname -r)
	if [[ $release =~ ^([0-5]|6\.([0-9]|1[0-3]))\. && $(</proc/sys/kernel/modprobe) && $(</proc/sys/kernel/modules_disabled) != 1 ]]; then
		expected=weaker
	fi
	[ "$(jq -r '.checks[] | select(.name == "modprobe") | .state' <<<"$report")" = "$expected" ]
	[[ $(sallyport doctor) =~ [0-9]+\ ok,\ [0-9]+\ weaker,\ [0-9]+\ missing$ ]]
}

# What is mounted there may come from the jailer's unit.
@test "doctor says that a mount below /usr takes a jail's own inodes" {
	[ "$(id -u)" = 0 ] || skip "needs root to mount"
	local said
	mkdir below
	said=$(unshare -m bash -c 'mount --bind below /usr/share && exec "$@"' bash "$SP_BIN/sallyport" doctor --json) || true
	[ "$(jq -r '.checks[] | select(.name == "overlays") | .state + ": " + .found' <<<"$said")" = "weaker: not of /usr: something is mounted below it" ]
	[ "$(sallyport doctor --json | jq -r '.checks[] | select(.name == "overlays") | .state')" = ok ]
}

@test "doctor names each language with the version that a program would see" {
	run sallyport doctor --json
	local python
	python=$(/usr/bin/python3 --version)
	[ "$(jq -r --arg found "python: $python" '.checks[] | select(.found == $found) | .state' <<<"$output")" = ok ]
	[ "$(jq '[.checks[] | select(.name == "runner")] | length' <<<"$output")" = "$(find "$SP_ROOT/jail/runners" -maxdepth 1 -name '*.json' | wc -l)" ]
}

@test "a private jailer that cannot start says why" {
	[ "$(id -u)" = 0 ] || skip "needs root to become nobody"
	echo 'echo ran' >program.sh
	chmod 0755 "$BATS_TEST_TMPDIR"
	run -125 --separate-stderr setpriv --reuid=nobody --regid=nogroup --clear-groups "$SP_BIN/sallyport" run -l bash - <program.sh
	[ -z "$output" ]
	# shellcheck disable=SC2154 # bats sets it
	[[ $stderr == *"no cgroup to limit memory"*weaker_limits*"sallyport: the private jailer could not start: sallyport doctor says"* ]]
}

@test "doctor sees what is really missing" {
	# no jailer at the place that the configuration names
	echo '{"jailer": {"socket": "none.sock"}}' >config.json
	run -1 --separate-stderr sallyport doctor --config config.json --json
	[ "$(jq -r '.checks[] | select(.name == "jailer") | .state' <<<"$output")" = missing ]
	[ "$(jq -r .result <<<"$output")" = missing ]
	# no user namespaces: forbidden for a user by the limit of an outer one
	[ "$(id -u)" = 0 ] || skip "the rest needs root"
	export SALLYPORT_JAILER_WEAKER_LIMITS=true
	# shellcheck disable=SC2016
	run --separate-stderr unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$0" doctor --json' "$SP_BIN/sallyport"
	[ "$status" = 1 ]
	[ "$(jq -r '.checks[] | select(.name == "user namespace") | .state + " " + .remedy' <<<"$output")" = "missing sysctl user.max_user_namespaces=65536" ]
	[ "$(jq '[.checks[] | select(.name == "jail" or .name == "runner")] | length' <<<"$output")" = 0 ]
	[ "$(jq -r '.checks[] | select(.name == "jailer") | .state + " " + .found' <<<"$output")" = "missing private, cannot start" ]
	# one level, and no second one for the jails
	mkfifo made mapped
	chmod 0755 "$BATS_TEST_TMPDIR"
	# shellcheck disable=SC2016
	unshare --user --keep-caps sh -c 'echo >made && read -r _ <mapped && echo 1 >/proc/sys/user/max_user_namespaces &&
		exec setpriv --reuid=nobody --regid=nogroup --clear-groups --inh-caps=-all "$0" doctor --json' "$SP_BIN/sallyport" >report &
	read -r _ <made
	echo 0 0 65536 >/proc/$!/uid_map
	echo 0 0 65536 >/proc/$!/gid_map
	echo >mapped
	wait $! || true
	output=$(<report)
	[ "$(jq -r '.checks[] | select(.name == "user namespace") | .state' <<<"$output")" = ok ]
	[ "$(jq -r '.checks[] | select(.name == "jail") | .state + " " + .remedy' <<<"$output")" = "missing sysctl user.max_user_namespaces=65536" ]
}

@test "doctor says what sallyport-jailer --check says, with remedies" {
	"$SP_BIN/sallyport-jailer" --check >said || true
	sallyport doctor --json >report || true
	local step
	while read -r step; do
		[ "$(jq -r --arg step "$step" '.checks[] | select(.name == $step) | .state' report)" = \
			"$(jq -r --arg step "$step" 'select(.step == $step) | if .ok | not then "missing" elif .weaker then "weaker" else "ok" end' said)" ]
	done < <(jq -r 'select(.step != "runner") | .step' said)
	# every key of jail/ has a text in cli/
	local key
	while read -r key; do
		grep -qE "^	\\{\"$key\", |\"$key\"\\)" "$SP_ROOT/cli/doctor_jailer.c" || { echo "no remedy for $key" && return 1; }
	done < <(sed -nE 's/^\t\[START_[A-Z_]+\] = \{"([a-z ]+)".*/\1/p' "$SP_ROOT/jail/start.c" && printf '%s\n' jail jailer runners subids swap freezer landlock landlock-new)
}

@test "doctor resolves what network.allow names" {
	export SALLYPORT_NETWORK_ALLOW="localhost:80,localhost:81 private,*.pub.example:443,8.8.8.8:443"
	run --separate-stderr sallyport doctor --json
	[ "$(jq -r '.checks[] | select(.name == "network") | .state, .found' <<<"$output" | tr '\n' ' ')" = "weaker localhost:80 has no public address " ]
	SALLYPORT_NETWORK_ALLOW="localhost:81 private" run --separate-stderr sallyport doctor --json
	[ "$(jq -r '.checks[] | select(.name == "network") | .state, .found' <<<"$output" | tr '\n' ' ')" = "ok 1 entries in network.allow " ]
}

@test "doctor as a user without privileges: cgroup and ids are judged for that user" {
	[ "$(id -u)" = 0 ] || skip "needs root to become nobody"
	run --separate-stderr setpriv --reuid=nobody --regid=nogroup --clear-groups "$SP_BIN/sallyport" doctor --json
	[ "$status" -le 1 ]
	[ "$(jq -r '.checks[] | select(.name == "guest ids") | .state' <<<"$output")" = weaker ]
	[ "$(jq -r '.checks[] | select(.name == "cgroup") | .state' <<<"$output")" = missing ]
}

@test "log refuses a limit beyond its bound" {
	run -2 sallyport log --limit 1000001
	[[ $output == *"not a whole number from 1 to 1000000"* ]]
	run -2 sallyport log --limit 0
}
