#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2154 # dollars in the programs are not for this shell; `printed` is from workspace.bash
# sallyport stdio --workspace: others write in the folder at the same time: people, programs, a second server.

bats_require_minimum_version 1.5.0
load lib.bash
load workspace.bash

@test "a second writer loses nothing" {
	for f in changed replaced removed_by_us removed_by_him touched; do echo "$f 1" >"$W/$f"; done
	start
	send run_code "$(jq -cn --arg code 'for f in changed replaced touched removed_by_him; do echo ours >$f; done; rm removed_by_us; echo ours >made_by_both; echo ours >same; touch /data/started; while [ ! -e /tmp/never ]; do sleep 0.05; n=$((n+1)); [ $n -lt 60 ] || break; done' '{language: "bash", code: $code}')"
	sp_until "" started_run
	echo "his change" >"$W/changed"
	echo "his replacement" >"$W/r.tmp" && mv "$W/r.tmp" "$W/replaced"
	echo "his too" >"$W/removed_by_us"
	rm "$W/removed_by_him"
	echo his >"$W/made_by_both"
	echo ours >"$W/same"
	touch "$W/touched" # a new time is no new content
	receive
	[ "$(cat "$W/changed" "$W/replaced" "$W/removed_by_us" "$W/made_by_both")" = $'his change\nhis replacement\nhis too\nhis' ]
	[ "$(cat "$W/changed.sallyport" "$W/replaced.sallyport" "$W/made_by_both.sallyport")" = $'ours\nours\nours' ]
	[ "$(cat "$W/touched" "$W/removed_by_him" "$W/same")" = $'ours\nours\nours' ]
	[ ! -e "$W/same.sallyport" ] && [ ! -e "$W/touched.sallyport" ]
	[[ $output == *'workspace: "changed" was changed in the folder meanwhile and stays as it is there; the other version is "changed.sallyport" next to it'* ]]
	[[ $output == *'"removed_by_us" was changed in the folder meanwhile, so it was not removed'* ]]
	# From now on his is what programs see; a second conflict gets a name of its own.
	run_bash 'cat changed changed.sallyport'
		[ "$output" = $'his change\nours' ]
	stop
}

started_run() {
	[ "$(sqlite3 -readonly -cmd '.timeout 60000' "$XDG_DATA_HOME/sallyport/sallyport.db" "select count(*) from execution where state = 'running'" 2>/dev/null)" = 1 ]
}

# Two desktop programs on one folder. The other server's calls are answered one by one, in $HOME_DIR/other.out.
start_other() {
	mkfifo "$HOME_DIR/other.in"
	: >"$HOME_DIR/other.out"
	"$SP_BIN/sallyport" stdio --workspace "$W" <"$HOME_DIR/other.in" >"$HOME_DIR/other.out" 2>>"$HOME_DIR/log" 3>&- &
	OTHER=$!
	exec {OTHER_IN}>"$HOME_DIR/other.in"
}

other_runs() { # CODE
	local before
	before=$(wc -l <"$HOME_DIR/other.out")
	jq -cn --arg code "$1" --argjson meta "{$META}" '{jsonrpc: "2.0", id: 1, method: "tools/call", params: ({name: "run_code", arguments: {language: "bash", code: $code}} + $meta)}' >&"$OTHER_IN" ||
		{ cat "$HOME_DIR/log" && false; }
	answered() { [ "$(wc -l <"$HOME_DIR/other.out")" -gt "$before" ]; }
	sp_until "$OTHER" answered || { cat "$HOME_DIR/log" && false; }
	texts "$(tail -n 1 "$HOME_DIR/other.out")"
}

@test "two servers on one folder lose nothing" {
	echo before >"$W/both"
	start
	send run_code "$(jq -cn --arg code "echo first >both; echo first >only_first; sleep $SP_ASLEEP; true" '{language: "bash", code: $code, timeout_seconds: 300}')"
	sp_until "$PID" sp_asleep
	start_other
	other_runs 'cat both; echo second >both; echo second >only_second'
	[ "$printed" = before ] || [[ $printed == before$'\n'* ]]
	sp_wake
	receive
	[ "$(cat "$W/both" "$W/both.sallyport" "$W/only_first" "$W/only_second")" = $'second\nfirst\nfirst\nsecond' ]
	[[ $output == *'"both" was changed in the folder meanwhile and stays as it is there'* ]]
	# From now on each sees what the other did.
	run_bash 'cat both only_second; echo more >>only_second'
	[[ $printed == $'second\nsecond'* ]]
	other_runs 'cat only_first only_second; rm only_first'
	[[ $printed == $'first\nsecond\nmore'* ]]
	run_bash 'ls'
	[[ $printed == $'both\nboth.sallyport\nonly_second'* ]]
	exec {OTHER_IN}>&-
	wait "$OTHER"
	stop
}

@test "writers who never stop lose no version" {
	for i in 1 2 3 4 5 6 7 8; do echo "0" >"$W/f$i"; done
	start
	# He writes numbers to all files by rename, and notes what he wrote last; no number may vanish before the next one.
	(
		n=0
		while [ ! -e "$HOME_DIR/stop" ]; do
			n=$((n + 1))
			for i in 1 2 3 4 5 6 7 8; do
				echo "his $n" >"$HOME_DIR/w$i"
				mv "$HOME_DIR/w$i" "$W/f$i"
			done
		done
		echo "$n" >"$HOME_DIR/last"
	) &
	writer=$!
	for _ in 1 2 3; do
		run_bash 'for i in 1 2 3 4 5 6 7 8; do echo ours >f$i; done'
	done
	touch "$HOME_DIR/stop"
	wait "$writer"
	last=$(cat "$HOME_DIR/last")
	for i in 1 2 3 4 5 6 7 8; do
		grep -qxF "his $last" "$W/f$i" "$W"/f"$i".sallyport*
	done
	run find "$W" -name '*.tmp'
	[ -z "$output" ]
	stop
}
