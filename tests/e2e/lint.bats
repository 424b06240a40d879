#!/usr/bin/env bats
# Each lint script finds what it is for: a small clean tree passes, one planted violation is found by its file and line.

setup() {
	LINT=$BATS_TEST_DIRNAME/../lint
	TREE=$BATS_TEST_TMPDIR/tree
	mkdir -p "$TREE"/{lib,jail,cgi,cli,docs}
	cd "$TREE" || return
	printf '/* good.h - fine. */\n#pragma once\nint good(int a);\n' >lib/good.h
	printf '/* good.c - fine. */\n#include "good.h"\n\nint good(int a)\n{\n\treturn a + 1;\n}\n' >lib/good.c
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

@test "layers: cgi does not include cli" {
	printf '/* x.h */\n#pragma once\n' >cli/x.h
	clean layers
	printf '#include "../lib/good.h"\n#include "../cli/x.h"\n' >cgi/bad.c
	found layers "cgi/bad.c:2: includes cli/x.h"
}

@test "layers: the jail does not know the store" {
	printf '/* store.h */\n#pragma once\n' >lib/store.h
	printf '/* err.h */\n#pragma once\n' >lib/err.h
	printf '#include "../lib/err.h"\n' >jail/fine.c
	clean layers
	printf '\n#include "../lib/store.h"\n' >jail/bad.c
	found layers "jail/bad.c:2: includes lib/store.h"
}

@test "layers: nothing of lib includes upwards, except the job's jail.h" {
	printf '/* jail.h */\n#pragma once\n' >jail/jail.h
	printf '#include "../jail/jail.h"\n' >lib/job_run.c
	clean layers
	cp lib/job_run.c lib/bad.c
	found layers "lib/bad.c:1: includes jail/jail.h"
}

@test "layers: each third-party library has one place" {
	printf '#include <sqlite3.h>\n' >lib/store_x.c
	printf '#include <json-c/json_tokener.h>\n' >lib/json.c
	clean layers
	printf '#include <sqlite3.h>\n#include <seccomp.h>\n#include <fcgiapp.h>\n#include <openssl/evp.h>\n#include <json-c/json_tokener.h>\n' >cli/bad.c
	found layers "cli/bad.c:2: includes <seccomp.h>" 5
}

@test "layers: an include that does not exist" {
	printf '#include "nowhere.h"\n' >cli/bad.c
	found layers "cli/bad.c:1: includes nowhere.h, which does not exist"
}

@test "layers: a library does not print or exit" {
	# In comments and strings, and in a name's middle, it is no call.
	printf '/* printf( */\nvoid f(void)\n{\n\tg("exit(1) stdout");\n\t_exit(1);\n\tbuf_printf(1);\n}\n' >lib/fine.c
	printf 'int main(void)\n{\n\tprintf("x");\n}\n' >cli/main.c
	clean layers
	printf 'void f(void)\n{\n\tprintf("x");\n}\n' >lib/bad.c
	printf 'void f(void)\n{\n\n\tfputs("x", stderr);\n}\n' >jail/bad.c
	printf 'void f(void)\n{\n\texit(1);\n}\n' >jail/worse.c
	found layers "lib/bad.c:3:" 3
	[[ $output == *"jail/bad.c:4:"* && $output == *"jail/worse.c:3:"* ]]
}

@test "headers: one that leans on another" {
	clean headers
	printf '/* bad.h - uses size_t of nobody. */\n#pragma once\nsize_t bad(void);\n' >lib/bad.h
	found headers "lib/bad.h:1: does not compile alone"
}

@test "headers: no opening comment, no guard" {
	printf '#pragma once\nint bad(void);\n' >lib/bad.h
	found headers "lib/bad.h:1: does not open with a comment"
	printf '/* bad.h */\nint bad(void);\n' >lib/bad.h
	found headers "lib/bad.h:1: has no #pragma once"
}

# A function of N lines, head and braces included.
function_of() {
	printf 'static int\tf%d(int a)\n{\n' "$1"
	for ((i = 0; i < $1 - 4; i++)); do printf '\ta++;\n'; done
	printf '\treturn a;\n}\n'
}

@test "lengths: a function of 81 lines" {
	function_of 80 >lib/fine.c
	clean lengths
	{ printf '/* x */\n\n' && function_of 81; } >lib/bad.c
	found lengths "lib/bad.c:3: f81 has 81 lines, at most 80"
}

@test "lengths: seven parameters" {
	printf 'int f(int a, int (*g)(int, int), int c, int d, int e, int h)\n{\n\treturn a;\n}\n' >lib/fine.c
	clean lengths
	printf 'int f(int a, int b, int c, int d,\n\tint e, int g, int h)\n{\n\treturn a;\n}\n' >lib/bad.c
	found lengths "lib/bad.c:1: f has 7 parameters, at most 6"
}

@test "lengths: a file of 501 lines, a header of 221, a file without theory" {
	{ printf '/* t\n *\n *\n *\n */\n' && yes ' ' | head -495; } >lib/fine.c
	{ printf '/* t */\n' && yes ' ' | head -219; } >lib/fine.h
	clean lengths
	{ printf '/* t\n *\n *\n *\n */\n' && yes ' ' | head -496; } >lib/bad.c
	{ printf '/* t */\n' && yes ' ' | head -220; } >lib/bad.h
	{ printf '/* t */\n' && yes ' ' | head -200; } >cli/bad.c
	found lengths "lib/bad.c:1: 501 lines, at most 500" 3
	[[ $output == *"lib/bad.h:1: 221 lines, at most 220"* ]]
	[[ $output == *"cli/bad.c:1: 201 lines and no theory of operation"* ]]
}

@test "lengths: 141 columns, tabs and characters counted as seen" {
	printf '/* %s */\n' "$(printf '€%.0s' {1..134})" >lib/fine.c
	clean lengths
	printf '\n\t%s\n' "$(printf 'x%.0s' {1..133})" >lib/bad.c
	found lengths "lib/bad.c:2: 141 columns, at most 140"
}

@test "lengths: indentation with blanks" {
	printf 'int f(void)\n{\n        return 1;\n}\n' >lib/bad.c
	found lengths "lib/bad.c:3: indented with blanks"
}

@test "lengths: the list of exceptions cannot grow or go stale" {
	mkdir -p tests/lint
	printf 'int f(int a, int b, int c, int d, int e, int g, int h)\n{\n\treturn a;\n}\n' >lib/bad.c
	echo 'parameters lib/bad.c f' >tests/lint/exceptions.txt
	sed 's/^most=[0-9]*/most=1/' "$LINT/lengths.sh" >"$BATS_TEST_TMPDIR/lengths.sh"
	cp "$LINT/common.bash" "$BATS_TEST_TMPDIR"
	run bash "$BATS_TEST_TMPDIR/lengths.sh" "$TREE"
	[ "$status" -eq 0 ]
	echo 'parameters lib/bad.c other' >>tests/lint/exceptions.txt
	run bash "$BATS_TEST_TMPDIR/lengths.sh" "$TREE"
	[ "$status" -eq 1 ]
	[[ $output == *"has 2 entries, at most 1 may stay"* ]]
	[[ $output == *'"parameters lib/bad.c other" is not needed any more'* ]]
}

@test "cloexec: descriptors that a guest could inherit" {
	cat >lib/fine.c <<-'EOF'
		/* open(path, 0) */
		void f(void)
		{
			open("a(b", O_RDONLY | O_CLOEXEC);
			openat(dir_of(x), path,
			       O_RDONLY | O_CLOEXEC);
			socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
			fopen(path, "re");
			store->open(path, 0);
			log("use open('x') and socket(1)");
			dup2(fd, 1); /* inherited: the guest's output */
		}
	EOF
	clean cloexec
	cat >lib/bad.c <<-'EOF'
		void f(void)
		{
			open(path, O_RDONLY);
			socket(AF_UNIX, SOCK_STREAM, 0);
			fopen(path, "r");
			pipe(fds);
			accept(fd, NULL, NULL);
			dup(fd);
			dup3(a, b, 0);
			memfd_create("x", 0);
			epoll_create1(0);
		}
	EOF
	found cloexec "lib/bad.c:3: open without CLOEXEC" 9
	for line in {4..11}; do [[ $output == *"lib/bad.c:$line:"* ]]; done
}

@test "shell: scripts by name and by their first line" {
	# shellcheck disable=SC2016
	printf '#!/usr/bin/env bash\necho "$1"\n' >fine
	clean shell
	# shellcheck disable=SC2016
	printf '#!/bin/sh\nrm -r $1/x\n' >bad
	# shellcheck disable=SC2016
	printf '#!/usr/bin/env bats\n@test "x" {\n\trm -r $HOME/x $y\n}\n' >bad.bats
	run "$LINT/shell.sh" "$TREE"
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *"bad:2:"* && $output == *"bad.bats:3:"* && $output == *"shell: 3 files checked"* ]]
}

@test "cppcheck: a read behind an array" {
	clean cppcheck
	printf 'int f(void);\nint f(void)\n{\n\tint a[2] = {1, 2};\n\treturn a[2];\n}\n' >lib/bad.c
	found cppcheck "lib/bad.c:5: arrayIndexOutOfBounds"
	rm lib/bad.c
	clean cppcheck
}

@test "analyzer: a use after free, found again from memory" {
	clean analyzer
	printf '#include <stdlib.h>\nint f(int *p);\nint f(int *p)\n{\n\tfree(p);\n\treturn *p;\n}\n' >lib/bad.c
	found analyzer "lib/bad.c:6:"
	found analyzer "lib/bad.c:6:"
	clean_line=$(sed -n 6p lib/bad.c)
	[ "$clean_line" = $'\treturn *p;' ]
	sed -i '5d' lib/bad.c
	clean analyzer
}

conf_page() {
	cat <<-'EOF'
		.Dd November 21, 2026
		.Dt SALLYPORT.CONF 5
		.Os
		.Sh NAME
		.Nm sallyport.conf
		.Nd configuration
		.Sh DESCRIPTION
		.Bl -tag -width Ds
		.It Va data_dir
		The folder.
		.It Va limits.pids
		Processes.
		.El
	EOF
}

@test "docs: members of the configuration, mdoc" {
	printf '\t{.name = "data_dir", .type = 1},\n\tPART(limits, pids, BIND_INT, 1, 2, "x"),\n' >lib/config.c
	conf_page >docs/sallyport.conf.5
	clean docs
	conf_page | sed 's/limits.pids/limits.pidz/' >docs/sallyport.conf.5
	found docs "docs/sallyport.conf.5:1: member limits.pids is not described" 2
	[[ $output == *"member limits.pidz is described, lib/config.c does not know it"* ]]
	conf_page | sed 's/^\.El/.Ell/' >docs/sallyport.conf.5
	run "$LINT/docs.sh" "$TREE"
	[ "$status" -eq 1 ]
	[[ $output == *"docs/sallyport.conf.5:"*"Ell"* ]]
}

@test "docs: commands and options" {
	cat >cli/cmd_go.c <<-'EOF'
		static const struct cli_option options[] = {
			{.name = "fast", .letter = 'f', .type = CLI_FLAG},
			{.name = "far",
			 .type = CLI_STRING},
			{0},
		};
		const struct cli_command cmd_go = {
			.name = "go",
		};
	EOF
	{
		conf_page | sed 's/SALLYPORT.CONF 5/SALLYPORT 1/; s/sallyport.conf/sallyport/; /^\.Bl/,$d'
		printf '.Ss go\n.Bl -tag -width Ds\n.It Fl f , Fl -fast\nQuick.\n.It Fl -far Ar place\nFar.\n.El\n'
	} >docs/sallyport.1
	clean docs
	sed -i 's/Fl -far/Fl -near/; s/Ss go/Ss stay/' docs/sallyport.1
	found docs "docs/sallyport.1:1: option far is not described" 4
	[[ $output == *"option near is described, cli/ does not know it"* ]]
	[[ $output == *"command go is not described"* && $output == *"command stay is described"* ]]
}

# shellcheck disable=SC2016
@test "docs: files and make targets that are not there" {
	printf 'all unit: x\nlint:\n' >Makefile
	printf 'See [it](docs/x.md#part), `lib/good.c`, `cgi/tool_NAME.c`, `make unit`, `make lint`.\n' >README.md
	printf 'Back to [it](../README.md).\n' >docs/x.md
	clean docs
	printf '\n[a](gone.md)\n`lib/gone.c`\n`make gone`\n' >docs/x.md
	found docs "docs/x.md:2: links to gone.md" 3
	[[ $output == *"docs/x.md:3: names lib/gone.c"* && $output == *"docs/x.md:4: names make gone"* ]]
}
