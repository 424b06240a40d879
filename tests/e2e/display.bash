# display.bash - what the tests of shown values share: a gateway, and runs of it.
# shellcheck shell=bash disable=SC2034,SC2154 # for who loads it; `output` is from bats

setup_file() {
	sp_setup
	sp_start_jailer
	sp_start_gateway
	sp_token alice
}

teardown_file() {
	sp_teardown
}

# value LANGUAGE CODE [MEMBERS]: runs it; what it printed is in $SHOWN.
value() {
	sp_call run_code "$(jq -cn --arg language "$1" --arg code "$2" --argjson more "${3:-{\}}" '{conversationId: "d", $language, $code} + $more')"
	SHOWN=$(sp_get "(details.stdout + (details.value // \"\"))")
}

verdict() {
	[ "$(sp_get details.verdict)" = "$1" ]
}

# Every run that ended well does the same again.
replays_the_same() {
	run -0 "$SP_BIN/sallyport" replay --config "$SP_CONFIG" --conversation d --verdict OK --json
	jq -s -e 'map(select(.status == "changed" or .changed)) | length == 0' <<<"$output"
}
