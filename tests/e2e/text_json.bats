#!/usr/bin/env bats
# tools.text = json: run_code's text block as the system that it replaces had it.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	sp_setup
}

teardown() {
	sp_teardown
}

@test "the text block is JSON with success, output and files" {
	jq '.tools.text = "json"' "$SP_CONFIG" >"$SP_DIR/c" && mv "$SP_DIR/c" "$SP_CONFIG"
	sp_start_jailer
	sp_start_gateway
	sp_token alice
	sp_call run_code '{"conversationId":"c","language":"bash","code":"echo hi; echo 1 > a.txt"}'
	sp_get '.result.content[0].text' >"$SP_DIR/text"
	[ "$(jq -c '[.success, .output, (.files | map(.name)), (keys | sort)]' "$SP_DIR/text")" = '[true,"hi\n",["a.txt"],["files","output","success"]]' ]
	[ "$(jq -r '.files[0] | keys | join(" ")' "$SP_DIR/text")" = "name url" ]
	[ "$(jq -r '.files[0].url' "$SP_DIR/text")" = "$(sp_get 'details.files.created[0].url')" ]
	sp_call run_code '{"conversationId":"c","language":"bash","code":"echo out; echo bad >&2; exit 3"}'
	[ "$(sp_get .result.isError)" = true ]
	# all files of the conversation, not only what this run made
	sp_get '.result.content[0].text' | jq -e '.success == false and (.files | map(.name)) == ["a.txt"] and (.output | startswith("out\n[stderr]\nbad\n[verdict RE]"))'
}

@test "another form is refused at the start" {
	jq '.tools.text = "xml"' "$SP_CONFIG" >"$SP_DIR/c" && mv "$SP_DIR/c" "$SP_CONFIG"
	run "$SP_BIN/sallyport-gateway" --config "$SP_CONFIG"
	[ "$status" -ne 0 ]
	[[ $output == *"tools.text: must be plain or json"* ]]
}

@test "tools.results, a member of earlier versions, is refused at the start with what takes its place" {
	run env SALLYPORT_TOOLS_RESULTS=both "$SP_BIN/sallyport-gateway" --config "$SP_CONFIG"
	[ "$status" -ne 0 ]
	[[ $output == *"SALLYPORT_TOOLS_RESULTS: was removed: choose for a token (sallyport token add --results)"* ]]
	jq '.tools.results = "content"' "$SP_CONFIG" >"$SP_DIR/c" && mv "$SP_DIR/c" "$SP_CONFIG"
	run "$SP_BIN/sallyport-gateway" --config "$SP_CONFIG"
	[ "$status" -ne 0 ]
	[[ $output == *"tools.results: was removed: choose for a token (sallyport token add --results)"* ]]
}
