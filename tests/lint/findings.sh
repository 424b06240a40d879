#!/usr/bin/env bash
# Every finding of the readings (docs/probes.md) has a row, and every probe or test that a row names exists. A row that names none says
# "not tried:" and why.
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"

page=docs/probes.md list=tests/probe/list.txt
rows=$(sed -n '/^## Findings of adversarial readings/,/^## The same probes/p' "$page" | grep -E '^\| [0-9A-Z]')

# ROW FILE NAME…: names are separated by commas in a unit test; else one, which is a part of a test's title.
check_named() {
	local row=$1 file=$2 names=$3 name
	case $file in
	*.bats) grep -F '@test "' "tests/e2e/$file" 2>/dev/null | grep -qF "$names" || finding "$page: $row: tests/e2e/$file has no test \"$names\"" ;;
	*.js) grep -E "(test|describe)\('" "tests/clients/$file" 2>/dev/null | grep -qF "$names" || finding "$page: $row: tests/clients/$file has no test \"$names\"" ;;
	*)
		for name in ${names//,/ }; do
			grep -qE "^static void $name\(void \*\*" "tests/unit/$file.c" 2>/dev/null || finding "$page: $row: tests/unit/$file.c has no test $name"
		done
		;;
	esac
}

for number in {1..13} D{1..11}; do
	grep -qE "^\| $number " <<<"$rows" || finding "$page: finding $number has no row"
done
while IFS='|' read -r _ number _ tried _; do
	checked=$((checked + 1))
	number=${number# } number=${number%% *} named=
	while read -r word; do
		named=yes
		case $word in
		[A-Z][0-9][0-9]*) grep -qE "^${word:0:3}[a-z]? " "$list" || finding "$page: $number: there is no probe $word" ;;
		*:*) check_named "$number" "${word%%:*}" "${word#*: }" ;;
		*) finding "$page: $number: '$word' is neither a probe nor FILE: test" ;;
		esac
	done < <(tr '`' '\n' <<<"$tried" | sed -n '2~2p')
	[ -n "$named" ] || [[ $tried == " not tried: "* ]] || finding "$page: $number names no test, and does not say why"
done < <(sed -E 's/\\\|//g' <<<"$rows")
[ "$checked" -ge 50 ] || finding "$page: $checked findings have rows, 50 did"
finish
