#!/usr/bin/env bash
# The table of docs/security.md, from the list of the probes. It says "held" for every mode because test_jail_probe runs all of them in each
# (as root by make test, the others by tests/e2e/jail.bats) and fails if one does not hold; jail.bats compares the table.
#
#   tests/probe/table.sh PROBE_PROGRAM
set -euo pipefail
echo '| probe | tries to | root | rootless | single id | no cgroup |'
echo '|---|---|---|---|---|---|'
"$1" --list | LC_ALL=C sort | awk -F '\t' '{ printf "| %s | %s | held | held | held | held |\n", $1, $2 }'
