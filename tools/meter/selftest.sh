#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Does the meter tell local from remote? TAP; called by tools/check and
# `make meter-selftest`. Arguments go to tools/guest (--kernel FILE).
#
# A buffer bound to the walker's own node, then one bound elsewhere; then the
# same with a wrong map of the CPUs, to show that the first checks can fail.
set -u

cd "$(dirname "$0")/../.." || exit 1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
count=0
failed=0

# walk NAME OPTION... - meter one guest into $out/NAME
walk() {
	name=$1
	shift
	tools/guest --meter --meter-out "$out/$name" --meter-range clear_page_erms "$@" \
		--timeout 300 --add build/meter/memwalk -- \
		'for node in 1 2; do numamark 9; /memwalk -H -c 2 -n $node -r 8 -m || exit; done' > "$out/$name.log" 2>&1 ||
		sed 's/^/# /' "$out/$name.log"
	touch "$out/$name"
}

# share NAME MODE MARK K - per cent local in the K-th phase that ends with MARK
share() {
	sed -n "s/^meter mark=$3 mode=$2 .*share=\([^ ]*\).*/\1/p" "$out/$1" | sed -n "$4p"
}

# is VALUE OP LIMIT TEXT - one test point
is() {
	count=$((count + 1))
	if awk -v v="$1" -v l="$3" "BEGIN { exit !(v ~ /^[0-9.]+\$/ && v $2 l) }"; then
		echo "ok $count - $4 ($1 %)"
	else
		echo "not ok $count - $4 (${1:-nothing} %, not $2 $3)"
		failed=1
	fi
}

echo 'TAP version 13'
echo '1..5'
make -s -C tools/meter || echo '# the meter does not build'
walk right "$@"
is "$(share right user 3 1)" '>=' 99.9 "a buffer on the walker's node is local"
is "$(share right user 3 2)" '<=' 0.1 "a buffer on another node is remote"
# From mark 9 to mark 1 memwalk starts, and touches first: the kernel clears pages.
is "$(share right clear_page_erms 1 1)" '>=' 99 "clearing those pages is local, by function"
is "$(share right clear_page_erms 1 2)" '<=' 5 "clearing these is remote, by function"
walk wrong "$@" --meter-arg cpus=0-1:3+2-3:2+4-5:1+6-7:0
is "$(share wrong user 3 1)" '<=' 0.1 "with a wrong map of the CPUs, local is called remote"
exit $failed
