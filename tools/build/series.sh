#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# series.sh - write build/series/NNNN-*.patch, to be applied by `git am` to the stock
# source: first what patches/base mends, then our new files as patches/new groups
# them, then the hooks that make use of them. Each is run through checkpatch. Called
# by `make series`.
#
# patches/new/* hold a changelog, then `---`, then the files of the commit, a shell
# pattern a line. Nothing of ours may be left over at the end.
. "$(dirname "$0")/common.sh"

out=build/series
tree=$out/tree
top=$PWD

git_tree() {
	git -C "$tree" -c core.autocrlf=false -c commit.gpgsign=false "$@"
}

# The changelog at the head of a patch, or of a file in patches/new.
changelog() {
	sed '/^---$/,$d' "$1"
}

commit() {
	git_tree add -A
	changelog "$1" | git_tree commit -q -s -F -
}

# What the patches of the series, and they alone, change: from stock.
start_tree() {
	rm -rf "$out"
	mkdir -p "$tree"
	git_tree init -q
	git_tree config user.name "${GIT_AUTHOR_NAME:-$(git config user.name || echo nodeworkers)}"
	git_tree config user.email "${GIT_AUTHOR_EMAIL:-$(git config user.email || echo nodeworkers@localhost)}"
	for patch in $patches; do
		named_by "patches/$patch"
	done | sort -u | while read -r file; do
		mkdir -p "$tree/${file%/*}"
		cp "$stock/$file" "$tree/$file"
	done
	git_tree add -A
	git_tree commit -q -m "stock $(cat "$stock.version")"
	git_tree tag stock
}

commit_patch() {
	patch -d "$tree" -p1 -F0 --quiet --no-backup-if-mismatch < "$1" ||
		die "$1 does not apply"
	commit "$1"
}

commit_new() {
	sed '1,/^---$/d' "$1" | while read -r pattern; do
		# A pattern on purpose.
		# shellcheck disable=SC2086
		(cd build/stage/out && cp --parents $pattern "$top/$tree/") ||
			die "$1: nothing is $pattern"
	done
	commit "$1"
}

[ -f build/linux.manifest ] || die "no $linux: run make overlay"
patches=$(series)
start_tree
for patch in $patches; do
	case $patch in base/*) commit_patch "patches/$patch" ;; esac
done
for new in patches/new/*; do
	commit_new "$new"
done
for patch in $patches; do
	case $patch in base/*) ;; *) commit_patch "patches/$patch" ;; esac
done
(cd "$tree" && git ls-files | LC_ALL=C sort) | diff build/linux.manifest - ||
	die "the series and build/linux differ in these files"
(cd "$tree" && git ls-files) | while read -r file; do
	cmp "$linux/$file" "$tree/$file" || die "the series makes another $file"
done
git_tree format-patch -q -o "$top/$out" stock
# The selftests are programs: what is advice for the kernel's code is none for them.
programs=VOLATILE,ARRAY_SIZE,EMBEDDED_FUNCTION_NAME,PREFER_DEFINED_ATTRIBUTE_MACRO,BIT_MACRO,PREFER_KERNEL_TYPES,SPACING
bad=0
for patch in "$out"/*.patch; do
	ignore=FILE_PATH_CHANGES
	case $patch in *-selftests-*) ignore=$ignore,$programs ;; esac
	# Its python3 is the one that the packages are for.
	PATH=/usr/bin:$PATH perl "$stock/scripts/checkpatch.pl" --strict --root="$stock" --quiet --terse \
		--ignore "$ignore" "$patch" || bad=1
done
rm -rf "$tree"
echo "series: $(ls "$out"/*.patch | wc -l) patches in $out"
exit $bad
