#!/usr/bin/env bats
# shellcheck disable=SC2154 # bats sets stderr
# `sallyport upstream add`: from a client's file to a server whose tools programs call.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	sp_setup
	chmod 755 "$SP_DIR"
	PATH=$PWD/jail/runners/npm/node_modules/.bin:$PATH
	PLACE=$(mktemp -d "$([ -w /srv ] && echo /srv || echo "$HOME")/sallyport-add-XXXXXX") # a jail has its own /tmp
	chmod 755 "$PLACE"
	SHOWN=$PLACE/docs
	mkdir -p "$SHOWN" "$SP_DIR/package"
	echo 'what they read' >"$SHOWN/a.txt"
	echo '{"name": "@test/reader", "version": "1.0.0", "bin": {"reader": "server.mjs"}}' >"$SP_DIR/package/package.json"
	cat >"$SP_DIR/package/server.mjs" <<-'END'
		import fs from 'node:fs';
		import readline from 'node:readline';
		const folder = process.argv[2];
		if (!fs.existsSync(folder)) throw new Error(`Cannot open ${folder}: it is not there`);
		const tool = (name, annotations) => ({ name, annotations, inputSchema: { type: 'object' } });
		const results = {
			initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'r', version: '1' } }),
			'tools/list': () => ({ tools: [tool('read_it', {}), tool('remove_it', { destructiveHint: true })] }),
			'tools/call': ({ name }) => ({ content: [{ type: 'text', text: JSON.stringify({ name, text: fs.readFileSync(`${folder}/a.txt`, 'utf8'), lines: [{ number: 1 }] }) }] }),
		};
		for await (const line of readline.createInterface({ input: process.stdin })) {
			const { id, method, params } = JSON.parse(line);
			if (id === undefined) continue;
			const result = results[method]?.(params);
			console.log(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: 'no' } }) }));
		}
	END
	jq -n --arg package "$SP_DIR/package" --arg shown "$SHOWN" '{mcpServers: {reader: {command: "npx", args: ["-y", $package, $shown]}}}' >"$SP_DIR/paste.json"
	jq '.jailer.socket = ""' "$SP_CONFIG" | sed '1s|.*|{ // by hand|' >"$SP_DIR/c" && mv "$SP_DIR/c" "$SP_CONFIG"
}

teardown() {
	sp_teardown
	rm -rf "$PLACE"
}

@test "a pasted file becomes servers that programs call" {
	command -v npm >/dev/null || skip "no npm"
	run --separate-stderr sp_cli upstream add --paste "$SP_DIR/paste.json" --yes
	[[ $status = 1 && $stderr == *'/servers/reader cannot be shown: a jail has its own /tmp. Name a directory elsewhere' ]] || { echo "$stderr"; false; }
	run --separate-stderr sp_cli upstream add --paste "$SP_DIR/paste.json" --into "$PLACE" </dev/null
	[ "$status" = 1 ]
	[[ $stderr == *"reader will read $SHOWN and everything below it"*'there is nobody to ask: --yes agrees'* ]] || { echo "$stderr"; false; }
	[ ! -e "$SP_DIR/upstream.json" ]
	run --separate-stderr sp_cli upstream add --paste "$SP_DIR/paste.json" --into "$PLACE" --yes
	[ "$status" = 0 ] || { echo "$output $stderr"; false; }
	[[ $output == 'reader: ok: 2 tools, 0 left out; '*'; allow 1: read_it; ask 1: remove_it' ]]
	[ "$(stat -c %a "$SP_DIR/upstream.json")" = 600 ]
	grep -q '// by hand' "$SP_CONFIG"
	# Programs call it without anybody who could be asked.
	echo 'print(tools.reader.read_it()["text"], tools.reader.remove_it()["name"])' >"$SP_DIR/p.py"
	run --separate-stderr sp_cli run --servers reader "$SP_DIR/p.py"
	[ "$output" = $'what they read\n remove_it' ] || { echo "$output $stderr"; false; }
	echo 'console.log((await tools.reader.readIt()).lines[0].number)' >"$SP_DIR/p.mjs"
	run sp_cli run --servers reader -l javascript "$SP_DIR/p.mjs"
	[ "$output" = 1 ]
	# What fails shows the program's own lines.
	printf 'function go() {\n\treturn tools.reader.nothing();\n}\ngo();\n' >"$SP_DIR/p.mjs"
	run sp_cli run --servers reader -l javascript "$SP_DIR/p.mjs"
	[[ $output == *'server reader has no tool nothing'*'at go (/code/main.js:2:'* && $output != *'    at'*node_modules/tools* ]] || { echo "$output"; false; }
	printf 'def go():\n    tools.reader.nothing()\ngo()\n' >"$SP_DIR/p.py"
	run sp_cli run --servers reader "$SP_DIR/p.py"
	[[ $output == *'File "/code/main.py", line 2, in go'*'has no tool nothing'* && $output != */code/tools* ]] || { echo "$output"; false; }
	# A second one of the name is refused; what is there stays.
	run --separate-stderr sp_cli upstream add --paste "$SP_DIR/paste.json" --yes
	[ "$status" = 1 ]
	[[ $stderr == *'has a server reader already'* ]]
	# A command, as the client has it; of a folder that is not there the cause is named.
	cp "$SP_DIR/package/server.mjs" "$PLACE"
	run --separate-stderr "$SP_BIN/sallyport" upstream add --config "$SP_CONFIG" --yes second -- node "$PLACE/server.mjs" /nowhere
	[[ $status = 1 && $stderr == *"is below $PLACE: jails are shown folders side by side"* ]] || { echo "$output $stderr"; false; }
	mkdir "$PLACE/own" && mv "$PLACE/server.mjs" "$PLACE/own"
	run --separate-stderr "$SP_BIN/sallyport" upstream add --config "$SP_CONFIG" --yes second -- node "$PLACE/own/server.mjs" /nowhere
	[ "$status" = 1 ] || { echo "$status $output $stderr"; false; }
	[[ $output == 'second: unavailable: '*'it wrote: Error: Cannot open /nowhere: it is not there (/nowhere is not in the server'*'name its folder in upstream.binds)' ]] || { echo "$output $stderr"; false; }
	jq -e '.mcpServers | keys == ["reader", "second"]' "$SP_DIR/upstream.json"
}

@test "what cannot be added is refused" {
	echo '{"mcpServers": {"d": {"command": "docker", "args": ["run", "x"]}}}' >"$SP_DIR/paste.json"
	run --separate-stderr sp_cli upstream add --paste "$SP_DIR/paste.json" --yes
	[ "$status" = 1 ]
	[[ $stderr == *'docker cannot work in a jail'* ]]
	run --separate-stderr "$SP_BIN/sallyport" upstream add --config "$SP_CONFIG"
	[ "$status" = 2 ]
	[[ $stderr == *'upstream add takes --paste FILE, or NAME -- COMMAND'* ]]
	[ ! -e "$SP_DIR/upstream.json" ]
}
