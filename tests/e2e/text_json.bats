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

@test "tools.results: content, structured, both or none, for the whole server; another word is refused at the start" {
	local results
	run env SALLYPORT_TOOLS_RESULTS=all "$SP_BIN/sallyport-gateway" --config "$SP_CONFIG"
	[ "$status" -ne 0 ]
	[[ $output == *"tools.results: must be content, structured, both or none"* ]]
	sp_start_jailer
	for results in structured both none content; do
		SALLYPORT_TOOLS_RESULTS=$results sp_start_gateway
		[ -n "$SP_TOKEN" ] || sp_token alice
		sp_call run_code '{"conversationId":"c","language":"bash","code":"echo hi"}'
		[ "$(sp_get '.result.structuredContent.stdout // "" | rtrimstr("\n")')" = "$([[ $results != [sb]* ]] || echo hi)" ]
		[ "$(sp_get '.result._meta["sallyport/result"].stdout // "" | rtrimstr("\n")')" = "$([[ $results == [sn]* ]] || echo hi)" ]
		sp_stop "$SP_GATEWAY_PID"
	done
}
