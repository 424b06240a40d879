#!/usr/bin/env bash
# Functions of at most 80 lines and 6 parameters, .c files of at most 700 lines, headers of 300, lines of 120 columns (but for one that is a string), tabs for indentation, and a
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

# Functions in the kernel's style: a head from column 0, { and } alone at column 0. Prints FILE LINE NAME LINES PARAMETERS of those that are
# too long or take too much, and FILE LINE of lines that are indented with blanks; of code_of's lines.
long_functions() {
	awk '
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
		{
			match($0, /^[^:]*:[0-9]+:/)
			split(substr($0, 1, RLENGTH), place, ":")
			$0 = substr($0, RLENGTH + 1)
			if (place[1] != file) { file = place[1]; head = ""; start = 0 }
			line = place[2]
		}
		/^    +[^ ]/ { print file, line }
		file ~ /\.h$/ { next }
		/^\{/ && head ~ /\(/ { start = from; name = head; sub(/[ \t]*\(.*/, "", name); sub(/.*[^A-Za-z0-9_]/, "", name); params = parameters(head) }
		/^\}/ && start { if (line - start >= 80 || params > 6) print file, start, name, line - start + 1, params; start = 0 }
		/^[A-Za-z_]/ && !start { head = $0; from = line; if (/;[ \t]*$/) head = ""; next }
		/^[ \t]+[^ \t]/ && head != "" && !start { head = head " " $0; next }
		{ if (!start) head = "" }'
}

# Prints "file FILE LINES OPENING", the line in which the comment at its top ends (0: there is none), and "columns FILE LINE COLUMNS" of
# lines that are too long. A string on a line of its own may be longer: it is never cut in mid-phrase.
long_files() {
	perl -CSD -ne '
		$opening = /^\/\*/ ? -1 : 0 if $. == 1;
		$opening = $. if $opening < 0 && m{\*/};
		my $ended = chomp;
		1 while s/\t/" " x (8 - $-[0] % 8)/e;
		print "columns $ARGV $. ", length, "\n" if length > 120 && !/^\s*(?:\.\w+ = )?"(?:\\.|[^"\\])*"[,;()}]*$/;
		if (eof) { print "file $ARGV ", $. - !$ended, " ", $opening < 0 ? 0 : $opening, "\n"; close ARGV }' "$@"
}

check_file() { # FILE LINES OPENING
	local max=700
	[[ $1 != *.h || $1 == tests/* ]] || max=300 # a test's header may hold its fixture
	[ "$2" -le $max ] || excess file-lines "$1" 1 "" "$2 lines, at most $max"
	if [[ $2 -gt 200 && $1 == *.c && $1 != tests/* && $3 -lt 5 ]]; then
		excess theory "$1" 1 "" "$2 lines and no theory of operation at its top"
	fi
}

mapfile -t files < <(c_files '*.[ch]')
checked=${#files[@]}
while read -r what file line columns; do
	case $what in
	file) check_file "$file" "$line" "$columns" ;;
	columns) excess columns "$file" "$line" "" "$columns columns, at most 120" ;;
	esac
done < <(long_files "${files[@]}")
while read -r file line name lines params; do
	[ -n "$name" ] || excess blanks "$file" "$line" "" "indented with blanks"
	[ "${lines:-0}" -le 80 ] || excess function-lines "$file" "$line" "$name" "$name has $lines lines, at most 80"
	[ "${params:-0}" -le 6 ] || excess parameters "$file" "$line" "$name" "$name has $params parameters, at most 6"
done < <(code_of "${files[@]}" | long_functions)
for key in "${!excepted[@]}"; do
	[ "${excepted[$key]}" = used ] || finding "$exceptions:1: \"$key\" is not needed any more"
done
finish
