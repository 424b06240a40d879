#!/usr/bin/env bats
# Each lint script of documents, scripts and commits finds what it is for (lint.bats has those of code).

load lint.bash

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

# shellcheck disable=SC2016
@test "shell: what passed is checked again when it or what it sources changes" {
	printf '# shellcheck shell=sh disable=SC2034\nname=$(date)\n' >cli/names.bash
	printf '#!/bin/sh\n. cli/names.bash\nls "$name"\n' >cli/other.sh
	clean shell
	clean shell
	printf '\nls $name\n' >>cli/other.sh
	found shell 'cli/other.sh:5:4:'
	found shell 'cli/other.sh:5:4:' # findings are not remembered
	sed -i '$d' cli/other.sh
	clean shell
	sed -i '$d' cli/names.bash
	found shell 'cli/other.sh:3:'
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
	rm docs/architecture.md
	printf '\t{.name = "data_dir", .type = 1},\n\tPART(limits, pids, BIND_INT, 1, 2, "x"),\n' >lib/base/config.c
	conf_page >docs/sallyport.conf.5
	found docs "lib/base/config.c:2: nothing reads the member limits.pids"
	echo '/* config->limits.pids, limits->tmp_mb */' >lib/base/reads.c
	clean docs
	conf_page | sed 's/limits.pids/limits.pidz/' >docs/sallyport.conf.5
	found docs "docs/sallyport.conf.5:1: member limits.pids is not described" 2
	[[ $output == *"member limits.pidz is described, lib/base/config.c does not know it"* ]]
	printf 'LIMIT(tmp_mb, 1, 90, 7, "size of /tmp; more ends the run")\n' >lib/base/limits.def
	tmp_mb() { # RANGE SENTENCE
		conf_page | sed "s,^\.El,.It Ic limits.tmp_mb Pq number $1\n$2\n.El," >docs/sallyport.conf.5
	}
	tmp_mb 'from 1 to 90; default: 7' 'Size of /tmp; more ends the run.'
	clean docs
	tmp_mb 'from 1 to 90; default: 8' 'Size of /tmp; more ends the run.'
	found docs "lib/base/limits.def says: number from 1 to 90; default: 7"
	tmp_mb 'from 1 to 90; default: 7' 'Size of /tmp.'
	found docs "lib/base/limits.def says: Size of /tmp; more ends the run."
	conf_page >docs/sallyport.conf.5
	found docs "docs/sallyport.conf.5:1: member limits.tmp_mb is not described"
	rm lib/base/limits.def
	conf_page | sed 's/^\.El/.Ell/' >docs/sallyport.conf.5
	run "$LINT/docs.sh" "$TREE"
	[ "$status" -eq 1 ]
	[[ $output == *"docs/sallyport.conf.5:"*"Ell"* ]]
}

@test "docs: quotes of man pages, their files, the order of the schema" {
	rm docs/architecture.md
	conf_page >docs/sallyport.conf.5
	printf '\t{.name = "data_dir", .type = 1},\n\tPART(limits, pids, BIND_INT, 1, 2, "x"),\n' >lib/base/config.c
	echo '/* config->limits.pids */' >lib/base/reads.c
	clean docs
	conf_page | sed 's/^The folder\.$/Write\n.Qq 20 , Qq true ./' >docs/sallyport.conf.5
	found docs "docs/sallyport.conf.5:11: quotes are not in pairs, or one macro quotes another"
	conf_page | sed 's/^The folder\.$/Write\n.Ql "20 .\n.Pq text; default: \\(dqx\\(dq/' >docs/sallyport.conf.5
	found docs "docs/sallyport.conf.5:11: quotes are not in pairs, or one macro quotes another"
	conf_page | sed 's,^\.Sh DESCRIPTION,&\n.Pa /etc/one.conf,' >docs/sallyport.conf.5
	found docs "docs/sallyport.conf.5:1: /etc/one.conf is in DESCRIPTION or in FILES, not in both"
	conf_page >docs/sallyport.conf.5
	printf '%s\n' '-- Read it: who (owner), what (blob,' '-- run).' '--' 'CREATE TABLE owner (' 'CREATE TABLE run (' 'CREATE TABLE blob (' >schema.sql
	found docs "schema.sql:1: the introduction names run, which is not there, or not in the order of the file"
	sed -i 's/TABLE run/TABLE x/; s/TABLE blob/TABLE run/; s/TABLE x/TABLE blob/' schema.sql
	clean docs
}

@test "docs: commands and options" {
	rm docs/architecture.md
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
	mkdir docs/man
	printf '.Sh OPTIONS\n.It Fl -fast\nNot with\n.Fl -far .\n' >docs/man/sallyport-go.mdoc
	clean docs
	mv docs/man/sallyport-go.mdoc docs/man/sallyport-stay.mdoc
	printf 'As\n.Ql go --near .\n' >>docs/man/sallyport-stay.mdoc
	found docs "docs/man/sallyport-stay.mdoc:6: names the option --near, which does not exist" 3
	[[ $output == *"command go is not described"* && $output == *"command stay is described"* ]]
}

# shellcheck disable=SC2016
@test "docs: files and make targets that are not there" {
	rm docs/architecture.md
	printf 'all unit: x\nlint:\n' >Makefile
	printf 'See [it](docs/x.md#part), `lib/base/good.c`, `cgi/tool_NAME.c`, `make unit`, `make lint`.\n' >README.md
	printf 'Back to [it](../README.md).\n' >docs/x.md
	clean docs
	printf '\n[a](gone.md)\n`lib/base/gone.c`\n`make gone`\n' >docs/x.md
	found docs "docs/x.md:2: links to gone.md" 3
	[[ $output == *"docs/x.md:3: names lib/base/gone.c"* && $output == *"docs/x.md:4: names make gone"* ]]
}

@test "english: words that say less than they seem to" {
	clean english
	printf 'A file next to it.\nA file beside it.\nThe client is told why.\n' >docs/x.md
	found english 'docs/x.md:2: "beside"' 2
}

@test "english: sizes that programs print are MiB" {
	printf 'say("%%lld MB are free", left);\nsay("at most 5 GB");\nsay("12 MiB", "memory_limit_MB"); /* 3 MB */\n' >cli/say.c
	found english 'cli/say.c:1: "MB": sizes are KiB, MiB, GiB' 2
	[[ $output == *'cli/say.c:2: "GB": sizes are KiB, MiB, GiB'* ]]
}

@test "english: a title makes one promise" {
	mkdir -p tests/e2e
	printf '@test "%s" {\n}\n' 'one, two' 'this is so' >tests/e2e/x.bats
	clean english
	printf '@test "%s" {\n}\n' 'this is so; that as well' 'this is so, and that' >>tests/e2e/x.bats
	found english 'tests/e2e/x.bats:5: the title makes several promises: this is so; that as well' 2
}

# A commit of all that is there, with the rest of the arguments for git.
commit() {
	git add -A
	git -c user.name=t -c user.email=t@localhost commit -q -m "$@"
}

@test "commits: a subject is \"area: imperative\" in at most 60 characters" {
	clean commits # without a history
	git init -q
	commit 'lib, cgi: seed a tree'
	commit 'Makefile: pass what is in äöü to a program of this length, x' --allow-empty
	clean commits
	commit 'lib: the tree' --allow-empty
	commit 'lib: grows a tree' --allow-empty
	commit 'seed' --allow-empty
	commit 'lib: pass the flags of this subject in sixty-one characters, all' --allow-empty
	run "$LINT/commits.sh" "$TREE"
	echo "$output"
	[ "$(grep -c 'the subject' <<<"$output")" = 4 ]
	[[ $output == *'imperative": lib: the tree'* && $output == *'imperative": lib: grows a tree'* && $output == *'imperative": seed'* ]]
	[[ $output == *'has 64 characters, at most 60: lib: pass'* ]]
}

@test "commits: a commit changes at most 400 lines" {
	git init -q
	commit 'lib: seed a tree'
	seq 400 >lib/base/numbers
	commit 'lib: add numbers'
	clean commits
	seq 401 >cli/numbers
	commit 'cli: add numbers'
	found commits 'changes 401 lines, at most 400'
}

@test "commits: moved lines are not counted" {
	git init -q
	commit 'lib: seed a tree'
	seq 400 >lib/base/numbers
	commit 'lib: add numbers'
	git mv lib/base/numbers lib/store/numbers
	commit 'lib: move a file'
	head -150 lib/store/numbers >cli/few
	sed -i 1,150d lib/store/numbers
	commit 'cli: take some of the lines'
	clean commits
}

@test "commits: a shallow clone is checked as far as it goes" {
	git init -q
	seq 500 >lib/base/numbers
	commit 'lib: seed a tree'
	git clone -q --depth 1 "file://$TREE" "$BATS_TEST_TMPDIR/shallow"
	TREE=$BATS_TEST_TMPDIR/shallow
	clean commits
	cd "$TREE"
	seq 401 >numbers
	commit 'cli: add numbers'
	found commits 'changes 401 lines'
}
