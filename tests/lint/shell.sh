#!/usr/bin/env bash
# Every shell script and bats file is checked by shellcheck.
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
findings_from < <(printf '%s\0' "${files[@]}" | xargs -0 -r -P "$(nproc)" -n 4 shellcheck -x -e SC1091,SC2030,SC2031,SC2094 -f gcc || true)
finish
