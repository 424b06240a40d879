# common.bash - what the lint scripts share. Source it first: it goes to the tree that is checked (the first argument, else this one).
#
# A script calls `finding FILE:LINE: text` for what is wrong and ends with `finish`, which says how much was checked and fails if
# anything was found. SOURCES are the folders of C code.
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}"
export LC_ALL=C
findings=0
checked=0
SOURCES=()
for folder in lib jail cgi cli tests; do
	[ ! -d "$folder" ] || SOURCES+=("$folder")
done

# Files below SOURCES (or the folders given) whose names match, one a line: c_files '*.h' [FOLDER …]
c_files() {
	local pattern=$1
	shift
	[ $# -gt 0 ] || set -- "${SOURCES[@]}"
	find "$@" \( -name node_modules -o -path tests/probe/scripts \) -prune -o -type f -name "$pattern" -print | sort
}

# The lines of C files with comments blanked and strings emptied, as FILE:LINE:TEXT. All files at once: a process for each would take seconds.
code_of() {
	[ $# -eq 0 ] || perl -0ne '
		s{(/\*.*?\*/|//[^\n]*)|"(?:\\.|[^"\\\n])*"|\x27(?:\\.|[^\x27\\\n])+\x27}{defined $1 ? $1 =~ tr/\n//cdr : q("")}gse;
		my $line = 0;
		print "$ARGV:", ++$line, ":$_\n" for split /\n/' "$@"
}

# A folder that stands for the build's: what the build makes and the sources include.
GENERATED=build/lint/generated
generate() {
	local file
	mkdir -p "$GENERATED/exam"
	[ ! -e schema.sql ] || as_string schema.sql "$GENERATED/schema_sql.inc"
	[ ! -e cli/upstream_add.py ] || as_string cli/upstream_add.py "$GENERATED/upstream_add.inc"
	for file in jail/guest/exam/*; do
		[ ! -e "$file" ] || as_string "$file" "$GENERATED/exam/${file##*/}.inc"
	done
}
as_string() {
	sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$/\\n"/' "$1" >"$2.$$"
	mv "$2.$$" "$2"
}

# Reads the two tables of docs/architecture.md ("The house").
LAYERS=docs/architecture.md
declare -A may=() # folder -> the paths that it may include, a regular expression
third_party=()    # header, the files that may include it: regular expressions
# shellcheck disable=SC2016,SC2034 # backticks are text here; scripts use what it sets
read_layers() {
	local name owns allowed folder
	while IFS='|' read -r _ name owns allowed _; do
		if [[ $name =~ ^\ \`(lib|jail|cgi|cli)(/[a-z]+)*\`\ $ ]]; then
			folder=$(tr -d ' `' <<<"$name")
			[ -d "$folder" ] || finding "$LAYERS:1: $folder does not exist"
			may[$folder]="$folder/[^/]*|$(expression "$allowed")"
		elif [[ $name =~ ^\ \`.*\.h\`\ $|^\ \`.*/\*\`\ $ ]]; then
			third_party+=("$(expression "$name")" "$(expression "$owns")")
		fi
	done < <(grep '^| `' $LAYERS)
}
# The names in backticks of a table's cell, as one regular expression: "lib" allows all below it, "*" stands for part of a name.
# shellcheck disable=SC2016
expression() {
	grep -oE '`[^`]+`' <<<"$1" | tr -d '`' | sed -e 's/[.]/\\./g' -e 's/\*/[a-z0-9_.\/-]*/g' -e 's,^[a-z_/]*$,&/.*,' | paste -sd'|' || true
}

finding() {
	printf '%s\n' "$*"
	findings=$((findings + 1))
}

# Reads findings from standard input, one a line.
findings_from() {
	local line
	while IFS= read -r line; do
		[ -z "$line" ] || finding "$line"
	done
}

finish() {
	printf '%s: %d files checked, %d findings\n' "$(basename "$0" .sh)" "$checked" "$findings"
	[ "$findings" -eq 0 ]
}
