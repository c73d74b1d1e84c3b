#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Unpack the kernel source package to build/stock, once for each version of
# the package. Called by `make source`. An existing tree without a stamp is
# taken if its Makefile says that version.
. "$(dirname "$0")/common.sh"

tarball=/usr/src/$package.tar.xz
stamp=build/stock.version

version=$(dpkg-query -W -f '${Version}' "$package" 2>/dev/null) || die "no $package: run make deps"
[ -r "$tarball" ] || die "no $tarball: reinstall $package"

# 6.12.117 of the tree's Makefile
tree_version() {
	awk -F ' = ' '/^(VERSION|PATCHLEVEL|SUBLEVEL) = / { v = v s $2; s = "." } END { print v }' \
		"$stock/Makefile"
}

mkdir -p build
if [ -f "$stock/Makefile" ]; then
	if [ -f "$stamp" ]; then
		[ "$(cat "$stamp")" != "$version" ] || exit 0
	elif [ "$(tree_version)" = "${version%%-*}" ]; then
		echo "$version" > "$stamp"
		exit 0
	fi
fi

echo "source: unpacking $package $version"
rm -rf "$stock" "$stock.new"
mkdir "$stock.new"
tar -C "$stock.new" --strip-components=1 -xf "$tarball" || die "cannot unpack $tarball"
mv "$stock.new" "$stock"
echo "$version" > "$stamp"
