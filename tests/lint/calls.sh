#!/usr/bin/env bash
# Who calls whom, by the symbols of the objects in ${B:-build}/obj: a file that needs a symbol calls the file that defines the symbol.
#
#   - Between folders calls follow the table of docs/architecture.md, as includes do: the caller's folder may include a header of the folder
#     that defines the symbol, and a header that declares the symbol (or one that includes such a header of its own folder).
#   - Files that call each other in a circle are listed in tests/lint/circles.txt. A file that joins a circle is a finding, with the shortest
#     way back to the file; the list may only shrink. `tests/lint/calls.sh --list` prints the circles of today as the list has them.
#
# The script compiles nothing: `make lint` and `make test` make the objects first. An object that is missing or older than its source is a
# finding.
mode=check
[ "${1:-}" != --list ] || { mode=list && shift; }
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"

judge=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/calls.py # before common.bash goes elsewhere
objects=${B:-build}/obj
folders=()
for folder in lib jail cgi cli; do
	[ ! -d "$folder" ] || folders+=("$folder")
done
files=()
while read -r source; do
	object=$objects/${source%.c}.o
	if [ ! -e "$object" ] || [ "$source" -nt "$object" ]; then
		finding "$source:1: has no object, or one that is older: make all first"
	else
		files+=("$object")
	fi
done < <(c_files '*.c' "${folders[@]}" | grep -vE '^jail/(guest/shim|warm)/') # they are libraries of their own: the Makefile says what is in them
checked=${#files[@]}
read_layers
judged() {
	{
		for folder in "${!may[@]}"; do echo "may $folder ${may[$folder]}"; done
		c_files '*.h' "${folders[@]}" | sed 's/^/header /'
		[ ${#files[@]} -eq 0 ] || nm -A -g "${files[@]}" | sed "s|^$objects/|symbol |"
	} | /usr/bin/python3 "$judge" "$1" tests/lint/circles.txt
}
if [ $mode = list ]; then
	judged list
	exit
fi
findings_from < <(judged check)
finish
