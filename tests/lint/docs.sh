#!/usr/bin/env bash
# The man pages are correct mdoc, and sallyport.conf(5) lists exactly the members that lib/config.c knows (as .It items: "limits.wall_seconds").
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"

shopt -s nullglob
pages=(docs/*.[158])
checked=${#pages[@]}
if [ ${#pages[@]} -gt 0 ]; then
	findings_from < <(mandoc -Tlint -W warning "${pages[@]}" 2>&1 | sed -E 's/^mandoc: //' || true)
fi

page=docs/sallyport.conf.5
if [ -e lib/config.c ] && [ -e "$page" ]; then
	checked=$((checked + 1))
	known=$({
		sed -nE 's/^\tPART\(([a-z_]+), ([a-z_]+),.*/\1.\2/p' lib/config.c
		sed -nE 's/^\t\{\.name = "([a-z_]+)",.*/\1/p' lib/config.c
	} | sort)
	shown=$(sed -nE 's/^\.It (Va|Cm|Ic|Sy|Li|Fa|Dv) "?([a-z_]+(\.[a-z_]+)*)"?( .*)?$/\2/p' "$page" | sort)
	[ -n "$known" ] || finding "lib/config.c:1: no members found: has the table's form changed?"
	while read -r member; do
		[ -z "$member" ] || finding "$page:1: $member is not described"
	done < <(comm -23 <(printf '%s\n' "$known") <(printf '%s\n' "$shown"))
	while read -r member; do
		[ -z "$member" ] || finding "$page:1: $member is described, lib/config.c does not know it"
	done < <(comm -13 <(printf '%s\n' "$known") <(printf '%s\n' "$shown"))
fi
finish
