#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Bring build/linux up to date: the stock source, our own files, and the files
# that patches/series changes. Called by `make overlay`.
#
# build/linux shares its files with build/stock by hard links, so a file is
# replaced there, never written in place (rsync renames); and one that stays
# the same is not touched, so that make rebuilds only what changed.
#
#   build/stage/src      what the patches name, from stock; quilt works here
#   build/stage/out      every file that is to differ from stock
#   build/linux.manifest the list of those after the last run
. "$(dirname "$0")/common.sh"

src=build/stage/src
out=build/stage/out
manifest=build/linux.manifest
base=build/linux.version
top=$PWD

new_tree() {
	[ ! -d "$linux" ] || cmp -s build/stock.version "$base" || rm -rf "$linux"
	[ ! -d "$linux" ] || return 0
	echo "overlay: linking $stock to $linux"
	rm -rf "$linux.new" "$manifest"
	rsync -a --exclude=/obj/ --link-dest="$top/$stock" "$stock/" "$linux.new/"
	mv "$linux.new" "$linux"
	cp build/stock.version "$base"
}

# ours FROM TO - put our file or tree FROM at TO
ours() {
	[ -e "$1" ] || return 0
	mkdir -p "$(dirname "$out/$2")"
	cp -rT "$1" "$out/$2"
}

add_own_files() {
	for dir in mm kernel include fs Documentation; do
		ours "$dir" "$dir"
	done
	ours Kconfig mm/node_worker/Kconfig
	ours selftests/node_workers tools/testing/selftests/node_workers
}

quilt_push() {
	(cd "$src" && LC_ALL=C QUILT_PATCHES="$top/patches" quilt --quiltrc - push -a --fuzz=0)
}

# What of quilt's output says where it stopped, as one line.
explain_reject() {
	patch=$(sed -n 's,^Patch \(.*\) does not apply.*,\1,p' "$1" | tail -n 1)
	file=$(sed -n 's,.*FAILED -- rejects in file \(.*\),\1,p; s,^|+++ b/\([^[:space:]]*\).*,\1,p' "$1" | head -n 1)
	die "patch ${patch##*patches/} does not apply to ${file:-its files} ($1)"
}

add_patched_files() {
	patches=$(series)
	[ -n "$patches" ] || return 0
	for patch in $patches; do
		[ -f "patches/$patch" ] || die "patches/series names $patch, which does not exist"
	done
	files=$(for patch in $patches; do named_by "patches/$patch"; done | sort -u)
	for file in $files; do
		mkdir -p "$(dirname "$src/$file")"
		[ ! -f "$stock/$file" ] || cp "$stock/$file" "$src/$file"
	done
	quilt_push > build/log/quilt.log 2>&1 || explain_reject build/log/quilt.log
	for file in $files; do
		[ ! -f "$src/$file" ] || ours "$src/$file" "$file"
	done
}

list_out() {
	(cd "$out" && find . -type f | sed 's,^\./,,' | LC_ALL=C sort)
}

# Files of the last run that are not ours any more. The stock file comes back
# as a copy with a new time: by its old one, make would keep the object.
drop_old_files() {
	[ -f "$manifest" ] || return 0
	LC_ALL=C comm -23 "$manifest" build/stage/list | while read -r file; do
		rm -f "$linux/$file"
		if [ -f "$stock/$file" ]; then
			cp "$stock/$file" "$linux/$file"
		else
			rmdir -p --ignore-fail-on-non-empty "$(dirname "$linux/$file")"
		fi
	done
}

[ -f build/stock.version ] || die "no $stock: run make source"
lock_trees
rm -rf build/stage
mkdir -p "$src" "$out" build/log
new_tree
add_own_files
add_patched_files
list_out > build/stage/list
drop_old_files
rsync -rc "$out/" "$linux/"
mv build/stage/list "$manifest"
for tree in release debug; do
	mkdir -p "$linux/$tree"
	ln -sfn "linux/$tree" "build/$tree"
done
