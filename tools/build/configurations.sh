#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# configurations.sh NAME... - do the kernels of configs/NAME.config build, without a
# warning in a file of ours? Writes TAP. Called by `make check-full`.
. "$(dirname "$0")/common.sh"

echo "1..$#"
n=0 status=0
for name; do
	n=$((n + 1))
	log=build/log/kernel-$name.log
	if tools/build/kernel.sh "$name" | sed 's/^/# /' && [ -e "$linux/$name/arch/x86/boot/bzImage" ] &&
	   ! grep -q 'node_worker.*warning:' "$log"; then
		echo "ok $n $name builds"
	else
		echo "not ok $n $name builds ($log)"
		status=1
	fi
done
exit $status
