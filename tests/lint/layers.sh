#!/usr/bin/env bash
# Who may include whom (hacking guide, "layers"): cgi and cli never include each other, the jail knows only the base of lib, each third-party
# library has one place. Libraries neither print nor exit.
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"

# What the jailer is linked with: no SQLite and no libcrypto near the kernel.
base='lib/(banned|bind|buf|config|err|host|json|log|utf8|util|version)\.h'

# The paths (a regular expression) that FILE may include.
allowed() {
	case $1 in
	lib/job*) echo 'lib/.*|jail/jail\.h' ;;
	lib/*) echo 'lib/.*' ;;
	jail/*) echo "jail/.*|$base" ;;
	cgi/*) echo 'cgi/.*|lib/.*|jail/jail\.h' ;;
	cli/*) echo 'cli/.*|lib/.*|jail/jail\.h' ;;
	*) echo '.*' ;;
	esac
}

# Third-party header (regular expression) and the files that may include it.
third_party=(
	'sqlite3\.h' 'lib/store[a-z_]*\.[ch]'
	'fcgi.*\.h' 'cgi/fcgi\.c'
	'seccomp\.h' 'jail/seccomp[a-z_]*\.c'
	'json-c/json_tokener\.h|json-c/json\.h' 'lib/json\.c'
	'openssl/.*' 'lib/codec\.c'
	'curl/.*' 'cgi/upstream[a-z_]*\.c'
)

check_own() { # FILE LINE INCLUDED
	local file=$1 folder path
	folder=$(dirname "$file")
	path=$(realpath -m --relative-to=. "$folder/$3")
	if [[ $folder == tests/* && ! -e $path ]]; then
		path=$3 # tests are compiled with -I.
	fi
	if [[ $path == *.inc ]]; then
		return # made by the build
	elif [ ! -e "$path" ]; then
		finding "$file:$2: includes $3, which does not exist"
	elif [[ $folder != tests/* && $(dirname "$path") == "$folder" && $3 == */* ]]; then
		finding "$file:$2: includes $3: a header of the same folder is included by its name alone"
	elif [[ ! $path =~ ^($(allowed "$file"))$ ]]; then
		finding "$file:$2: includes $path, a layer that it must not know"
	fi
}

check_third_party() { # FILE LINE HEADER
	local i
	[[ $1 != tests/* ]] || return 0
	for ((i = 0; i < ${#third_party[@]}; i += 2)); do
		if [[ $3 =~ ^(${third_party[i]})$ && ! $1 =~ ^${third_party[i + 1]}$ ]]; then
			finding "$1:$2: includes <$3>, which belongs to ${third_party[i + 1]}"
		fi
	done
}

include='^[[:space:]]*#[[:space:]]*include[[:space:]]*([<"])([^">]+)[">]'
while IFS=: read -r file line text; do
	[[ $text =~ $include ]] || continue
	if [ "${BASH_REMATCH[1]}" = '"' ]; then
		check_own "$file" "$line" "${BASH_REMATCH[2]}"
	else
		check_third_party "$file" "$line" "${BASH_REMATCH[2]}"
	fi
done < <(grep -rnE --include='*.[ch]' --exclude-dir=node_modules '^[[:space:]]*#[[:space:]]*include' "${SOURCES[@]}")
checked=$(c_files '*.[ch]' | wc -l)

# Libraries are silent: the log writes lines, the jailer's main file is a program.
prints='(^|[^A-Za-z0-9_.>])((v?printf|puts|putchar|perror|exit|quick_exit|warnx?|errx?)[[:space:]]*\(|(stdout|stderr)[^A-Za-z0-9_])'
libraries=()
for folder in lib jail; do
	[ ! -d "$folder" ] || libraries+=("$folder")
done
if [ ${#libraries[@]} -gt 0 ]; then
	while read -r file; do
		[[ $file != lib/log.c && $file != jail/jailer.c ]] || continue
		findings_from < <(code_of "$file" | grep -nE "$prints" | sed -E "s|^([0-9]+):[[:space:]]*|$file:\1: a library prints or exits: |" || true)
	done < <(c_files '*.c' "${libraries[@]}")
fi
finish
