#!/usr/bin/env bats
# shellcheck disable=SC2016 # dollars in the programs are not for this shell
# Skills (io.modelcontextprotocol/skills): entries, digests, folders, both eras, scopes; and what a skill says to run runs.

bats_require_minimum_version 1.5.0
load lib.bash
load gateway.bash

# legacy METHOD PARAMS: without a session.
legacy() {
	printf '{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}' "$1" "$2" | sp_http POST /mcp
}

@test "each file of each skill is what its entry says" {
	modern skills/list ''
	[ "$(sp_get '[.result.skills[].uri] | join(" ")')" = "skill://run-code/SKILL.md skill://grade/SKILL.md" ]
	[ "$(sp_get '.result | .resultType + .cacheScope')" = completeprivate ]
	cp "$SP_DIR/body" "$SP_DIR/list"
	while read -r uri digest size; do
		modern resources/read "\"uri\":\"$uri\"," "$uri"
		jq -j '.result.contents[0].text' "$SP_DIR/body" >"$SP_DIR/file"
		[ "$(sha256sum <"$SP_DIR/file")" = "${digest#sha256:}  -" ]
		[ "$(wc -c <"$SP_DIR/file")" = "$size" ]
		cmp "$SP_DIR/file" "$BATS_TEST_DIRNAME/../../cgi/tool/skills/${uri#skill://}"
		if [[ $uri == */SKILL.md ]]; then
			jq -e --slurpfile list "$SP_DIR/list" --arg uri "$uri" '. == ($list[0].result.skills[] | select(.uri == $uri).frontmatter)' \
				<(python3 -c 'import json, sys, yaml; print(json.dumps(next(yaml.safe_load_all(open(sys.argv[1])))))' "$SP_DIR/file")
		fi
	done < <(jq -r '.result.skills[].resources[] | "\(.uri) \(.digest) \(.size)"' "$SP_DIR/list")
	modern skills/get '"uri":"skill://grade/SKILL.md",'
	jq -e --slurpfile list "$SP_DIR/list" '.result.skill == $list[0].result.skills[1]' "$SP_DIR/body"
}

@test "only folders of skills are listed" {
	modern resources/directory/read '"uri":"skill://grade",'
	[ "$(sp_get '[.result.resources[] | .name + " " + .mimeType] | join(", ")')" = "grade text/markdown, scripts inode/directory" ]
	modern resources/directory/read '"uri":"skill://grade/scripts",'
	[ "$(sp_get '[.result.resources[] | .uri + " " + .mimeType] | join(", ")')" = "skill://grade/scripts/judge.py text/plain" ]
	for uri in skill:// skill:/ skill:/// skill://grade/ skill://gra skill://grade/SKILL.md skill://none sallyport://conversation/c; do
		modern resources/directory/read "\"uri\":\"$uri\","
		[ "$(sp_get .error.code)" = -32602 ] || sp_die "$uri: $(<"$SP_DIR/body")"
	done
	for uri in skill://grade skill://grade/scripts/judge.py skill://none/SKILL.md; do
		modern skills/get "\"uri\":\"$uri\","
		[ "$(sp_get .error.code)" = -32602 ]
	done
	modern skills/list '"cursor":"x",'
	[ "$(sp_get .error.code)" = -32602 ]
}

@test "clients of both eras find each SKILL.md" {
	local server='{"directoryRead":true}'
	modern server/discover ''
	[ "$(sp_get '.result.capabilities.extensions["io.modelcontextprotocol/skills"] | tojson')" = "$server" ]
	legacy initialize '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}'
	[ "$(sp_get '.result.capabilities.extensions["io.modelcontextprotocol/skills"] | tojson')" = "$server" ]
	legacy skills/list '{}'
	[ "$(sp_get '.result | keys | join(" ")')" = skills ]
	legacy skills/get '{"uri":"skill://run-code/SKILL.md"}'
	[ "$(sp_get .result.skill.frontmatter.name)" = run-code ]
	legacy resources/list '{}'
	[ "$(sp_get '[.result.resources[] | select(.uri | startswith("skill://")) | .name] | join(" ")')" = "run-code grade" ]
}

@test "a token needs the scope that reading needs" {
	SP_TOKEN=$("$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner alice --scope run)
	export SP_TOKEN
	for method in skills/list skills/get resources/directory/read; do
		legacy "$method" '{"uri":"skill://grade/SKILL.md"}'
		[ "$SP_STATUS" = 403 ]
	done
}

@test "the judge that the skill grade names gives each case its verdict" {
	local code cases='[{"stdin":"2","expected":"4"},{"stdin":"3","expected":"9  \n\n"},{"stdin":"0","expected":"1"},{"stdin":"x","expected":""},{"stdin":"-1","expected":""}]'
	local solution='n = int(input())\nwhile n < 0: pass\nprint(n * n)'
	modern resources/read '"uri":"skill://grade/scripts/judge.py",' skill://grade/scripts/judge.py
	code=$(sp_get '.result.contents[0].text')
	sp_call run_code "$(jq -cn --arg code "$code" --arg cases "$cases" --arg solution "$(printf '%b' "$solution")" \
		'{conversationId: "g", language: "python", code: $code, args: ["cases.json", "2", "python3", "solution.py"],
		files: [{filename: "cases.json", content: $cases}, {filename: "solution.py", content: $solution}]}')"
	[ "$(sp_get '[.result.content[].text] | join("\n")' | grep -oE '^(case [0-9]+: [A-Z]+|[0-9]+ of .*)' | paste -sd,)" = \
		"case 1: AC,case 2: AC,case 3: WA,case 4: RE,case 5: TLE,2 of 5 passed" ]
}
