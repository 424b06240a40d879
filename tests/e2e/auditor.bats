#!/usr/bin/env bats
# What an auditor asks of a record, and the answer in one command, one SELECT (the head of schema.sql says which) and one view of the admin page.

bats_require_minimum_version 1.5.0
load lib.bash

MODERN='"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}'

token() { # OWNER NAME SCOPES [ARGUMENT…]
	"$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner "$1" --name "$2" --scope "$3" "${@:4}" --json | jq -r .token
}

# from ADDRESS TOOL ARGUMENTS [NAME=VALUE…]: a call of claude-code, through a load balancer in front of nginx.
from() {
	local address=$1 tool=$2
	printf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":%s,"_meta":{%s,%s}}}' "$tool" "$3" "$MODERN" \
		'"io.modelcontextprotocol/clientInfo":{"name":"claude-code","version":"2.1.0"}' |
		sp_http POST /mcp HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD=tools/call HTTP_MCP_NAME="$tool" REMOTE_ADDR=10.0.0.2 \
			"HTTP_X_FORWARDED_FOR=198.51.100.9, $address" "${@:4}"
	[ "$SP_STATUS" = 200 ]
}

code() { # CONVERSATION CODE [MEMBERS]
	jq -nc --arg c "$1" --arg code "$2" "{conversationId: \$c, language: \"python\", code: \$code} + ${3:-null}"
}

last() { sp_sql 'SELECT id FROM execution ORDER BY id DESC LIMIT 1'; }

# One record for all tests; what is to be found in it is exported.
setup_file() {
	sp_setup
	jq '.gateway.trusted_proxies = ["10.0.0.0/8"] | .metrics.token = "first"' "$SP_CONFIG" >"$SP_DIR/new.json" && mv "$SP_DIR/new.json" "$SP_CONFIG"
	export SALLYPORT_ADMIN_ENABLED=true
	sp_counting_server
	jq '.mcpServers.count.tools = {allow: ["*"]}' "$SALLYPORT_UPSTREAM_FILE" >"$SP_DIR/allowed.json"
	cat "$SP_DIR/allowed.json" >"$SALLYPORT_UPSTREAM_FILE"
	export SALLYPORT_ADMIN_SIGNER_FIGURES=$SP_DIR/signer.prom
	SP_TOKEN=$(token ann laptop run,files --servers count)
	local ann=$SP_TOKEN bob
	bob=$(token bob phone run,files)
	OPS=$(token ops desk admin)
	sp_start_jailer
	sp_start_gateway
	from 203.0.113.7 upload_file '{"conversationId": "chat", "filename": "report.csv", "content": "YSxiCjEsMgo="}'
	REQUEST=$(printf '%032x' 3054)
	from 203.0.113.7 run_code "$(code chat 'open("report.csv", "a").write("3,4\n"); print("hallo")')" HTTP_X_REQUEST_ID="$REQUEST"
	RUN=$(last)
	from 203.0.113.7 run_code "$(code chat 'import ctypes; ctypes.CDLL(None).unshare(0x10000000)')"
	DENIED=$(last)
	from 203.0.113.7 run_code "$(code other 'x = "x" * (900 << 20)')"
	MEMORY=$(last)
	from 203.0.113.7 run_code "$(code other 'import os; print(len(os.environ["KEY"]))' '{secrets: {KEY: "not-in-the-record"}}')"
	SECRET=$(last)
	from 203.0.113.7 run_code "$(code tools 'tools.count.count(what="the-argument")' '{servers: ["count"]}')"
	TOOLS=$(last)
	SP_TOKEN=$bob
	from 203.0.113.8 run_code "$(code chat 'open("report.csv", "a").write("3,4\n"); print("hallo")')"
	SAME=$(last)
	from 203.0.113.8 run_code "$(code gone 'print("to be forgotten")')"
	GONE=$(last)
	SP_TOKEN=sp_ann_wrong sp_http POST /mcp REMOTE_ADDR=203.0.113.99 </dev/null
	SP_TOKEN=$ann
	local hash
	hash=$(sp_sql "SELECT hash FROM conversation WHERE owner = 'ann' AND name = 'chat'")
	SP_BARE=yes sp_http GET "/files/$hash/report.csv" REMOTE_ADDR=203.0.113.50 HTTP_USER_AGENT=curl/8 </dev/null
	[ "$SP_STATUS" = 200 ]
	printf 'token=%s&next=/admin/runs' "$OPS" | SP_BARE=yes sp_http POST /admin/sign-in HTTP_SEC_FETCH_SITE=same-origin REMOTE_ADDR=192.0.2.4 \
		CONTENT_TYPE=application/x-www-form-urlencoded
	COOKIE=$(sed -n 's/^Set-Cookie: \([^;]*\).*/\1/p' "$SP_DIR/head")
	SP_BARE=yes sp_http GET "/admin/run/$RUN" "HTTP_COOKIE=$COOKIE" REMOTE_ADDR=192.0.2.4 </dev/null
	[ "$SP_STATUS" = 200 ]
	sp_cli forget --owner bob --conversation gone --reason 'ticket 4711' --yes
	sp_stop "$SP_GATEWAY_PID"
	jq '.limits.wall_seconds = 31 | .metrics.token = "second"' "$SP_CONFIG" >"$SP_DIR/new.json" && mv "$SP_DIR/new.json" "$SP_CONFIG"
	sp_start_gateway
	mkdir "$SP_DIR/other" # for the files of a request at the same time
	(SP_DIR=$SP_DIR/other SP_TOKEN=$bob from 203.0.113.8 run_code "$(code sleeps "import subprocess; subprocess.run(['sleep', '$SP_ASLEEP'])" "{timeout_seconds: 300}")") 3>&- &
	sp_until "" sp_asleep
	RUNNING=$(last)
	sp_cli checkpoint --state "$SP_DIR/signer" --init auditor.test/audit
	sp_cli checkpoint --state "$SP_DIR/signer" --metrics "$SP_DIR/signer.prom"
	export TOOLS RUNNING
	export OPS REQUEST RUN DENIED MEMORY SECRET SAME GONE COOKIE
}

teardown_file() {
	sp_cli cancel "$RUNNING" || true
	sp_teardown
}

# ask N: the SELECT of question N of schema.sql's head, with the names of this record.
ask() {
	sed -n "s/^-- $1\\. [^?]*?  //p" "$SP_ROOT/schema.sql" >"$SP_DIR/question"
	[ -s "$SP_DIR/question" ]
	sp_sql "$(sed -e "s/'ID'/'${2:-$RUN}'/; s/TEXT/hallo/g; s/2026-11-2[01]/2000-01-01/; s/2026-11-27 14:00/2000-01-01/; s/2026-11-27'/2999-01-01'/; s/2026-11-27 14:10/2999-01-01/" "$SP_DIR/question")"
}

@test "schema.sql: each question has its SELECT" {
	[[ $(ask 1) == *"|ann|chat|report.csv|uploaded||laptop|203.0.113.7|8|"* ]]
	[[ $(ask 1) == *"|ann|chat|report.csv|changed|$RUN|laptop|203.0.113.7|12|"* ]]
	[[ $(ask 1) == *"|ann|chat|report.csv|downloaded||link|203.0.113.50|12|"* ]]
	[[ $(ask 2) == *"$RUN|OK|"*"$DENIED|OK|"* && $(ask 2) != *"$SAME"* ]]
	[[ $(ask 3) == *"|ann|$MEMORY|ML|memory|"* ]]
	[ "$(ask 4 | cut -d'|' -f2-)" = "run.begin|1
run.end|1" ]
	[[ $(ask 5) == *"|bob|execution:$GONE|"*'"ticket":"ticket 4711"'* ]]
	[[ $(ask 6) == "report.csv|changed|12|"* ]]
	[[ $(ask 7) == *"|$RUN|laptop|203.0.113.7"* ]]
	[[ $(ask 8) == *"|$TOOLS|count|count|{\"what\":\"the-argument\"}" ]]
	[ "$(ask 9 | cut -d'|' -f2)" = "$RUNNING" ]
	[[ $(ask 10) == *"|ann|5|"*"|bob|3|"* ]]
	[[ $(ask 11) == *"|admin.login|desk||192.0.2.4"*"|admin.view|desk|$RUN|192.0.2.4"* ]]
	[ "$(ask 12 | sort)" = "$(printf '%s\n' "$RUN" "$SAME" | sort)" ]
	[[ $(ask 13) == *"|ann|$DENIED|system call|unshare|"* ]]
	[[ $(ask 13) == *"||token|unknown|203.0.113.99|1"* || $(ask 13) == *"|token|malformed|203.0.113.99|1"* ]]
	[[ $(ask 14 "$REQUEST") == *"|$RUN|"* ]]
	[ "$(ask 15 | wc -l)" = "$(sp_sql 'SELECT count(*) FROM audit')" ]
	[[ $(ask 16) == *"claude-code/2.1.0|"* ]]
	[[ $(ask 17) == *"|limits.wall_seconds||31|"* ]]
	[[ $(ask 17) == *"|metrics.token|secret "*"|secret "* && $(ask 17) != *'|first'* && $(ask 17) != *'|second'* ]]
	[[ $(ask 18) == Python*interpreter* ]]
	[[ $(ask 19) == *"|ann|laptop|203.0.113.7" ]]
	[[ $(ask 20) == *"|ann|link|203.0.113.50" ]]
	[ "$(ask 21 | wc -l)" -ge 5 ]
	[[ $(ask 22) == *"|$SECRET|ann|1" && $(ask 22 | wc -l) = 1 ]]
	[[ $(ask 23) == "open("*"|ann,bob" || $(ask 23) == "open("*"|bob,ann" ]]
	[ "$(ask 24)" = "$RUN|ann|1
$SAME|bob|1" ]
	[ "$(ask 25)" = 1 ]
	[ "$(grep -cE '^-- [0-9]+\. ' "$SP_ROOT/schema.sql")" = 25 ]
}

# of KEYS FILTER…: these members of the entries that `audit log` lists, oldest first.
of() {
	sp_cli audit log --json --limit 1000 "${@:2}" | jq -r "[$1] | map(. // \"-\") | join(\" \")" | tac
}

@test "audit log: who, what, about what, from where, with which program and result" {
	[ "$(of .owner,.token,.conversation,.file,.client_address,.client --kind file.put)" = "ann laptop chat report.csv 203.0.113.7 claude-code/2.1.0" ]
	[ "$(of .owner,.actor,.conversation,.file,.client_address,.client --kind file.get)" = "ann link chat report.csv 203.0.113.50 curl/8" ]
	[ "$(of .kind,.owner,.token,.result --request "$REQUEST")" = "run.begin ann laptop done
run.end ann laptop OK" ]
	[ "$(of .client_address,.client,.run --request "$REQUEST" --kind run.end)" = "203.0.113.7 claude-code/2.1.0 $RUN" ]
	[ "$(of .kind,.token,.run,.client_address --kind 'admin.*')" = "admin.login desk - 192.0.2.4
admin.view desk $RUN 192.0.2.4" ]
	[ "$(of .result,.client_address,.facts.count --kind auth.denied)" = "refused 203.0.113.99 1" ]
	[ "$(of .run --address 203.0.113.8 --kind run.end)" = "$SAME" ] # of the other the address went with its content
	[ "$(of .kind --run "${RUN:24}" | wc -l)" = 0 ] # --run takes the beginning
	[[ $(of .kind --run "$RUN") == "run.begin"*"run.end"*"admin.view"* ]]
	[ "$(of .conversation --conversation chat --owner bob --kind conversation.new)" = chat ]
	[ "$(of .kind --file report.csv | sort -u | paste -sd' ')" = "file.get file.put run.end" ]
	[ "$(of .kind --client 'curl/*')" = file.get ]
	[ -z "$(of .kind --until 2000-01-01)" ]
	[ "$(of .n --since 2000-01-01 | wc -l)" = "$(sp_sql 'SELECT count(*) FROM audit')" ]
	[ "$(of '.facts.changes,(.details.changes[] | select(.member == "limits.wall_seconds") | .new)' --kind config | tail -n 1)" = "2 31" ]
	run sp_cli audit log --kind file.put
	[[ $output == *"TIME"*"KIND"*"OWNER"*"BY"*"RESULT"*"FROM"*"ABOUT"*"file.put"*"ann"*"laptop"*"done"*"203.0.113.7"*"chat/report.csv"* ]]
	run -2 sp_cli audit list
	[[ $output == *"'list' is none of log, certificate, verify, prove, checkpoint"* ]]
}

@test "audit log: what was forgotten is named no more" {
	[ "$(of .owner,.conversation,.details --kind conversation.new | grep -c gone)" = 0 ]
	[ "$(of .kind,.owner,.details.ticket,.result --run "$GONE" | tail -n 1)" = "content.erase bob ticket 4711 done" ]
	[ "$(sp_sql "SELECT client_address IS NULL AND client IS NULL FROM execution WHERE id = '$GONE'")" = 1 ]
	sp_cli audit verify
}

@test "audit log --follow shows entries as they come" {
	"$SP_BIN/sallyport" audit log --config "$SP_CONFIG" --follow --json --kind 'token.*' --limit 1 >"$SP_DIR/followed" 3>&- &
	local pid=$!
	sp_until "$pid" grep -q token.add "$SP_DIR/followed"
	[ "$(wc -l <"$SP_DIR/followed")" = 1 ]
	token eve new run
	sp_until "$pid" grep -q '"owner":"eve"' "$SP_DIR/followed"
	kill "$pid"
	wait "$pid" || true
	[ "$(jq -r .owner "$SP_DIR/followed" | paste -sd' ')" = "ops eve" ]
}

@test "log and show find runs by what an auditor knows of them" {
	ids() { sp_cli log --json "$@" | jq -r .id | paste -sd' '; }
	[ "$(ids --request "$REQUEST")" = "$RUN" ]
	[ "$(ids --file 'report.*')" = "$SAME $RUN" ]
	[ "$(ids --client 'claude-code/*' --limit 100 | wc -w)" = 7 ]
	[ "$(ids --denied)" = "$DENIED" ]
	[ "$(ids --secrets)" = "$SECRET" ]
	[ "$(sp_cli show "$REQUEST" --json | jq -r '.id, .client_address, .client' | paste -sd' ')" = "$RUN 203.0.113.7 claude-code/2.1.0" ]
	[[ $(sp_cli log) == *" ${RUN:24} "* ]]
	[ "$(sp_cli show "${RUN:24}" --stdout)" = hallo ]
	run -3 sp_cli show "${RUN:24}ff"
}

# What is wrong with JSON lines on standard input: names that are not snake_case (what a person or a run named is below these members), points in
# time as numbers, and measures whose names do not say their units.
faults() {
	jq -r 'def ours: any(.[:-1][]; . == "verdicts" or . == "classes" or . == "environment" or . == "facts" or . == "details" or . == "libraries") | not;
		. as $all | (paths | select(.[-1] | type == "string") | select(ours) | .[-1] | select(test("^[a-z][a-z0-9_]*$") | not) | "name: " + .),
		(paths(numbers) | select(ours)) as $at | (getpath($at) | select((. > 1.5e9 and . < 2.5e9 or . > 1.5e12 and . < 2.5e12 or . > 1.5e15 and . < 2.5e15)
			and ($at[-1] | tostring | endswith("_bytes") | not)) | "time: \($at[-1])"),
		($at[-1] | tostring | select(test("^(cpu|wall|memory|disk|setup|elapsed|time|duration|ms)") and
			(test("_(us|ms|s|seconds|bytes|mb|kb|percent)$") | not)) | "unit: " + .)' | sort -u
}

@test "--json: lists are JSON Lines, names snake_case, times ISO 8601, units in names" {
	local line words wrong=0 by
	sp_cli tag good "$RUN"
	sp_cli drain --owner zed --no-wait
	sp_cli promote --suite "$SP_DIR/suite" "$RUN"
	{
		printf '%s\n' "log" "ps" "files --owner ann -c chat" "token list" "owners list" "tag" "normalisers" "drain --list" "forget --list" "upstream list" \
			"upstream check" "upstream tools count" "audit log --limit 1000" "show --owner ann -c chat" "show --owner ann -c tools" "replay $RUN"
		for by in $(sp_cli stats --by none 2>&1 | sed 's/.*not one of //; s/,//g'); do echo "stats --by $by"; done
	} >"$SP_DIR/lists"
	[ "$(wc -l <"$SP_DIR/lists")" -gt 25 ]
	while read -r line; do
		read -ra words <<<"$line"
		sp_cli "${words[@]}" --json >"$SP_DIR/json" </dev/null
		{ jq -Re 'fromjson | objects' <"$SP_DIR/json" >"$SP_DIR/objects" && faults <"$SP_DIR/json" && [ "$(jq -c . "$SP_DIR/objects" | wc -l)" = "$(wc -l <"$SP_DIR/json")" ]; } >"$SP_DIR/faults" || echo "no JSON Lines" >>"$SP_DIR/faults"
		[ ! -s "$SP_DIR/faults" ] || { wrong=1 && echo "$line: $(paste -sd' ' "$SP_DIR/faults")"; }
	done <"$SP_DIR/lists"
	while read -r line; do
		read -ra words <<<"$line"
		sp_cli "${words[@]}" --json >"$SP_DIR/json" </dev/null || true
		faults <"$SP_DIR/json" >"$SP_DIR/faults"
		[ -s "$SP_DIR/json" ] && [ ! -s "$SP_DIR/faults" ] || { wrong=1 && echo "$line: $(paste -sd' ' "$SP_DIR/faults")"; }
	done <<-END
		show $RUN
		show $TOOLS
		show $DENIED
		diff $RUN
		doctor
		version
		gc
		tag good $RUN
		verify --signer $SP_DIR/signer
		checkpoint --state $SP_DIR/signer
		backup $SP_DIR/backup-of-json
		export --all --output $SP_DIR/all.bundle
		promote --suite $SP_DIR/suite $RUN
		grade $SP_DIR/suite
		forget --execution $MEMORY
		audit certificate --owner bob
		token add --owner json
	END
	sp_cli drain --end --owner zed
	sp_cli tag --remove good "$RUN"
	[ "$wrong" = 0 ]
}

# view QUERY: the audit page as the administrator of this record sees it, its markup taken off, a row a line.
view() {
	[ -n "$SIGNED" ] || {
		printf 'token=%s&next=/admin/runs' "$OPS" | SP_BARE=yes sp_http POST /admin/sign-in HTTP_SEC_FETCH_SITE=same-origin \
			CONTENT_TYPE=application/x-www-form-urlencoded
		SIGNED=$(sed -n 's/^Set-Cookie: \([^;]*\).*/\1/p' "$SP_DIR/head")
	}
	SP_BARE=yes sp_http GET "/admin/audit?$1" "HTTP_COOKIE=$SIGNED" </dev/null
	sed -n '/<tbody>/,/<\/tbody>/p' "$SP_DIR/body" | sed 's/<[^>]*>/ /g; s/  */ /g'
}

@test "admin page: the audit log by each filter" {
	view file=report.csv
	[[ $(view file=report.csv) == *"file.get bytes 12 B ann link 203.0.113.50 curl/8 report.csv chat done"*"file.put bytes 8 B ann laptop 203.0.113.7 claude-code/2.1.0 report.csv chat done"* ]]
	[ "$(view "request=$REQUEST" | grep -c "run ${RUN:24} chat")" = 2 ]
	[[ $(view "kind=admin.*&token=desk&address=192.0.2.4") == *"admin.view "*"ann desk 192.0.2.4 run ${RUN:24} "* ]]
	[[ $(view 'kind=auth.denied') == *"auth.denied count 1 203.0.113.99"*refused* || $(view 'kind=auth.denied') == *"auth.denied count 1 system 203.0.113.99"*refused* ]]
	[ "$(view 'client=claude-code/*&owner=bob&kind=run.end' | grep -c " run ${SAME:24} ")" = 1 ]
	[ "$(view 'since=2000-01-01T00:00&until=2000-01-02' | wc -l)" = 0 ]
	grep -qF 'No entries here.' "$SP_DIR/body"
	[[ $(view 'kind=config') == *"config sum "*", changes 2 "* ]]
	view since=garbage
	[ "$SP_STATUS" = 400 ]
	grep -qF 'must be a time as YYYY-MM-DDTHH:MM' "$SP_DIR/body"
	view ''
	[ "$SP_STATUS" = 200 ]
	grep -qE '<a rel="next" href="/admin/audit\?before=[0-9]+">Older' "$SP_DIR/body" || [ "$(sp_sql 'SELECT count(*) < 50 FROM audit')" = 1 ]
}

# Is the SELECT of question N, its command, and its view of the page there? The three have the answer of this record.
@test "each of the 25 questions has its command" {
	local all=(--since 2000-01-01 --until 2999-01-01)
	[ "$(of '.kind,.token,(.run // "-")' --file report.csv "${all[@]}" --owner ann)" = "file.put laptop -
run.end laptop $RUN
file.get - -" ]
	[ "$(sp_cli show --owner ann --conversation chat --json | jq -r '.step, .id' | paste -sd' ')" = "1 $RUN 2 $DENIED" ]
	[ "$(sp_cli log --json --verdict ML --since 7d | jq -r .id)" = "$MEMORY" ]
	sp_cli checkpoint --state "$SP_DIR/signer"
	[[ $(sp_cli audit prove "$RUN" --checkpoint "$SP_DIR/signer/checkpoint" --output "$SP_DIR/proof") == *" entries of execution $RUN are proven"* ]]
	"$SP_ROOT/docs/audit_check.py" "$(cat "$SP_DIR/signer/vkey")" "$SP_DIR/proof"
	sp_cli audit certificate --owner bob --checkpoint "$SP_DIR/signer/checkpoint" >"$SP_DIR/certificate"
	[ "$(jq -c '[.erasures[] | [.what, .owner, .by, .ticket]] | unique' "$SP_DIR/certificate")" = "[[\"content\",\"bob\",\"cli:$(id -u)\",\"ticket 4711\"]]" ]
	[[ $(sp_cli diff "$RUN") == *"--- a/report.csv"*"+3,4"* ]]
	[ "$(of .token,.client_address --kind run.begin --owner ann | sort -u)" = "laptop 203.0.113.7" ]
	[ "$(sp_cli show "$TOOLS" --json | jq -c '[.tool_calls[] | [.server, .tool, .arguments]]')" = '[["count","count","{\"what\":\"the-argument\"}"]]' ]
	[ "$(sp_cli ps --json | jq -r .id)" = "$RUNNING" ]
	[ "$(sp_cli stats --by owner-day --json | jq -c '[.owner, .runs, .cpu_us > 0, .bytes > 0]' | sort | paste -sd' ')" = '["ann",5,true,true] ["bob",3,true,true]' ]
	[ "$(of .kind,.token --kind 'admin.*' | head -2 | paste -sd' ')" = "admin.login desk admin.view desk" ]
	[ "$(sp_cli log --json --text hallo | jq -r .id | sort | paste -sd' ')" = "$(printf '%s\n' "$RUN" "$SAME" | sort | paste -sd' ')" ]
	[ "$(sp_cli log --json --denied | jq -r .id)" = "$DENIED" ]
	[ "$(sp_cli show --json "$REQUEST" | jq -r .id)" = "$RUN" ]
	[ "$(of .n "${all[@]}" | wc -l)" = "$(sp_sql 'SELECT count(*) FROM audit')" ]
	[ "$(sp_cli log --json --client 'claude-code/*' --conversation chat --owner ann | jq -r .client | sort -u)" = claude-code/2.1.0 ]
	[ "$(of '(.details.changes[] | select(.member == "limits.wall_seconds") | .new)' --kind config | tail -n 1)" = 31 ]
	[[ $(sp_cli show "$RUN" --json | jq -r '.fingerprint, .runtime.interpreter') == Python*/* ]]
	[ "$(of .owner,.token,.client_address --kind file.put --file report.csv)" = "ann laptop 203.0.113.7" ]
	[ "$(of .owner,.actor,.client_address --kind file.get --file report.csv)" = "ann link 203.0.113.50" ]
	[ "$(sp_cli stats --by slowest --json -n 1 | jq -r .wall_us)" = "$(sp_sql 'SELECT max(run_wall_us + coalesce(compile_wall_us, 0)) FROM execution')" ]
	sp_cli stats --by largest --json | jq -se 'map(.bytes) | . == (sort | reverse)'
	[ "$(sp_cli log --json --secrets | jq -r .id)" = "$SECRET" ]
	[ "$(sp_cli stats --by code --json | jq -c '[.runs, (.owners / "," | sort)]')" = '[2,["ann","bob"]]' ]
	[ "$(sp_cli log --json --same-code "$RUN" | jq -r .owner | paste -sd' ')" = "bob ann" ]
	sp_cli replay "$RUN"
	sp_cli audit verify
}

@test "verify checks each word of a certificate of erasures" {
	verify() { sp_cli audit verify --certificate "$@"; }
	local certificate=$SP_DIR/certificate other=$SP_DIR/other.json last
	sp_cli audit certificate --owner bob --checkpoint "$SP_DIR/signer/checkpoint" >"$certificate"
	verify "$certificate" --key "$(cat "$SP_DIR/signer/vkey")"
	[ "$(verify "$certificate" --json | jq -c '[.certified, .content.state]')" = "[$(jq '.erasures | length' "$certificate"),\"holds\"]" ]
	# Every word, the entry and the proof count.
	for change in '.erasures[0].owner = "ann"' '.erasures[0].by = "cli:12345"' '.erasures[0].ticket = "another"' '.erasures[0].what = "output"' \
		'.erasures[0].at = "2020-01-01T00:00:00Z"' '.erasures[0].object = "execution:'"$RUN"'"' '.erasures[0].proof[0] = .tree.root' \
		'.erasures[0].entry |= sub("content";"contenT")' '.erasures[0].n = 1' '.erasures[0].detail |= sub("4711";"4712")'; do
		jq "$change" "$certificate" >"$other"
		run -1 verify "$other"
		[[ $output == *"content: entry "*"(the certificate)"* ]]
	done
	jq '.checkpoint |= sub("auditor";"another")' "$certificate" >"$other"
	run -1 verify "$other" --key "$(cat "$SP_DIR/signer/vkey")"
	jq '.tree.size -= 1' "$certificate" >"$other"
	run -2 verify "$other" # its checkpoint is of another size
	jq '.checkpoint = null | .tree.size -= 1' "$certificate" >"$other"
	run -1 verify "$other"
	echo '{}' >"$other"
	run -2 verify "$other"
	run -3 verify "$SP_DIR/nowhere"
	# What is there again is found.
	cp -r "$SP_DIR/data" "$SP_DIR/again"
	sqlite3 "$SP_DIR/again/sallyport.db" "UPDATE execution SET code = 'print(1)' WHERE id = '$GONE'"
	run -1 "$SP_BIN/sallyport" verify --certificate "$certificate" "$SP_DIR/again"
	[[ $output == *"what was erased is there, or is there again"* ]]
	# By the numbers that forget prints; before the signer has seen it there is no proof, and nobody signs without one.
	last=$(sp_cli forget --execution "$MEMORY" --reason second --yes --json | jq -r '"\(.first_entry)-\(.last_entry)"')
	run -8 sp_cli audit certificate "$last" --checkpoint "$SP_DIR/signer/checkpoint"
	[ ! -e /var/lib/sallyport-audit/checkpoint ] || skip "this host has a signer"
	run -0 --separate-stderr sp_cli audit certificate "$last"
	# shellcheck disable=SC2154 # bats sets stderr
	[[ $stderr == *"nobody signed this"* ]]
	[ "$(jq -r '[.erasures[] | .object, .ticket] | join(" ")' <<<"$output")" = "execution:$MEMORY second" ]
	cat <<<"$output" >"$other"
	verify "$other"
	run -3 sp_cli audit certificate --owner eve
	run -2 sp_cli audit certificate 42-17
	run -2 sp_cli audit log 17
}

# see PATH: a view, its markup taken off.
see() {
	[ -n "$SIGNED" ] || view ''
	SP_BARE=yes sp_http GET "/admin/$1" "HTTP_COOKIE=$SIGNED" </dev/null
	[ "$SP_STATUS" = 200 ] || sp_die "$1: $SP_STATUS"
	sed -n '/<main/,/<\/main>/p' "$SP_DIR/body" | sed 's/<[^>]*>/ /g; s/&#39;/'"'"'/g; s/&quot;/"/g' | tr -s ' \n' ' '
}

@test "each of the 25 questions has its view of the page" {
	local key
	shown() { see "runs?$1" >/dev/null && grep -o '<tr data-id="[^"]*"' "$SP_DIR/body" | cut -d'"' -f2 | paste -sd' '; }
	view ''
	[[ $(see "audit?file=report.csv&since=2000-01-01&until=2999-01-01") == *"file.get"*"203.0.113.50"*"run.end"*"run ${RUN:24}"*"file.put"*"laptop 203.0.113.7"* ]]
	[[ $(see "conversation?owner=ann&name=chat") == *"run ${DENIED:24}"*"unshare"*"run ${RUN:24}"*"hallo"*"+++ b/report.csv"*"+3,4"* ]]
	[ "$(shown 'verdict=ML&since=7d')" = "$MEMORY" ]
	[[ $(see "run/$RUN") == *"run.end"*"run.begin"* ]]
	[[ $(see audit/verify) == *"tree holds"*"coverage holds"*"content holds"*"Signed through entry "* ]]
	[[ $(see "audit?kind=content.erase") == *"content.erase reason request, what content bob cli:"* || $(see "audit?kind=content.erase") == *"content.erase what content, reason request bob cli:"* ]]
	[[ $(see "run/$RUN") == *"--- a/report.csv"*"+3,4"* ]]
	[[ $(see "run/$RUN") == *"Token laptop"*"Address 203.0.113.7"* ]]
	[[ $(see "run/$TOOLS") == *"count count"*"the-argument"* ]]
	[[ $(see "") == *"Running now"*"$RUNNING bob sleeps"* ]]
	[[ $(see "charts?by=owner") == *"Owners"*" ann 5 "*" bob 2 "* ]]
	[[ $(see "audit?kind=admin.*") == *"admin.view"*"ann desk 192.0.2.4 run ${RUN:24}"* ]]
	[ "$(shown text=hallo)" = "$SAME $RUN" ]
	[ "$(shown denied=yes)" = "$DENIED" ]
	[ "$(shown "request=$REQUEST")" = "$RUN" ]
	[[ $(see "audit?since=2000-01-01T14:00&until=2999-01-01T14:10") == *"audit/0"* || $(grep -c 'href="/admin/audit/[0-9]' "$SP_DIR/body") -ge 40 ]]
	[ "$(shown "client=claude-code/*&owner=ann&conversation=chat")" = "$DENIED $RUN" ]
	[[ $(see "audit?kind=config") == *"config"* ]]
	[[ $(see "audit/$(of .n --kind config | tail -n 1)") == *'"member":"limits.wall_seconds","old":null,"new":31'* ]]
	[[ $(see "run/$RUN") == *"Language Python 3"* ]]
	[[ $(see "audit?kind=file.put&file=report.csv") == *"ann laptop 203.0.113.7 claude-code/2.1.0 report.csv chat"* ]]
	[[ $(see "audit?kind=file.get&file=report.csv") == *"ann link 203.0.113.50 curl/8 report.csv chat"* ]]
	[ "$(shown order=slowest | cut -d' ' -f1)" = "$(sp_sql 'SELECT id FROM execution ORDER BY run_wall_us DESC LIMIT 1')" ]
	shown order=largest
	[ "$(shown secrets=yes)" = "$SECRET" ]
	[[ $(see owners) == *"Code of several owners"*"open("*" 2 "* ]]
	[ "$(shown "same=$RUN")" = "$SAME $RUN" ]
	see "act/replay/$RUN" >/dev/null
	key=$(sed -n 's/.*name="key" value="\([0-9a-f]*\)".*/\1/p' "$SP_DIR/body" | tail -n 1)
	printf 'key=%s' "$key" | SP_BARE=yes sp_http POST "/admin/act/replay/$RUN" HTTP_SEC_FETCH_SITE=same-origin \
		CONTENT_TYPE=application/x-www-form-urlencoded "HTTP_COOKIE=$SIGNED"
	grep -qF 'It came out as recorded.' "$SP_DIR/body"
	# A filter that is none does not mean everything.
	for query in since=garbage verdict=garbage order=garbage from=garbage; do
		SP_BARE=yes sp_http GET "/admin/runs?$query" "HTTP_COOKIE=$SIGNED" </dev/null
		[ "$SP_STATUS" = 400 ]
	done
}

@test "an address is kept as far as the configuration says" {
	export SALLYPORT_GATEWAY_CLIENT_ADDRESSES=network
	sp_stop "$(tail -1 "$SP_DIR/pids")"
	sp_start_gateway
	from 2001:db8:1:2::7 run_code "$(code network 'print(1)')"
	[ "$(sp_sql 'SELECT client_address FROM execution ORDER BY id DESC LIMIT 1')" = 2001:db8:1::/48 ]
	sp_stop "$SP_GATEWAY_PID"
	SALLYPORT_GATEWAY_CLIENT_ADDRESSES=none sp_start_gateway
	from 203.0.113.7 run_code "$(code none 'print(1)')"
	[ "$(sp_sql 'SELECT client_address IS NULL FROM execution ORDER BY id DESC LIMIT 1')" = 1 ]
	sp_stop "$SP_GATEWAY_PID"
	unset SALLYPORT_GATEWAY_CLIENT_ADDRESSES
	sp_start_gateway
	sp_cli audit verify
}

@test "a proof of a run has each of its calls" {
	local proof=$SP_DIR/calls run
	from 203.0.113.7 run_code "$(code calls 'for i in range(9): tools.count.count(what=i)' '{servers: ["count"]}')"
	run=$(last)
	sp_cli checkpoint --state "$SP_DIR/signer"
	prove() { sp_cli audit prove "$run" --checkpoint "$SP_DIR/signer/checkpoint" --output "$proof"; }
	[[ $(prove) == "11 entries of execution $run are proven"* ]]
	[ "$(cd "$proof" && echo *.proof)" = "call.2.proof call.3.proof call.4.proof call.5.proof call.6.proof call.7.proof call.8.proof call.9.proof call.proof run.begin.proof run.end.proof" ]
	[ "$(cat "$proof"/call*.entry | jq .f.seq | sort -n | paste -sd' ')" = "1 2 3 4 5 6 7 8 9" ]
	[ "$("$SP_ROOT/docs/audit_check.py" "$(cat "$SP_DIR/signer/vkey")" "$proof" | grep -c ' fits$')" = 11 ]
	run -5 prove # what is there would be taken for a part of the new one
	[[ $output == *"write each proof to a folder of its own"* ]]
}
