#!/usr/bin/env bash
# Plain English in what people, models and readers of the code see: a few words that we once used for everything have no place there. The
# title of a bats test is one promise: no ";" and no ", and ". Sizes that programs print are KiB, MiB, GiB.
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"

places=()
for place in lib jail cgi cli docs schema.sql README.md; do
	[ ! -e "$place" ] || places+=("$place")
done
mapfile -t files < <(find "${places[@]}" -name node_modules -prune -o -type f ! -name '*.json' -print | sort)
checked=${#files[@]}
[ ${#files[@]} -eq 0 ] || findings_from < <(grep -nHiE '\b(whoever|beside|in words|(is|are|was|were) told|told of|tells of)\b' "${files[@]}" |
	sed -E 's/^([^:]+:[0-9]+):.*\b(whoever|beside|in words|told( of)?|tells of)\b.*$/\1: "\2": name who does what/I' || true)
mapfile -t sources < <(printf '%s\n' "${files[@]}" | grep -E '\.(c|h|js)$' || true)
[ ${#sources[@]} -eq 0 ] || findings_from < <(grep -nHE "[\"'\`].*(%[a-z]*[dufgs]|[0-9]|\}) ?([kK]B|MB|GB)\b" "${sources[@]}" |
	sed -nE 's/^([^:]+:[0-9]+):[^/*]*(%[a-z]*[dufgs]|[0-9]|\}) ?([kK]B|MB|GB)\b.*$/\1: "\3": sizes are KiB, MiB, GiB/p' || true)
for file in tests/e2e/*.bats; do
	[ -e "$file" ] || continue
	checked=$((checked + 1))
	findings_from < <(perl -ne 'print "$ARGV:$.: the title makes several promises: $1\n" if /^\@test "(.*(?:;|, and ).*)" \{/' "$file")
done
finish
