#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# objects.sh - without NODE_WORKERS, are the objects of the files we hook those of the
# base kernel (stock and patches/base)? Writes TAP, a test a file. Called by
# `make check-full`.
#
# Both trees are compiled with the same configuration and with __LINE__ a constant, so
# that nothing has to be overlooked in what is compared: all sections that are loaded or
# tell the linker something.
. "$(dirname "$0")/common.sh"

base=build/base
log=build/log/objects.log
top=$PWD
sources=$(named_by patches/*.patch | sed -n 's/\.c$//p')
objects=$(printf '%s.o ' $sources)

make_base() {
	rm -rf "$base"
	rsync -a --exclude=/obj/ --link-dest="$top/$stock" "$stock/" "$base/"
	series | grep '^base/' | while read -r patch; do
		named_by "patches/$patch" | while read -r file; do
			cp --remove-destination "$stock/$file" "$base/$file"
		done
		patch -d "$base" -p1 -F0 -s < "patches/$patch"
	done
}

# What an object is made of, symbols by their names.
contents() {
	objcopy --remove-section='.debug*' --remove-section='.comment' "$1" build/objects.o
	objdump -drs --section-headers build/objects.o | sed 's,^.*file format,file format,'
}

same() {
	contents "$base/no-workers/$1.o" > build/objects.theirs &&
		contents "$linux/no-workers/$1.o" > build/objects.ours &&
		diff build/objects.theirs build/objects.ours > "build/log/objects-$(basename "$1").diff"
}

export KCFLAGS='-w -D__LINE__=1'
mkdir -p build/log
{
	make_base
	mkdir -p "$base/no-workers" "$linux/no-workers"
	# shellcheck disable=SC2086
	tools/build/kernel.sh no-workers $objects
	cp "$linux/no-workers/.config" "$base/no-workers/.config"
	kmake "$base" no-workers olddefconfig
	# shellcheck disable=SC2086
	kmake "$base" no-workers -j$(($(nproc) + 1)) $objects
} > $log 2>&1 || die "the objects do not build ($log)"

# shellcheck disable=SC2086
set -- $sources
echo "1..$#"
n=0 status=0
for source; do
	n=$((n + 1))
	if same "$source"; then
		echo "ok $n $source.o without node workers is the base kernel's"
	else
		echo "not ok $n $source.o without node workers is the base kernel's (build/log/objects-$(basename "$source").diff)"
		status=1
	fi
done
exit $status
