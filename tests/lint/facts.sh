#!/usr/bin/env bash
# One fact, one place: what a table says is not written out again elsewhere, and what docs/hacking.md lists for an addition is short and there.
# shellcheck source=tests/lint/common.bash
source "$(dirname "$0")/common.bash"

# Sums of a submission and of many runs, calls that a run made, and the list of probes in units of its own: other facts under the same names.
own='cli/grade_(package|shared|suite|tasks)\.c|cli/selftest_list\.c|cli/cmd_(stats|show)\.c|cli/show_tools\.c'

# A field of a result stands as a string in its table only. Names of one word mean other things, too.
table=jail/client/result.c
fields=
[ ! -e "$table" ] || fields=$(sed -nE 's/^\t\{?(USAGE|FIELD)\(([a-z]+_[a-z_]+),.*/\2/p' "$table" | sort -u)
others=$(c_files '*.c' lib jail cgi cli | grep -vxE "$table|$own")
for field in $fields; do
	checked=$((checked + 1))
	case $field in stdout_bytes | stderr_bytes) continue ;; esac # members of the wire's output event, too
	# shellcheck disable=SC2086 # names of our own files
	while IFS= read -r place; do
		finding "$place: the field \"$field\" of a result comes from the table in $table"
	done < <(grep -nE "\"$field\\\\?\"" $others | cut -d: -f1,2)
done

# A limit, likewise.
table=lib/base/limits.def
limits=
[ ! -e "$table" ] || limits=$(sed -nE 's/^(LIMIT|RUN_LIMIT|ASKED_LIMIT|SHOWN_LIMIT)\(([a-z]+_[a-z_]+), .*/\2/p' "$table" | sort -u)
for limit in $limits; do
	checked=$((checked + 1))
	# shellcheck disable=SC2086
	while IFS= read -r place; do
		finding "$place: the limit \"$limit\" comes from $table"
	done < <(grep -nE "\"$limit\\\\?\"" $others | cut -d: -f1,2)
done

# What docs/hacking.md shows as a numbered list of files: at most six, and they exist.
guide=docs/hacking.md
if [ -e "$guide" ]; then
	while IFS=$'\t' read -r title count paths; do
		checked=$((checked + 1))
		[ "$count" -le 6 ] || finding "$guide: $title takes $count steps, at most 6"
		for path in $paths; do
			[ -e "$path" ] || finding "$guide: $title: there is no $path"
		done
	done < <(perl -0ne 'while (/^\*\*([^*\n]+)\*\*[^\n]*\n(?:[^*\n][^\n]*\n)*?\n((?:\d+\. [^\n]*\n(?: +[^\n]*\n)*)+)/mg) {
		my ($title, $list) = ($1, $2);
		my $count = () = $list =~ /^\d+\. /mg;
		print join("\t", $title, $count, join(" ", grep { !/[A-Z]{3}/ && m{/|\.sql$} } $list =~ /`([^`\s]+)`/g)), "\n";
	}' "$guide")
fi

# A member of the configuration that nothing reads promises something.
members=lib/base/config.c
[ ! -e "$members" ] || while read -r part member; do
	checked=$((checked + 1))
	grep -rqE "(->|\.)$part\.$member\b|\b$part(->|\.)$member\b" --include='*.[ch]' --include='*.def' --exclude='config.[ch]' lib cgi cli jail ||
		finding "$members: nothing reads the member $part.$member"
done < <(sed -nE 's/^\t(PART|FLAGGED)\(([a-z_]+), ([a-z_]+),.*/\2 \3/p' "$members")

# The kinds of the audit log: docs/audit.md has a row for each, and a test finds an entry of each.
kinds=lib/store/audit/store_audit.h
[ ! -e "$kinds" ] || while read -r kind; do
	checked=$((checked + 1))
	grep -qE "^\|.*\`${kind//./\\.}\`" docs/audit.md || finding "docs/audit.md: the table lacks the kind $kind of $kinds"
	grep -qrE "[\"',%]${kind//./\\.}[\"',%]|entries ${kind//./\\.}\b" tests/unit tests/e2e || finding "$kinds: no test looks for an entry of the kind $kind"
done < <(sed -nE 's/^\tX\([A-Z_]+, "([a-z.]+)"\).*/\1/p' "$kinds")

# Settings of the kernel: the package's file has them, the operator's table says why, and doctor looks at the same.
settings=debian/sallyport.sysctl
[ ! -e "$settings" ] || while read -r key value; do
	checked=$((checked + 1))
	grep -qF "| \`$key\` ${value:-empty} |" docs/operator.md || finding "docs/operator.md: the table of settings lacks $key ${value:-empty} of $settings"
	grep -qF "\"/proc/sys/${key//.//}\"" cli/doctor_host.c || finding "cli/doctor_host.c: doctor does not look at $key of $settings"
done < <(sed -nE 's/^-?([a-z_.]+) = ?(.*)/\1 \2/p' "$settings")
# shellcheck disable=SC2016 # backquotes of the page
while read -r key; do
	grep -qE "^-?${key//./\\.} =" "$settings" || finding "docs/operator.md: the table of settings has $key, $settings has not"
done < <(sed -n '/^### Settings of the kernel/,/^### /p' docs/operator.md | sed -nE 's/^\| `([a-z_.]+)` .*/\1/p')

# What memory the units allow: the operator's page says the same, and a gateway without a bound could take the machine with it.
for unit in gateway:sallyport-gateway signer:sallyport-checkpoint; do
	file=debian/sallyport.${unit#*:}.service
	[ -e "$file" ] || continue
	checked=$((checked + 1))
	most=$(sed -nE 's/^MemoryMax=([0-9]+[KMG])$/\1/p' "$file")
	[ -n "$most" ] || finding "$file: has no MemoryMax="
	grep -qF "${unit%:*} \`MemoryMax=$most\`" docs/operator.md || finding "docs/operator.md: the row on memory lacks the ${unit%:*}'s MemoryMax=$most of $file"
done

finish
