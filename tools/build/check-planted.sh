#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# check-planted.sh [NAME]... - show that the tests can fail: build the kernel with
# each fault of selftests/planted/ (or those named), run the test that it names,
# and expect that test to fail. Called by `make check-planted`; takes two or three
# minutes a fault, so it is not part of `make check`.
#
# A planted fault is a patch on build/linux with two header lines:
#
#   Red: PROGRAM TEST     the selftest program and the test that must fail
#   Guest: OPTION...      further options of tools/guest (may be missing)
#
# The last line is `N passed, N failed`; passed is a fault that was found.
. "$(dirname "$0")/common.sh"

tree=build/planted
passed=0
failed=0

# A tree of its own, with release's objects: only what a fault touches is built.
# Sources are linked (patch and rsync replace files, they do not write into them),
# objects copied, as make does write into those.
new_tree() {
	mkdir -p "$tree/release"
	rsync -a --delete --exclude=/release/ --exclude=/debug/ \
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

# Any bad end will do but a test that passes: a fault may well be an oops.
turns_red() {
	# Green, none of these waits takes five seconds.
	command="NW_PATIENCE=20 /selftests/run.sh '$2 -t $3'" want="^ok .*$3"
	eval "set -- $(header Guest "$1")"
	tools/guest --kernel "$tree/release/arch/x86/boot/bzImage" --timeout 600 \
		--log "$log.kernel" "$@" -- "$command" > "$log" 2>&1
	! grep -q "$want" "$log"
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

mkdir -p build/log/planted
new_tree
[ $# -gt 0 ] || set -- selftests/planted/*.patch
for fault; do
	[ -f "$fault" ] || fault=selftests/planted/$fault.patch
	[ -f "$fault" ] || die "no fault $fault"
	plant "$fault"
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
