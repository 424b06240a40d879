#!/usr/bin/env bash
# "Where is run_settled?" is answered by its name: a function that a header declares begins with a word of the header's file name (cells_… in
# cell.h, legacy_… in mcp_legacy.h) or with the name of a folder on its path (jail_… in jail/client). tests/lint/names.txt lists the headers
# of general words, whose functions are used everywhere; it may only shrink.
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"

most=3 # headers in the list: lower it when one goes, never raise it
list=tests/lint/names.txt
declare -A general=()
if [ -e "$list" ]; then
	while read -r entry; do
		general[$entry]=yes
		[ -e "$entry" ] || finding "$list:1: $entry does not exist"
	done < <(grep -vE '^(#|$)' "$list" || true)
	[ ${#general[@]} -le $most ] || finding "$list:1: has ${#general[@]} entries, at most $most may stay"
fi
folders=()
for folder in lib jail cgi cli; do
	[ ! -d "$folder" ] || folders+=("$folder")
done
mapfile -t headers < <(c_files '*.h' "${folders[@]}" | while read -r header; do [ -n "${general[$header]:-}" ] || echo "$header"; done)
checked=${#headers[@]}
badly_named() {
	perl -0ne '
		my $file = $ARGV;
		my %may = map { s/s$//r => 1 } $file =~ m{([a-z0-9]+)}g; # words of the path, in the singular
		s{/\*.*?\*/}{$& =~ tr/\n//cdr}gse;
		while (/^(?!static|typedef|#|\s)[a-z][\w \t*]*?\b(\w+)\((?!\*)/mg) {
			my ($name, $line) = ($1, 1 + (substr($_, 0, $-[0]) =~ tr/\n//));
			next if $name =~ /^(__attribute__|sizeof)$/;
			my ($first) = $name =~ /^([a-z0-9]+)/ or next;
			print "$file:$line: $name does not begin with a name of its file or folder\n" unless $may{$first =~ s/s$//r};
		}' "$@"
}
[ ${#headers[@]} -eq 0 ] || findings_from < <(badly_named "${headers[@]}")
finish
