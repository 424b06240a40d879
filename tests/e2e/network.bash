# network.bash - what the tests of the network share: an "internet" of this machine's own. Nothing leaves the machine.
#
#   here (host)        [ inside: the jailer, its relay, PostgreSQL, tinyproxy ] ---veth--- [ outside: network_servers.py, "the internet" ]
#                        198.51.100.2, 93.184.215.2                                          198.51.100.1, 93.184.215.14
# shellcheck shell=bash disable=SC2016,SC2034,SC2154 # for awk; for who loads it; `output` is from bats

PUBLIC=93.184.215.14
OWN=93.184.215.2

setup_file() {
	[ "$(id -u)" = 0 ] || skip "makes network namespaces: needs root"
	command -v ip >/dev/null || skip "no ip"
	export DIR=$BATS_FILE_TMPDIR
	chmod 0755 "$DIR"
	unset SALLYPORT_CONFIG
	world >&3 2>&1 || { cat "$DIR/world.log" >&3; return 1; }
}

teardown_file() {
	local pid folder
	for pid in $(tac "$DIR/pids" 2>/dev/null); do sp_stop "$pid"; done
	while read -r folder; do rm -rf "$folder"; done < <(cat "$DIR/folders" 2>/dev/null)
}

setup() {
	[ "$(id -u)" = 0 ] || skip "makes network namespaces: needs root"
	cd "$BATS_TEST_TMPDIR" || return
	: >"$DIR/queries"
}

# start LOG COMMAND…: in the background, ended by teardown_file; sets $PID. The command is a program: a function would be a shell around it.
start() {
	local log=$1
	shift
	"$@" >"$log" 2>&1 3>&- &
	PID=$!
	echo "$PID" >>"$DIR/pids"
}

inside() {
	nsenter -t "$INSIDE" -n -m --wd="$PWD" -- "$@"
}

# The same with `inside`.
start_inside() {
	local log=$1
	shift
	start "$log" nsenter -t "$INSIDE" -n -m --wd="$PWD" -- "$@"
}

moved() { # PID: is it in namespaces of its own, which unshare has made private before it starts the program?
	[ "$(cat "/proc/$1/comm")" = sleep ] && [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}

listens() { # PATH: in the jailer's network namespace
	nsenter -t "$INSIDE" -n awk -v path="$1" '$4 == "00010000" && $8 == path { found = 1 } END { exit !found }' /proc/net/unix
}

certificates() {
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$DIR/ca.key" -out "$DIR/ca.pem" -days 30 -subj "/CN=test CA" \
		-addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
	openssl req -newkey rsa:2048 -nodes -keyout "$DIR/key.pem" -out "$DIR/request.pem" -subj "/CN=pub.example"
	printf 'subjectAltName=DNS:pub.example,DNS:*.wild.example,DNS:db.internal\nextendedKeyUsage=serverAuth\n' >"$DIR/extensions"
	openssl x509 -req -in "$DIR/request.pem" -CA "$DIR/ca.pem" -CAkey "$DIR/ca.key" -CAcreateserial -days 30 -out "$DIR/cert.pem" \
		-extfile "$DIR/extensions"
}

world() {
	start "$DIR/world.log" unshare --net --mount sleep infinity
	export INSIDE=$PID
	start "$DIR/world.log" unshare --net sleep infinity
	export OUTSIDE=$PID
	sp_until "" moved "$INSIDE" && sp_until "" moved "$OUTSIDE" || return
	certificates >>"$DIR/world.log" 2>&1 || return
	{
		ip link add spin netns "$INSIDE" type veth peer name spout netns "$OUTSIDE" &&
			nsenter -t "$INSIDE" -n sh -c "ip link set lo up && ip link set spin up && ip addr add 198.51.100.2/24 dev spin &&
				ip addr add $OWN/24 dev spin && ip route add default via 198.51.100.1" &&
			nsenter -t "$OUTSIDE" -n sh -c "ip link set lo up && ip link set spout up && ip addr add 198.51.100.1/24 dev spout &&
				ip addr add $PUBLIC/24 dev spout && ip route add default via 198.51.100.2"
	} >>"$DIR/world.log" 2>&1 || return
	# Asked once, and patiently: the log of what was asked for is compared, and one name has another answer at the second time.
	printf 'nameserver 198.51.100.1\noptions timeout:30 attempts:2\n' >"$DIR/resolv.conf"
	echo "hosts: files dns" >"$DIR/nsswitch.conf"
	inside sh -c "mount --bind $DIR/resolv.conf /etc/resolv.conf && mount --bind $DIR/nsswitch.conf /etc/nsswitch.conf" || return
	start "$DIR/servers.log" nsenter -t "$OUTSIDE" -n /usr/bin/python3 "$BATS_TEST_DIRNAME/network_servers.py" "$PUBLIC" 198.51.100.1 "$OWN" "$DIR"
	sp_until "$PID" grep -q ready "$DIR/servers.log"
}

# config NAME ENTRIES [MORE]: a configuration for a private jailer; more members of network
config() {
	cat >"$1" <<-EOF2
		{"jailer": {"runners_dir": "$SP_ROOT/jail/runners", "modules_dir": "$(dirname "$(realpath "$SP_ROOT/jail/runners/npm/node_modules")")"},
		 "network": {"allow": [$2] ${3:+, $3}}}
	EOF2
}

ALLOW='"pub.example:80", "pub.example:443", "pub.example:444", "*.wild.example:80", "*.wild.example:443", "*.wild.example:444", "93.184.215.14:8080", "pub.example:81", "pub.example:82",
	"*.wild.example:82"'

# net LANGUAGE [OPTION…]: runs the program on standard input with network and $CONFIG
net() {
	local language=$1
	shift
	cat >program
	[ -e config ] || config config "$ALLOW"
	inside "$SP_BIN/sallyport" run --config config --network -l "$language" "$@" program
}

denied() { # the refusals of a --json result, one a line
	jq -r '.network.denied[] | "\(.host):\(.port) \(.reason)"' <<<"$output"
}
