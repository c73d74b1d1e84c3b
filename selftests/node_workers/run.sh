#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Node workers' selftests: run.sh PROGRAM... runs them one after the other, on
# one CPU of node 0 from the start, so that their own memory is there; each
# writes TAP. On a kernel with kmemleak, leaks are looked for at the end. Exit
# status: the number of programs that failed.
cd "$(dirname "$0")" || exit 1
first=$(sed 's/[-,].*//' /sys/devices/system/node/node0/cpulist 2> /dev/null || echo 0)
failed=0

# What is younger than five seconds is not reported, and a pointer may be on its way
# from one place to another while it is looked for: what is found twice counts.
no_leaks() {
	kmemleak=/sys/kernel/debug/kmemleak
	[ -w $kmemleak ] || return 0
	echo 1..1
	sleep 6
	echo scan > $kmemleak
	echo scan > $kmemleak
	if [ -s $kmemleak ]; then
		echo "not ok 1 no_leaks"
		sed 's/^/# /' $kmemleak
		return 1
	fi
	echo "ok 1 no_leaks"
}

# Tests take CPUs away from kernel threads by real-time tasks, of which other tasks are
# owed a twentieth of a second in each, unless that is turned off. The kernel (6.12)
# miscounts, and warns, if it is while such a task wants to run: so now, and not on
# the CPU that this is on.
no_fair_server() {
	taskset -p -c "$first" $$ > /dev/null
	for runtime in /sys/kernel/debug/sched/fair_server/cpu*/runtime; do
		case $runtime in */cpu"$first"/*) continue ;; esac
		[ ! -w "$runtime" ] || echo 0 > "$runtime"
	done
}

no_fair_server
for program; do
	echo "# $program"
	# shellcheck disable=SC2086
	taskset -c "$first" ./$program || failed=$((failed + 1))
done
no_leaks || failed=$((failed + 1))
exit $failed
