#!/usr/bin/env bash
# Every shell script and bats file is checked by shellcheck. A file that passed is not looked at again until it, or a *.bash file, changes.
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"

# By name, or by the first line.
scripts() {
	find . \( -name node_modules -o -name build -o -name .git \) -prune -o -type f -print | sed 's|^\./||' | sort | while read -r file; do
		case $file in
		*.sh | *.bash | *.bats) echo "$file" ;;
		*.*) ;;
		*) [[ ! $(head -c 64 "$file" | tr -d '\0' | head -1) =~ ^#!.*(sh|bats)$ ]] || echo "$file" ;;
		esac
	done
}
mapfile -t files < <(scripts)
checked=${#files[@]}
# SC1091: a file that is sourced by a path made at run time is checked on its own. SC2030, SC2031: a bats test is a subshell, its changes are
# meant to be lost. SC2094: a function that is given a file does not write it.
export WITHOUT=SC1091,SC2030,SC2031,SC2094

# Findings, or "passed FILE" for each of the files.
check() {
	local code=0 output
	output=$(shellcheck -x -e "$WITHOUT" -f gcc "$@") || code=$?
	case $code in
	0) printf 'passed %s\n' "$@" ;;
	1) echo "$output" ;;
	*) echo "$1:1: shellcheck ended with $code" ;;
	esac
}
export -f check
# FILE with the sums of itself and of all that a file may source
sums() {
	local sourced
	sourced=$({ shellcheck --version && echo "$WITHOUT" && printf '%s\n' "${files[@]}" | sed -n '/\.bash$/p' | xargs -r cat; } | sha256sum | cut -c1-64)
	sha256sum "${files[@]}" | sed -E "s/^([0-9a-f]+) [ *](.*)/\2 \1 $sourced/"
}
cache=build/lint/shell
mkdir -p "$cache"
if [ "$checked" -gt 0 ]; then
	sums | sort >"$cache/sums.$$"
	touch "$cache/passed"
	said=$(comm -23 "$cache/sums.$$" "$cache/passed" | sed -E 's/ [0-9a-f]+ [0-9a-f]+$//' | tr '\n' '\0' |
		xargs -0 -r -P "$(nproc)" -n 4 bash -c 'check "$@"' check)
	findings_from < <(grep -v '^passed ' <<<"$said" || true)
	{
		comm -12 "$cache/sums.$$" "$cache/passed"
		awk 'NR == FNR { passed[$0]; next } { file = $0; sub(/ [0-9a-f]+ [0-9a-f]+$/, "", file) } file in passed' \
			<(sed -n 's/^passed //p' <<<"$said") "$cache/sums.$$"
	} | sort -u >"$cache/passed.$$"
	mv "$cache/passed.$$" "$cache/passed"
	rm "$cache/sums.$$"
fi
finish
