#!/usr/bin/env bats
# Each lint script of code finds what it is for: a small clean tree passes, one planted violation is found by its file and line.

load lint.bash

@test "layers: cgi does not include cli" {
	printf '/* x.h */\n#pragma once\n' >cli/x.h
	clean layers
	printf '#include "lib/base/good.h"\n#include "cli/x.h"\n' >cgi/bad.c
	found layers "cgi/bad.c:2: includes cli/x.h"
}

@test "layers: the jail does not know the store" {
	printf '/* store.h */\n#pragma once\n' >lib/store/store.h
	printf '#include "lib/base/good.h"\n' >jail/fine.c
	clean layers
	printf '\n#include "lib/store/store.h"\n' >jail/bad.c
	found layers "jail/bad.c:2: includes lib/store/store.h"
}

@test "layers: nothing of lib includes upwards, except the job's jail.h" {
	printf '/* jail.h */\n#pragma once\n' >jail/client/jail.h
	printf '/* wire.h */\n#pragma once\n' >jail/client/wire.h
	printf '#include "jail/client/jail.h"\n' >lib/job/job.c
	clean layers
	cp lib/job/job.c lib/store/bad.c
	printf '#include "jail/client/wire.h"\n' >lib/job/bad.c
	found layers "lib/store/bad.c:1: includes jail/client/jail.h" 2
	[[ $output == *"lib/job/bad.c:1: includes jail/client/wire.h"* ]]
}

@test "layers: a circle of modules in cgi" {
	printf '/* a.h */\n#pragma once\n' | tee cgi/a.h >cgi/b.h
	cp cgi/a.h cgi/c.h
	printf '#include "a.h"\n#include "b.h"\n' >cgi/a.c
	printf '#include "b.h"\n#include "c.h"\n' >cgi/b.c
	printf '#include "c.h"\n' >cgi/c.c
	clean layers
	printf '#include "c.h"\n#include "a.h"\n' >cgi/c.c
	found layers "cgi/a.c:1: is part of a circle of includes" 3
	[[ $output == *"cgi/b.c:1:"* && $output == *"cgi/c.c:1:"* ]]
}

@test "layers: folders and their table agree" {
	mkdir lib/more
	printf '#include "lib/base/good.h"\n' >lib/more/bad.c
	found layers "lib/more/bad.c:1: its folder is not in the table" 2
	rm -r lib/more cli
	found layers "docs/architecture.md:1: cli does not exist"
}

@test "layers: one way to name a header" {
	printf '#include "../base/good.h"\n#include "lib/base/good.h"\n' >lib/store/bad.c
	printf '#include "good.h"\n#include "lib/base/good.h"\n' >lib/base/bad.c
	found layers "lib/store/bad.c:1: includes ../base/good.h: headers of other folders" 2
	[[ $output == *"lib/base/bad.c:2: includes lib/base/good.h: a header of the same folder"* ]]
}

@test "layers: each third-party library has one place" {
	printf '#include <sqlite3.h>\n' >lib/store/store_x.c
	printf '#include <json-c/json_tokener.h>\n#include <json-c/json_object.h>\n' >lib/base/json.c
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
	printf '/* printf( */\nvoid f(void)\n{\n\tg("exit(1) stdout");\n\t_exit(1);\n\tbuf_printf(1);\n}\n' >lib/base/fine.c
	printf 'int main(void)\n{\n\tprintf("x");\n}\n' >cli/main.c
	clean layers
	printf 'void f(void)\n{\n\tprintf("x");\n}\n' >lib/base/bad.c
	printf 'void f(void)\n{\n\n\tfputs("x", stderr);\n}\n' >jail/bad.c
	printf 'void f(void)\n{\n\texit(1);\n}\n' >jail/worse.c
	found layers "lib/base/bad.c:3:" 3
	[[ $output == *"jail/bad.c:4:"* && $output == *"jail/worse.c:3:"* ]]
}

# Objects of all files of the tree, as make would make them.
objects() {
	local file
	while read -r file; do
		mkdir -p "$B/obj/${file%/*}"
		gcc -I. -c -o "$B/obj/${file%.c}.o" "$file"
	done < <(find lib jail cgi cli -name '*.c')
}

@test "calls: a circle of calls is in the list, which only shrinks" {
	export B=build
	mkdir -p tests/lint
	printf '/* x.h */\n#pragma once\nint a(void);\nint b(void);\nint c(void);\n' >lib/job/x.h
	printf '#include "x.h"\nint a(void)\n{\n\treturn b();\n}\n' >lib/job/a.c
	printf '#include "x.h"\nint b(void)\n{\n\treturn c();\n}\n' >lib/job/b.c
	printf '#include "x.h"\nint c(void)\n{\n\treturn 0;\n}\n' >lib/job/c.c
	run "$LINT/calls.sh" "$TREE"
	[[ $output == *"lib/job/a.c:1: has no object"* ]]
	objects
	clean calls
	sed -i 's/0;/b();/' lib/job/c.c
	objects
	found calls 'lib/job/b.c:1: is in a new circle of 2 files: lib/job/b.c calls c of lib/job/c.c, lib/job/c.c calls b of lib/job/b.c'
	echo 'lib/job 2: b c # they count down' >tests/lint/circles.txt
	clean calls
	run "$LINT/calls.sh" --list "$TREE"
	[ "$output" = "$(cat tests/lint/circles.txt)" ]
	sed -i 's/b();/a();/' lib/job/c.c
	objects
	found calls 'lib/job/a.c:1: joins the circle of tests/lint/circles.txt:1: lib/job/a.c calls b of lib/job/b.c'
	sed -i 's/a();/0;/' lib/job/c.c
	objects
	found calls 'tests/lint/circles.txt:1: shrink the list: not in a circle any more: lib/job/b lib/job/c'
	echo 'lib/job 3: b c' >tests/lint/circles.txt
	found calls 'tests/lint/circles.txt:1: is not "FOLDER SIZE: FILE FILE' 1
}

@test "calls: between folders they follow the table of includes" {
	export B=build
	printf '/* jail.h */\n#pragma once\n#include "result.h"\n' >jail/client/jail.h
	printf '/* result.h */\n#pragma once\nint result(void);\n' >jail/client/result.h
	printf '#include "result.h"\nint result(void)\n{\n\treturn 0;\n}\n' >jail/client/result.c
	printf '/* job.h */\n#pragma once\n#include "jail/client/jail.h"\n' >lib/job/job.h
	printf '#include "job.h"\nint job(void)\n{\n\treturn result();\n}\n' >lib/job/job.c
	objects
	clean calls
	printf '#include "lib/job/job.h"\nint bad(void)\n{\n\treturn result();\n}\n' >cgi/bad.c # through a header that it may include
	printf '/* hidden.h */\n#pragma once\nint bad(void);\n' >lib/base/hidden.h               # through a declaration in another folder
	printf '#include "hidden.h"\nint worse(void)\n{\n\treturn bad();\n}\n' >lib/base/worse.c
	objects
	clean layers
	found calls 'cgi/bad.c:1: calls result of jail/client/result.c, a layer that it must not know' 2
	[[ $output == *"lib/base/worse.c:1: calls bad of cgi/bad.c, a layer"* ]]
}

@test "headers: one that leans on another" {
	clean headers
	printf '/* bad.h - uses size_t of nobody. */\n#pragma once\nsize_t bad(void);\n' >lib/base/bad.h
	found headers "lib/base/bad.h:1: does not compile alone"
}

@test "headers: no opening comment or no guard" {
	printf '#pragma once\nint bad(void);\n' >lib/base/bad.h
	found headers "lib/base/bad.h:1: does not open with a comment"
	printf '/* bad.h */\nint bad(void);\n' >lib/base/bad.h
	found headers "lib/base/bad.h:1: has no #pragma once"
}

# A function of N lines, head and braces included.
function_of() {
	printf 'static int\tf%d(int a)\n{\n' "$1"
	for ((i = 0; i < $1 - 4; i++)); do printf '\ta++;\n'; done
	printf '\treturn a;\n}\n'
}

@test "lengths: a function of 81 lines" {
	function_of 80 >lib/base/fine.c
	clean lengths
	{ printf '/* x */\n\n' && function_of 81; } >lib/base/bad.c
	found lengths "lib/base/bad.c:3: f81 has 81 lines, at most 80"
}

@test "lengths: seven parameters" {
	printf 'int f(int a, int (*g)(int, int), int c, int d, int e, int h)\n{\n\treturn a;\n}\n' >lib/base/fine.c
	clean lengths
	printf 'int f(int a, int b, int c, int d,\n\tint e, int g, int h)\n{\n\treturn a;\n}\n' >lib/base/bad.c
	found lengths "lib/base/bad.c:1: f has 7 parameters, at most 6"
}

@test "lengths: a file of 701 lines" {
	{ printf '/* t\n *\n *\n *\n */\n' && yes ' ' | head -695; } >lib/base/fine.c
	{ printf '/* t */\n' && yes ' ' | head -299; } >lib/base/fine.h
	clean lengths
	{ printf '/* t\n *\n *\n *\n */\n' && yes ' ' | head -696; } >lib/base/bad.c
	{ printf '/* t */\n' && yes ' ' | head -300; } >lib/base/bad.h
	{ printf '/* t */\n' && yes ' ' | head -200; } >cli/bad.c
	found lengths "lib/base/bad.c:1: 701 lines, at most 700" 3
	[[ $output == *"lib/base/bad.h:1: 301 lines, at most 300"* ]]
	[[ $output == *"cli/bad.c:1: 201 lines and no theory of operation"* ]]
}

@test "lengths: 121 columns" {
	printf '/* %s */\n' "$(printf '€%.0s' {1..114})" >lib/base/fine.c
	clean lengths
	printf '\n\t%s\n' "$(printf 'x%.0s' {1..113})" >lib/base/bad.c
	found lengths "lib/base/bad.c:2: 121 columns, at most 120"
}

@test "lengths: a string on a line of its own may be longer" {
	printf '\t.help = "%s \\" text",\n\t\t"%s");\n' "$(printf 'x%.0s' {1..130})" "$(printf 'y%.0s' {1..130})" >lib/base/fine.c
	clean lengths
	printf '\tcall("%s");\n' "$(printf 'x%.0s' {1..130})" >lib/base/bad.c
	found lengths "lib/base/bad.c:1: 147 columns, at most 120"
}

@test "lengths: indentation with blanks" {
	printf 'int f(void)\n{\n        return 1;\n}\n' >lib/base/bad.c
	found lengths "lib/base/bad.c:3: indented with blanks"
}

@test "lengths: the list of exceptions cannot grow or go stale" {
	mkdir -p tests/lint
	printf 'int f(int a, int b, int c, int d, int e, int g, int h)\n{\n\treturn a;\n}\n' >lib/base/bad.c
	echo 'parameters lib/base/bad.c f' >tests/lint/exceptions.txt
	sed 's/^most=[0-9]*/most=1/' "$LINT/lengths.sh" >"$BATS_TEST_TMPDIR/lengths.sh"
	cp "$LINT/common.bash" "$BATS_TEST_TMPDIR"
	run bash "$BATS_TEST_TMPDIR/lengths.sh" "$TREE"
	[ "$status" -eq 0 ]
	echo 'parameters lib/base/bad.c other' >>tests/lint/exceptions.txt
	run bash "$BATS_TEST_TMPDIR/lengths.sh" "$TREE"
	[ "$status" -eq 1 ]
	[[ $output == *"has 2 entries, at most 1 may stay"* ]]
	[[ $output == *'"parameters lib/base/bad.c other" is not needed any more'* ]]
}

@test "names: a function of another name than its header's" {
	clean names
	printf '/* cells.h */\n#pragma once\nint cell_open(int a);\nint store_count(void);\n/* int other(void); */\n' >lib/store/cells.h
	clean names
	printf '/* cells.h */\n#pragma once\n\nint open_cell(int a);\n' >lib/store/cells.h
	found names "lib/store/cells.h:4: open_cell does not begin with"
}

@test "complexity: sixteen ways through a function" {
	ways() {
		printf 'int f(int a)\n{\n'
		seq "$1" | sed 's/.*/\tif (a == &)\n\t\treturn &;/'
		printf '\treturn 0;\n}\n'
	}
	ways 14 >lib/base/fine.c
	clean complexity
	ways 15 >lib/base/bad.c
	found complexity "lib/base/bad.c:1: f has a cyclomatic complexity of 16, at most 15"
	mkdir -p tests/lint
	echo 'lib/base/bad.c f' >tests/lint/complexity.txt
	clean complexity
	rm lib/base/bad.c
	found complexity '"lib/base/bad.c f" is not needed any more'
}

@test "cloexec: descriptors that a guest could inherit" {
	cat >lib/base/fine.c <<-'EOF'
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
	cat >lib/base/bad.c <<-'EOF'
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
	found cloexec "lib/base/bad.c:3: open without CLOEXEC" 9
	for line in {4..11}; do [[ $output == *"lib/base/bad.c:$line:"* ]]; done
}

@test "facts: a field of a result is named in its table only" {
	printf '/* result.c - fine. */\nconst struct bind t[] = {\n\tUSAGE(rss_peak_bytes, DETAIL, "x"),\n\t{FIELD(setup_us, BIND_INT, COLUMN)},\n};\n' \
		>jail/client/result.c
	# shellcheck disable=SC2016 # a document's backquotes
	printf '**A thing.** As follows:\n\n1. `jail/client/result.c`:\n   a line more\n2. `cgi/NAME.c`\n' >docs/hacking.md
	clean facts
	printf 'int f(void)\n{\n\treturn g("{\\"rss_peak_bytes\\":1}");\n}\n' >cli/bad.c
	found facts 'cli/bad.c:3: the field "rss_peak_bytes" of a result'
	printf 'int f(void)\n{\n\treturn g("setup_us");\n}\n' >cli/bad.c
	found facts 'cli/bad.c:3: the field "setup_us" of a result'
	printf 'LIMIT(wall_seconds, 1, 9, 2, "time")\n' >lib/base/limits.def
	printf 'int f(void)\n{\n\treturn g("wall_seconds");\n}\n' >cli/bad.c
	found facts 'cli/bad.c:3: the limit "wall_seconds"'
	rm cli/bad.c
	# shellcheck disable=SC2016
	printf '3. `cgi/gone.c`\n' >>docs/hacking.md
	run "$LINT/facts.sh" "$TREE"
	[ "$status" -eq 1 ]
	[[ $output == *"A thing.: there is no cgi/gone.c"* ]]
	printf '4. x\n5. x\n6. x\n7. x\n' >>docs/hacking.md
	run "$LINT/facts.sh" "$TREE"
	[[ $output == *"A thing. takes 7 steps, at most 6"* ]]
}

@test "revisions: the protocol's revisions are named in their table only" {
	mkdir -p cgi/mcp
	printf 'const char *const names[] = {"2025-03-26"};\n' >cgi/mcp/revision.c
	printf '/* since 2025-03-26 */\nconst char schema[] = "https://json-schema.org/draft/2020-12/schema"; // 2025-06-18\n' >cgi/fine.c
	clean revisions
	printf 'bool a = streq(protocol, "2025-03-26");\nbool b = strncmp(protocol, "2025-", 5) == 0;\n' >cgi/bad.c
	printf '/* x\n*/\nconst char text[] = "revision 2026-07-28 has none";\n' >cgi/mcp/worse.c
	found revisions "cgi/bad.c:1: names revision 2025-03-26" 3
	[[ $output == *"cgi/bad.c:2:"* && $output == *"cgi/mcp/worse.c:3:"* ]]
}

@test "cppcheck: a read behind an array" {
	clean cppcheck
	printf 'int f(void);\nint f(void)\n{\n\tint a[2] = {1, 2};\n\treturn a[2];\n}\n' >lib/base/bad.c
	found cppcheck "lib/base/bad.c:5: arrayIndexOutOfBounds"
	rm lib/base/bad.c
	clean cppcheck
}

@test "analyzer: a use after free, found again from memory" {
	clean analyzer
	printf '#include <stdlib.h>\nint f(int *p);\nint f(int *p)\n{\n\tfree(p);\n\treturn *p;\n}\n' >lib/base/bad.c
	found analyzer "lib/base/bad.c:6:"
	found analyzer "lib/base/bad.c:6:"
	clean_line=$(sed -n 6p lib/base/bad.c)
	[ "$clean_line" = $'\treturn *p;' ]
	sed -i '5d' lib/base/bad.c
	clean analyzer
}

@test "errors: one way of testing a code" {
	printf '/* x.c */\nint f(void)\n{\n\tint result = g();\n\n\tif (result < 0)\n\t\treturn result;\n\treturn result == 0;\n}\n' >lib/base/x.c
	clean errors
	printf '/* x.c */\nint f(void)\n{\n\tint result = g();\n\n\tif (result)\n\t\treturn result;\n\treturn !result;\n}\n' >lib/base/x.c
	found errors "lib/base/x.c:6: test the code" 2
	printf '/* x.c */\nstruct point p = {};\n' >lib/base/x.c
	found errors 'lib/base/x.c:2: write "= {0}"'
}
