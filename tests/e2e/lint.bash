# lint.bash - what the tests of the lint scripts share: a small clean tree to plant a violation in.
# shellcheck shell=bash disable=SC2154 # `output` and `status` are from bats

setup() {
	LINT=$BATS_TEST_DIRNAME/../lint
	TREE=$BATS_TEST_TMPDIR/tree
	mkdir -p "$TREE"/{lib/{base,store,job},jail/client,cgi,cli,docs}
	cd "$TREE" || return
	cat >docs/architecture.md <<-'EOF'
		| folder | owns | may include |
		|---|---|---|
		| `lib/base` | x | – |
		| `lib/store` | x | `lib/base` |
		| `lib/job` | x | `lib` `jail/client/jail.h` |
		| `jail/client` | x | `lib/base` |
		| `jail` | x | `lib/base` `jail/client` |
		| `cgi` | x | `lib` |
		| `cli` | x | `lib` |

		| header | only in |
		|---|---|
		| `sqlite3.h` | `lib/store/store*` |
		| `openssl/*` | `lib/store/db/crypto.c` |
		| `json-c/json_tokener.h` | `lib/base/json.c` |
		| `fcgi*.h` | `cgi/http/fcgi.c` |
		| `seccomp.h` | `jail/init/seccomp*.c` |
	EOF
	printf '/* good.h - fine. */\n#pragma once\nint good(int a);\n' >lib/base/good.h
	printf '/* good.c - fine. */\n#include "good.h"\n\nint good(int a)\n{\n\treturn a + 1;\n}\n' >lib/base/good.c
}

# found SCRIPT WHERE: the clean tree passed before, now exactly this place is named.
found() {
	run "$LINT/$1.sh" "$TREE"
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *"$2"* ]]
	[ "$(grep -c '^[a-z0-9/._-]*:[0-9]' <<<"$output")" -eq "${3:-1}" ]
}

clean() {
	run "$LINT/$1.sh" "$TREE"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *", 0 findings"* ]]
}
