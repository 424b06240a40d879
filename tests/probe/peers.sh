#!/usr/bin/env bash
# The comparable probes beside the peers: bubblewrap, nsjail and isolate where they are installed, each with the flags that its own documents
# recommend for code that is not trusted. Prints a table for docs/probes.md: who holds what, and what worked where it did not.
#
#   tests/probe/peers.sh BUILD_FOLDER [PATTERN]     PATTERN: only probes whose names match it (an extended regular expression)
#   UPDATE=1 tests/probe/peers.sh BUILD_FOLDER      puts the table into docs/probes.md instead of printing it
#
# Comparable are the verbs that need no limit and no file to come out: a limit that a tool does not have could hurt the machine. All of them
# start under the same conditions: SECRET in the environment, descriptor 9 open on a file of the host. Peers run as an unprivileged account
# (isolate needs root for itself). A peer that does not start is named, not judged.
set -euo pipefail
B=$(realpath "$1") pattern=${2:-.}
PEER_UID=61235
ONE_SECONDS=10 # one of them stops its init, and with it itself
probe=$B/tests/jail_probe
work=$(mktemp -d /tmp/sp-peers-XXXXXX)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
install -m 755 "$probe" "$work/probe"
export SECRET=tells-everything
exec 9</etc/hostname

unprivileged() {
	if [ "$(id -u)" -eq 0 ]; then setpriv --reuid=$PEER_UID --regid=$PEER_UID --clear-groups "$@"; else "$@"; fi
}

run_bwrap() {
	unprivileged bwrap --unshare-all --unshare-user --disable-userns --die-with-parent --new-session --clearenv --cap-drop ALL \
		--uid 1000 --gid 1000 --hostname jail --setenv PATH /usr/bin:/bin \
		--ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev \
		--size 67108864 --tmpfs /tmp --size 67108864 --tmpfs /data --dir /code --dir /home --ro-bind "$work/probe" /data/probe \
		--chdir /data /usr/bin/env -u PWD /data/probe "$@"
}

run_nsjail() {
	unprivileged nsjail --mode o --really_quiet --user 1000 --group 1000 --hostname jail --cwd /data --rlimit_nofile 1024 \
		--bindmount_ro /usr --symlink usr/bin:/bin --symlink usr/lib:/lib --symlink usr/lib64:/lib64 \
		--bindmount /dev/null --bindmount_ro /dev/zero --bindmount_ro /dev/full --bindmount_ro /dev/random --bindmount_ro /dev/urandom \
		--tmpfsmount /tmp --tmpfsmount /data --bindmount_ro "$work/probe:/data/probe" -- /usr/bin/env -u PWD /data/probe "$@"
}

run_isolate() {
	local box status=0
	box=$(isolate --init) || return
	install -m 755 "$work/probe" "$box/box/probe"
	isolate --processes=16 --silent --run -- /usr/bin/env -u PWD ./probe "$@" || status=$?
	isolate --cleanup
	return $status
}

# The probes that a tool without limits can be given.
comparable() {
	"$probe" --list | awk -F ' [|] ' -v pattern="$pattern" '$1 ~ pattern && ($3 == "" || $3 == "heavy=1" || $3 == "single=weaker") && $1 !~ /^(R|O)0/ { print $1 " | " $2 }' |
		LC_ALL=C sort
}

# judge PEER NAME: "held", or what worked. Refused with another error than ours is refused.
judge() {
	local output worked status=0
	output=$(timeout "$ONE_SECONDS" "$0" "$B" --one "$1" "$2" 2>&1) || status=$?
	worked=$(grep -a '^BROKEN: ' <<<"$output" | grep -av ' gave "' | head -1 || true)
	if [ "$status" -eq 0 ] && [ "${output##*$'\n'}" = held ] || { [ -z "$worked" ] && [[ $output == *' gave "'* ]]; }; then
		echo held
	elif [ "$worked" ]; then
		echo "$worked" | tr -cd '[:print:]' | sed -e 's/^BROKEN: //' -e 's/|/\\|/g' -e 's/SECRET=.*/SECRET=…/' | cut -c1-70
	else
		echo "ended with $status"
	fi
}

if [ "$pattern" = --one ]; then
	"run_$3" "$4"
	exit
fi

if [ "${UPDATE:-}" ]; then
	UPDATE='' "$0" "$B" "$pattern" >"$work/table"
	sed -i -e '/^<!-- peers -->$/,/^<!-- \/peers -->$/{//!d}' -e "/^<!-- peers -->\$/r $work/table" "$(dirname "$0")/../../docs/probes.md"
	exit
fi

peers=() notes=()
for peer in bwrap nsjail isolate; do
	if ! command -v "$peer" >/dev/null; then
		notes+=("$peer is not installed here.")
	elif ! reason=$("run_$peer" --list 2>&1 >/dev/null); then
		notes+=("$peer does not start here: $(tail -1 <<<"$reason").")
	else
		peers+=("$peer")
	fi
done
command -v docker >/dev/null && docker info >/dev/null 2>&1 || notes+=("docker is not installed, or its daemon does not run here.")

mapfile -t names < <(comparable | cut -d ' ' -f 1)
"$B/bin/sallyport" selftest --no-live --json "${names[@]}" >"$work/ours"
declare -A held=()
printf '| probe | tries | Sallyport |'
for peer in "${peers[@]}"; do printf ' %s |' "$("$peer" --version 2>/dev/null | head -1)"; done
printf '\n|---|---|---|'
for peer in "${peers[@]}"; do printf -- '---|'; done
echo
n=0
while IFS='|' read -r name what; do
	name=${name% } what=${what# }
	n=$((n + 1))
	ours=$(jq -r --arg name "$name" '.probes[] | select(.name == $name) | .result' "$work/ours")
	[ "$ours" != held ] || held[sallyport]=$((${held[sallyport]:-0} + 1))
	printf '| %s | %s | %s |' "$name" "$what" "$ours"
	for peer in "${peers[@]}"; do
		result=$(judge "$peer" "$name")
		[ "$result" != held ] || held[$peer]=$((${held[$peer]:-0} + 1))
		printf ' %s |' "$result"
	done
	echo
done < <(comparable)
printf '| | **held, of %d** | %d |' "$n" "${held[sallyport]:-0}"
for peer in "${peers[@]}"; do printf ' %d |' "${held[$peer]:-0}"; done
printf '\n\n%s\n' "${notes[*]:-}"
