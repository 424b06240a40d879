#!/usr/bin/env bash
# Who may include whom (hacking guide, "layers"): cgi and cli never include each other, the jail knows only the base of lib, each third-party
# library has one place. Libraries neither print nor exit.
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"

# What the jailer is linked with: no SQLite and no libcrypto near the kernel.
base='lib/(banned|bind|buf|config|err|host|json|log|utf8|util|version)\.h'

# The paths (a regular expression) that FILE may include: sets $allowed.
allow() {
	case $1 in
	lib/job*) allowed='lib/.*|jail/(jail|client_runners)\.h' ;;
	lib/*) allowed='lib/.*' ;;
	jail/*) allowed="jail/.*|$base" ;;
	cgi/*) allowed='cgi/.*|lib/.*|jail/(jail|client_runners)\.h' ;;
	cli/*) allowed='cli/.*|lib/.*|jail/(jail|client_runners)\.h' ;;
	*) allowed='.*' ;;
	esac
}

# Where FILE's folder leads by a relative path: sets $path, without "..".
lead() {
	path=$1/$2
	while [[ $path =~ ^(.*/)?([^/]+)/\.\./(.*)$ && ${BASH_REMATCH[2]} != .. ]]; do
		path=${BASH_REMATCH[1]}${BASH_REMATCH[3]}
	done
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
	local file=$1 folder=${1%/*} path allowed
	lead "$folder" "$3"
	allow "$file"
	if [[ $folder == tests/* && ! -e $path ]]; then
		path=$3 # tests are compiled with -I.
	fi
	if [[ $path == *.inc ]]; then
		return # made by the build
	elif [ ! -e "$path" ]; then
		finding "$file:$2: includes $3, which does not exist"
	elif [[ $folder != tests/* && ${path%/*} == "$folder" && $3 == */* ]]; then
		finding "$file:$2: includes $3: a header of the same folder is included by its name alone"
	elif [[ ! $path =~ ^($allowed)$ ]]; then
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
prints='((v?printf|puts|putchar|perror|exit|quick_exit|warnx?|errx?)[[:space:]]*\(|(stdout|stderr)[^A-Za-z0-9_])'
libraries=()
for folder in lib jail; do
	[ ! -d "$folder" ] || libraries+=("$folder")
done
if [ ${#libraries[@]} -gt 0 ]; then
	mapfile -t files < <(c_files '*.c' "${libraries[@]}" | grep -vxE 'lib/log\.c|jail/jailer\.c')
	findings_from < <(code_of "${files[@]}" | grep -E "^[^:]*:[0-9]+:(|.*[^A-Za-z0-9_.>])$prints" |
		sed -E 's|^([^:]*:[0-9]+):[[:space:]]*|\1: a library prints or exits: |' || true)
fi
finish
