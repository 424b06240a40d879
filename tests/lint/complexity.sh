#!/usr/bin/env bash
# Cyclomatic complexity of at most 15 (pmccabe's modified count: a switch counts once). tests/lint/complexity.txt lists the functions that may
# have more, FILE FUNCTION a line; it may only shrink.
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"

MAX=15
most=8 # exceptions: lower it when one goes, never raise it
list=tests/lint/complexity.txt
declare -A excepted=()
if [ -e "$list" ]; then
	while read -r entry; do
		excepted[$entry]=unused
	done < <(grep -vE '^(#|$)' "$list" || true)
	[ ${#excepted[@]} -le $most ] || finding "$list:1: has ${#excepted[@]} entries, at most $most may stay"
fi
folders=()
for folder in lib jail cgi cli; do
	[ ! -d "$folder" ] || folders+=("$folder")
done
mapfile -t files < <(c_files '*.c' "${folders[@]}")
checked=${#files[@]}
while IFS=$'\t' read -r count _ _ line _ place; do
	[ "$count" -gt $MAX ] || continue
	file=${place%%(*} name=${place##* }
	if [ -n "${excepted["$file $name"]:-}" ]; then
		excepted["$file $name"]=used
	else
		finding "$file:$line: $name has a cyclomatic complexity of $count, at most $MAX"
	fi
done < <(printf '%s\0' "${files[@]}" | xargs -0 -r pmccabe 2>/dev/null)
for key in "${!excepted[@]}"; do
	[ "${excepted[$key]}" = used ] || finding "$list:1: \"$key\" is not needed any more"
done
finish
