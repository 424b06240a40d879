#!/usr/bin/env bash
# Every probe of tests/probe/list.txt is tried where the list says, every verb and script of tests/probe stands in the list, and none is missing.
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"

most=143 # numbers in the list: none may go
list=tests/probe/list.txt
[ -e "$list" ] || { finish; exit; }

# NUMBER[LETTER] of all verbs and scripts
tried() {
	sed -nE 's/^\tPROBE[A-Z_]*\("([A-Z][0-9]{2}[a-z]?)".*/\1/p' tests/probe/*.c
	find tests/probe/scripts -type f -exec sed -snE '1s,^[#/]+ ([A-Z][0-9]{2}[a-z]?) \| .*,\1,p' {} +
}

# NUMBER LINE FILE TEST
check_test() {
	local number=$1 line=$2 file=$3 name=$4
	[ -e "$file" ] || { finding "$list:$line: $number is to be in $file, which does not exist"; return; }
	case $file in
	*.bats) grep -qF "@test \"$name\"" "$file" ;;
	*.js) grep -qF "test('$name'" "$file" ;;
	*) grep -qE "^static void $name\(void \*\*" "$file" ;;
	esac || finding "$list:$line: $number: $file has no test $name"
	# What jails take of the host that no limit counts is measured around each of them.
	case $file in
	*.bats) grep -qF "@test \"$name\" { sp_gauged " "$file" ;;
	*.js) grep -F "test('$name'" "$file" | grep -q ' gauged(' ;;
	tests/unit/test_jail_*) grep -qE '"(gauged|host_gauge)\.h"' "$file" && ! grep -q "cmocka_unit_test[a-z_]*($name\>" "$file" ;;
	esac || finding "$list:$line: $number: $file tries $name without the gauge of the host (tests/unit/host_gauge.h)"
}

names=$(tried | sort)
numbers=
while IFS=: read -r line number _ where rest; do
	checked=$((checked + 1))
	numbers+=$number$'\n'
	case $where in
	probe) grep -qE "^${number}[a-z]?\$" <<<"$names" || finding "$list:$line: $number has neither a verb nor a script" ;;
	none) [ -n "$rest" ] || finding "$list:$line: $number is not tried, and nothing says why" ;;
	*) check_test "$number" "$line" "$where" "$rest" ;;
	esac
done < <(grep -nE '^[A-Z]' "$list" | sed -E 's/^([0-9]+:)([^ ]+) +([^ ]+) +([^ ]+) ?/\1\2:\3:\4:/')
while read -r number; do
	finding "$list:1: $number stands twice"
done < <(sort <<<"$numbers" | uniq -d | grep . || true)
[ "$checked" -ge "$most" ] || finding "$list:1: has $checked numbers, $most were there"
while read -r name; do
	grep -qE "^${name:0:3} +[a-z0-9-]+ +probe$" "$list" || finding "$list:1: ${name:0:3} has a verb or a script ($name), the list does not say so"
done <<<"$names"
while read -r name; do
	finding "$list:1: two probes are called $name"
done < <(uniq -d <<<"$names")
finish
