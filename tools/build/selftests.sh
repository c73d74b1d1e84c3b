#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Build selftests/node_workers into build/selftests, which every guest has as
# /selftests: a program for each .c file, and the scripts as they are. Called
# by `make selftests`.
. "$(dirname "$0")/common.sh"

from=selftests/node_workers
to=build/selftests
kselftest=$stock/tools/testing/selftests
# As the kernel's lib.mk does; the last one makes "../kselftest.h" work from here.
flags="-O2 -Wall -Wextra -pthread -D_GNU_SOURCE= -I tools/meter -isystem $kselftest -isystem $kselftest/kselftest"

mkdir -p "$to"
echo 'int main(void) { return 0; }' > build/static.c
if cc -static -o build/static build/static.c 2>/dev/null; then
	flags="$flags -static"
fi

# Up to date if newer than its source and every header.
stale() {
	[ ! -e "$2" ] || [ -n "$(find "$1" "$from" tools/meter -maxdepth 1 \
		\( -path "$1" -o -name '*.h' \) -newer "$2")" ]
}

for source in "$from"/*.c; do
	[ -e "$source" ] || continue
	program=$to/$(basename "$source" .c)
	stale "$source" "$program" || continue
	# shellcheck disable=SC2086
	cc $flags -o "$program.new" "$source" || die "$source does not build"
	mv "$program.new" "$program"
done

for script in "$from"/*.sh; do
	[ ! -e "$script" ] || install -C -m 755 "$script" "$to/"
done

# A test that is gone must not run.
for built in "$to"/*; do
	name=$(basename "$built")
	[ -e "$from/$name.c" ] || [ -e "$from/$name" ] || rm -f "$built"
done
