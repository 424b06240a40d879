#!/usr/bin/env bash
# What `make run` starts: jailer, gateway and nginx on http://127.0.0.1:PORT, supervised in the foreground until Ctrl-C or SIGTERM.
#
#   nginx/dev.sh [--bin FOLDER] [--state FOLDER] [--since SECONDS] PORT
#                                                            (PORT 0: a free one, remembered in the state folder; SECONDS of the epoch:
#                                                            when `make run` was typed, so that it can say how long it took)
#   nginx/dev.sh --free PORT                                 only whether the port can be had: before a build that takes minutes
#
# The state folder holds everything that a start makes: configuration and token (made on first use, yours to edit afterwards), the
# database, sockets, logs. It is build/run/PORT; started as root from a checkout that an unprivileged account cannot reach, it is
# /var/lib/sallyport-dev/PORT, and the programs are copied there. A lock on it keeps a second supervisor out; two folders share nothing.
#
# Started as root, nothing that serves stays root: gateway and nginx (its master too) run as www-data from their first instruction, the
# jailer is started as root because it needs a cgroup and a range of user ids, takes both and drops root by itself. Started by a user,
# everything runs as that user; where the jailer then finds no cgroup that it may use, it is started with weaker limits, and that is said.
#
# A child that dies is started again, at once if it had lived for a while, else after a pause that doubles. Before the first "ready" a death is
# the end: its last words are shown. Every child is a session of its own, so that Ctrl-C reaches only this script, which stops them in
# order: nginx, gateway, jailer. The gateway waits for running programs; after STOP_PATIENCE seconds the jailer is stopped first, which
# ends them. When this script is killed, the kernel signals the children (PDEATHSIG).
set -euo pipefail
cd "$(dirname "$0")/.."
readonly HERE=$PWD
readonly STOP_PATIENCE=4 READY_SECONDS=120 LIVED_LONG_SECONDS=10 PAUSE_MAX_SECONDS=8
readonly SOCKET_PATH_MAX=107 # sockaddr_un.sun_path
readonly ACCOUNT=www-data

BIN=$HERE/build/bin
STATE=
PORT=
SINCE=
FREE=no
declare -A pid_of=() pause_of=() due_at=() started_at=()
stopping=no
again=no
tick=

say() { printf '%s\n' "$*"; }
die() {
	printf 'make run: %s\n' "$*" >&2
	exit 1
}

parse_arguments() {
	while [ $# -gt 1 ]; do
		case $1 in
		--bin) BIN=$(realpath "$2") && shift 2 ;;
		--state) STATE=$(realpath -m "$2") && shift 2 ;;
		--since) SINCE=$2 && shift 2 ;;
		--free) FREE=yes && shift ;;
		*) die "unknown argument $1" ;;
		esac
	done
	PORT=${1:-8080}
	if ! [[ $PORT =~ ^[0-9]{1,5}$ ]] || [ "$PORT" -gt 65535 ]; then
		die "PORT=$PORT is not a port number: use 1024 to 65535, or 0 for a free one"
	fi
}

as_root() { [ "$(id -u)" -eq 0 ]; }
# The command line that runs something as the account that serves.
drop=()
set_drop() {
	if as_root; then
		getent passwd "$ACCOUNT" >/dev/null || die "the account $ACCOUNT is missing: install Debian's package base-passwd"
		drop=(setpriv --reuid "$ACCOUNT" --regid "$ACCOUNT" --clear-groups)
	fi
}

listens() { (: <>"/dev/tcp/${2:-127.0.0.1}/$1") 2>/dev/null; }
# Where localhost is ::1 first, clients come that way. Another program's listener there is none of ours.
has_ipv6() { grep -q '^0\{31\}1 ' /proc/net/if_inet6 2>/dev/null && ! listens "$PORT" ::1; }

choose_port() {
	if [ "$PORT" -eq 0 ]; then
		[ $FREE = no ] || exit 0
		[ -n "$STATE" ] || die "PORT=0 needs a state folder (--state)"
		PORT=$(cat "$STATE/port" 2>/dev/null || true)
		while [ -z "$PORT" ] || listens "$PORT"; do PORT=$((20000 + SRANDOM % 12000)); done
	fi
	if as_root && [ "$PORT" -lt 1024 ]; then
		die "port $PORT: ports below 1024 need root, which nginx does not have here: use 1024 to 65535"
	fi
	! listens "$PORT" || die "port $PORT is in use: stop what listens there, or choose another one (make run PORT=8081)"
}

choose_state() {
	if [ -z "$STATE" ]; then
		STATE=$HERE/build/run/$PORT
		if as_root && ! "${drop[@]}" test -x "$BIN/sallyport-gateway"; then
			STATE=/var/lib/sallyport-dev/$PORT
		fi
	fi
	[[ $HERE$STATE =~ ^[A-Za-z0-9._/+@,=-]+$ ]] || die "$STATE, $HERE: use paths of letters, digits and . _ / + @ , = - (they go into nginx.conf)"
	[ $((${#STATE} + 19)) -le $SOCKET_PATH_MAX ] ||
		die "the path $STATE is too long for a unix socket ($SOCKET_PATH_MAX bytes): use a checkout or a --state folder with a shorter path"
	mkdir -p "$STATE"
	exec 8>"$STATE/lock"
	flock -n 8 || die "another 'make run' uses $STATE: stop it, or choose another port"
	mkdir -p "$STATE"/{data,run,log,nginx,jailer,sallyport}
	if as_root; then
		chmod 755 "$STATE"
		chown "$ACCOUNT:$ACCOUNT" "$STATE"/{data,run,nginx}
		"${drop[@]}" test -x "$STATE/run" || die "$ACCOUNT cannot reach $STATE: use a --state folder whose parents every user may enter"
	fi
	chmod 700 "$STATE/data" "$STATE/nginx"
	keep "$STATE/port" <<<"$PORT"
	echo $$ >"$STATE/pid" # whom SIGUSR1 asks to start jailer and gateway anew (cli/upstream_add.py)
}

# The account that serves must be able to start the gateway; where the checkout is closed to it, it gets a copy.
reachable_programs() {
	[ -x "$BIN/sallyport-gateway" ] || die "$BIN/sallyport-gateway is not there: run 'make all' first"
	if as_root && ! "${drop[@]}" test -x "$BIN/sallyport-gateway"; then
		mkdir -p "$STATE/bin"
		local program
		for program in sallyport{,-gateway,-jailer}; do
			cmp -s "$BIN/$program" "$STATE/bin/$program" || install -m 755 "$BIN/$program" "$STATE/bin/"
		done
		BIN=$STATE/bin
	fi
}

# keep FILE: what comes on standard input becomes its content. One that has it already is left alone, so that a full disk keeps nobody from
# starting again; one that is written anew is whole or as it was.
keep() {
	local text
	text=$(cat)
	[ "$text" != "$(cat "$1" 2>/dev/null)" ] || return 0
	{ printf '%s\n' "$text" >"$1.new"; } 2>/dev/null || die "$1 cannot be written: make room on its disk, outside of the data folder"
	[ ! -e "$1" ] || chmod --reference="$1" "$1.new"
	mv "$1.new" "$1"
}

write_config() {
	CONFIG=$STATE/sallyport.conf
	if [ -e "$CONFIG" ]; then # a state folder that moved to another port
		sed -E "s|(\"public_base_url\": \"http://127\.0\.0\.1:)[0-9]+\"|\1$PORT\"|" "$CONFIG" | keep "$CONFIG"
		return
	fi
	local allowed='' # a user's jailer lets that user in anyway
	if as_root; then allowed="\"$ACCOUNT\""; fi
	cat >"$CONFIG.new" <<EOF
// Made by 'make run' on first use; yours to edit (man 5 sallyport.conf). Remove it to get a new one.
{
	"data_dir": "data",
	"public_base_url": "http://127.0.0.1:$PORT",
	"gateway": {
		"socket": "run/gateway.sock",
		"accel_prefix": "/_blobs/"
	},
	"jailer": {
		"socket": "jailer/jailer.sock",
		"runners_dir": "$HERE/jail/runners",
		"modules_dir": "$HERE/jail/runners/npm",
		"allowed_users": [$allowed]
	}
}
EOF
	sync "$CONFIG.new" # before it has its name: behind a power cut the file is whole or not there
	mv "$CONFIG.new" "$CONFIG"
}

write_nginx() {
	local file listen6=
	for file in locations.conf fastcgi.conf; do
		keep "$STATE/sallyport/$file" <"nginx/$file"
		chmod 644 "$STATE/sallyport/$file"
	done
	if has_ipv6; then listen6="listen [::1]:$PORT;"; fi
	sed -e "s|@STATE@|$STATE|g" -e "s|#@LISTEN6@|$listen6|" -e "s|@PORT@|$PORT|g" nginx/dev.conf.in | keep "$STATE/nginx.conf"
	NGINX=$(PATH=$PATH:/usr/sbin command -v nginx) || die "nginx is not installed: run 'make deps'"
	: >>"$STATE/log/nginx.log"
	if as_root; then chown "$ACCOUNT:$ACCOUNT" "$STATE/log/nginx.log"; fi
}

make_token() {
	(umask 077 && "${drop[@]}" "$BIN/sallyport" token add --config "$CONFIG" --owner dev --name "make run" --servers "*" | grep -o 'sp_[^ ]*' >"$STATE/token") ||
		die "could not make a token (sallyport token add --config $CONFIG)"
}

# ---- children ----

command_of() {
	case $1 in
	jailer) command=(setpriv --pdeathsig TERM "$BIN/sallyport-jailer" --config "$CONFIG") ;;
	gateway) command=("${drop[@]}" setpriv --no-new-privs --pdeathsig TERM "$BIN/sallyport-gateway" --config "$CONFIG") ;;
	nginx) command=("${drop[@]}" setpriv --no-new-privs --pdeathsig TERM "$NGINX" -e "$STATE/log/nginx.log" -c "$STATE/nginx.conf") ;;
	esac
}

start() {
	local name=$1
	local -a command
	command_of "$name"
	setsid "${command[@]}" </dev/null >>"$STATE/log/$name.log" 2>&1 8>&- &
	pid_of[$name]=$! started_at[$name]=$SECONDS
}

alive() { [ -n "${pid_of[$1]:-}" ] && kill -0 "${pid_of[$1]}" 2>/dev/null; }

# Waits until a check succeeds; the end if the child has died or the time is up.
wait_ready() {
	local name=$1
	shift
	local deadline=$((SECONDS + READY_SECONDS))
	until "$@"; do
		[ $stopping = no ] || exit 0
		alive "$name" || return 1
		[ $SECONDS -lt $deadline ] || return 1
		sleep 0.05
	done
	alive "$name"
}

start_or_die() {
	local name=$1
	start "$@"
	shift
	wait_ready "$name" "$@" && return
	printf 'make run: the %s did not start; the end of %s:\n' "$name" "$STATE/log/$name.log" >&2
	tail -n 15 "$STATE/log/$name.log" >&2
	exit 1
}

start_jailer() {
	rm -f "$STATE/jailer/jailer.sock"
	if ! as_root && [ -z "${SALLYPORT_JAILER_WEAKER_LIMITS:-}" ]; then
		start jailer
		wait_ready jailer test -S "$STATE/jailer/jailer.sock" && return
		forget jailer
		say "note: this account has no cgroup of its own, so memory, CPU and process limits are rlimits here, which are weaker"
		say "      (docs/isolation.md; the jailer's message is in $STATE/log/jailer.log)"
		export SALLYPORT_JAILER_WEAKER_LIMITS=true SALLYPORT_LIMITS_MEMORY_MB=1024 # bun does not start with 256 MiB of RLIMIT_DATA
	fi
	start_or_die jailer test -S "$STATE/jailer/jailer.sock"
}

# Status of a small MCP request through nginx, in $status; fails while nobody answers.
ask() {
	local body='{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'
	status=
	{
		exec 7<>"/dev/tcp/127.0.0.1/$PORT" || return 1
		printf 'POST /mcp HTTP/1.0\r\nHost: 127.0.0.1:%s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n' "$PORT" "$(cat "$STATE/token")" >&7
		printf 'MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: server/discover\r\nContent-Length: %s\r\n\r\n%s' "${#body}" "$body" >&7
		read -r -t 5 _ status _ <&7 || return 1
		exec 7>&-
	} 2>/dev/null
}
answers() { ask && [ "$status" != 502 ] && [ "$status" != 503 ]; }

# A child leads a process group of its own: an nginx worker, say, whose master was killed, must not keep the port.
end_group() { kill -KILL -- "-$1" 2>/dev/null || true; }

forget() {
	local pid=${pid_of[$1]:-}
	[ -n "$pid" ] || return 0
	end_group "$pid"
	wait "$pid" 2>/dev/null || true
	unset "pid_of[$1]"
}

# ---- supervision ----

announce() {
	local call='{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"conversationId":"demo","language":"python","code":"print(6*7)"}}}'
	local token
	token=$(cat "$STATE/token")
	say "url: http://127.0.0.1:$PORT/mcp"
	say "token: $token"
	say "config: $CONFIG"
	say "curl -s http://127.0.0.1:$PORT/mcp -H 'Authorization: Bearer $token' --json '$call'"
	if [ "${SALLYPORT_OAUTH_MODE:-}" = builtin ]; then
		say "sign in: clients that take no token open a page, which asks for a code: $BIN/sallyport login-code --config $CONFIG --owner dev"
	fi
	if [ -n "$SINCE" ]; then say "ready after $(($(date +%s) - SINCE)) s: packages, build and start"; fi
	say "logs: $STATE/log (Ctrl-C stops everything)"
}

# A child that died: say so, and when it is to be started again.
buried() {
	local name=$1 code=0 lived=$((SECONDS - started_at[$1])) pause=${pause_of[$1]:-0}
	wait "${pid_of[$name]}" 2>/dev/null || code=$?
	end_group "${pid_of[$name]}"
	unset "pid_of[$name]"
	if [ $lived -ge $LIVED_LONG_SECONDS ]; then pause=0; fi
	say "the $name ended (status $code) after $lived s; it is started again in $pause s (see $STATE/log/$name.log)"
	due_at[$name]=$((SECONDS + pause))
	pause_of[$name]=$((pause * 2 + 1 > PAUSE_MAX_SECONDS ? PAUSE_MAX_SECONDS : pause * 2 + 1))
}

# One turn of the loop. `wait -n` returns when any child ends, or a signal came; it can miss one that ended a moment before, so a tick of a
# second is among the children.
turn() {
	local name
	for name in jailer gateway nginx; do
		if [ -n "${pid_of[$name]:-}" ] && ! alive "$name"; then buried "$name"; fi
		if [ -z "${pid_of[$name]:-}" ] && [ $SECONDS -ge "${due_at[$name]}" ]; then start "$name"; fi
	done
	sleep 1 &
	tick=$!
	wait -n || true
}

stop_one() {
	local name=$1 deadline=$((SECONDS + STOP_PATIENCE))
	alive "$name" || return 0
	kill -TERM "${pid_of[$name]}" 2>/dev/null || true
	while alive "$name" && [ $SECONDS -lt $deadline ]; do sleep 0.05; done
	! alive "$name"
}

# The configuration was changed.
start_again() {
	again=no
	say "jailer and gateway are started anew"
	stop_one gateway || true
	stop_one jailer || forget jailer
	stop_one gateway || true
	forget gateway
	forget jailer
	rm -f "$STATE/jailer/jailer.sock" "$STATE/run/gateway.sock"
	start jailer
	wait_ready jailer test -S "$STATE/jailer/jailer.sock" || true
	start gateway
	wait_ready gateway test -S "$STATE/run/gateway.sock" || true
}

stop_all() {
	trap '' INT TERM HUP
	stop_one nginx || forget nginx
	stop_one gateway || true # still waits for programs: the jailer's end is theirs
	stop_one jailer || forget jailer
	stop_one gateway || forget gateway
	if [ -n "$tick" ]; then kill "$tick" 2>/dev/null || true; fi
	wait 2>/dev/null || true
}

main() {
	parse_arguments "$@"
	trap 'stopping=yes' INT TERM HUP
	trap 'again=yes' USR1
	set_drop
	choose_port
	[ $FREE = no ] || exit 0
	choose_state
	reachable_programs
	write_config
	write_nginx
	[ -s "$STATE/token" ] || make_token
	trap stop_all EXIT
	start_jailer
	rm -f "$STATE/run/gateway.sock"
	start_or_die gateway test -S "$STATE/run/gateway.sock"
	start_or_die nginx answers
	if [ "$status" = 401 ]; then # the database was removed
		make_token
		wait_ready nginx answers || true
	fi
	[ "$status" = 200 ] || die "the gateway answers with status $status: see $STATE/log/gateway.log"
	announce
	while [ $stopping = no ]; do
		if [ $again = yes ]; then start_again; fi
		turn
	done
	say "stopping"
}

main "$@"
