#!/usr/bin/env bats
# pip install and npm install in a conversation: by way of the relay, kept below /data/.packages, counted there, importable later. The index and
# the registry are on loopback (package_servers.py).
# shellcheck disable=SC2016 # programs in single quotes are meant for the jail

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_setup
	/usr/bin/python3 "$BATS_TEST_DIRNAME/package_servers.py" >"$SP_DIR/port" 2>/dev/null 3>&- &
	export INDEX=$!
	sp_until "$INDEX" test -s "$SP_DIR/port"
	PORT=$(cat "$SP_DIR/port")
	export PORT
	jq --arg entry "localhost:$PORT private" '.network = {allow: [$entry]}' "$SP_CONFIG" >"$SP_DIR/with"
	mv "$SP_DIR/with" "$SP_CONFIG"
	SP_TOKEN=$("$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner alice --scope run,files,network)
	export SP_TOKEN
	sp_start_jailer
	sp_start_gateway
}

teardown_file() {
	sp_stop "$INDEX"
	sp_teardown
}

# runs CONVERSATION LANGUAGE CODE [MEMBERS]
runs() {
	sp_call run_code "$(jq -cn --arg conversation "$1" --arg language "$2" --arg code "$3" --argjson more "${4:-{\}}" \
		'{conversationId: $conversation, $language, $code, display: false, timeout_seconds: 240} + $more')"
}

# installs CONVERSATION COMMAND
installs() {
	runs "$1" bash "$2" "$(jq -cn --arg place "http://localhost:$PORT" '{network: true, memory_mb: 1024,
		environment: {PIP_INDEX_URL: "\($place)/simple", npm_config_registry: $place}}')"
}

prints() {
	[ "$(sp_get details.stdout)" = "$1" ] || { cat "$SP_DIR/body"; return 1; }
}

@test "pip install: kept for the conversation only" {
	[ -d /usr/lib/python3/dist-packages/pip ] || skip "pip is not installed: apt-get install python3-pip"
	installs wheel 'pip install demo-wheel'
	[ "$(sp_get details.verdict)" = OK ] || { cat "$SP_DIR/body"; return 1; }
	[ "$(sp_get 'details.network.connections >= 1')" = true ]
	[ "$(sp_get '[details.files.created[].name | select(startswith(".packages/python/demo_wheel"))] | length > 0')" = true ]
	[ "$(sp_get '[details.files.created[].name | select(startswith(".packages/") | not)] | length')" = 0 ]
	# the text has a line for all of them
	[[ $(sp_get '.result.content[0].text') =~ "installed packages: "[0-9]+" files in .packages" ]]
	[[ $(sp_get '.result.content[0].text') != *demo_wheel/__init__.py* ]]
	for more in '{}' '{"session":true}'; do
		runs wheel python 'import demo_wheel; print(demo_wheel.twice(21))' "$more"
		prints 42
	done
	runs other python 'import demo_wheel'
	[[ $(sp_get details.stderr) == *"No module named 'demo_wheel'"* ]]
	runs wheel bash 'rm -r .packages'
	runs wheel python 'import demo_wheel'
	[ "$(sp_get details.verdict)" = RE ]
}

@test "npm install: found by require and import" {
	[ -x /usr/bin/npm ] || skip "npm is not installed: apt-get install npm"
	installs npm 'npm install demo-npm'
	[ "$(sp_get details.verdict)" = OK ] || { cat "$SP_DIR/body"; return 1; }
	[ "$(sp_get '[details.files.created[].name | select(startswith(".packages/npm/lib/node_modules/demo-npm/"))] | length')" = 2 ]
	[ "$(sp_get '[details.files.not_kept[]] | length')" = 0 ]
	for language in javascript typescript; do
		runs npm $language 'const { thrice } = require("demo-npm"); console.log(thrice(14))'
		prints 42
		runs npm $language 'import { thrice } from "demo-npm"; console.log(thrice(14))'
		prints 42
	done
	runs npm javascript 'console.log(require("demo-npm").thrice(14))' '{"session":true}'
	prints 42
	runs npm javascript 'import { thrice } from "demo-npm"; console.log(thrice(14))' '{"session":true}'
	prints 42
	runs npm javascript 'await import("demo-none")' '{"session":true}'
	[ "$(sp_get details.verdict)" = RE ]
	[[ $(sp_get details.stderr) == *"Cannot find package 'demo-none' imported from /code/"* ]]
}

@test "packages count as the conversation's files: what does not fit is not kept" {
	runs full bash 'mkdir -p .packages/python; head -c 2000000 /dev/zero >.packages/python/big; head -c 100000000 /dev/zero >.packages/python/bigger'
	[ "$(sp_get details.verdict)" = RE ]
	[[ $(sp_get details.stderr) == *'No space left on device'* ]]
}

# hinted WORDS: how an answer speaks of packages after programs that miss one; nothing is said after others.
hinted() {
	local language code
	while IFS='|' read -r language code; do
		runs none "$language" "$code"
		[ "$(sp_get details.verdict)" = RE ]
		[[ $(sp_get '.result.content[0].text') == *$'\npackages: '"$1; list_runners names those that are there"* ]] || { cat "$SP_DIR/body"; return 1; }
	done <<-'END'
		python|import nosuch
		javascript|require("nosuch")
		javascript|import "nosuch"
		typescript|import "nosuch"
		bash|pip install nosuch
		bash|npm install nosuch
	END
	for code in 'raise NameError("module")' 'import sys; print("No module named '"'x'"'", file=sys.stderr)'; do
		runs none python "$code"
		[[ $(sp_get '[.result.content[].text] | join("")') != *packages:* ]]
	done
}

@test "the description says how to install packages" {
	local description
	description() {
		sp_mcp tools/list '"x":1' ''
		jq -r '.result.tools[] | select(.name == "run_code") | .description' "$SP_DIR/body"
	}
	description=$(description)
	[[ $description == *"pip install NAME or npm install NAME"* && $description != *"nothing can be installed"* ]]
	[ "${#description}" -le 1024 ]
	installs none 'pip install --retries 0 demo-none'
	[ "$(sp_get details.verdict)" = RE ]
	hinted 'in bash with network, pip install NAME or npm install NAME adds one'
	sp_stop "$SP_GATEWAY_PID"
	jq 'del(.network)' "$SP_CONFIG" >"$SP_DIR/without"
	mv "$SP_DIR/without" "$SP_CONFIG"
	sp_start_gateway
	description=$(description)
	[[ $description != *"pip install NAME"* && $description == *"nothing can be installed."* ]]
	hinted 'nothing can be installed here'
}
