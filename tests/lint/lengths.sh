#!/usr/bin/env bash
# Functions of at most 80 lines and 6 parameters, .c files of at most 500 lines, headers of 220, lines of 140 columns, tabs for indentation, and a
# theory of operation at the top of every file of the product over 200 lines. tests/lint/exceptions.txt lists what may pass; it may only shrink.
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"

most=0 # exceptions: lower it when one goes, never raise it
declare -A excepted=()
exceptions=tests/lint/exceptions.txt
if [ -e "$exceptions" ]; then
	while read -r entry; do
		excepted[$entry]=unused
	done < <(grep -vE '^(#|$)' "$exceptions" || true)
	[ ${#excepted[@]} -le $most ] || finding "$exceptions:1: has ${#excepted[@]} entries, at most $most may stay"
fi

# CHECK FILE LINE FUNCTION TEXT
excess() {
	local key="$1 $2${4:+ $4}"
	if [ -n "${excepted[$key]:-}" ]; then
		excepted[$key]=used
	else
		finding "$2:$3: $5"
	fi
}

# Functions in the kernel's style: a head from column 0, { and } alone at column 0. Prints FUNCTION-LINE NAME LINES PARAMETERS.
functions_of() {
	code_of "$1" | awk '
		function parameters(text,    i, c, depth, count) {
			count = 1
			for (i = index(text, "("); i <= length(text); i++) {
				c = substr(text, i, 1)
				if (c == "(") depth++
				else if (c == ")" && --depth == 0) break
				else if (c == "," && depth == 1) count++
			}
			return count
		}
		/^\{/ && head ~ /\(/ { start = from; name = head; sub(/[ \t]*\(.*/, "", name); sub(/.*[^A-Za-z0-9_]/, "", name); params = parameters(head) }
		/^\}/ && start { print start, name, NR - start + 1, params; start = 0 }
		/^[A-Za-z_]/ && !start { head = $0; from = NR; if (/;[ \t]*$/) head = ""; next }
		/^[ \t]+[^ \t]/ && head != "" && !start { head = head " " $0; next }
		{ if (!start) head = "" }'
}

check_functions() {
	local line name lines params
	while read -r line name lines params; do
		[ "$lines" -le 80 ] || excess function-lines "$1" "$line" "$name" "$name has $lines lines, at most 80"
		[ "$params" -le 6 ] || excess parameters "$1" "$line" "$name" "$name has $params parameters, at most 6"
	done < <(functions_of "$1")
}

check_file() {
	local lines opening max=500
	[[ $1 != *.h || $1 == tests/* ]] || max=220 # a test's header may hold its fixture
	lines=$(wc -l <"$1")
	[ "$lines" -le $max ] || excess file-lines "$1" 1 "" "$lines lines, at most $max"
	if [[ $lines -gt 200 && $1 == *.c && $1 != tests/* ]]; then
		opening=$(awk 'NR == 1 && !/^\/\*/ { print 0; exit } /\*\// { print NR; exit }' "$1")
		[ "${opening:-0}" -ge 5 ] || excess theory "$1" 1 "" "$lines lines and no theory of operation at its top"
	fi
	while read -r line columns; do
		excess columns "$1" "$line" "" "$columns columns, at most 140"
	done < <(perl -CSD -ne 'chomp; 1 while s/\t/" " x (8 - $-[0] % 8)/e; print "$. ", length, "\n" if length > 140' "$1")
	while IFS=: read -r line _; do
		excess blanks "$1" "$line" "" "indented with blanks"
	done < <(code_of "$1" | grep -nE '^ {4,}[^ ]' || true)
}

while read -r file; do
	checked=$((checked + 1))
	check_file "$file"
	[[ $file == *.h ]] || check_functions "$file"
done < <(c_files '*.[ch]')
for key in "${!excepted[@]}"; do
	[ "${excepted[$key]}" = used ] || finding "$exceptions:1: \"$key\" is not needed any more"
done
finish
