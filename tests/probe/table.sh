#!/usr/bin/env bash
# The table of docs/probes.md, from what the probes said in each mode.
#
#   tests/probe/table.sh FOLDER RESULTS
#
# FOLDER holds jail_probe and probes/ (build/tests), RESULTS the files root, live, rootless, rootless-live, single, single-live and weaker with
# lines "NAME RESULT", as tests/e2e/probes.bats makes them. Probes whose names differ in the last letter only are rows below each other, groups
# begin with a line.
set -euo pipefail
folder=$1 results=$2
declare -A groups=([C]="the clock" [D]="descriptors" [E]="what is known of others" [F]="files" [G]="grading" [H]="what comes out"
	[K]="the kernel" [N]="the network" [O]="output" [P]="processes" [R]="resources" [X]="traces of other runs")

# held and weaker are said as they are; a runner that is not installed is "–"
result() {
	awk -v name="$1" '$1 == name { print $2 == "absent" ? "–" : $2; found = 1 } END { if (!found) print "?" }' "$results/$2"
}

echo '| probe | tries | root | root, live | rootless | rootless, live | single id | single id, live | no cgroup |'
echo '|---|---|---|---|---|---|---|---|---|'
group=
{
	"$folder/jail_probe" --list
	sed -snE '1s,^[#/]+ ([A-Z][0-9]{2}[a-z]? \| .*),\1,p' "$folder"/probes/*
} | LC_ALL=C sort | while IFS='|' read -r name what _; do
	name=${name% } what=${what# } what=${what% }
	if [ "$group" != "${name:0:1}" ]; then
		group=${name:0:1}
		echo "| | **${groups[$group]}** | | | | | | |"
	fi
	line="| $name | $what |"
	for mode in root live rootless rootless-live single single-live weaker; do
		line+=" $(result "$name" "$mode") |"
	done
	echo "$line"
done
