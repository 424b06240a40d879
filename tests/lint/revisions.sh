#!/usr/bin/env bash
# Revisions of the protocol are named in one table (cgi/mcp/revision.c): what a revision has is asked of its row, not found out by comparing names.
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"

table=cgi/mcp/revision.c
client=lib/upstream/upstream_revision.h # what we speak to other servers
folders=()
[ ! -d cgi ] || folders+=(cgi)
mapfile -t files < <([ ${#folders[@]} -eq 0 ] || c_files '*.[ch]' "${folders[@]}" | grep -vxE "$table|$client")
checked=${#files[@]}

# Dates, or beginnings of dates, in strings.
if [ "$checked" -gt 0 ]; then
	findings_from < <(perl -0ne '
		s{(/\*.*?\*/|//[^\n]*)|("(?:\\.|[^"\\\n])*")}{defined $1 ? $1 =~ tr/\n//cdr : $2}gse;
		my $line = 0;
		for (split /\n/) {
			++$line;
			print "$ARGV:$line: names revision $1: ask its row in '"$table"'\n" if /"(?|[^"]*?(20\d\d-\d\d-\d\d)|(20\d\d-[\d-]*)")/;
		}' "${files[@]}")
fi
finish
