#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# initramfs.sh OUT - write the guest's base archive: busybox, the programs
# that tests and benches run, the libraries those need. Called by tools/guest
# before each run; does nothing while the inputs are unchanged.
#
# The archive is not compressed: an emulated CPU copies faster than it
# decompresses.
set -eu

programs='numactl migratepages perf stress-ng hackbench cyclictest taskset chrt flock'

here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: initramfs.sh OUT}
marker=${out%/*}/numamark
mkdir -p "${out%/*}"
exec 9>"$out.lock"
flock 9

fail() {
	echo "initramfs: $*" >&2
	exit 1
}

find_programs() {
	for name in $programs; do
		command -v "$name" || fail "no $name: run make deps"
	done
}

# Libraries and the loader, by the very paths under which they are looked up.
libraries_of() {
	ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\// && NF == 2 { print $1 }' | sort -u
}

busybox=$(command -v busybox) || fail "no busybox: run make deps"
files=$(find_programs)
# Word splitting is meant: no path here has a space.
# shellcheck disable=SC2086
libraries=$(libraries_of $files)
# shellcheck disable=SC2086
inputs=$(stat -Lc '%n %s %Y' "$busybox" $files $libraries "$here/initramfs.sh" "$here"/guest-* "$here"/../meter/numamark.[ch])
[ ! -e "$out" ] || [ "$inputs" != "$(cat "$out.inputs" 2>/dev/null)" ] || exit 0

stage=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$stage"' EXIT

chmod 755 "$stage"
for dir in bin sbin lib lib64; do
	mkdir -p "$stage/usr/$dir"
	ln -s "usr/$dir" "$stage/$dir"
done
for dir in proc sys dev tmp root etc run var; do
	mkdir "$stage/$dir"
done
echo 'root:x:0:0:root:/root:/bin/sh' > "$stage/etc/passwd"
echo 'root:x:0:' > "$stage/etc/group"

cp "$busybox" "$stage/bin/busybox"
"$busybox" --list-full | while read -r applet; do
	[ "$applet" = bin/busybox ] || ln -sf /bin/busybox "$stage/usr/${applet#usr/}"
done
for file in $files $libraries; do
	mkdir -p "$stage${file%/*}"
	cp -L --remove-destination "$file" "$stage$file"
done
# busybox has a taskset of its own, which might sit earlier in PATH.
for name in $programs; do
	find "$stage/usr" -lname /bin/busybox -name "$name" -delete
done

cc -O2 -Wall -static -o "$marker" "$here/../meter/numamark.c" || fail "numamark does not build"
cp "$marker" "$stage/bin/numamark"
cp "$here/guest-init" "$stage/init"
cp "$here/guest-hostctl" "$stage/sbin/hostctl"
cp "$here/guest-turns" "$stage/sbin/turns"
chmod 755 "$stage/init" "$stage/sbin/hostctl" "$stage/sbin/turns"

(cd "$stage" && find . | LC_ALL=C sort | cpio -o -H newc -R 0:0 --quiet) > "$stage.cpio" ||
	fail "cpio failed"
mv "$stage.cpio" "$out"
echo "$inputs" > "$out.inputs"
