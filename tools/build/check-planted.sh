#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# check-planted.sh [-n] [NAME]... - show that the tests can fail: build the kernel with
# each fault of selftests/planted/ (or those named), run the test that it names,
# and expect that test to fail. Called by `make check-planted`; takes half a
# minute a fault, so it is not part of `make check`.
#
# A planted fault is a patch on build/linux with two header lines:
#
#   Red: PROGRAM TEST     the selftest program and the test that must fail
#   Guest: OPTION...      further options of tools/guest (may be missing)
#
# The last line is `N passed, N failed`; passed is a fault that was found. -n: see
# only that each applies to build/linux and names a test there is; writes TAP.
. "$(dirname "$0")/common.sh"

tree=build/planted
passed=0
failed=0

# A tree of its own, with release's objects: only what a fault touches is built.
# Sources are linked (patch and rsync replace files, they do not write into them),
# objects copied, as make does write into those.
new_tree() {
	mkdir -p "$tree/release"
	rsync -a --delete --exclude=/release/ --exclude=/debug/ --exclude=/no-*/ --exclude=/rt/ --exclude=/deb/ \
		--link-dest="$PWD/$linux" "$linux/" "$tree/"
	rsync -a --delete "$linux/release/" "$tree/release/"
}

header() {
	sed -n "s/^$1: *//p" "$2" | head -n 1
}

build_with() {
	(cd "$tree" && patch -p1 --quiet --no-backup-if-mismatch) < "$1" ||
		die "$1 does not apply"
	kmake "$tree" release -j$(($(nproc) + 1)) bzImage > "$log.build" 2>&1 ||
		die "$1 does not build ($log.build)"
}

unplant() {
	(cd "$tree" && patch -p1 -R --quiet --no-backup-if-mismatch) < "$1" ||
		die "$1 cannot be taken out again"
}

# The test says so, or the kernel's log does (99): a fault may well be an oops.
# A guest that did not get as far as the test shows nothing.
turns_red() {
	# Green, none of these waits takes five seconds.
	command="NW_PATIENCE=20 /selftests/run.sh '$2 -t $3'" want="^not ok .*$3"
	eval "set -- $(header Guest "$1")"
	status=0
	tools/guest --kernel "$tree/release/arch/x86/boot/bzImage" --timeout 300 --threads single \
		--log "$log.kernel" "$@" -- "$command" > "$log" 2>&1 || status=$?
	grep -q "$want" "$log" || [ $status -eq 99 ]
}

plant() {
	name=$(basename "$1" .patch)
	log=build/log/planted/$name.log
	# shellcheck disable=SC2046
	set -- "$1" $(header Red "$1")
	[ $# -eq 3 ] || die "$1 names no test (Red: PROGRAM TEST)"
	build_with "$1"
	if turns_red "$@"; then
		passed=$((passed + 1))
		echo "ok $name: $2 $3 is red"
	else
		failed=$((failed + 1))
		echo "not ok $name: $2 $3 stays green ($log)"
	fi
	unplant "$1"
}

# applies NR FAULT
applies() {
	name=$(basename "$2" .patch)
	# shellcheck disable=SC2046
	set -- "$1" "$2" $(header Red "$2")
	if [ $# -eq 4 ] && grep -Eq "^TEST(_F.*, |\()$4[,)]" "selftests/node_workers/$3.c" &&
	   patch -d "$linux" -p1 -F0 --dry-run --quiet --force < "$2"; then
		echo "ok $1 $name applies"
	else
		echo "not ok $1 $name applies"
		failed=$((failed + 1))
	fi
}

if [ "${1:-}" = -n ]; then
	set -- selftests/planted/*.patch
	echo "1..$#"
	n=0
	for fault; do
		n=$((n + 1))
		applies $n "$fault"
	done
	exit $((failed > 0))
fi

mkdir -p build/log/planted
exec 8> build/planted.lock
flock -n 8 || die "another check-planted is at work in $tree"
new_tree
[ $# -gt 0 ] || set -- selftests/planted/*.patch
for fault; do
	[ -f "$fault" ] || fault=selftests/planted/$fault.patch
	[ -f "$fault" ] || die "no fault $fault"
	plant "$fault"
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
