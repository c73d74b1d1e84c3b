#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# baseline.sh - write selftests/kernel_mm/stock.results: which of the kernel's own mm
# selftests pass on the stock kernel in a guest, each time of three. Called by
# `make baseline`; needed when the kernel package or the guest changes.
. "$(dirname "$0")/common.sh"

results=selftests/kernel_mm/stock.results
log=build/log/baseline
mkdir -p $log

for round in 1 2 3; do
	echo "baseline: round $round of 3"
	tools/guest --kernel "$stock/obj/arch/x86/boot/bzImage" --threads single \
		--log $log/$round.kernel.log -- /selftests/kernel_mm/run.sh -r 1 \
		> $log/$round.out || die "the guest failed ($log/$round.kernel.log)"
	tr -d '\r' < $log/$round.out | grep -v '^#' > $log/$round
done
{
	echo "# What passes of the kernel's own mm selftests on stock $(cat "$stock.version"),"
	echo "# mode 1, 4 nodes, three times of three: made by 'make baseline'."
	grep -xFf $log/2 $log/1 | grep -xFf $log/3
} > $results
echo "baseline: $(grep -vc '^#' $results) tests in $results"
