#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2154 # dollars in the programs are not for this shell; `printed` is from workspace.bash
# sallyport stdio --workspace: a folder whose files are the conversation's; other writers there; bad folders.

bats_require_minimum_version 1.5.0
load lib.bash
load workspace.bash

@test "programs see and change the folder" {
	mkdir -p "$W/sub/deep"
	echo one >"$W/a.txt"
	printf '#!/bin/sh\necho tool\n' >"$W/sub/tool"
	chmod 0755 "$W/sub/tool"
	echo bytes >"$W"/$'caf\xe9\n.txt' # no UTF-8, and a line end
	start
	printf '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{%s}}\n' "$META" >&"$IN"
	read -r -t "$SP_DEADLINE" -u "$OUT" result
	[ "$(jq '[.result.tools[].inputSchema.properties | has("conversationId")] | any' <<<"$result")" = false ]
	jq -r '.result.tools[] | select(.name == "run_code") | .description' <<<"$result" >"$HOME_DIR/description"
	run ! grep -E 'FILE_BASE_URL|conversationId' "$HOME_DIR/description"
	grep -q "the user's folder" "$HOME_DIR/description"
	printf '{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{%s}}\n' "$META" >&"$IN"
	read -r -t "$SP_DEADLINE" -u "$OUT" result
	jq -r .result.instructions <<<"$result" | grep -F "$W"

	run_bash 'cat a.txt; ./sub/tool; cat caf*; echo two >>a.txt; mkdir -p new/x; echo n >new/x/f; rm sub/tool; chmod 600 a.txt; printf "\xff" >$(printf "\xfe")'
	[[ $output == *$'one\ntool\nbytes'* ]]
	[[ $output == *"new new/x/f (application/octet-stream, 2 bytes) $W/new/x/f"* ]]
	[ "$(cat "$W/a.txt")" = $'one\ntwo' ]
	[ "$(stat -c %a "$W/a.txt")" = 600 ]
	[ "$(cat "$W/new/x/f")" = n ]
	[ ! -e "$W/sub/tool" ]
	[ -d "$W/sub/deep" ] # an empty folder is none of ours
	[ "$(od -An -tx1 "$W"/$'\xfe')" = " ff" ]
	run find "$W" -name '.sallyport*'
	[ -z "$output" ]

	# What the user changes is there for the next call, also in the tools that only read; what he removes is gone.
	echo his >"$W/b.txt"
	rm "$W/new/x/f"
	call list_files '{}'
	[[ $output == *b.txt* ]]
	[[ $output != *x/f* ]]
	call read_file '{"path":"b.txt"}'
	[[ $output == *his* ]]
	run_bash 'cat b.txt; ls new/x'
	[[ $output == *his* ]]
	[[ $output == *"No such file"* ]]
	stop
}

@test "the file tools change the folder" {
	echo one >"$W/a.txt"
	start
	run_bash 'echo two >a.txt; echo new >b.txt; echo "$FILE_BASE_URL."'
	[[ $printed == .* ]]
	first=$(jq -r '.result.structuredContent.execution_id' <<<"$result")
	call write_file '{"path":"d/c.txt","content":"written"}'
	[[ $output == *"$W/d/c.txt"* ]]
	[ "$(cat "$W/d/c.txt")" = written ]
	call delete_files '{"paths":["b.txt"]}'
	[ ! -e "$W/b.txt" ]
	call diff "{\"executionId\":\"$first\"}"
		[[ $output == *-one*+two* ]]
	call upload_file "{\"filename\":\"u\",\"content\":\"$(printf up | base64)\"}"
	[ "$(cat "$W/u")" = up ]
	call run_code '{"language":"bash","code":"true","files":[{"filename":"given/x","content":"g"}]}'
	[ "$(cat "$W/given/x")" = g ]
	stop
	echo between >"$W/a.txt"
	start
	call restore_files "{\"executionId\":\"$first\",\"state\":\"before\"}"
	[ "$(cat "$W/a.txt")" = one ]
	[ ! -e "$W/d" ]
	stop
	# What the user had written before the restore is in the record: the state that the restore's reading found.
	[ "$(sqlite3 -readonly "$XDG_DATA_HOME/sallyport/sallyport.db" "SELECT count(*) FROM audit WHERE entry LIKE '%file.workspace%'")" -ge 2 ]
	"$SP_BIN/sallyport" verify "$XDG_DATA_HOME/sallyport"
}

@test "a session sees what the user changes between its calls" {
	echo 1 >"$W/n"
	start
	call run_code '{"language":"python","session":true,"code":"x = open(\"n\").read(); print(x)"}'
	[[ $printed == 1* ]]
	echo 2 >"$W/n"
	call run_code '{"language":"python","session":true,"code":"print(x, open(\"n\").read()); open(\"n\", \"w\").write(\"3\")"}'
	[[ $output == *2* ]]
	[ "$(cat "$W/n")" = 3 ]
	stop
}

@test "ignored files are left alone" {
	mkdir -p "$W/.git" "$W/node_modules/p" "$W/src/.GIT" "$W/build" "$HOME_DIR/outside"
	echo secret >"$HOME_DIR/outside/s"
	echo ref >"$W/.git/HEAD"
	echo key >"$W/.env"
	echo x >"$W/node_modules/p/x"
	echo o >"$W/src/a.o"
	echo keep >"$W/build/keep"
	echo c >"$W/src/a.c"
	ln -s "$HOME_DIR/outside" "$W/out"
	ln -s "$HOME_DIR/outside/s" "$W/link.txt"
	mkfifo "$W/pipe"
	printf '# comment\nnode_modules/\n*.o\n.env\n/build/\n' >"$W/.sallyportignore"
	start
	run_bash 'find . -type f | sort; mkdir -p .git/hooks out; echo evil >.git/hooks/x; echo "" >.sallyportignore; echo p >out/s; echo q >link.txt; echo r >b.o; echo s >.env; mkdir build; echo t >build/t; echo u >pipe'
	[[ $printed == ./src/a.c* ]]
	[ ! -e "$W/.git/hooks" ]
	[ "$(grep -c . "$W/.sallyportignore")" = 5 ]
	[ "$(cat "$HOME_DIR/outside/s")" = secret ]
	[ ! -e "$W/b.o" ]
	[ "$(cat "$W/.env")" = key ]
	[ ! -e "$W/build/t" ]
	[ -L "$W/link.txt" ] && [ -L "$W/out" ] && [ -p "$W/pipe" ]
	[ "$(cat "$W/link.txt.sallyport")" = q ] # next to what is not ours
	[[ $output == *"are left alone"* ]]
	[[ $output == *'"out/s" is not written to the folder (a file or a link is where its folder would be)'* ]]
	printf '!keep\n' >"$W/.sallyportignore"
	run_bash true
	fails
	[[ $output == *".sallyportignore line 1"* ]]
	stop
}

refused() { # SENTENCE
	run "$SP_BIN/sallyport" stdio --workspace "$W" </dev/null
	[ "$status" -ne 0 ]
	[[ $output == *"$1"* ]]
}

@test "folders that cannot be one are refused at the start" {
	mv "$W" "$HOME_DIR/real"
	refused 'No such file or directory'
	ln -s "$HOME_DIR/real" "$W"
	refused "is a link, and a workspace follows none: name the folder itself, $HOME_DIR/real"
	W=$HOME_DIR/work/
	refused 'is a link'
	echo x >"$HOME_DIR/real/file"
	W=$HOME_DIR/real/file
	refused 'is not a folder'
	W=$HOME_DIR
	refused 'the record (data_dir'
	W=/
	refused 'the record (data_dir'
	mkdir "$HOME_DIR"/$'\xff'
	W=$HOME_DIR/$'\xff'
	refused 'must be UTF-8'
	run -2 "$SP_BIN/sallyport-gateway" --workspace /tmp
	# A link above it is the user's affair.
	ln -s "$HOME_DIR" "$HOME_DIR/up"
	W=$HOME_DIR/up/real
	start
	run_bash 'cat file'
	[[ $printed == x* ]]
	stop
}

@test "a folder that goes is refused" {
	echo x >"$W/f"
	start
	run_bash 'cat f'
	mv "$W" "$W.old"
	run_bash true
	fails
	[[ $output == *"cannot be seen any more"* ]]
	mkdir "$W"
	run_bash true
	fails
	[[ $output == *"another folder than at the start"* ]]
	rmdir "$W"
	mv "$W.old" "$W"
	run_bash 'cat f'
	[[ $printed == x* ]]
	stop
}

@test "a folder has bounds of number, size and depth" {
	mkdir "$W/node_modules"
	(cd "$W/node_modules" && seq 100000 | xargs touch)
	echo x >"$W/f"
	start
	run_bash 'echo never >g'
	fails
	[[ $output == *'more than 4095 files and folders'*'most are in "node_modules": name what programs do not need in .sallyportignore'* ]]
	[ ! -e "$W/g" ]
	call list_files '{}'
	fails
	echo node_modules/ >"$W/.sallyportignore"
	run_bash 'ls'
	[[ $printed == f* ]]
	truncate -s 65M "$W/big.bin"
	run_bash 'echo never >g'
	fails
	[[ $output == *'more than 64 MiB of files'*'the largest is "big.bin" (68157440 bytes)'* ]]
	echo big.bin >>"$W/.sallyportignore"
	path=$W
	for _ in $(seq 300); do path+=/d; done
	mkdir -p "$path"
	run_bash 'echo never >g'
	fails
	[[ $output == *'is more than 63 levels deep'* ]]
	rm -r "$W/d"
	run_bash 'ls; echo now >g'
	[[ $printed == f* ]]
	[ "$(cat "$W/g")" = now ]
	[ "$(find "$W/node_modules" -type f | wc -l)" = 100000 ]
	stop
}

@test "a file that nobody may read is named" {
	[ "$(id -u)" != 0 ] || skip "root reads everything"
	echo x >"$W/locked"
	chmod 0 "$W/locked"
	start
	run_bash true
	fails
	[[ $output == *'"locked" of the workspace cannot be read'* ]]
	stop
}

@test "a full or read-only folder is written later" {
	[ "$(id -u)" = 0 ] || skip "mounts need root"
	mkdir "$HOME_DIR/small"
	mount -t tmpfs -o size=1m,nr_inodes=64 tmpfs "$HOME_DIR/small" || skip "no mounts here"
	W=$HOME_DIR/small
	echo keep >"$W/keep"
	head -c 900000 /dev/zero >"$W/fill"
	start
	run_bash 'head -c 500000 /dev/urandom >big; echo changed >keep; echo x >small'
	[[ $output == *'workspace: "big" is not written to the folder (No space left on device): the record has it, and the next call tries again'* ]]
	[ "$(cat "$W/keep")" = changed ]
	[ ! -e "$W/big" ]
	run_bash 'wc -c big' # programs have it all the same
	[[ $output == *"500000 big"* ]]
	rm "$W/fill"
	run_bash 'wc -c <big'
	[[ $output == *500000* ]]
	[ "$(stat -c %s "$W/big")" = 500000 ]
	mount -o remount,ro "$W"
	run_bash 'echo 2 >small; rm keep; ls'
	[[ $output == *'"small" is not written to the folder (Read-only file system)'* ]]
	[[ $output == *'"keep" is not removed from the folder (Read-only file system)'* ]]
	[ "$(cat "$W/keep" "$W/small")" = $'changed\nx' ]
	call write_file '{"path":"w","content":"w"}'
	fails
	[[ $output == *'"w" is not written to the folder (Read-only file system)'* ]]
	mount -o remount,rw "$W"
	echo his >"$W/keep" # meanwhile: he wants it
	run_bash 'cat small w'
	[[ $printed == 2*w* ]]
	[ "$(cat "$W/keep" "$W/small" "$W/w")" = $'his\n2\nw' ]
	stop
}

@test "a killed process leaves the folder whole" {
	for i in $(seq 200); do echo "old $i" >"$W/f$i"; done
	start
	touch "$W/.sallyport-999999999-0.tmp" # of a process that is gone
	send run_code "$(jq -cn --arg code 'for i in $(seq 200); do echo "new $i" >f$i; done' '{language: "bash", code: $code}')"
	sp_until "" one_written
	kill -KILL "$PID"
	wait "$PID" || true
	for i in $(seq 200); do grep -qxE "(old|new) $i" "$W/f$i"; done
	start
	run_bash 'cat f* | wc -l'
	[[ $printed == 200* ]]
	run find "$W" -name '.sallyport-*'
	[ -z "$output" ]
	stop
}

one_written() {
	grep -qs '^new' "$W"/f*
}

@test "a folder that a program makes into a repository runs nothing on this machine" {
	command -v git >/dev/null || skip "no git here"
	mkdir "$W/docs"
	echo page >"$W/docs/page"
	start
	run_bash "cd docs && mkdir objects refs && touch objects/.keep refs/.keep && echo 'ref: refs/heads/main' >HEAD &&
		printf '[core]\nrepositoryformatversion = 0\nbare = false\nworktree = .\nfsmonitor = \"touch $HOME_DIR/pwned;false\"\n' >config"
	[[ $output == *'workspace: "docs/HEAD" is not written: programs of this machine run or obey files of that name; the new version is "HEAD.sallyport" next to it. To let it through: --workspace-allow'* ]]
	[ ! -e "$W/docs/HEAD" ]
	[ -e "$W/docs/HEAD.sallyport" ] && [ -e "$W/docs/config" ] && [ -e "$W/docs/objects/.keep" ]
	(cd "$W/docs" && GIT_CEILING_DIRECTORIES=$HOME_DIR git status || true)
	[ ! -e "$HOME_DIR/pwned" ]
	stop
}

@test "below a repository of the user's nothing is written in place" {
	mkdir -p "$W/repo.git/hooks"
	echo 'ref: refs/heads/main' >"$W/repo.git/HEAD"
	echo '[core]' >"$W/repo.git/config"
	start
	run_bash 'echo x >>repo.git/config; echo y >repo.git/hooks/post-checkout; echo z >z'
	[ "$(cat "$W/repo.git/config")" = '[core]' ]
	[ ! -e "$W/repo.git/hooks/post-checkout" ]
	[ "$(cat "$W/z")" = z ]
	stop
}

@test "files that host tools run are put next to their names" {
	mkdir "$W/.vscode"
	echo '{}' >"$W/.vscode/tasks.json"
	start
	run_bash 'cat .vscode/tasks.json; for f in .envrc .vscode/tasks.json .GIT. git~1 AGENTS.md Makefile; do echo bad >"$f"; done'
	[[ $printed == '{}'* ]]
	[ "$(cat "$W/.vscode/tasks.json")" = '{}' ]
	for name in .envrc AGENTS.md Makefile .vscode/tasks.json; do
		[ "$(cat "$W/$name.sallyport")" = bad ]
		[ "$name" = .vscode/tasks.json ] || [ ! -e "$W/$name" ]
	done
	[ ! -e "$W/.GIT." ] && [ ! -e "$W/git~1" ]
	run_bash 'echo bad >AGENTS.md; rm .vscode/tasks.json'
	[ ! -e "$W/AGENTS.md.sallyport-2" ]
	[[ $output == *'".vscode/tasks.json" is not removed: programs of this machine run or obey files of that name'* ]]
	[ -e "$W/.vscode/tasks.json" ]
	echo 'all:' >"$W/Makefile" # it is there now: programs may edit it
	run_bash 'echo edited >>Makefile'
	[ "$(cat "$W/Makefile")" = $'all:\nedited' ]
	stop
}

@test "--workspace-allow lets a name through" {
	coproc SERVER { exec "$SP_BIN/sallyport" stdio --workspace "$W" --workspace-allow .envrc --workspace-allow docs/ 2>>"$HOME_DIR/log" 3>&-; }
	exec {IN}>&"${SERVER[1]}" {OUT}<&"${SERVER[0]}"
	PID=$SERVER_PID
	run_bash 'mkdir docs; echo ok >docs/HEAD; echo ok >.envrc; echo no >.bashrc'
	[ "$(cat "$W/docs/HEAD" "$W/.envrc")" = $'ok\nok' ]
	[ ! -e "$W/.bashrc" ]
	stop
}

@test "a hard link to a file outside is left alone" {
	echo secret >"$HOME_DIR/outside"
	ln "$HOME_DIR/outside" "$W/link"
	echo both >"$W/a" && ln "$W/a" "$W/b" # both names are in the workspace
	start
	run_bash 'ls; cat a b; echo mine >link'
	[[ $printed == a$'\n'b$'\n'both$'\n'both* ]]
	[ "$(cat "$HOME_DIR/outside" "$W/link")" = $'secret\nsecret' ]
	[ "$(cat "$W/link.sallyport")" = mine ]
	stop
}
