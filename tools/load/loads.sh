#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: run one of the loads that placement is measured with, in one
# mode, and say what it cost. Called by tools/demo and tools/bench with
# memwalk beside it in the guest's root.
#
#   loads.sh MODE LOAD [SECONDS [MIB [START]]]
#
#   MODE   what goes into kernel.numa_balancing
#   LOAD   numa01      2 processes, 4 threads each write the whole buffer
#          numa01_own  2 processes, each thread its own share
#          numa02      1 process, 8 threads, a slice each
#          single8     8 single-threaded processes
#          one         1 task on the last node's first CPU
#   MIB    memory of a process, all first touched on node 0, base pages
#   START  rotates the order in which processes start
#
# Output: "name value" lines. Times are of the function profiler: in whatever
# context the function ran; the application alone calls them.
set -eu
mode=$1 load=$2 seconds=${3:-16} mib=${4:-32} start=${5:-0}
trace=/sys/kernel/tracing
profiled="task_numa_work migrate_misplaced_folio handle_mm_fault"

counter() {
	awk -v name="$1" '$1 == name { print $2 }' /proc/vmstat
}

# walk OPTION... - one process of the load
walk() {
	/memwalk -H -f 0 -l -s "$seconds" -b "$mib" "$@"
}

run_load() {
	case $load in
	numa01)		n=2; set -- -t 4 -A ;;
	numa01_own)	n=2; set -- -t 4 -S ;;
	numa02)		n=1; set -- -t 8 -S ;;
	single8)	n=8; set -- -t 1 ;;
	one)		n=1; set -- -t 1 -c "$(($(nproc) - 2))" ;;
	*)		echo "loads.sh: no load $load" >&2; exit 2 ;;
	esac
	# A start order is a delay: who comes first decides who stays.
	for i in $(seq "$n"); do
		usleep "$(((i + start) % n * 30000 + start * 7000))"
		if [ "$i" = 1 ]; then
			walk "$@" -m &
		else
			walk "$@" &
		fi
	done
	wait
}

profile() {
	echo 0 > $trace/function_profile_enabled
	echo "$profiled" > $trace/set_ftrace_filter
	echo "$1" > $trace/function_profile_enabled
}

# Total microseconds and calls of a profiled function over all CPUs.
profiled() {
	cat $trace/trace_stat/function* | awk -v name="$1" '
		$1 == name { calls += $2; us += $3 }
		END { printf "%s_calls %d\n%s_us %d\n", name, calls, name, us }'
}

echo "$mode" > /proc/sys/kernel/numa_balancing
faults=$(counter numa_hint_faults) moved=$(counter numa_pages_migrated)
profile 1
run_load
echo 0 > $trace/function_profile_enabled
echo "hint_faults $(($(counter numa_hint_faults) - faults))"
echo "pages_migrated $(($(counter numa_pages_migrated) - moved))"
for f in $profiled; do
	profiled "$f"
done
