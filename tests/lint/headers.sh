#!/usr/bin/env bash
# Each header compiles alone, is guarded by #pragma once and opens with a comment that says what it is.
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"

mapfile -t headers < <(c_files '*.h')
checked=${#headers[@]}
for header in "${headers[@]}"; do
	[[ $(head -c 2 "$header") == '/*' ]] || finding "$header:1: does not open with a comment"
	grep -q '^#pragma once' "$header" || finding "$header:1: has no #pragma once"
done
compile_alone() {
	printf '#include "%s"\n' "$1" | gcc -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -fsyntax-only -I. -x c - 2>&1 |
		grep -E '(error|warning):' | sed "s|^|$1:1: does not compile alone: |" | head -1
}
export -f compile_alone
findings_from < <(printf '%s\n' "${headers[@]}" | xargs -r -P "$(nproc)" -I{} bash -c 'compile_alone {}' || true)
finish
