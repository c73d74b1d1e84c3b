#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Build selftests/node_workers into build/selftests, which every guest has as
# /selftests: a program for each .c file, and the scripts as they are; and into
# build/selftests/kernel_mm, with the kernel's own mm selftests, selftests/kernel_mm.
# Called by `make selftests`.
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

# build SOURCE PROGRAM
build() {
	stale "$1" "$2" || return 0
	# shellcheck disable=SC2086
	cc $flags -o "$2.new" "$1" || die "$1 does not build"
	mv "$2.new" "$2"
}

for source in "$from"/*.c; do
	build "$source" "$to/$(basename "$source" .c)"
done
for script in "$from"/*.sh; do
	install -C -m 755 "$script" "$to/"
done

# A test that is gone must not run.
for built in "$to"/*; do
	name=$(basename "$built")
	[ -d "$built" ] || [ -e "$from/$name.c" ] || [ -e "$from/$name" ] || rm -f "$built"
done

# The kernel's own, from the stock source with its headers. khugepaged.c of 6.12.117
# forgets an include.
kernel_program() {
	program=$to/kernel_mm/$1
	[ "$program" -ot "$stock.version" ] || [ ! -e "$program" ] || return 0
	if [ ! -d build/headers ]; then
		kmake "$stock" obj headers_install INSTALL_HDR_PATH="$PWD/build/headers.new" \
			> build/log/headers.log 2>&1 || die "no kernel headers (build/log/headers.log)"
		mv build/headers.new build/headers
	fi
	(cd "$kselftest/mm" && cc -static -O2 -w -D_GNU_SOURCE= -include ../kselftest.h \
		-I "$top/$stock" -isystem "$top/build/headers/include" \
		-isystem "$top/$stock/tools/include/uapi" \
		-o "$top/$program" "$1.c" vm_util.c thp_settings.c \
		-lnuma -lrt -lpthread) > build/log/kernel_mm.log 2>&1 ||
		die "the kernel's mm/$1.c does not build (build/log/kernel_mm.log)"
}

top=$PWD
mkdir -p "$to/kernel_mm" build/log
build selftests/kernel_mm/policies.c "$to/kernel_mm/policies"
install -C -m 755 selftests/kernel_mm/run.sh "$to/kernel_mm/"
[ ! -e selftests/kernel_mm/stock.results ] ||
	install -C -m 644 selftests/kernel_mm/stock.results "$to/kernel_mm/"
for program in khugepaged ksm_tests ksm_functional_tests migration transhuge-stress; do
	kernel_program $program
done
