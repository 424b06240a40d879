#!/usr/bin/env bats
# The admin page of a running gateway: signing in, looking at a run, what a revoked token and a switched-off page answer, and what the audit
# log has of it. tests/unit/test_admin.c and test_html.c have the rules of sessions and of HTML, tests/admin/ the same in a browser.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	sp_setup
	export SALLYPORT_ADMIN_ENABLED=true
	sp_start_jailer
	sp_start_gateway
	sp_token alice
	ADMIN=$("$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner ops --scope admin --json)
	ADMIN_ID=$(jq -r .id <<<"$ADMIN") ADMIN=$(jq -r .token <<<"$ADMIN")
}

teardown() {
	sp_teardown
}

sign_in() {
	printf 'token=%s&next=/admin/runs' "$ADMIN" |
		SP_BARE=yes sp_http POST /admin/sign-in HTTP_SEC_FETCH_SITE=same-origin CONTENT_TYPE=application/x-www-form-urlencoded
	COOKIE=$(sed -n 's/^Set-Cookie: \([^;]*\).*/\1/p' "$SP_DIR/head")
}

page() { # URI [NAME=VALUE…]
	local uri=$1
	shift
	SP_BARE=yes sp_http GET "$uri" "HTTP_COOKIE=$COOKIE" "$@" </dev/null
}

run_python() { # CODE CONVERSATION
	sp_call run_code "$(jq -nc --arg code "$1" --arg name "$2" '{conversationId: $name, language: "python", code: $code}')"
}

@test "an administrator finds and reads a run" {
	run_python 'print("<script>alert(1)</script>"); n = open("a.html", "w").write("<script>")' '"><script>x</script>'
	local id
	id=$(sp_get details.execution_id)
	page /admin/
	[ "$SP_STATUS" = 401 ]
	sign_in
	[ "$SP_STATUS" = 303 ]
	page /admin/
	[ "$SP_STATUS" = 200 ]
	grep -qF "/admin/run/$id" "$SP_DIR/body"
	page "/admin/runs?text=alert%281&owner=alice"
	grep -qF "/admin/run/$id" "$SP_DIR/body"
	page "/admin/runs?verdict=failed"
	run ! grep -qF "/admin/run/$id" "$SP_DIR/body"
	page "/admin/run/$id"
	[ "$SP_STATUS" = 200 ]
	run ! grep -qi '<script>' "$SP_DIR/body"
	grep -qF '&lt;script&gt;alert(1)&lt;/script&gt;' "$SP_DIR/body"
	grep -qF 'run.end' "$SP_DIR/body"
	grep -qF "sallyport replay $id" "$SP_DIR/body"
	page "/admin/run/$id/stdout"
	[ "$(cat "$SP_DIR/body")" = '<script>alert(1)</script>' ]
	grep -qxF 'Content-Type: application/octet-stream' "$SP_DIR/head"
	page "/admin/run/$id/file?phase=after&name=a.html"
	[ "$(cat "$SP_DIR/body")" = '<script>' ]
	grep -qxF 'Content-Type: application/octet-stream' "$SP_DIR/head"
	grep -q '^Content-Disposition: attachment; filename="a.html"' "$SP_DIR/head"
	grep -qxF "Content-Security-Policy: sandbox; default-src 'none'" "$SP_DIR/head"
	page "/admin/run/$id/file?phase=after&name=b.html"
	[ "$SP_STATUS" = 404 ]
	# Signed out, the cookie opens nothing any more; nor does one of a revoked token.
	page /admin/
	local key
	key=$(sed -n 's|.*action="/admin/sign-out"><input type="hidden" name="key" value="\([0-9a-f]*\)".*|\1|p' "$SP_DIR/body")
	printf 'key=%s' "$key" | SP_BARE=yes sp_http POST /admin/sign-out HTTP_SEC_FETCH_SITE=same-origin CONTENT_TYPE=application/x-www-form-urlencoded \
		"HTTP_COOKIE=$COOKIE"
	page "/admin/run/$id"
	[ "$SP_STATUS" = 401 ]
	[ "$(sp_sql "SELECT count(*) FROM audit WHERE kind = 'admin.logout' AND object = 'token:$ADMIN_ID'")" = 1 ]
	sign_in
	page "/admin/run/$id"
	[ "$SP_STATUS" = 200 ]
	"$SP_BIN/sallyport" token revoke --config "$SP_CONFIG" "$ADMIN_ID"
	page "/admin/run/$id"
	[ "$SP_STATUS" = 401 ]
	[ "$(sp_sql "SELECT count(*) FROM audit WHERE kind = 'admin.login' AND object = 'token:$ADMIN_ID'")" = 2 ]
	[ "$(sp_sql "SELECT count(*) > 2 FROM audit WHERE kind = 'admin.view' AND entry LIKE '%\"a\":\"admin:$ADMIN_ID\"%'")" = 1 ]
	"$SP_BIN/sallyport" verify --config "$SP_CONFIG"
}

# act NAME/OBJECT [FIELD=VALUE…]: reads the page that asks, and sends its form.
act() {
	local where=$1 key
	shift
	page "/admin/act/$where"
	[ "$SP_STATUS" = 200 ] || return
	key=$(sed -n 's/.*name="key" value="\([0-9a-f]*\)".*/\1/p' "$SP_DIR/body" | tail -n 1)
	HASH=$(sed -n 's/.*name="hash" value="\([0-9a-f]*\)".*/\1/p' "$SP_DIR/body")
	post_act "$where" "$key" "hash=$HASH" "$@"
}

post_act() { # NAME/OBJECT KEY [FIELD=VALUE…]
	local where=$1 key=$2
	shift 2
	printf 'key=%s&%s' "$key" "$(printf '%s&' "$@")" |
		SP_BARE=yes sp_http POST "/admin/act/$where" HTTP_SEC_FETCH_SITE=same-origin CONTENT_TYPE=application/x-www-form-urlencoded \
			"HTTP_COOKIE=$COOKIE"
}

acts_in_log() { # ACT
	sp_sql "SELECT count(*) FROM audit WHERE kind = 'admin.act' AND entry LIKE '%\"a\":\"admin:$ADMIN_ID\"%' AND entry LIKE '%\"act\":\"$1\"%'"
}

@test "cancel and forget ask first and leave audit entries" {
	sign_in
	local id run_pid
	mkdir "$SP_DIR/other" # for the files of a request at the same time
	(SP_DIR=$SP_DIR/other run_python "import subprocess; subprocess.run(['sleep', '$SP_ASLEEP'])" c) &
	run_pid=$!
	sp_until "" sp_asleep
	id=$(sp_sql "SELECT id FROM execution WHERE state = 'running'")
	page "/admin/"
	grep -qF "/admin/run/$id" "$SP_DIR/body"
	page "/admin/run/$id"
	grep -qF "/admin/act/cancel/$id" "$SP_DIR/body"
	post_act "cancel/$id" 0123
	[ "$SP_STATUS" = 403 ]
	page "/admin/act/forget/$id"
	[ "$SP_STATUS" = 409 ]
	act "cancel/$id"
	[ "$SP_STATUS" = 303 ]
	wait "$run_pid"
	[ "$(sp_sql "SELECT verdict FROM execution WHERE id = '$id'")" = CX ]
	page "/admin/act/cancel/$id"
	[ "$SP_STATUS" = 409 ]
	act "forget/$id"
	[ "$SP_STATUS" = 303 ]
	[ "$(sp_sql "SELECT erased FROM execution WHERE id = '$id'")" = content ]
	page "/admin/run/$id"
	grep -qF 'It was removed.' "$SP_DIR/body"
	[ "$(acts_in_log cancel) $(acts_in_log forget)" = '1 1' ]
	"$SP_BIN/sallyport" verify --config "$SP_CONFIG"
}

@test "a run is replayed and compared" {
	sign_in
	local same other before
	run_python 'open("out.txt", "w").write("x"); print("same")' r
	same=$(sp_sql 'SELECT max(id) FROM execution')
	run_python 'import os; print("<script>", os.urandom(8).hex()); open("rnd", "w").write(os.urandom(4).hex())' r
	other=$(sp_sql 'SELECT max(id) FROM execution')
	before=$(sp_sql 'SELECT count(*) FROM execution')
	page "/admin/run/$same"
	grep -qF "/admin/act/replay/$same" "$SP_DIR/body"
	act "replay/$same"
	[ "$SP_STATUS" = 200 ]
	grep -qF 'It came out as recorded.' "$SP_DIR/body"
	act "replay/$other"
	[ "$SP_STATUS" = 200 ]
	grep -qF 'It came out otherwise.' "$SP_DIR/body"
	grep -qF 'File rnd' "$SP_DIR/body"
	grep -qE '<span class="ins">.*&lt;script&gt;' "$SP_DIR/body"
	run ! grep -qF '<script>' "$SP_DIR/body"
	[ "$(sp_sql 'SELECT count(*) FROM execution')" = "$before" ]
	[ "$(acts_in_log replay)" = 2 ]
	post_act "replay/$same" 0123
	[ "$SP_STATUS" = 403 ]
	act "forget/$same"
	page "/admin/act/replay/$same"
	[ "$SP_STATUS" = 404 ]
	grep -qF 'was removed' "$SP_DIR/body"
}

@test "a token is made and revoked" {
	sign_in
	local text id
	act token/ owner=carol name=%3Cb%3E run=yes
	[ "$SP_STATUS" = 200 ]
	text=$(grep -o 'sp_carol_[0-9a-f]*' "$SP_DIR/body")
	SP_TOKEN=$text sp_call list_runners '{}'
	[ "$SP_STATUS" = 200 ]
	id=$(sp_sql "SELECT id FROM token WHERE owner = 'carol' AND scopes = 'run' AND name = '<b>'")
	page /admin/tokens
	grep -qF "/admin/act/revoke/$id" "$SP_DIR/body"
	run ! grep -qF "$text" "$SP_DIR/body"
	act "revoke/$id"
	[ "$SP_STATUS" = 303 ]
	SP_TOKEN=$text sp_call list_runners '{}'
	[ "$SP_STATUS" = 401 ]
	act token/ owner=Bad+Name run=yes
	[ "$SP_STATUS" = 400 ]
	act token/ owner=carol
	[ "$SP_STATUS" = 400 ]
	act "revoke/$ADMIN_ID"
	page /admin/tokens
	[ "$SP_STATUS" = 401 ]
	[ "$(acts_in_log token) $(acts_in_log revoke)" = '1 2' ]
}

@test "a changed tool definition is accepted as it was shown" {
	sp_stop "$SP_GATEWAY_PID"
	printf 'first' >"$SP_DIR/description"
	jq -n --arg server "$BATS_TEST_DIRNAME/admin_server.py" --arg file "$SP_DIR/description" \
		'{mcpServers: {notes: {command: "/usr/bin/python3", args: [$server, $file], jail: false}}}' >"$SP_DIR/servers.json"
	export SALLYPORT_UPSTREAM_FILE=$SP_DIR/servers.json
	"$SP_BIN/sallyport" upstream accept --config "$SP_CONFIG" notes
	printf 'second <script>' >"$SP_DIR/description"
	sp_start_gateway
	sign_in
	page /admin/servers
	grep -qF '/admin/servers/notes' "$SP_DIR/body"
	page /admin/servers/notes
	grep -qF '>changed<' "$SP_DIR/body"
	run ! grep -qF '<script>' "$SP_DIR/body"
	post_act 'accept/notes/read%3Cb%3E' 0
	[ "$SP_STATUS" = 403 ]
	act 'accept/notes/read%3Cb%3E'
	[ "$SP_STATUS" = 303 ]
	page /admin/servers/notes
	grep -qF '>known<' "$SP_DIR/body"
	[ "$(acts_in_log accept)" = 1 ]
}

@test "calls of tools whose texts are contents of the record are shown by their beginnings, until these are forgotten" {
	sp_stop "$SP_GATEWAY_PID"
	printf 'long' >"$SP_DIR/description"
	jq -n --arg server "$BATS_TEST_DIRNAME/admin_server.py" --arg file "$SP_DIR/description" \
		'{mcpServers: {notes: {command: "/usr/bin/python3", args: [$server, $file], jail: false, tools: {allow: ["*"]}}}}' >"$SP_DIR/servers.json"
	export SALLYPORT_UPSTREAM_FILE=$SP_DIR/servers.json
	SP_TOKEN=$(sp_cli token add --owner alice --servers notes --json | jq -r .token)
	export SP_TOKEN
	sp_start_gateway
	sign_in
	sp_call run_code '{"conversationId": "c", "language": "python", "servers": ["notes"],
		"code": "print(len(tools.call(\"notes\", \"read<b>\", {\"what\": \"<u>the arguments</u>\" + 100_000 * \"z\"})))"}'
	local id
	id=$(sp_get details.execution_id)
	[ "$(sp_get details.stdout)" = 100018 ]
	[ "$(sp_sql 'SELECT count(arguments_blob) + count(result_blob), max(length(arguments) + length(result)) FROM tool_call')" = '2|4' ]
	page "/admin/run/$id"
	[ "$SP_STATUS" = 200 ]
	grep -qF '<strong>notes</strong> read&lt;b&gt;' "$SP_DIR/body"
	grep -qE '&lt;u&gt;the arguments&lt;/u&gt;z{300,400}$' "$SP_DIR/body"
	grep -qE '&lt;i&gt;the result&lt;/i&gt; y{300,400}<' "$SP_DIR/body"
	sp_cli forget --execution "$id" --yes
	page "/admin/run/$id"
	[ "$SP_STATUS" = 200 ]
	run ! grep -qE 'zzz|yyy' "$SP_DIR/body"
}

@test "the other views show what they name" {
	sign_in
	run_python 'open("n.txt", "w").write("one\ntwo\n"); print(1)' c
	run_python 'open("n.txt", "w").write("one\n<b>\n"); print(1)' c
	local id uri
	id=$(sp_get details.execution_id)
	for uri in /admin/owners /admin/charts '/admin/charts?since=1h' '/admin/charts?since=nonsense' /admin/health /admin/servers \
		'/admin/audit?kind=run.end' '/admin/conversation?owner=alice&name=c'; do
		page "$uri"
		[ "$SP_STATUS" = 200 ] || sp_die "$uri: $SP_STATUS"
	done
	grep -qF '+++ b/n.txt' "$SP_DIR/body"
	page /admin/health/doctor
	grep -qF 'kernel' "$SP_DIR/body"
	page "/admin/run/$id"
	grep -qF '<span class="ins">+&lt;b&gt;' "$SP_DIR/body"
	page '/admin/conversation?owner=bob&name=c'
	run ! grep -qF n.txt "$SP_DIR/body"
}

@test "the first page says that the jailer is away" {
	sign_in
	page /admin/
	run ! grep -qF 'class="error"' "$SP_DIR/body"
	parked() { # two are made ahead; the jailer's answer to one look is in the next one
		page /admin/
		grep -qF "$1 parked" "$SP_DIR/body"
	}
	sp_until "$SP_GATEWAY_PID" parked 2
	sp_stop "$SP_JAILER_PID"
	jailer_missed() {
		page /admin/
		grep -qF '<strong>jailer</strong>' "$SP_DIR/body"
	}
	sp_until "$SP_GATEWAY_PID" jailer_missed
	parked 0
}

@test "it is off where the configuration does not switch it on" {
	sign_in
	sp_stop "$SP_GATEWAY_PID"
	unset SALLYPORT_ADMIN_ENABLED
	sp_start_gateway
	page /admin/
	[ "$SP_STATUS" = 404 ]
	sp_http GET /admin/asset/x </dev/null
	[ "$SP_STATUS" = 404 ]
}
