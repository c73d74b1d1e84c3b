#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: run one of the loads that placement is measured with, in one
# mode, and say what it cost. Called by tools/demo and tools/bench, with memwalk
# beside it in the guest's root.
#
#   loads.sh MODE LOAD [SECONDS [MIB [START [GRANULARITY]]]]
#
#   MODE   what goes into kernel.numa_balancing
#   LOAD   numa01      2 processes, 4 threads each write the whole buffer
#          numa01_own  2 processes, each thread its own share
#          numa02      1 process, 8 threads, a slice each
#          single8     8 single-threaded processes
#          one         1 task on the last node's first CPU, its faults traced
#          stall       the same, untraced: for its longest stall
#   MIB    memory of a process, all first touched on node 0, base pages
#   START  rotates the order in which processes start
#   GRANULARITY  of mode 5's hints: page or block
#
# Output: "name value" lines. _us are totals of the function profiler, of calls
# that only the application makes (not its first touches). For the load "one",
# fault_..._ns are percentiles of handle_mm_fault() once its memory is there, so of
# hinting faults, wait_..._ns of those that had to wait for a page on its way, and
# scan_..._ns of task_numa_work().
set -eu
mode=$1 load=$2 seconds=${3:-16} mib=${4:-32} start=${5:-0} gran=${6:--}
trace=/sys/kernel/tracing
profiled="task_numa_work migrate_misplaced_folio handle_mm_fault"

# Node counters lag behind on each CPU until they are asked to be folded in.
counter() {
	echo 1 > /proc/sys/vm/stat_refresh
	awk -v name="$1" '$1 == name { print $2 }' /proc/vmstat
}

# walk OPTION... - one process of the load
walk() {
	/memwalk -H -f 0 -l -y -s "$seconds" -b "$mib" "$@"
}

run_load() {
	case $load in
	numa01)		n=2; set -- -t 4 -A ;;
	numa01_own)	n=2; set -- -t 4 -S ;;
	numa02)		n=1; set -- -t 8 -S ;;
	single8)	n=8; set -- -t 1 ;;
	one | stall)	n=1; set -- -t 1 -c "$(($(nproc) - 2))" ;;
	*)		echo "loads.sh: no load $load" >&2; exit 2 ;;
	esac
	# A start order is a delay: who comes first decides who stays.
	for i in $(seq "$n"); do
		usleep "$(((i + start) % n * 30000 + start * 7000))"
		if [ "$i" = 1 ]; then
			walk "$@" -m -T "$switch" &
		else
			walk "$@" &
		fi
	done
	wait
}

# Total microseconds and calls of a profiled function over all CPUs.
profile_of() {
	cat $trace/trace_stat/function* | awk -v name="$1" '
		$1 == name { calls += $2; us += $3 }
		END { printf "%s_calls %d\n%s_us %d\n", name, calls, name, us }'
}

# A fault takes a few microseconds: no turn of another vCPU should be in many.
trace_faults() {
	turns off
	switch=$trace/tracing_on
	echo 0 > $switch
	echo 40000 > $trace/buffer_size_kb
	echo handle_mm_fault task_numa_work > $trace/set_graph_function
	echo "handle_mm_fault task_numa_work migration_entry_wait" > $trace/set_ftrace_filter
	echo function_graph > $trace/current_tracer
}

# percentiles NAME FUNCTION - of its calls; a line of the trace is
# " 3)  + 16.580 us    |  handle_mm_fault();"
# A fault that waited for a page on its way contains another call, and so has no
# such line: waits are counted apart.
percentiles() {
	sed -n "s/^ *[0-9]*) *[^0-9]* *\([0-9.]*\) us.*$2.*/\1/p" $trace/trace |
		sort -n | awk -v name="$1" '
		{ us[NR] = $1 }
		END {
			printf "%s_calls %d\n", name, NR
			if (!NR)
				exit
			printf "%s_p50_ns %d\n", name, 1000 * us[int((NR + 1) / 2)]
			printf "%s_p99_ns %d\n", name, 1000 * us[int((NR * 99 + 99) / 100)]
			printf "%s_max_ns %d\n", name, 1000 * us[NR]
		}'
}

echo "$mode" > /proc/sys/kernel/numa_balancing
[ "$gran" = - ] || echo "$gran" > /sys/kernel/mm/node_workers/scan/granularity
faults=$(counter numa_hint_faults) moved=$(counter numa_pages_migrated)
workers=$(counter node_worker_migrated)
switch=$trace/function_profile_enabled
echo "$profiled" > $trace/set_ftrace_filter
[ "$load" != one ] || trace_faults
run_load
echo "hint_faults $(($(counter numa_hint_faults) - faults))"
moved=$(($(counter numa_pages_migrated) - moved))
workers=$(($(counter node_worker_migrated) - workers))
echo "pages_migrated $moved"
echo "migrated_in_task $((moved - workers))"
if [ "$load" = one ]; then
	percentiles fault handle_mm_fault
	percentiles wait migration_entry_wait
	percentiles scan task_numa_work
else
	for f in $profiled; do
		profile_of "$f"
	done
fi
