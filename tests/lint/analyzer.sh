#!/usr/bin/env bash
# gcc -fanalyzer finds nothing in what runs (lib, jail, cgi, cli). A file that passed is not looked at again until it or a header changes;
# one that takes longer than a minute is left out and named.
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"

SECONDS_MAX=60
folders=()
for folder in lib jail cgi cli; do
	[ ! -d "$folder" ] || folders+=("$folder")
done
mapfile -t files < <(c_files '*.c' "${folders[@]}")
checked=${#files[@]}
cache=build/lint/analyzer
mkdir -p "$cache"
generate

analyze() { # FILE CACHE SECONDS
	local stamp=$2/${1//\//.} code=0 output
	[ ! -e "$stamp" ] || [ "$(<"$stamp")" != "$(contents "$stamp.files")" ] || return 0
	# its findings depend on where it finds room in memory: without setarch a file may pass today and fail tomorrow
	output=$(timeout "$3" setarch -R gcc -std=gnu17 -D_GNU_SOURCE -O1 -I. -Ibuild/lint/generated -fanalyzer -fdiagnostics-plain-output -MMD -MF "$stamp.files" -MT / \
		-c -o /dev/null "$1" 2>&1) || code=$?
	if [ $code -eq 124 ]; then
		echo "analyzer: $1 took longer than $3 s and was left out" >&2
	elif grep -E '(warning|error):' <<<"$output"; then
		rm -f "$stamp"
	else
		contents "$stamp.files" >"$stamp"
	fi
}
# Of all files of ours that one look read, as gcc names them ("/: FILE HEADER… \"): to ask the preprocessor takes an eighth of the whole.
contents() {
	tr -s ' \\\n' '\n' <"$1" | grep -v '^/:$' | xargs sha256sum 2>&1 | sha256sum
}
export -f contents
export -f analyze
# shellcheck disable=SC2016 # the inner shell expands them
findings_from < <(printf '%s\n' "${files[@]}" | xargs -r -P "$(nproc)" -I{} bash -c 'analyze {} "$1" "$2"' analyze "$cache" $SECONDS_MAX | sort -u || true)
finish
