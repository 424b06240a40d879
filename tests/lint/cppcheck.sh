#!/usr/bin/env bash
# cppcheck finds nothing (warnings, performance, portability).
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"

mapfile -t files < <(c_files '*.c')
checked=${#files[@]}
# What it remembers of unchanged files makes the second run quick.
cache=build/lint/cppcheck
mkdir -p "$cache"
exec 9>"$cache/lock" # two tests in one checkout take turns
flock 9
generate
findings_from < <(printf '%s\n' "${files[@]}" | cppcheck --quiet --file-list=- -j "$(nproc)" --cppcheck-build-dir="$cache" --std=c11 --language=c \
	-D_GNU_SOURCE -I. -I"$GENERATED" --enable=warning,performance,portability --inline-suppr --suppress='*:/usr/include/*' \
	--suppressions-list="$(dirname "${BASH_SOURCE[0]}")/cppcheck.txt" --template='{file}:{line}: {id}: {message}' 2>&1 || true)
finish
