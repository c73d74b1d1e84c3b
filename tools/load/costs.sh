#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: costs.sh MODE - what fork and exec, an anonymous fault and, in mode
# 1, a hinting fault and an armed page cost with kernel.numa_balancing=MODE; "name
# value" lines, in picoseconds. Called by `tools/bench stock` with costs beside it.
set -eu
trace=/sys/kernel/tracing

profiled() {
	cat $trace/trace_stat/function* | awk -v name="$1" '
		$1 == name { calls += $2; us += $3 }
		END { printf "%d %.0f\n", calls, 1000000 * us }'
}

turns off
echo "$1" > /proc/sys/kernel/numa_balancing
/costs
[ "$1" = 1 ] || exit 0
echo "handle_mm_fault change_prot_numa" > $trace/set_ftrace_filter
# The memory is there before the profile begins.
/costs -h 12 &
usleep 500000
echo 1 > /proc/sys/vm/stat_refresh
before=$(awk '$1 == "numa_pte_updates" { print $2 }' /proc/vmstat)
echo 1 > $trace/function_profile_enabled
wait
echo 0 > $trace/function_profile_enabled
echo 1 > /proc/sys/vm/stat_refresh
armed=$(($(awk '$1 == "numa_pte_updates" { print $2 }' /proc/vmstat) - before))
# shellcheck disable=SC2046
set -- $(profiled handle_mm_fault) $(profiled change_prot_numa)
[ "$1" -gt 0 ] && [ "$armed" -gt 0 ]
echo "hint_fault_ps $(($2 / $1))"
echo "armed_page_ps $(($4 / armed))"
