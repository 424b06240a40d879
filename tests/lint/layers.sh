#!/usr/bin/env bash
# Who may include whom: the tables of docs/architecture.md ("The house") name what each folder may include and where each third-party header
# belongs. The includes of cgi/ have no circle. Libraries neither print nor exit. Columns are read by name.
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"

read_layers
[ ${#third_party[@]} -gt 0 ] || finding "$LAYERS:1: has no table of third-party headers"

# The paths (a regular expression) that FILE may include: sets $allowed.
allow() {
	local folder=${1%/*}
	case $folder in
	lib* | jail* | cgi* | cli*)
		allowed=${may[$folder]:-}
		[ -n "$allowed" ] || finding "$1:1: its folder is not in the table of $LAYERS"
		;;
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

# An include from cgi/ to cgi/ as an arrow between modules: a .c and the .h of the same name are one.
arrows=()
add_arrow() { # FILE PATH
	if [[ $1 == cgi/* && $2 == cgi/* && ${1%.*} != "${2%.*}" ]]; then
		arrows+=("${1%.*} ${2%.*}")
	fi
}

check_own() { # FILE LINE INCLUDED
	local file=$1 folder=${1%/*} path allowed
	lead "$folder" "$3"
	allow "$file"
	[ -e "$path" ] || path=$3 # from the top of the tree (-I.)
	add_arrow "$file" "$path"
	if [[ $path == *.inc ]]; then
		return # made by the build
	elif [ ! -e "$path" ]; then
		finding "$file:$2: includes $3, which does not exist"
	elif [[ $3 == ../* ]]; then
		finding "$file:$2: includes $3: headers of other folders are named from the top of the tree"
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

# tsort(1) names the members of each circle on its standard error.
while read -r _ module; do
	[[ $module == cgi/* ]] || continue
	if [ -e "$module.c" ]; then module+=.c; else module+=.h; fi
	finding "$module:1: is part of a circle of includes"
done < <(printf '%s\n' "${arrows[@]}" | tsort 2>&1 >/dev/null)

# Libraries are silent: the log writes lines, the jailer's main file and what runs inside of jails are programs.
prints='((v?printf|puts|putchar|perror|exit|quick_exit|warnx?|errx?)[[:space:]]*\(|(stdout|stderr)[^A-Za-z0-9_])'
libraries=()
for folder in lib jail; do
	[ ! -d "$folder" ] || libraries+=("$folder")
done
if [ ${#libraries[@]} -gt 0 ]; then
	mapfile -t files < <(c_files '*.c' "${libraries[@]}" | grep -vxE 'lib/base/log\.c|jail/jailer\.c|jail/guest/.*')
	findings_from < <(code_of "${files[@]}" | grep -E "^[^:]*:[0-9]+:(|.*[^A-Za-z0-9_.>])$prints" |
		sed -E 's|^([^:]*:[0-9]+):[[:space:]]*|\1: a library prints or exits: |' || true)
fi

# Columns of a SELECT are asked for by name (lib/store/db/store_column.h), but for the only one.
findings_from < <(grep -nE 'query_(int|text|copy|bytes|is_null)\([^,]+, [1-9]' lib/store/*.[ch] lib/store/*/*.[ch] |
	sed -E 's|^([^:]*:[0-9]+):[[:space:]]*|\1: a column by number: |' || true)
finish
