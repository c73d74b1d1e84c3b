#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: collapse.sh ENABLED MIB NODE... - one khugepaged (ENABLED 0, or a kernel
# without ours) or one a node (1) collapses MIB on each node, resting 10 ms a round; "name
# value" lines. Called by `tools/bench collapse` with collapse beside it.
set -eu
khugepaged=/sys/kernel/mm/transparent_hugepage/khugepaged
enabled=/sys/kernel/mm/node_workers/collapse/enabled

counter() {
	awk -v name="$1" '$1 == name { print $2 }' /proc/vmstat
}

turns off
echo 0 > /proc/sys/kernel/numa_balancing
echo madvise > /sys/kernel/mm/transparent_hugepage/enabled
if [ -e $enabled ]; then
	echo "$1" > $enabled
elif [ "$1" = 1 ]; then
	echo "no $enabled" >&2
	exit 1
fi
shift
echo 10 > $khugepaged/scan_sleep_millisecs
# So that node 0 is its home.
taskset -c 0 /collapse "$@"
echo 1 > /proc/sys/vm/stat_refresh
for kind in local handoff remote; do
	echo "collapsed_$kind $(($(counter thp_collapse_$kind)))"
done
