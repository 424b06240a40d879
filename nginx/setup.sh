#!/bin/sh
# `sallyport setup`: from an installed package to the first call. May be called again: what exists is kept.
#
#   sallyport setup [--host NAME] [--owner NAME]
#
# It writes the address into /etc/sallyport/site.env, makes a self-signed certificate where there is none, adds the site to nginx, restarts the
# gateway, makes a token, and prints address, token and a first call.
set -eu

usage() {
	cat <<-'END'
		Usage: sallyport setup [--host NAME] [--owner NAME]

		Prepares an installed server for its first call: address, certificate (self-signed where there is none),
		nginx site, token. Call it as root; again with another --host to change the address. Files that exist are kept.

		  --host NAME    name or IP address that clients use; default: this machine's
		  --owner NAME   owner of the first token; default: admin

		Example:
		  sallyport setup --host sallyport.example.org --owner alice

		Exit codes: 0; 1 when a step failed, which is named; 2 usage.
	END
}
die() {
	echo "sallyport: setup: $1" >&2
	exit "${2:-1}"
}

host='' owner=admin
while [ $# -gt 0 ]; do
	case $1 in
	--host) [ $# -ge 2 ] || die "--host needs a name" 2; host=$2; shift ;;
	--host=*) host=${1#*=} ;;
	--owner) [ $# -ge 2 ] || die "--owner needs a name" 2; owner=$2; shift ;;
	--owner=*) owner=${1#*=} ;;
	-h | --help) usage; exit 0 ;;
	*) die "unknown argument '$1': see sallyport setup --help" 2 ;;
	esac
	shift
done
[ -n "$host" ] || host=$(hostname -f 2>/dev/null || hostname)
case $host in
*[!A-Za-z0-9.:-]* | '' | -*) die "'$host' is not a host name or an IP address" 2 ;;
esac
[ "$(id -u)" = 0 ] || die "it writes to /etc and restarts services: call it as root"
config=/etc/sallyport/sallyport.conf tls=/etc/ssl/sallyport site=/etc/nginx/sites-available/sallyport.conf
share=$(dirname "$(readlink -f "$0")")
[ -e "$config" ] || die "$config is missing: install the package sallyport"
command -v nginx >/dev/null || die "nginx is missing: apt-get install nginx-light"

case $host in
*:*) name=IP:$host url=https://[$host] ;;
*[!0-9.]*) name=DNS:$host url=https://$host ;;
*) name=IP:$host url=https://$host ;;
esac
echo "SALLYPORT_PUBLIC_BASE_URL=$url" >/etc/sallyport/site.env

certificate="$tls/fullchain.pem, which was there"
if [ ! -e $tls/fullchain.pem ]; then
	mkdir -p $tls
	(umask 077 && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 825 -subj "/CN=$host" \
		-addext "subjectAltName=$name" -keyout $tls/privkey.pem -out $tls/fullchain.pem 2>/dev/null) || die "openssl cannot make a certificate in $tls"
	chmod 644 $tls/fullchain.pem
	certificate="$tls/fullchain.pem, self-signed: replace it and privkey.pem by your authority's"
fi
[ -e $site ] || sed "s/sallyport\.example\.org/$host/" "$share/nginx/sallyport.conf" >$site
ln -sf ../sites-available/sallyport.conf /etc/nginx/sites-enabled/sallyport.conf
nginx -t -q || die "nginx refuses its configuration (see above): correct $site"
systemctl enable -q nginx
systemctl reload-or-restart nginx || die "nginx does not start: journalctl -u nginx"
systemctl restart sallyport-gateway || die "the gateway does not start: journalctl -u sallyport-gateway"
token=$(cd / && runuser -u sallyport -- sallyport token add --owner "$owner" --name setup --config $config) || die "no token was made (see above)"

cat <<END
Address:      $url/mcp
Token:        $token   (of the owner "$owner"; it is shown this once)
Certificate:  $certificate
First call:
curl --cacert $tls/fullchain.pem $url/mcp -H 'Authorization: Bearer $token' -H 'Content-Type: application/json' \\
  -H 'Accept: application/json, text/event-stream' \\
  -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"language":"python","conversationId":"first","code":"print(6*7)"}}}'
END
