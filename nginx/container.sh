#!/bin/sh
# The process 1 of a container that serves Sallyport (docs/operator.md, "In a container"): jailer, gateway and nginx, without a service
# manager. It ends when one of them does, or when it is asked to; whoever started the container starts it again.
#
#   LISTEN                      where nginx listens; default 8080. Plain HTTP: TLS ends outside
#   SALLYPORT_PUBLIC_BASE_URL   the address that clients use; default http://127.0.0.1:8080
#   SALLYPORT_…                 every other member of the configuration (sallyport.conf(5))
#
# /var/lib/sallyport holds the record: mount a volume there. The first token: podman exec NAME runuser -u sallyport -- sallyport token add …
set -eu

data=/var/lib/sallyport run=/run/sallyport front=/run/sallyport-nginx config=/etc/sallyport/sallyport.conf
parts=$(dirname "$(readlink -f "$0")") # locations.conf stands beside this file, or, installed, in nginx/
[ -e "$parts/locations.conf" ] || parts=$parts/nginx
: "${SALLYPORT_PUBLIC_BASE_URL:=http://127.0.0.1:8080}"
export SALLYPORT_PUBLIC_BASE_URL SALLYPORT_DATA_DIR=$data SALLYPORT_GATEWAY_SOCKET=$run/gateway.sock \
	SALLYPORT_GATEWAY_ACCEL_PREFIX=/_blobs/ SALLYPORT_JAILER_SOCKET=/run/sallyport-jailer/jailer.sock SALLYPORT_JAILER_ALLOWED_USERS=sallyport
[ -e $config ] || config=

# Container managers mount the container's cgroups for reading only; the jailer makes its own below them.
awk '$3 == "cgroup" || $3 == "cgroup2" { print $2 }' /proc/mounts | while read -r mounted; do
	mount -o remount,rw,bind "$mounted" || echo "container: $mounted stays read-only: the container needs the capability SYS_ADMIN" >&2
done

getent passwd sallyport >/dev/null || useradd --system --home-dir $data --shell /usr/sbin/nologin sallyport
mkdir -p $data $run /run/sallyport-jailer $front/sallyport
# Without the capability FOWNER the mode comes first, and a volume keeps what it has.
for folder in $data $run; do
	[ "$(stat -c %U "$folder")" = sallyport ] || { chmod 2750 "$folder" && chown sallyport:www-data "$folder"; }
done
cat >$front/nginx.conf <<END
user www-data;
daemon off;
pid $front/nginx.pid;
error_log stderr warn;
events {}
http {
	access_log off;
	upstream sallyport { server unix:$run/gateway.sock; }
	server {
		listen ${LISTEN:-8080};
		set \$sallyport_blobs $data/blobs;
		set \$sallyport_hsts "";
		include sallyport/locations.conf;
	}
}
END
# The includes of locations.conf are relative to the configuration.
cp "$parts/locations.conf" "$parts/fastcgi.conf" $front/sallyport/

pids=
stop() {
	trap - TERM INT
	# The gateway lets runs end, then the jailer may go.
	for pid in $pids; do kill "$pid" 2>/dev/null || true; wait "$pid" || true; done
	exit "${1:-0}"
}
trap 'stop 0' TERM INT
sallyport-jailer ${config:+--config $config} &
jailer=$!
# Its own group may read the package's configuration.
setpriv --reuid sallyport --regid www-data --groups "$(id -g sallyport)" -- sallyport-gateway ${config:+--config $config} &
gateway=$!
nginx -e stderr -c $front/nginx.conf &
nginx=$!
pids="$nginx $gateway $jailer"
while kill -0 $jailer 2>/dev/null && kill -0 $gateway 2>/dev/null && kill -0 $nginx 2>/dev/null; do
	sleep 1 &
	wait $! # so that a signal is answered at once
done
echo "container: one of jailer, gateway and nginx ended" >&2
stop 1
