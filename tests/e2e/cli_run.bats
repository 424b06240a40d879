#!/usr/bin/env bats
# sallyport run, with a private jailer: options, streams, files, exit codes, the meta file, Ctrl-C.
# shellcheck disable=SC2016 # programs in single quotes are meant for the jail

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_private_jailers
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

sallyport() {
	"$SP_BIN/sallyport" "$@"
}

# program NAME: standard input becomes a file here
program() {
	cat >"$1"
}

meta() {
	sed -n "s/^$1://p" meta
}

@test "output goes where it belongs, the exit code is the program's" {
	program both.sh <<<'echo out; echo err >&2; exit 7'
	run -7 --separate-stderr sallyport run both.sh
	[ "$output" = out ]
	[ "$stderr" = err ]
	run -7 --separate-stderr sallyport run --timeout 10 both.sh --memory 64 --env X=1 -l bash -- one # options on both sides
	[ "$output" = out ]
}

@test "the program comes from a pipe, its arguments stand behind --" {
	run -0 sallyport run -l python - -- --title "a b" '' <<<'import sys; print(sys.argv[1:])'
	[ "$output" = "['--title', 'a b', '']" ]
}

@test "/mnt/data is /data" {
	echo in >in.txt
	run -0 sallyport run -l python -f in.txt -o out - <<<'open("/mnt/data/out.txt", "w").write(open("/mnt/data/in.txt").read())'
	[ "$(cat out/out.txt)" = in ]
	run ! sallyport run -l bash - <<<'touch /mnt/x 2>/dev/null'
}

@test "the language comes from --language, the extension or the first line" {
	program hello.py <<<'print("py")'
	run -0 sallyport run hello.py
	[ "$output" = py ]
	program noext <<<$'#!/usr/bin/env -S python3.11 -u\nprint("first line")'
	run -0 sallyport run noext
	[ "$output" = "first line" ]
	program plain <<<'print(1)'
	run -125 sallyport run plain
	[[ $output == *"name it with --language (python,"* || $output == *"name it with --language ("*python* ]]
	run -125 sallyport run -l cobol hello.py
	[[ $output == *"unknown language 'cobol': there are "*python* ]]
}

@test "each outcome has its exit code" {
	run -139 sallyport run -l bash - <<<'kill -SEGV $$'
	run -124 sallyport run -t 0.5 -l bash - <<<'while :; do :; done'
	run -124 sallyport run -t 0.5 -l bash - <<<'read -t 30 < <(sleep 30)'
	[ "$(id -u)" != 0 ] || run -137 sallyport run -m 32 -l python - <<<'x = bytearray(256 << 20)' # the test below says why
	run -137 --separate-stderr sh -c "'$SP_BIN/sallyport' run -t 60 -l bash - <<-END >out
		yes
	END"
	[ "$(stat -c %s out)" -eq $((16 << 20)) ]
	run -125 sallyport run missing.py
	[[ $output == "sallyport: missing.py: No such file or directory" ]]
	run -125 sallyport run --network -l bash - <<<'echo ran'
	[[ $output != *ran* ]]
	run -2 sallyport run --timeout 1s -l bash -
	[[ $output == *"'1s' is not a number of seconds"* ]]
	run -2 sallyport run
	run -2 sallyport run --frob x
	run -125 sallyport run -t 86400 -l bash - <<<true # above the cap of the server: refused, not lowered
	[[ $output == sallyport:* ]]
}

@test "the environment is what the options say" {
	export PASSED='from outside' SECRETISH=kept
	run -0 sallyport run -l bash -e A=1 --env B='x=y z' -e PASSED -e NOT_SET_HERE - <<<'echo "$A|$B|$PASSED|${NOT_SET_HERE-unset}|${SECRETISH-unset}"'
	[ "$output" = '1|x=y z|from outside|unset|unset' ]
	run -125 sallyport run -l bash -e 1A=x - <<<true
	[[ $output == *"--env 1A=x: a name has letters"* ]]
	run -125 sallyport run -l bash -e BIG="$(head -c 40000 /dev/zero | tr '\0' x)" - <<<true
	[[ $output == *"40005 bytes are more than 32768"* ]]
}

@test "files go into /data and come back, names under control" {
	echo 'a,b' >data.csv
	mkfifo fifo
	program files.sh <<-'END'
		cat data.csv in/second.csv
		mkdir -p made/deep && echo new >made/deep/file.txt && chmod 0700 made/deep/file.txt
		echo changed >>data.csv
		rm in/second.csv
		ln -s /etc/passwd link
		echo odd >$'new\nline'
	END
	run -0 --separate-stderr sallyport run --file data.csv --file data.csv:in/second.csv --output-dir out files.sh
	[ "$output" = $'a,b\na,b' ]
	[ "$(cat out/made/deep/file.txt)" = new ]
	[ "$(stat -c %a out/made/deep/file.txt)" = 700 ]
	[ "$(cat out/data.csv)" = $'a,b\nchanged' ]
	[ ! -e out/link ] && [ ! -L out/link ]
	[ "$(find out -type f | wc -l)" = 2 ]
	[[ $stderr == *'not written: new\x0aline'* ]]
	[[ $stderr == *'link'* ]]
	[ "$(cat data.csv)" = a,b ]
	run -125 sallyport run --file fifo files.sh
	[[ $output == *"fifo: is not a regular file"* ]]
	run -125 sallyport run --file data.csv: files.sh
	[[ $output == *"name in /data is empty"* ]]
	run -125 sallyport run --file data.csv:../escape files.sh
	run -125 sallyport run --file nowhere files.sh
	[[ $output == *"--file nowhere: No such file"* ]]
}

@test "what comes back follows no symlink and writes through nothing" {
	mkdir -p out elsewhere
	ln -s ../elsewhere out/sub
	echo precious >victim
	ln victim out/hard
	ln -s ../victim out/soft
	run -0 --separate-stderr sallyport run -o out -l bash - <<<'mkdir sub; for f in sub/x hard soft; do echo guest >$f; done'
	[ "$(cat victim)" = precious ]
	[ -z "$(ls elsewhere)" ]
	[[ $stderr == *"not written: sub/x: writing it: Not a directory"* ]]
	[ "$(cat out/hard)" = guest ] && [ "$(cat out/soft)" = guest ] && [ ! -L out/soft ]
}

@test "standard input reaches the program with --stdin only, live" {
	run -0 sallyport run -l bash - <<<'wc -c'
	[ "$output" = 0 ]
	program count.sh <<<'cat /dev/stdin | wc -c'
	run -0 sh -c "head -c 300000 /dev/zero | '$SP_BIN/sallyport' run --stdin count.sh"
	[ "$output" = 300000 ]
	program head.sh <<<'head -n 1'
	run -0 sh -c "yes | '$SP_BIN/sallyport' run --stdin head.sh"
	[ "$output" = y ]
	run -125 sallyport run --stdin -l bash - <<<true
	[[ $output == *"standard input is the program itself"* ]]
}

@test "output arrives while the program runs" {
	mkfifo to.fifo from.fifo
	program ask.sh <<<'echo ready; read -r answer; echo "got $answer"'
	sallyport run --stdin ask.sh <to.fifo >from.fifo 3>&- &
	exec {to}>to.fifo {from}<from.fifo
	read -r -t "$SP_DEADLINE" line <&"$from"
	[ "$line" = ready ]
	echo yes >&"$to"
	read -r -t "$SP_DEADLINE" line <&"$from"
	[ "$line" = "got yes" ]
	exec {to}>&- {from}<&-
	wait $!
}

@test "Ctrl-C cancels the run" {
	mkfifo pipe
	program wait.sh <<<"echo ready; exec sleep $SP_ASLEEP"
	"$SP_BIN/sallyport" run -t 300 --meta meta wait.sh >pipe 2>err 3>&- &
	local pid=$! code=0
	exec {from}<pipe # stays open: a reader that leaves would end the run, too
	read -r -t "$SP_DEADLINE" line <&"$from"
	[ "$line" = ready ]
	sp_until "" sp_asleep
	kill -INT $pid
	wait $pid || code=$?
	[ "$code" = 130 ]
	[ "$(meta status)" = XX ]
	[ "$(meta killed)" = 1 ]
	sp_until "" sp_none_asleep
}

@test "a killed command takes its jail along" {
	mkfifo pipe
	program wait.sh <<<"echo ready; exec sleep $SP_ASLEEP"
	"$SP_BIN/sallyport" run -t 300 wait.sh >pipe 3>&- &
	local pid=$!
	exec {from}<pipe
	read -r -t "$SP_DEADLINE" line <&"$from"
	sp_until "" sp_asleep
	kill -KILL $pid
	wait $pid || true
	sp_until "" sp_none_asleep
}

@test "a killed jailer ends the run" {
	program wait.sh <<<"exec sleep $SP_ASLEEP"
	"$SP_BIN/sallyport" run -t 300 wait.sh 2>err 3>&- &
	local pid=$! code=0
	sp_until "$pid" sp_asleep
	kill -KILL "$(pgrep -P $pid -f sallyport-jailer)"
	wait $pid || code=$?
	[ "$code" = 125 ]
	sp_until "" sp_none_asleep
	run -0 --separate-stderr sallyport run -l bash - <<<'echo fine'
	[ "$output" = fine ]
	[ -z "$stderr" ]
}

@test "Ctrl-C on a terminal reaches us, not the jailer" {
	mkfifo in out
	program wait.sh <<<"echo ready; exec sleep $SP_ASLEEP"
	script -qec "$SP_BIN/sallyport run -t 300 --meta meta $PWD/wait.sh; echo code \$?" /dev/null <in >out 3>&- &
	exec {to}>in {from}<out
	read -r -t "$SP_DEADLINE" line <&"$from"
	[[ $line == ready* ]]
	printf '\003' >&"$to"
	until [[ $line == code* ]]; do read -r -t "$SP_DEADLINE" line <&"$from"; done
	[[ $line == "code 130"* ]]
	exec {to}>&- {from}<&-
	[ "$(meta killed)" = 1 ] # the jailer answered
}

@test "a reader that leaves ends the run" {
	program more.sh <<<'while echo line; do :; done'
	run -0 sh -c "'$SP_BIN/sallyport' run -t 20 more.sh 2>err | head -n 1"
	[ "$output" = line ]
}

@test "the meta file has isolate's keys" {
	run -0 sallyport run --meta meta -l python - <<<'print(sum(range(2000000)))'
	[[ $(meta time) =~ ^[0-9]+\.[0-9]{3}$ ]] && [[ $(meta time-wall) =~ ^[0-9]+\.[0-9]{3}$ ]]
	[ "$(meta exitcode)" = 0 ]
	[ -z "$(meta status)$(meta exitsig)$(meta killed)$(meta message)" ]
	[ "$(meta csw-voluntary)" -ge 0 ] && [ "$(meta csw-forced)" -ge 0 ]
	[ "$(meta max-rss)" -ge 0 ]
	[ "$(id -u)" != 0 ] || [ "$(meta cg-enabled)" = 1 ]
	if [ "$(meta cg-enabled)" = 1 ]; then [ "$(meta cg-mem)" -ge 0 ]; else [ -z "$(meta cg-mem)" ]; fi
	run -3 sallyport run --meta meta -l bash - <<<'exit 3'
	[ "$(meta status)" = RE ] && [ "$(meta exitcode)" = 3 ] && [ -n "$(meta message)" ]
	run -143 sallyport run --meta meta -l bash - <<<'kill -TERM $$'
	[ "$(meta status)" = SG ] && [ "$(meta exitsig)" = 15 ] && [ -z "$(meta exitcode)" ]
	run -124 sallyport run --meta meta -t 0.3 -l bash - <<<'while :; do :; done'
	[ "$(meta status)" = TO ] && [ "$(meta killed)" = 1 ]
	run -125 sallyport run --meta meta --network -l bash - <<<true
	[ "$(meta status)" = XX ] && [ -n "$(meta message)" ]
	run -125 sallyport run --meta /nowhere/meta -l bash - <<<'echo ran'
	[[ $output == *"--meta /nowhere/meta: No such file"* ]]
}

@test "started with closed descriptors: no file takes the place of standard output" {
	program closed.py <<<'import os; print("said"); print(sorted(os.listdir("/proc/self/fd")))'
	run -0 bash -c "'$SP_BIN/sallyport' run --meta meta closed.py >&- 2>&- <&-"
	[ "$(meta exitcode)" = 0 ]
	run ! grep -q said meta
	run -0 bash -c "'$SP_BIN/sallyport' run --stdin --meta meta closed.py <&- 2>&-"
	[ "${lines[*]}" = "said ['0', '1', '2', '3']" ] # 3: the list itself
	run ! grep -q said meta
}

@test "a grader written for isolate understands the meta file" {
	local grader=(/usr/bin/python3 "$SP_ROOT/tests/data/meta_grader.py" meta)
	# grades CODE WORD OPTION… PROGRAM: the exit code of the run and what the grader says
	grades() {
		local code=$1 word=$2 program=$3
		shift 3
		run "-$code" --separate-stderr sallyport run --meta meta "$@" -l python - <<<"$program"
		run -0 "${grader[@]}"
		# shellcheck disable=SC2053 # a pattern
		[[ $output == $word ]]
	}
	grades 0 'ok|*|*|' 'print(1)'
	grades 3 'nonzero|*|Exited with error status 3' 'import sys; sys.exit(3)'
	grades 139 'signal|*|Caught fatal signal 11' 'import os; os.kill(os.getpid(), 11)'
	grades 124 'wall|*|Time limit exceeded (wall clock)' 'import time; time.sleep(60)' -t 0.5
	run -125 sallyport run --meta meta --network -l python - <<<'1'
	run -0 "${grader[@]}"
	[[ $output == broken* ]]
	[ "$(id -u)" = 0 ] || skip "the rest needs a memory cgroup"
	grades 137 'memory|*|Caught fatal signal 9' 'x = bytearray(256 << 20)' -m 64
}

@test "no cgroup: the meta file has neither of its keys" {
	[ "$(id -u)" = 0 ] || skip "needs root to become an account without a cgroup"
	setpriv --reuid=61239 --regid=61239 --clear-groups test -x "$SP_BIN/sallyport-jailer" || skip "this checkout cannot be reached by another account"
	(umask 0 && : >meta)
	run -0 setpriv --reuid=61239 --regid=61239 --clear-groups env -i SALLYPORT_JAILER_WEAKER_LIMITS=true \
		"$SP_BIN/sallyport" run --meta /dev/fd/9 -l bash - <<<'echo ran' 9<>meta # that account cannot reach this folder by its name
	echo "$output"
	[ "$(meta exitcode)" = 0 ] && [ "$(meta max-rss)" -ge 0 ]
	[ -z "$(meta cg-enabled)$(meta cg-mem)" ]
}

@test "no cgroup: JavaScript engines start within the limit of memory" {
	[ "$(id -u)" = 0 ] || skip "needs root to become an account without a cgroup"
	setpriv --reuid=61239 --regid=61239 --clear-groups test -x "$SP_BIN/sallyport-jailer" || skip "this checkout cannot be reached by another account"
	as_other() { setpriv --reuid=61239 --regid=61239 --clear-groups env -i SALLYPORT_JAILER_WEAKER_LIMITS=true "$SP_BIN/sallyport" run "$@"; }
	run -0 as_other -l javascript - <<<'console.log(1)'
	run as_other -l typescript - <<<'const a: number = 1; console.log(a)'
	[ "$status" != 125 ] || [[ $output != *"not installed"* ]] || skip "bun is not installed"
	[ "$status $output" = "0 1" ]
	run as_other -l typescript - <<<'const a: Uint8Array[] = []; for (;;) a.push(new Uint8Array(1 << 24).fill(1))'
	[ "$status" -ne 0 ] && [ "$status" -ne 124 ] # it ends by itself, long before its time
}

@test "memory limit in the meta file" {
	[ "$(id -u)" = 0 ] || skip "needs a memory cgroup"
	run -137 sallyport run --meta meta -m 32 -l python - <<<'x = bytearray(256 << 20)'
	[ "$(meta cg-oom-killed)" = 1 ] && [ "$(meta exitsig)" = 9 ] && [ "$(meta status)" = SG ]
	[ "$(meta sallyport-verdict)" = ML ] && [[ $(meta sallyport-message) == *"more memory than its limit of 32 MiB"* ]]
	[ "$(meta cg-mem)" -gt 10000 ] && [ "$(meta cg-mem)" -le 33000 ]
}

@test "--json is one object with everything, the exit code stays" {
	run -5 --separate-stderr sallyport run --json -l bash - <<<'printf "out\377"; echo err >&2; echo x >f; exit 5'
	[ "$(jq -r .verdict <<<"$output")" = RE ]
	[ "$(jq .exit_code <<<"$output")" = 5 ]
	[ "$(jq -r .stdout <<<"$output")" = 'out\xff' ]
	[ "$(jq -r .stderr <<<"$output")" = err ]
	[ "$(jq -c '.files[0] | [.name, .change, .size, .written]' <<<"$output")" = '["f","created",2,false]' ]
	[ "$(jq .run.wall_us <<<"$output")" -gt 0 ]
	[ "$(jq '.run | .rss_peak_bytes > 0 and .pids_hits == 0 and .switches_voluntary + .switches_forced > 0' <<<"$output")" = true ]
	[ "$(jq -c '[.setup_us >= 0, .warm, .oom_killed, .pids_limit_hit, .limit, .denied]' <<<"$output")" = '[true,false,false,false,null,[]]' ]
	[ -z "$stderr" ]
	run -125 --separate-stderr sallyport run --json --network -l bash - <<<true
	[ "$(jq -r .verdict <<<"$output")" = XX ]
	[ -n "$(jq -r .message <<<"$output")" ]
}

@test "a compile error has the compiler's words and exit code" {
	command -v gcc >/dev/null || skip "no gcc"
	program bad.c <<<'int main(void) { return oops; }'
	run -1 --separate-stderr sallyport run --meta meta bad.c
	[[ $output$stderr == *oops* ]]
	[ "$(meta status)" = RE ]
	program good.c <<<'#include <stdio.h>
		int main(void) { return !puts("compiled"); }'
	run -0 sallyport run good.c
	[ "$output" = compiled ]
}

@test "on a terminal the files that are lost are listed, printable" {
	program make.sh <<<'echo x >$'"'"'a\e[31mb'"'"
	run -0 script -qec "$SP_BIN/sallyport run make.sh" /dev/null
	[[ $output == *'created: a\x1b[31mb'* ]]
	[[ $output != *$'\e[31m'* ]]
}

@test "what goes in and out is bounded" {
	run -125 sh -c "head -c $(((16 << 20) + 1)) /dev/zero | '$SP_BIN/sallyport' run -l bash -"
	[[ $output == "sallyport: standard input: "* ]]
	local many=()
	touch file
	for i in {1..1025}; do many+=(--file "file:f$i"); done
	run -125 sallyport run "${many[@]}" -l bash - <<<true
	[[ $output == "sallyport: --file: more than 1024 files" ]]
	run -0 --separate-stderr sallyport run -o out -l python - <<<'for i in range(1030): open(f"{i:04}", "w").write("x")'
	[ "$(find out -type f | wc -l)" = 1024 ]
	[[ $stderr == *"not written: 1029: more than 1024 files"* ]]
}

@test "the folder of npm packages may be a link" {
	[ -d "$SP_ROOT/jail/runners/npm/node_modules/papaparse" ] || skip "the runners' npm packages are not installed"
	ln -s "$SP_ROOT/jail/runners/npm" packages
	program parse.js <<<'console.log(require("papaparse").parse("a,b").data[0].join("+"))'
	echo '{"jailer":{"modules_dir":"'"$PWD/packages"'"}}' >config
	run -0 --separate-stderr sallyport run --config config parse.js
	[ "$output" = a+b ]
	echo '{"jailer":{"modules_dir":"'"$PWD/none"'"}}' >config
	run --separate-stderr sallyport run --config config parse.js
	[ "$status" -ne 0 ]
	[[ $stderr == *"jailer.modules_dir: $PWD/none: No such file or directory"* ]]
}
