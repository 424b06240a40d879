#!/usr/bin/env bash
# One style of testing errors: what returns 0 or a negative code is kept in `result` (or `failed`) and tested with "< 0" or "== 0".
# What returns errno's numbers (pthread_create, posix_spawn) is kept in `error`. `= {0}` empties a struct.
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"

folders=()
for folder in lib jail cgi cli; do
	[ ! -d "$folder" ] || folders+=("$folder")
done
mapfile -t files < <(c_files '*.c' "${folders[@]}")
checked=${#files[@]}
badly_tested() {
	perl -ne '
		$codes_here = 1 if /^\t+int .*\b(result|failed)\b/;
		$codes_here = 0 if /^}/;
		print "$ARGV:$.: test the code with \"< 0\" or \"== 0\"\n"
			if $codes_here and /\b(?:if|while) \((?:result|failed)\)|!(?:result|failed)\b(?!->)|\b(?:result|failed) \?|(?:&&|\|\|) (?:result|failed)(?:\)| &&| \|\|)|\((?:result|failed) (?:&&|\|\|)/;
		print "$ARGV:$.: write \"= {0}\"\n" if / = \{\};/;
		close ARGV if eof;' "$@"
}
[ ${#files[@]} -eq 0 ] || findings_from < <(badly_tested "${files[@]}")
finish
