#!/usr/bin/env bash
# Documents say what is there: the man pages are correct mdoc; sallyport.conf(5) lists exactly the members of lib/base/config.c (items "limits.pids")
# and says of limits what lib/base/limits.def says: range, default, sentence; docs/man/ has a page for each command of cli/ and names only options that exist; README and docs/*.md name only files, make targets, tests and probes that exist.
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"
shopt -s nullglob

# same KNOWN SHOWN PAGE SOURCE WHAT: two sorted lists, one name a line, must be equal.
same() {
	local name
	[ -n "$1" ] || finding "$4:1: no ${5}s found: has the form of the table changed?"
	while read -r name; do
		[ -z "$name" ] || finding "$3:1: $5 $name is not described"
	done < <(comm -23 <(printf '%s\n' "$1") <(printf '%s\n' "$2"))
	while read -r name; do
		[ -z "$name" ] || finding "$3:1: $5 $name is described, $4 does not know it"
	done < <(comm -13 <(printf '%s\n' "$1") <(printf '%s\n' "$2"))
}

check_members() { # PAGE
	local known shown
	known=$({
		sed -nE 's/^\t(PART|FLAGGED)\(([a-z_]+), ([a-z_]+),.*/\2.\3/p' lib/base/config.c
		sed -nE 's/^\t\{\.name = "([a-z_]+)",.*/\1/p' lib/base/config.c
		[ ! -e "$limits" ] || sed -nE 's/^LIMIT\(([a-z_]+), .*/limits.\1/p' "$limits"
	} | sort)
	shown=$(sed -nE 's/^\.It (Va|Cm|Ic|Sy|Li|Fa|Dv) "?([a-z_]+(\.[a-z_]+)*)"?( .*)?$/\2/p' "$1" | sort)
	same "$known" "$shown" "$1" lib/base/config.c member
}

# A member that nothing reads promises what it does not do: each is read by its group's name, of limits by its own.
check_read() {
	local name line all
	all=$(find lib cgi cli jail -name '*.[ch]' ! -path '*/node_modules/*' ! -path 'lib/base/config*' -exec cat {} +)
	while IFS=: read -r line name; do
		grep -qE "\b${name//./\\.}\b" <<<"$all" || finding "lib/base/config.c:$line: nothing reads the member $name"
	done < <(sed -nE 's/^\t(PART|FLAGGED)\(([a-z_]+), ([a-z_]+),.*/\2.\3/; T; =; p' lib/base/config.c | paste -d: - -)
	[ ! -e "$limits" ] || while IFS=: read -r line name; do
		grep -qE "[.>]${name}\b|\b${name}[,)]" <<<"$all" || grep -qE "^[A-Z]+_LIMIT\(.*\b$name\b" "$limits" || finding "$limits:$line: nothing reads the limit $name"
	done < <(sed -nE 's/^LIMIT\(([a-z_]+), .*/\1/; T; =; p' "$limits" | paste -d: - -)
}

check_limits() { # PAGE
	local member range sentence line
	while IFS=$'\t' read -r member range sentence; do
		line=$(grep -nF ".It Ic limits.$member Pq " "$1" | cut -d: -f1) || continue # check_members says so
		sed -n "${line}p" "$1" | grep -qF "Pq number $range" || finding "$1:$line: $limits says: number $range"
		sed -n "$((line + 1))p" "$1" | grep -qF "${sentence^}." || finding "$1:$((line + 1)): $limits says: ${sentence^}."
	done < <(sed -nE 's/^LIMIT\(([a-z_]+), (-?[0-9]+), ([0-9]+), ([0-9]+), "(.*)"\)$/\1\tfrom \2 to \3; default: \4\t\5/p' "$limits")
}

# The prose of the commands' pages; docs/man/page takes options, synopsis and exit codes from the program itself.
check_commands() { # FOLDER
	local known shown page line name
	known=$(cat cli/*.c | perl -0ne 'print "$1\n" while /\bstruct cli_command cmd_\w+ = \{\s*\.name = "([a-z-]+)"/g' | sort -u)
	shown=$(find "$1" -name 'sallyport-*.mdoc' | sed -E 's/.*sallyport-(.*)\.mdoc/\1/' | sort -u)
	same "$known" "$shown" "$1" cli/ command
	known=" $({
		cat cli/*.c | perl -0ne 'print "$1\n" while /\{\s*\.name = "([a-z-]+)",\s*(?:\.letter = [^,]+,\s*)?\.type = CLI_/g'
		[ ! -e "$limits" ] || sed -nE 's/^OPTION_LIMIT\("([a-z-]+)", .*/\1/p' "$limits"
		cat docs/*.8 2>/dev/null | sed -nE 's/^\.It Fl -([a-z-]+).*/\1/p'
	} | sort -u | tr '\n' ' ')"
	for page in "$1"/*.mdoc; do
		while IFS=: read -r line name; do
			[[ $known == *" $name "* ]] || finding "$page:$line: names the option --$name, which does not exist"
		done < <(grep -noE '(Fl -| --)[a-z-]+' "$page" | sed -E 's/:(Fl -| --)/:/' || true)
	done
}

# shellcheck disable=SC2016 # backticks are text here
check_names() { # DOCUMENT
	local line name folder
	folder=$(dirname "$1")
	while IFS=: read -r line name; do
		[ -e "$folder/$name" ] || finding "$1:$line: links to $name, which does not exist"
	done < <(grep -noE '\]\([^):#]+[)#]' "$1" | sed -E 's/\]\((.*)[)#]/\1/' || true)
	# In backticks; capitals stand for something else, build/ is made.
	while IFS=: read -r line name; do
		[ -e "$name" ] || finding "$1:$line: names $name, which does not exist"
	done < <(grep -noE '`(lib|jail|cgi|cli|tests|nginx|docs|\.ci)/[a-z0-9_./-]+`' "$1" | tr -d '`' || true)
	# Tests by name: `test_jail: wall` is a function of a unit test, `K06` a probe.
	while IFS=: read -r line suite name; do
		grep -qs "^static void ${name# }(void \*\*state)" "tests/unit/$suite.c" || finding "$1:$line: names the test $suite:$name, which does not exist"
	done < <(grep -noE '`test_[a-z_]+: [a-z_]+`' "$1" | tr -d '`' || true)
	while IFS=: read -r line name; do
		grep -qw "$name" tests/probe/list.txt || finding "$1:$line: names the probe $name, which does not exist"
	done < <(grep -noE '`[A-Z][0-9]{2}`' "$1" | tr -d '`' || true)
	while IFS=: read -r line name; do
		grep -qE "^([a-z-]+ )*$name( [a-z-]+)*:" Makefile || finding "$1:$line: names make $name, which the Makefile does not know"
	done < <(grep -noE '`make [a-z][a-z-]*' "$1" | sed 's/`make //' || true)
}

# Quotes come in pairs, and a macro that quotes takes the rest of its line: of two on a line the first has the second in it.
check_quotes() { # PAGE
	local line
	while IFS= read -r line; do
		finding "$1:$line: quotes are not in pairs, or one macro quotes another: a line for each"
	done < <(awk '!/^\./ || /^\.\\"/ { next }
		{ text = $0; gsub(/\\\(dq/, "", text) }
		gsub(/"/, "\"", text) % 2 || gsub(/(^\.| )(Qq|Dq|Sq) /, "&", text) > 1 { print NR }' "$1")
}

# FILES has the places that DESCRIPTION names, and no other.
check_places() { # PAGE
	local place description files
	places() { sed -n "/^\.Sh $2/,/^\.Sh /s/.*Pa \([^ ]*\.conf\).*/\1/p" "$1" | sort -u; }
	description=$(places "$1" DESCRIPTION) files=$(places "$1" FILES)
	while read -r place; do
		[ -z "$place" ] || finding "$1:1: $place is in DESCRIPTION or in FILES, not in both"
	done < <(comm -3 <(echo "$description") <(echo "$files") | tr -d '\t')
}

# The head of schema.sql names tables in the order of the file.
check_schema() {
	local name line last=0
	while read -r name; do
		line=$(grep -nE "^CREATE (VIRTUAL )?TABLE $name\b" schema.sql | cut -d: -f1)
		[ "${line:-0}" -gt "$last" ] || finding "schema.sql:1: the introduction names $name, which is not there, or not in the order of the file"
		last=${line:-$last}
	done < <(sed -n '/^-- Read it/,/^--$/p' schema.sql | tr -d '\n' | sed 's/-- / /g' | grep -oE '\([a-z_, ]+\)' | tr -d '() ' | tr ',' '\n')
}

limits=lib/base/limits.def
pages=(docs/*.[158])
prose=(docs/man/*.mdoc)
documents=(README.md docs/*.md)
if [ ${#pages[@]} -gt 0 ]; then
	findings_from < <(mandoc -Tlint -W warning "${pages[@]}" 2>&1 | sed -E 's/^mandoc: //' || true)
fi
[ ! -e docs/sallyport.conf.5 ] || check_members docs/sallyport.conf.5
[ ! -e docs/sallyport.conf.5 ] || check_read
[ ! -e docs/sallyport.conf.5 ] || [ ! -e "$limits" ] || check_limits docs/sallyport.conf.5
[ ! -e docs/sallyport.conf.5 ] || check_places docs/sallyport.conf.5
[ ! -e schema.sql ] || check_schema
for page in "${pages[@]}" "${prose[@]}"; do
	check_quotes "$page"
done
[ ! -e docs/man ] || check_commands docs/man
for document in "${documents[@]}"; do
	[ ! -e "$document" ] || check_names "$document"
done
checked=$((${#pages[@]} + ${#prose[@]} + ${#documents[@]}))
finish
