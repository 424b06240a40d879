#!/usr/bin/env bats
# What operators' programs ask the gateway: /metrics, under promtool and a real Prometheus through nginx; /readyz; the alert rules and the
# dashboard of docs/.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	sp_setup
	export SALLYPORT_METRICS_TOKEN=monitor-0123456789
}

teardown() {
	local pid
	for pid in $OWN_PIDS; do
		kill "$pid" 2>/dev/null || true
		sp_until "" sp_gone "$pid"
	done
	sp_teardown
}

start_stack() {
	sp_start_jailer
	sp_start_gateway
	sp_token alice
}

metrics() {
	sp_http GET /metrics "$@" </dev/null
}

# has SERIES VALUE in the last reply
has() {
	grep -qxF -- "$1 $2" "$SP_DIR/body" || {
		grep -F -- "${1%%[{ ]*}" "$SP_DIR/body"
		return 1
	}
}

run_python() {
	sp_call run_code "$(jq -nc --arg code "$1" '{conversationId: "c", language: "python", code: $code}')"
}

@test "promtool takes both formats" {
	start_stack
	run_python 'print(1)'
	run_python 'raise SystemExit(3)'
	metrics
	[ "$SP_STATUS" = 200 ]
	grep -qxF 'Content-Type: text/plain; version=0.0.4; charset=utf-8' "$SP_DIR/head"
	promtool check metrics <"$SP_DIR/body"
	has 'sallyport_runs_total{language="python",verdict="OK"}' 1
	has 'sallyport_runs_total{language="python",verdict="RE"}' 1
	has 'sallyport_runs_total{language="bash",verdict="XX"}' 0
	has 'sallyport_http_requests_total{route="/mcp",code="200"}' 2
	has 'mcp_server_operation_duration_seconds_count{mcp_method_name="tools/call",gen_ai_tool_name="run_code",error_type="tool_error",mcp_protocol_version="2026-07-28"}' 1
	has 'sallyport_tool_calls_total{tool="run_code",error_type=""}' 1
	has 'sallyport_run_duration_seconds_count{language="python"}' 2
	has 'sallyport_jailer_up' 1
	has 'sallyport_jobs{step="waiting"}' 0
	has 'sallyport_ready{check="jailer"}' 1
	has sallyport_run_queue_max 64
	grep -q '^sallyport_index_backlog_runs [0-2]$' "$SP_DIR/body"
	grep -q '^sallyport_host_memory_bytes{memory="available"} [1-9]' "$SP_DIR/body"
	metrics 'HTTP_ACCEPT=application/openmetrics-text;version=1.0.0,text/plain;q=0.5'
	grep -qxF 'Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8' "$SP_DIR/head"
	grep -qxF '# TYPE sallyport_runs counter' "$SP_DIR/body"
	[ "$(tail -n 1 "$SP_DIR/body")" = '# EOF' ]
}

# A run got a jail that was made ahead.
parked() {
	run_python 'print(1)' && metrics && grep -q '^sallyport_jail_setup_seconds_count{start="parked"} [1-9]' "$SP_DIR/body"
}

@test "metrics tell how a jail began" {
	start_stack
	metrics
	has 'sallyport_jail_setup_seconds_count{start="parked"}' 0
	sp_until "" parked
}

# has_now SERIES VALUE: in a fresh reply
has_now() { metrics && has "$@"; }
has_more() { # SERIES LEAST
	metrics && [ "$(sed -n "s/^$1 //p" "$SP_DIR/body")" -ge "$2" ]
}

@test "metrics count what the gateway holds" {
	sp_start_jailer
	sp_token alice
	"$SP_BIN/sallyport" backup --config "$SP_CONFIG" "$SP_DIR/backup"
	sp_start_gateway
	run_python 'import ctypes; ctypes.CDLL(None).unshare(0x10000000)
open("a.bin", "wb").write(bytes(range(256)) * 500)'
	# The jailer's answer to one scrape is in the next one.
	sp_until "" has_now 'sallyport_jails{state="parked"}' 2
	has 'sallyport_jails{state="running"}' 0
	has 'sallyport_tasks{state="working"}' 0
	has 'sallyport_denied_calls_total{call="unshare"}' 1
	has 'sallyport_gc_removed_total{kind="contents"}' 0
	has_more sallyport_audit_entries_total 2
	has_more sallyport_blobs_bytes 128000
	has_more sallyport_backup_success_timestamp_seconds 1700000000
	promtool check metrics <"$SP_DIR/body"
	sp_stop "$SP_JAILER_PID"
	sp_until "" has_now 'sallyport_jails{state="parked"}' 0
}

# job SERIES: its value in the file of a command
job() { sed -n "s/^$1 //p" "$SP_DIR/job.prom"; }

@test "signer and verifier write their figures" {
	local signed anchored verified
	sp_start_gateway
	cli() { "$SP_BIN/sallyport" "$1" --config "$SP_CONFIG" --metrics "$SP_DIR/job.prom" "${@:2}"; }
	sign() { cli checkpoint --state "$SP_DIR/signer" --anchor "file:$SP_DIR/anchor"; }
	cli checkpoint --state "$SP_DIR/signer" --init test.example/audit
	sign
	promtool check metrics <"$SP_DIR/job.prom"
	[ "$(stat -c %a "$SP_DIR/job.prom")" = 644 ]
	signed=$(job sallyport_audit_checkpoint_entries)
	anchored=$(job 'sallyport_audit_anchor_timestamp_seconds{anchor="1:file"}')
	[ "$signed" = "$(sp_sql 'select count(*) from audit')" ] && [ "$anchored" -gt 1700000000 ]
	# An anchor that fails; what the other had stays.
	sed -i "s/^sallyport_audit_anchor_timestamp_seconds.*/sallyport_audit_anchor_timestamp_seconds{anchor=\"1:file\"} 1234567890/" "$SP_DIR/job.prom"
	rm "$SP_DIR/anchor" && mkdir "$SP_DIR/anchor"
	sp_token bob
	run -1 sign
	[ "$(job 'sallyport_audit_anchor_timestamp_seconds{anchor="1:file"}')" = 1234567890 ]
	[ "$(job sallyport_audit_checkpoint_entries)" -gt "$signed" ]
	[ "$(job sallyport_audit_rewritten)" = "" ]
	cli verify --signer "$SP_DIR/signer"
	verified=$(job sallyport_verify_success_timestamp_seconds)
	[ "$verified" -gt 1700000000 ]
	# History is rewritten.
	sed -i "s/^sallyport_verify_success.* .*/sallyport_verify_success_timestamp_seconds 1234567891/" "$SP_DIR/job.prom"
	sp_stop "$SP_GATEWAY_PID"
	sqlite3 "$SP_DIR/data/sallyport.db" "DROP TRIGGER audit_fixed; UPDATE audit SET entry = entry || ' ' WHERE n = 1"
	run -11 sign
	[ "$(job sallyport_audit_rewritten)" = 1 ]
	run -1 cli verify --signer "$SP_DIR/signer"
	[ "$(job sallyport_verify_success_timestamp_seconds)" = 1234567891 ]
	# What gc frees; a dry one frees nothing and leaves the file's figures.
	cli gc
	[ "$(job sallyport_gc_success_timestamp_seconds)" = "" ]
	cli gc --yes
	[ "$(job sallyport_gc_success_timestamp_seconds)" -gt 1700000000 ]
	[ "$(job sallyport_verify_success_timestamp_seconds)" = 1234567891 ]
	promtool check metrics <"$SP_DIR/job.prom"
	# A file that cannot be written is named.
	run -10 "$SP_BIN/sallyport" verify --config "$SP_CONFIG" --metrics /nowhere/file
	[[ $output == */nowhere/file* ]]
}

@test "a client makes no label" {
	start_stack
	sp_call no_such_tool_mine '{}'
	echo '{"jsonrpc":"2.0","id":1,"method":"no/such/method"}' | sp_http POST /mcp
	sp_http GET /no/such/path </dev/null
	sp_call run_code '{"conversationId":"my_conversation","language":"my_language","code":"1"}'
	echo '{}' | sp_http POST /mcp HTTP_AUTHORIZATION='Bearer sp_alice_wrong'
	metrics
	run -1 grep -E 'no_such|no/such|my_|alice' "$SP_DIR/body"
	has 'sallyport_http_requests_total{route="other",code="404"}' 1
	has 'sallyport_auth_failures_total{reason="unknown"}' 1
}

@test "only this machine and the token of metrics.token are let in" {
	start_stack
	local far=REMOTE_ADDR=192.0.2.1
	for path in /metrics /readyz; do
		sp_http GET "$path" "$far" </dev/null
		[ "$SP_STATUS" = 404 ] # the token of a client opens nothing here
		sp_http GET "$path" "$far" HTTP_AUTHORIZATION='Bearer monitor-012345678' </dev/null
		[ "$SP_STATUS" = 404 ]
		sp_http GET "$path" "$far" HTTP_AUTHORIZATION="Bearer $SALLYPORT_METRICS_TOKEN" </dev/null
		[ "$SP_STATUS" = 200 ]
		sp_http GET "$path" REMOTE_ADDR=127.0.0.1 </dev/null
		[ "$SP_STATUS" = 200 ]
		sp_http POST "$path" </dev/null
		[ "$SP_STATUS" = 405 ]
	done
	echo '{"jsonrpc":"2.0","id":1,"method":"ping"}' | sp_http POST /mcp HTTP_AUTHORIZATION="Bearer $SALLYPORT_METRICS_TOKEN"
	[ "$SP_STATUS" = 401 ]
}

@test "metrics and health can be switched off" {
	export SALLYPORT_METRICS_ENABLED=false SALLYPORT_HEALTH_READY=false SALLYPORT_METRICS_TOKEN=
	sp_start_gateway
	metrics
	[ "$SP_STATUS" = 404 ]
	sp_http GET /readyz </dev/null
	[ "$SP_STATUS" = 404 ]
	sp_http GET /readyz REMOTE_ADDR=192.0.2.1 HTTP_AUTHORIZATION='Bearer ' </dev/null
	[ "$SP_STATUS" = 404 ]
}

ready() { sp_http GET /readyz </dev/null && [ "$SP_STATUS" = "$1" ]; }

@test "readyz says which check fails" {
	start_stack
	sp_until "" ready 200
	[ "$(sp_get '[.ready, (.checks[] | .ok)] | all')" = true ]
	sp_stop "$SP_JAILER_PID"
	sp_until "" ready 503
	grep -q '^Retry-After: [0-9]' "$SP_DIR/head"
	[ "$(sp_get '[.ready, .checks.database.ok, .checks.jailer.ok, .checks.disk.ok] | @csv')" = false,true,false,true ]
	metrics
	has sallyport_jailer_up 0
	sp_start_jailer
	sp_until "" ready 200
	sp_stop "$SP_GATEWAY_PID"
	SALLYPORT_HEALTH_DISK_MB=8000000000000 sp_start_gateway
	sp_until "" ready 503
	[[ $(sp_get .checks.disk.error) == *"less than health.disk_mb"* ]]
}

# The development site with this gateway behind it, on a free port.
start_nginx() {
	local program
	program=$(PATH=$PATH:/usr/sbin command -v nginx)
	mkdir -p "$SP_DIR"/nginx/{sallyport,log,nginx,run} "$SP_DIR/nginx/data/blobs"
	chmod 0755 "$SP_DIR/nginx"
	cp "$SP_ROOT"/nginx/{locations,fastcgi}.conf "$SP_DIR/nginx/sallyport/"
	ln -s "$SP_SOCKET" "$SP_DIR/nginx/run/gateway.sock"
	NGINX_PORT=$((20000 + SRANDOM % 12000))
	sed -e "s|@STATE@|$SP_DIR/nginx|g" -e "s|@PORT@|$NGINX_PORT|g" "$SP_ROOT/nginx/dev.conf.in" >"$SP_DIR/nginx/nginx.conf"
	# Its workers must reach the socket, which is for the account of the gateway and its group.
	[ "$(id -u)" != 0 ] || sed -i '1i user root;' "$SP_DIR/nginx/nginx.conf"
	"$program" -e "$SP_DIR/nginx/log/nginx.log" -c "$SP_DIR/nginx/nginx.conf" 2>"$SP_DIR/nginx.log" 3>&- &
	OWN_PIDS+=" $!"
	sp_until "$!" curl -sfo /dev/null "http://127.0.0.1:$NGINX_PORT/healthz" || sp_die "nginx does not start"
}

query() {
	promtool query instant -o json "http://127.0.0.1:$PROMETHEUS_PORT" "$1" | jq -er '.[0].value[1]'
}
query_is() { [ "$(query "$1" 2>/dev/null)" = "$2" ]; }
scraped() { query_is 'up{job="sallyport"}' 1; }

@test "a real Prometheus scrapes the gateway through nginx" {
	start_stack
	run_python 'print(1)'
	start_nginx
	PROMETHEUS_PORT=$((32000 + SRANDOM % 12000))
	cat >"$SP_DIR/prometheus.yml" <<-EOF
		global: {scrape_interval: 1s, evaluation_interval: 1s}
		rule_files: ["$SP_ROOT/docs/alerts.yml"]
		scrape_configs:
		  - job_name: sallyport
		    authorization: {credentials: $SALLYPORT_METRICS_TOKEN}
		    static_configs: [{targets: ["127.0.0.1:$NGINX_PORT"]}]
	EOF
	promtool check config "$SP_DIR/prometheus.yml"
	prometheus --config.file="$SP_DIR/prometheus.yml" --storage.tsdb.path="$SP_DIR/tsdb" --web.listen-address="127.0.0.1:$PROMETHEUS_PORT" \
		>"$SP_DIR/prometheus.log" 2>&1 3>&- &
	OWN_PIDS+=" $!"
	sp_until "$!" scraped || sp_die "Prometheus does not scrape"
	query_is 'sallyport_runs_total{language="python",verdict="OK"}' 1
	query_is 'sallyport_jailer_up' 1
	sp_until "" query_is 'count(up)' 1
	[ "$(curl -sf "http://127.0.0.1:$PROMETHEUS_PORT/api/v1/rules" | jq '[.data.groups[].rules[].name] | length')" = \
		"$(grep -c 'alert:' "$SP_ROOT/docs/alerts.yml")" ]
	# What the dashboard asks is PromQL, and what is not a rate has an answer here.
	local expr answer none=0
	while IFS= read -r expr; do
		answer=$(promtool query instant -o json "http://127.0.0.1:$PROMETHEUS_PORT" "${expr//\$__rate_interval/10s}")
		[[ $expr == *rate* || $expr == *increase* || $answer != '[]' ]] || none=$((none + 1))
	done < <(jq -r '(.panels[].targets // [])[].expr | gsub("\\$instance"; ".*")' "$SP_ROOT/docs/grafana.json")
	[ "$none" = 4 ] # the signer's two, the last backup, the last verification
	sp_stop "$SP_JAILER_PID"
	sp_until "" query_is 'ALERTS{alertname="SallyportJailerDown"}' 1 # pending: for a minute yet
}

@test "one id leads from nginx to the jailer" {
	start_stack
	start_nginx
	local trace=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 id
	jq -nc --arg trace "$trace" '{jsonrpc: "2.0", id: 1, method: "tools/call", params: {name: "run_code",
		arguments: {conversationId: "c", language: "python", code: "print(1)"}, _meta: {traceparent: $trace,
		"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}}' |
		curl -sf -D "$SP_DIR/head" -o "$SP_DIR/body" --data-binary @- -H "Authorization: Bearer $SP_TOKEN" -H 'Content-Type: application/json' \
			-H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call' -H 'Mcp-Name: run_code' \
			-H "traceparent: ${trace/4bf9/aaaa}" -H 'X-Request-Id: mine' "http://127.0.0.1:$NGINX_PORT/mcp"
	id=$(tr -d '\r' <"$SP_DIR/head" | sed -n 's/^X-Request-Id: //p')
	[[ $id =~ ^[0-9a-f]{32}$ ]]
	grep -q " request .*request_id=$id" "$SP_DIR/gateway.log"
	sp_until "" grep -q " run done .*-$id" "$SP_DIR/jailer.log"
	[ "$(sp_sql 'select request_id, trace from execution')" = "$id|$trace" ]
	run -0 "$SP_BIN/sallyport" show --config "$SP_CONFIG" "$(sp_sql 'select id from execution')"
	[[ $output == *"$id"* && $output == *"$trace"* ]]
	# Where nginx itself answers.
	sp_stop "$SP_GATEWAY_PID"
	curl -s -D "$SP_DIR/head" -o /dev/null "http://127.0.0.1:$NGINX_PORT/readyz"
	grep -qE '^X-Request-Id: [0-9a-f]{32}' "$SP_DIR/head"
}

@test "a trace that only the header traceparent names is recorded and shown" {
	start_stack
	local trace=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 wrong=00-00000000000000000000000000000000-b7ad6b7169203331-01
	jq -nc '{jsonrpc: "2.0", id: 1, method: "tools/call", params: {name: "run_code", arguments: {conversationId: "c", language: "python", code: "print(1)"},
		_meta: {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}}' >"$SP_DIR/call"
	for header in "$trace" "$wrong"; do
		sp_http POST /mcp HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD=tools/call HTTP_MCP_NAME=run_code HTTP_TRACEPARENT="$header" <"$SP_DIR/call"
		[ "$SP_STATUS" = 200 ]
	done
	[ "$(sp_sql "SELECT group_concat(coalesce(trace, ''), ',') FROM (SELECT trace FROM execution ORDER BY recorded)")" = "$trace," ]
	run -0 "$SP_BIN/sallyport" show --config "$SP_CONFIG" "$(sp_sql "SELECT id FROM execution WHERE trace = '$trace'")"
	[[ $output == *"$trace"* ]]
}

# same_id JQ: what the answer's error names is the header's id, and the gateway's log has it.
same_id() {
	local id
	id=$(sed -n 's/^X-Request-Id: //p' "$SP_DIR/head")
	[[ $id =~ ^[0-9a-f]{32}$ ]] && [ "$(sp_get "$1")" = "$id" ] && sp_until "" grep -q " request .*request_id=$id" "$SP_DIR/gateway.log"
}

@test "every error names its request" {
	start_stack
	sp_call no_such_tool '{}' # of the client
	same_id .error.data.requestId
	echo '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}' | sp_http POST /mcp
	same_id .error.data.requestId
	echo '{"jsonrpc":"2.0","id":1,"method":"no/such/method"}' | sp_http POST /mcp
	same_id .error.data.requestId
	echo '{broken' | sp_http POST /mcp
	same_id .error.data.requestId
	echo '{}' | sp_http POST /mcp HTTP_AUTHORIZATION='Bearer sp_alice_wrong' # of HTTP
	same_id .request_id
	sp_http GET /no/such/path </dev/null
	same_id .request_id
}

# The names of series in a PromQL text.
names() { grep -oE '\b(sallyport|mcp|process)_[a-z_]+' | sed -E 's/_(bucket|sum|count)$//' | sort -u; }

# lacking FILE: what the queries on standard input, one a line, group or filter by and no sample in the file has. (Prometheus adds instance; by
# le buckets are told apart.)
lacking() {
	local query metric label
	while IFS= read -r query; do
		metric=$(grep -oE '\b(sallyport|mcp_server|process)_[a-z_]+' <<<"$query" | head -1)
		grep -oE 'by \([^)]*\)|[a-z_]+=~?"' <<<"$query" | sed -E 's/^by \(|\)$|=~?"$|,//g' | tr ' ' '\n' | grep -vx 'instance\|le' | while IFS= read -r label; do
			grep -qE "^$metric\{(.*,)?$label=" "$1" || echo "$metric has no label $label: $query"
		done
	done
}

@test "each panel of the dashboard has a description" {
	run -0 jq -r '.panels[] | select(.type != "row" and (.description // "") == "").title' "$SP_ROOT/docs/grafana.json"
	[ -z "$output" ]
}

@test "the alert rules name metrics that exist" {
	promtool check rules "$SP_ROOT/docs/alerts.yml"
	start_stack
	run_python 'import ctypes; ctypes.CDLL(None).unshare(0x10000000)'
	metrics
	# Those of the gateway, and those that commands write.
	{
		sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' "$SP_DIR/body"
		sed -n 's/^METRIC_JOB([A-Z_]*, "\([a-z_]*\)".*/\1/p' "$SP_ROOT/lib/base/metrics.def"
	} | sort >"$SP_DIR/known"
	sed -n '/expr:/,/labels:/p' "$SP_ROOT/docs/alerts.yml" | names >"$SP_DIR/alerts"
	jq -r '(.panels[].targets // [])[].expr, (.templating.list[].query.query? // empty)' "$SP_ROOT/docs/grafana.json" | names |
		grep -vxE 'mcp_method_name' >"$SP_DIR/dashboard"
	[ "$(wc -l <"$SP_DIR/dashboard")" -gt 20 ] && [ "$(wc -l <"$SP_DIR/alerts")" -gt 5 ]
	run -0 comm -23 <(sort -u "$SP_DIR/alerts" "$SP_DIR/dashboard") "$SP_DIR/known"
	echo "$output"
	[ -z "$output" ]
	# Those that commands write have their labels in the table.
	sed -nE 's/^METRIC_JOB\([A-Z_]*, "([a-z_]*)", [A-Z]*, ([A-Z]+).*/\1{\L\2="x"} 1/p' "$SP_ROOT/lib/base/metrics.def" >>"$SP_DIR/body"
	jq -r '(.panels[].targets // [])[].expr' "$SP_ROOT/docs/grafana.json" >"$SP_DIR/queries"
	sed -n '/expr:/,/\(for\|labels\):/p' "$SP_ROOT/docs/alerts.yml" | grep -v 'for:\|labels:\|expr: >-\|up{job' >>"$SP_DIR/queries"
	[ "$(wc -l <"$SP_DIR/queries")" -gt 45 ]
	run -0 lacking "$SP_DIR/body" <"$SP_DIR/queries"
	echo "$output"
	[ -z "$output" ]
}

# rule NAME EXPECTED SERIES VALUES…: does the alert fire after 30 minutes ($AT) of these samples, one a minute?
rule() {
	local name=$1 expected=$2
	shift 2
	{
		printf '%s\n' "rule_files: [\"$SP_ROOT/docs/alerts.yml\"]" 'evaluation_interval: 1m' 'tests:' '  - interval: 1m' '    input_series:'
		printf "      - {series: '%s', values: '%s'}\n" "$@"
		printf '%s\n' '    promql_expr_test:' "      - expr: count(ALERTS{alertname=\"$name\",alertstate=\"firing\"}) or vector(0)" \
			'        eval_time: '"${AT:-30m}" "        exp_samples: [{labels: '{}', value: $expected}]"
	} >"$SP_DIR/rule.yml"
	promtool test rules "$SP_DIR/rule.yml"
}

@test "alerts fire only at what they are for" {
	local wait=sallyport_run_queue_wait_seconds_bucket
	rule SallyportDown 1 'up{job="sallyport"}' 0x40
	rule SallyportDown 0 'up{job="sallyport"}' 1x40
	rule SallyportJailerDown 1 sallyport_jailer_up 0x40
	rule SallyportJailerDown 0 sallyport_jailer_up 1x40
	rule SallyportSandboxFailures 1 'sallyport_runs_total{verdict="XX"}' 0+1x40
	rule SallyportSandboxFailures 0 'sallyport_runs_total{verdict="RE"}' 0+100x40 'sallyport_runs_total{verdict="XX"}' 0x40
	rule SallyportSandboxFailures 0 'sallyport_runs_total{verdict="OK"}' 0+500x40 'sallyport_runs_total{verdict="XX"}' 0+1x40
	rule SallyportSlowToStart 1 "$wait{le=\"5.0\"}" 0+9x40 "$wait{le=\"10.0\"}" 0+10x40 "$wait{le=\"+Inf\"}" 0+10x40
	rule SallyportSlowToStart 0 "$wait{le=\"5.0\"}" 0+10x40 "$wait{le=\"10.0\"}" 0+10x40 "$wait{le=\"+Inf\"}" 0+10x40
	rule SallyportStoreErrors 1 sallyport_store_errors_total 0+1x40
	rule SallyportStoreErrors 0 sallyport_store_errors_total 5x40
	rule SallyportDiskFull 0 sallyport_disk_free_bytes 1000000000x40
	AT=3h rule SallyportDiskFull 1 sallyport_disk_free_bytes 1000000000-1000000x200
	AT=3h rule SallyportDiskFull 0 sallyport_disk_free_bytes 1000000000-100000x200
	rule SallyportWalGrows 1 'sallyport_database_bytes{file="wal"}' 300000000x40
	rule SallyportWalGrows 0 'sallyport_database_bytes{file="main"}' 300000000x40
	rule SallyportAuditWentBack 1 sallyport_audit_rewritten '0x20 1x20'
	rule SallyportAuditWentBack 1 sallyport_audit_entries_total '1000+1x20 5+1x20'
	rule SallyportAuditWentBack 0 sallyport_audit_entries_total 1000+10x40
	rule SallyportAuditNotSigned 1 sallyport_audit_checkpoint_timestamp_seconds 0x40
	rule SallyportAuditNotSigned 0 sallyport_audit_checkpoint_timestamp_seconds 0+60x40
	rule SallyportAuditNotAnchored 0 'sallyport_audit_anchor_timestamp_seconds{anchor="1:file"}' 0x40
	rule SallyportAuditNotAnchored 1 'sallyport_audit_anchor_timestamp_seconds{anchor="1:file"}' -6000x40
	rule SallyportBackupOld 0 sallyport_backup_success_timestamp_seconds 0x40
	rule SallyportBackupOld 0 sallyport_backup_success_timestamp_seconds 1x40
	AT=49h rule SallyportBackupOld 1 sallyport_backup_success_timestamp_seconds 1x3000
	AT=49h rule SallyportBackupOld 0 sallyport_backup_success_timestamp_seconds 7200x3000
	AT=25h rule SallyportNoBackup 1 sallyport_backup_success_timestamp_seconds 0x1600
	AT=25h rule SallyportNoBackup 0 sallyport_backup_success_timestamp_seconds '0x600 1x1000'
	AT=2h rule SallyportAuditFiguresAbsent 1 'up{job="sallyport"}' 1x150
	AT=2h rule SallyportAuditFiguresAbsent 0 'up{job="sallyport"}' 1x150 sallyport_audit_checkpoint_timestamp_seconds 1x150
	rule SallyportDiskLow 1 sallyport_disk_free_bytes 1000000x40
	rule SallyportDiskLow 0 sallyport_disk_free_bytes 1000000000x40
	rule SallyportNotReady 1 'sallyport_ready{check="database"}' 0x40
	rule SallyportNotReady 0 'sallyport_ready{check="drain"}' 0x40 'sallyport_ready{check="disk"}' 1x40
	rule SallyportLimitsHit 1 'sallyport_rejections_total{limit="queue"}' 0+60x40
	rule SallyportLimitsHit 0 'sallyport_rejections_total{limit="queue"}' 0+1x40
}
