#!/usr/bin/env bats
# sallyport without a stack: usage, exit codes, doctor, and that manual and completion know what the program knows.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export SALLYPORT_CONFIG= # none of this machine's
	[ "$(id -u)" = 0 ] || export SALLYPORT_JAILER_WEAKER_LIMITS=true
}

sallyport() {
	"$SP_BIN/sallyport" "$@"
}

commands() {
	sallyport help | sed -n 's/^  \([a-z-]*\) .*/\1/p'
}

@test "wrong usage is explained" {
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

@test "help: commands in groups, the most used first" {
	run -0 sallyport help
	[ "$(grep -v '^  ' <<<"$output" | sed -n '/Commands:/,$p' | sed '1d; $d' | grep .)" = "Run programs
Look at what ran
Replay and grade
Carry the record elsewhere
Operate a server" ]
	[ "$(grep -A1 -E '^(Run|Look|Replay|Carry|Operate) ' <<<"$output" | sed -n 's/^  \([a-z]*\) .*/\1/p' | xargs)" = "run log replay export doctor" ]
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

@test "man pages: each command has a correct one" {
	local command
	diff <(commands | sort) <(printf '%s\n' "$SP_ROOT"/docs/man/sallyport-*.mdoc | sed 's/.*sallyport-\(.*\)\.mdoc/\1/' | sort)
	for command in $(commands); do
		"$SP_ROOT/docs/man/page" "$SP_BIN/sallyport" "$SP_ROOT/docs/man/sallyport-$command.mdoc" >"sallyport-$command.1"
		diff <(sallyport "$command" --help | grep -oE '^  (-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u) \
			<({ printf '%s\n' --config --json --help && sed -nE 's/^\.It (Fl . , )?Fl (-[a-z-]+).*/-\2/p' "sallyport-$command.1"; } | sort -u)
		diff <(sallyport "$command" --help | sed '1,/^Exit codes:/d' | sed -nE 's/^  ([^ ]+) .*/\1/p') \
			<(sed '1,/^\.Sh EXIT STATUS/d; /^\.El/,$d' "sallyport-$command.1" | sed -n 's/^\.It //p')
	done
	"$SP_ROOT/docs/man/page" "$SP_BIN/sallyport" "$SP_ROOT/docs/man/sallyport.mdoc" >sallyport.1
	[ "$(grep -c '^\.It Xr sallyport-' sallyport.1)" = "$(commands | wc -l)" ]
	mandoc -Tlint -W warning sallyport*.1 >lint 2>&1 || cat lint
	run ! grep -v 'outdated mandoc.db' lint
}

@test "man pages: prose cannot name an option that the command does not have" {
	printf '.Pp\nSee\n.Fl -frob .\n' >sallyport-log.mdoc
	run ! "$SP_ROOT/docs/man/page" "$SP_BIN/sallyport" sallyport-log.mdoc
	[[ $output == *"sallyport-log.mdoc:3: sallyport log has no option --frob"* ]]
	printf '.Sh OPTIONS\n.It Fl -memory\nMore.\n' >sallyport-log.mdoc
	run ! "$SP_ROOT/docs/man/page" "$SP_BIN/sallyport" sallyport-log.mdoc
	[[ $output == *"has no option --memory"* ]]
}

@test "the shell completes commands and options" {
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
	[ "$(complete_words owners '')" = "list place leave" ]
	[ "$(complete_words replay --priority '')" = "idle normal" ]
	touch only-file.py
	[ "$(complete_words run only)" = only-file.py ]
}

@test "without --config: the user's file, then the machine's" {
	unset SALLYPORT_CONFIG
	export XDG_CONFIG_HOME=$PWD/own
	mkdir -p own/sallyport
	echo '{"data_dir": "none", "limits": {"pids": "many"}}' >own/sallyport/sallyport.conf
	run sallyport log
	[ "$status" -ne 0 ]
	[[ $output == *"$PWD/own/sallyport/sallyport.conf"*pids* ]]
	[ "$(id -u)" = 0 ] || skip "the second half needs root"
	rm -r own
	mkdir -p lower/sallyport
	echo '{"limits": {"pids": "some"}}' >lower/sallyport/sallyport.conf
	# shellcheck disable=SC2016 # the inner shell expands it
	run unshare -m sh -c 'mount -t overlay -o "lowerdir=$PWD/lower:/etc" none /etc && exec "$0" log' "$SP_BIN/sallyport"
	[ "$status" -ne 0 ]
	[[ $output == *"/etc/sallyport/sallyport.conf"*pids* ]]
}

@test "a record that is missing is explained" {
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
	[[ $output == *"there is no configuration "*"missing.json"* ]]
	SALLYPORT_FROB=1 run -2 sallyport log --config config.json
	[[ $output == *SALLYPORT_FROB* ]]
}

# Of each command that takes a path or an id, one that is not there. `run` has exit codes of its own, see there; a filter that selects nothing is fine, and a shard that is not there is 5.
@test "what does not exist is exit code 3 in every command" {
	local id=01932c00-0000-7000-8000-000000000000 line words wrong=0 command
	mkdir data
	echo '{"mcpServers": {}}' >upstream.json
	chmod 600 upstream.json
	echo '{"data_dir": "data", "upstream": {"file": "upstream.json"}}' >config.json
	sallyport token add --config config.json --owner ann >text
	sallyport checkpoint --state signer --init test.example/audit >vkey
	sallyport checkpoint --config config.json --state signer >signed
	cat >table <<-END
		audit certificate --owner ann
		audit certificate --checkpoint nowhere
		backup --signer nowhere backup
		cancel $id
		checkpoint --state nowhere
		checkpoint --state signer --key nowhere
		diff $id
		drain --end --owner bob
		export --output bundle $id
		export --output bundle --all --checkpoint nowhere
		files --owner ann --conversation chat report.csv
		forget --yes --owner bob
		forget --yes --owner ann --conversation chat
		forget --yes --execution $id
		grade nowhere
		grade --samples nowhere -
		grade --checkers nowhere -
		import nowhere
		import --move nowhere
		normalisers --normalisers nowhere
		promote --suite suite $id
		promote --suite suite --all --normalisers nowhere
		prove --output proof $id
		prove --tiles tiles --checkpoint nowhere
		replay $id
		replay --all --old-runners nowhere
		replay --all --live --upstream nowhere
		replay --all --normalisers nowhere
		restore nowhere
		restore --key nowhere backup
		restore --erasures nowhere backup
		restore --before-upgrade
		selftest no-such-probe
		show $id
		show --owner ann --conversation chat
		snippet promote chart --owner ann
		snippet remove chart
		stdio --workspace nowhere
		tag good $id
		token revoke $id
		undo $id
		client block nowhere
		client remove nowhere
		upstream add --paste nowhere
		upstream login nowhere
		upstream logout nowhere
		upstream tools nowhere
		upstream accept nowhere
		upstream call nowhere tool
		verify nowhere
		verify --signer nowhere
		verify --anchor nowhere
		verify --certificate nowhere
	END
	mkdir backup
	while read -r line; do
		read -ra words <<<"$line"
		run sallyport "${words[@]}" --config config.json </dev/null
		[ "$status" = 3 ] && [[ $output == "sallyport: "* && $(wc -l <<<"$output") = 1 ]] || { wrong=1 && echo "$line: $status: $output"; }
	done <table
	[ "$wrong" = 0 ]
	# The others take neither; but each reads a configuration.
	run comm -23 <(commands | sort) <(cut -d' ' -f1 table | sort -u)
	[ "$(xargs <<<"$output")" = "doctor gc help log login-code owners ps run setup stats version worker" ]
	for command in doctor gc log ps stats verify "owners list" "client list" "login-code --owner ann"; do
		# shellcheck disable=SC2086 # a verb is a word of its own
		run -3 sallyport $command --config nowhere.json
	done
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

@test "five first token commands at once make one database for the account that owns the folder" {
	local i pids=() owner
	owner=$(id -u)
	[ "$owner" != 0 ] || owner=61234
	mkdir data
	[ "$(id -u)" != 0 ] || chown "$owner" data
	echo '{"data_dir": "data"}' >config.json
	for i in 1 2 3 4 5; do
		sallyport token add --config config.json --owner "o$i" >"token.$i" &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i"; done
	run -0 sallyport token list --config config.json --json
	[ "$(jq -r .owner <<<"$output" | sort | xargs)" = "o1 o2 o3 o4 o5" ]
	[ -z "$(find data ! -user "$owner")" ]
}

@test "doctor: every line that is not ok has a remedy" {
	run --separate-stderr sallyport doctor --json
	[ "$status" -le 1 ]
	local report=$output
	[ "$(jq '[.checks[] | select(.state != "ok" and .remedy == null)] | length' <<<"$report")" = 0 ]
	[ "$(jq '[.checks[] | select(.state == "missing")] | length > 0' <<<"$report")" = "$([ "$status" = 1 ] && echo true || echo false)" ]
	[ "$(jq -r '[.checks[].state] | unique - ["ok","weaker","missing"] | length' <<<"$report")" = 0 ]
	local name
	for name in kernel "open files" configuration "runner files" "guest ids" cgroup swap "live sandboxes" "egress relay" "id-map helper" "root mounts" overlays "user namespace" \
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
@test "doctor names the machine's virtualization" {
	local wanted='no virtual one' vendor
	vendor=$(cat /sys/class/dmi/id/sys_vendor 2>/dev/null) || vendor='a micro-VM, without firmware'
	if grep -q '^flags.* hypervisor' /proc/cpuinfo || [ -e /proc/device-tree/hypervisor ]; then wanted="a virtual machine: $vendor:*"; fi
	# shellcheck disable=SC2053 # a pattern
	[[ $(sallyport doctor --json | jq -r '.checks[] | select(.name == "machine").found') == $wanted ]]
}

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
		grep -qE "^	\\{\"$key\",|\"$key\"\\)" "$SP_ROOT/cli/doctor_jailer.c" || { echo "no remedy for $key" && return 1; }
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

# What an error tells people to do is done. Nothing in it may cost data, take isolation from the whole host, or end what is not ours; what
# frees space may not point into the data folder.
@test "no remedy in any text does harm" {
	local texts=$BATS_TEST_TMPDIR/texts
	# Strings that are continued on the next line become one.
	find "$SP_ROOT"/{lib,cgi,cli,jail,nginx} -name node_modules -prune -o \( -name '*.[ch]' -o -name '*.sh' \) -exec cat {} + | tr '\n' '\f' | sed 's/"[[:space:]]*"//g' | tr '\f' '\n' |
		grep -oE '"([^"\\]|\\.)*"' >"$texts"
	[ "$(wc -l <"$texts")" -gt 5000 ]
	run ! grep -nE '(^|[ (])(rm -|rm /|shred |dd if=|mkfs|kill -9|kill -KILL|pkill|killall|chmod (-R|[0-7]*[2367]\b)|chown -R|setenforce|modules_disabled=|--privileged|seccomp=unconfined|git (clean|reset))' "$texts"
	# Space is made beside the record, not in it.
	run ! grep -nE '(make room|free some|remove files)' <(grep -vE 'outside of|sallyport forget|make room in it' "$texts")
	# A range of ids that is somebody else's would join two users.
	run ! grep -nE 'add-sub[ug]ids [0-9]' "$texts"
	# What weakens the whole host is never the first thing to try.
	run ! grep -nE '^"(sysctl kernel\.(unprivileged|apparmor)|swapoff -)' "$texts"
}
