#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Node workers' selftests: run.sh PROGRAM... runs them one after the other, on
# one CPU of node 0 from the start, so that their own memory is there; each
# writes TAP. Exit status: the number of programs that failed.
cd "$(dirname "$0")" || exit 1
first=$(sed 's/[-,].*//' /sys/devices/system/node/node0/cpulist)
failed=0
for program; do
	echo "# $program"
	# shellcheck disable=SC2086
	taskset -c "$first" ./$program || failed=$((failed + 1))
done
exit $failed
