#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# run.sh MODE - run the kernel's own mm selftests in a guest with
# kernel.numa_balancing set to MODE, and write TAP: what passes on the stock
# kernel has to pass. With the bit of the workers in MODE, khugepaged/N collapse;
# without, khugepaged does. run.sh -r MODE writes what passed, for stock.results, which
# `make baseline` makes.
#
# The programs are those of tools/testing/selftests/mm, built by tools/build/
# selftests.sh. They report in several ways; here each test is a line of
# "PROGRAM ARGUMENTS: TEST" that passed or did not.
cd "$(dirname "$0")" || exit 1

record=
if [ "$1" = -r ]; then
	record=yes
	shift
fi
mode=$1
out=/tmp/kernel_mm
mkdir -p $out
: > $out/passed

# Some tests swap.
swap_on() {
	echo 128M > /sys/block/zram0/disksize &&
		mkswap /dev/zram0 && swapon /dev/zram0
}

# Each passed test of a program that prints TAP, by number and name.
from_tap() {
	sed -n 's/^ok \([0-9]*\) [-# ]*\(.*\)/\1 \2/p' $out/log | grep -vi '# skip'
}

# The program says what it runs and then OK or Fail, in colour, for each step; if
# it dies, it dies of the last one.
from_khugepaged() {
	awk -v died="$(($1 > 128))" '
		function end() { if (name != "" && !bad) print name }
		/^Run test: / { end(); name = substr($0, 11); bad = 0 }
		/\033\[31m/ { bad = 1 }
		END { if (!died) end() }' $out/log
}

from_status() {
	[ "$1" -ne 0 ] || echo passes
}

# try KIND PROGRAM ARGUMENT...
try() {
	kind=$1 status=0
	shift
	"./$@" > $out/log 2>&1 || status=$?
	"from_$kind" $status | sed "s|^|$*: |" >> $out/passed
	echo "# $*: exit status $status"
	[ $status -eq 0 ] || tail -n 5 $out/log | sed 's/^/#   /'
}

run_all() {
	try khugepaged khugepaged all:anon
	try khugepaged khugepaged all:shmem
	try khugepaged khugepaged -s 2
	try status ksm_tests -M -p 10
	try status ksm_tests -U
	try status ksm_tests -Z -p 10 -z 0
	try status ksm_tests -Z -p 10 -z 1
	try status ksm_tests -N -m 0
	try status ksm_tests -N -m 1
	try tap ksm_functional_tests
	try tap migration
	try status transhuge-stress -d 10
	try tap policies
}

echo "$mode" > /proc/sys/kernel/numa_balancing || exit 1
enabled=/sys/kernel/mm/node_workers/collapse/enabled
if [ -e $enabled ]; then
	echo $((mode >> 2)) > $enabled || exit 1
fi
swap_on > $out/log 2>&1 || sed 's/^/# no swap: /' $out/log
echo 16 > /proc/sys/vm/nr_hugepages
run_all
if [ -n "$record" ]; then
	cat $out/passed
	exit
fi

echo "1..$(grep -c '^[^#]' stock.results)"
n=0
failed=0
while read -r line; do
	case $line in '#'* | '') continue ;; esac
	n=$((n + 1))
	if grep -qxF "$line" $out/passed; then
		echo "ok $n mode $mode: $line"
	else
		echo "not ok $n mode $mode: $line"
		failed=$((failed + 1))
	fi
done < stock.results
exit $failed
