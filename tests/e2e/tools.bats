#!/usr/bin/env bats
# The tools that tests and installation stand on: tests/run counts what suites really printed, .ci/deps calls nothing when nothing is missing.

setup() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	TREE=$BATS_TEST_TMPDIR/tree
	mkdir -p "$TREE/tests/unit" "$TREE/tests/lint" "$TREE/build/tests" "$TREE/build/bin"
	cp "$ROOT/tests/run" "$TREE/tests/"
}

# A unit test program called test_NAME with this script as its body.
suite() {
	: >"$TREE/tests/unit/test_$1.c"
	printf '#!/bin/sh\n%s\n' "$2" >"$TREE/build/tests/test_$1"
	chmod +x "$TREE/build/tests/test_$1"
}

last_line() { echo "${lines[-1]}"; }

@test "tests/run adds up passed, failed and skipped" {
	suite one 'echo 1..3; echo "ok 1 - a"; echo "ok 2 - b # SKIP no kernel"; echo "not ok 3 # SKIP cmocka says it so"'
	suite two 'echo 1..2; echo "ok 1 - a"; echo "not ok 2 - b"; echo "# the reason"; exit 1'
	run "$TREE/tests/run" build
	[ "$status" -eq 1 ]
	[ "$(last_line)" = "2 passed, 1 failed, 2 skipped" ]
	[[ $output == *"the reason"* ]]
	[[ $output == *"no kernel"* ]]
}

@test "tests/run counts the tests of a group, not the group" {
	local group="  type: 'suite'"
	suite one "printf '%s\n' '    ok 1 - a' '    not ok 2 - b' '    ok 3 - c # SKIP no' '    1..3' 'not ok 1 - group' \"$group\" 'ok 2 - d' 1..2; exit 1"
	run "$TREE/tests/run" build
	[ "$status" -eq 1 ]
	[ "$(last_line)" = "2 passed, 1 failed, 1 skipped" ]
	suite one "printf '%s\n' '    ok 1 - a' '    1..2' 'ok 1 - group' \"$group\" 1..1"
	run "$TREE/tests/run" build
	[ "$(last_line)" = "1 passed, 1 failed, 0 skipped" ]
}

@test "tests/run: all passed is exit code 0" {
	suite one 'echo 1..1; echo "ok 1 - a"'
	printf '#!/bin/sh\nexit 0\n' >"$TREE/tests/lint/fine.sh" && chmod +x "$TREE/tests/lint/fine.sh"
	run "$TREE/tests/run" build
	[ "$status" -eq 0 ]
	[ "$(last_line)" = "2 passed, 0 failed, 0 skipped" ]
}

@test "tests/run: a suite that does not finish has failed" {
	suite early 'echo 1..5; echo "ok 1 - a"'
	run "$TREE/tests/run" build
	[ "$status" -eq 1 ]
	[ "$(last_line)" = "1 passed, 4 failed, 0 skipped" ]
	suite early 'echo 1..1; echo "ok 1 - a"; kill -9 $$'
	run "$TREE/tests/run" build
	[ "$(last_line)" = "1 passed, 1 failed, 0 skipped" ]
	suite early 'echo 1..1; echo "ok 1 - a"; exec sleep 100'
	TEST_SUITE_SECONDS=4 run "$TREE/tests/run" build # long enough for its first lines on a busy machine
	[ "$(last_line)" = "1 passed, 1 failed, 0 skipped" ]
	[[ $output == *"ended after 4 s"* ]]
	rm "$TREE/build/tests/test_early"
	run "$TREE/tests/run" build
	[ "$status" -eq 1 ]
	[ "$(last_line)" = "0 passed, 1 failed, 0 skipped" ]
	run "$TREE/tests/run" build 'tests/nothing*'
	[ "$status" -eq 2 ]
}

@test "tests/run: in continuous integration a suite that failed runs once more" {
	suite twice 'echo 1..1; echo "not ok 1 - a"; exit 1'
	suite once 'echo 1..1; [ -e here ] && echo "ok 1 - a" && exit; touch here; echo "not ok 1 - the first time"; exit 1'
	CI=true run "$TREE/tests/run" build
	[ "$status" -eq 1 ]
	[ "$(last_line)" = "1 passed, 1 failed, 0 skipped" ]
	[[ $output == *"the first time"*"again, alone: tests/unit/test_once"*"test_once failed beside others and passed alone"* ]]
	[[ $output != *"test_twice failed beside"* ]]
	rm "$TREE/tests/unit/test_twice.c"
	CI=true run "$TREE/tests/run" build
	[ "$status" -eq 0 ]
	[[ $output != *again* ]]
	rm "$TREE/here"
	CI='' run "$TREE/tests/run" build
	[ "$status" -eq 1 ]
	[[ $output != *again* ]]
}

@test "tests/run: too many failures run once only" {
	for number in 1 2 3 4 5 6 7; do suite $number 'echo 1..1; echo "not ok 1 - a"; exit 1'; done
	CI=true run "$TREE/tests/run" build
	[ "$(last_line)" = "0 passed, 7 failed, 0 skipped" ]
	[[ $output != *again* ]]
}

@test "lockfiles have exact versions and no hosts" {
	local folder
	for folder in jail/runners/npm tests/clients; do
		run grep -nE '"resolved"|://' "$ROOT/$folder/package-lock.json"
		[ "$status" -eq 1 ]
		run jq -r '(.dependencies + .optionalDependencies)[] | select(test("^[0-9]+\\.[0-9]+\\.[0-9]+(-[a-z0-9.]+)?$") | not)' "$ROOT/$folder/package.json"
		[ -z "$output" ]
		grep -q '^omit-lockfile-registry-resolved=true' "$ROOT/$folder/.npmrc"
	done
}

# A PATH on which apt-get, sudo and npm only leave a note that they were called.
fake_path() {
	local name
	mkdir -p "$BATS_TEST_TMPDIR/fake"
	for name in apt-get sudo npm; do
		printf '#!/bin/sh\necho "%s $*" >>"%s/called"\n%s\n' "$name" "$BATS_TEST_TMPDIR" "${1:-true}" >"$BATS_TEST_TMPDIR/fake/$name"
		chmod +x "$BATS_TEST_TMPDIR/fake/$name"
	done
	PATH=$BATS_TEST_TMPDIR/fake:$PATH
}

@test ".ci/deps asks only for what is missing" {
	mkdir "$TREE/.ci" && cp "$ROOT/.ci/deps" "$TREE/.ci/"
	printf 'build make\nbuild bash\nrun no-such-package\n' >"$TREE/.packages"
	fake_path
	run "$TREE/.ci/deps" build
	[ "$status" -eq 0 ]
	[ ! -e "$BATS_TEST_TMPDIR/called" ]
	echo 'libraries npm' >>"$TREE/.packages" # which the path has, whoever brought it
	run "$TREE/.ci/deps" libraries
	[ "$status" -eq 0 ]
	[ ! -e "$BATS_TEST_TMPDIR/called" ]
	[ "$(id -u)" -eq 0 ] || return 0 # the rest would be asked of sudo
	local before after
	before=$(ls /usr/sbin/policy-rc.d 2>&1 || true)
	run "$TREE/.ci/deps" build run
	[ "$status" -eq 0 ]
	grep -q 'apt-get .*install .* no-such-package$' "$BATS_TEST_TMPDIR/called"
	after=$(ls /usr/sbin/policy-rc.d 2>&1 || true)
	[ "$before" = "$after" ] # the one that it makes for the time of the installation is gone
}

@test ".ci/deps --npm calls npm once a lockfile" {
	mkdir "$TREE/.ci" && cp "$ROOT/.ci/deps" "$TREE/.ci/"
	mkdir -p "$TREE/part/node_modules" && echo '{}' >"$TREE/part/package-lock.json"
	fake_path
	run "$TREE/.ci/deps" --npm part
	[ "$status" -eq 0 ]
	run "$TREE/.ci/deps" --npm part
	[ "$(wc -l <"$BATS_TEST_TMPDIR/called")" -eq 1 ]
	grep -q '^npm ci' "$BATS_TEST_TMPDIR/called"
	echo '{"changed":1}' >"$TREE/part/package-lock.json"
	run "$TREE/.ci/deps" --npm part
	[ "$(wc -l <"$BATS_TEST_TMPDIR/called")" -eq 2 ]
	fake_path false
	echo '{"changed":2}' >"$TREE/part/package-lock.json"
	run "$TREE/.ci/deps" --npm part
	[ "$status" -eq 1 ]
	[[ $output == *"npm ci failed in part"* ]]
}

@test "make install puts everything where the programs find it" {
	local folder=${SP_BIN:-$ROOT/build/bin}
	make -s -C "$ROOT" -o all B="${folder%/bin*}" install DESTDIR="$BATS_TEST_TMPDIR/root" >/dev/null
	local prefix=$BATS_TEST_TMPDIR/root/usr/local
	echo 'echo 42' >"$BATS_TEST_TMPDIR/program.sh"
	run "$prefix/bin/sallyport" run "$BATS_TEST_TMPDIR/program.sh"
	[ "$output" = 42 ]
	[ -e "$prefix/share/man/man5/sallyport.conf.5" ]
	[ -e "$prefix/share/sallyport/runners/npm/package-lock.json" ]
	[ -e "$prefix/share/sallyport/nginx/sallyport.conf" ]
}

@test "the configuration in the operator guide is one that the programs take" {
	local folder=${SP_BIN:-$ROOT/build/bin}
	awk '/^```/ { json = $1 ~ /json/; next } json' "$ROOT/docs/operator.md" | jq --arg dir "$BATS_TEST_TMPDIR/data" '.data_dir = $dir' >"$BATS_TEST_TMPDIR/sallyport.conf"
	run "$folder/sallyport" token add --owner alice --config "$BATS_TEST_TMPDIR/sallyport.conf"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *sp_alice_* ]]
}
