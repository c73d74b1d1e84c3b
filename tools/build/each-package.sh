#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# each-package.sh - do the patches apply to every linux-source-6.12 that apt offers?
# Writes TAP. Called by `make check-full`.
. "$(dirname "$0")/common.sh"

dir=build/packages
top=$PWD
mkdir -p $dir build/log

versions=$(apt-cache madison $package | awk '{ print $3 }')
# The files that the patches change, out of one package, at $dir/src.
unpack() {
	(cd $dir && { [ -e ${package}_"$1"_all.deb ] || apt-get -qq download "$package=$1"; } &&
		rm -rf deb src && dpkg-deb -x "${package}_$1_all.deb" deb &&
		mkdir src && tar -xJf deb/usr/src/$package.tar.xz -C src --strip-components=1 \
			$(named_by "$top"/patches/*.patch "$top"/patches/base/*.patch | sed "s,^,$package/,"))
}

# shellcheck disable=SC2086
set -- $versions
echo "1..$#"
n=0 status=0
for version; do
	n=$((n + 1))
	log=$top/build/log/quilt-$version.log
	if unpack "$version" > "$log" 2>&1 &&
	   (cd $dir/src && LC_ALL=C QUILT_PATCHES="$top/patches" quilt --quiltrc - push -a --fuzz=0) >> "$log" 2>&1; then
		echo "ok $n the hooks apply to $version"
	else
		echo "not ok $n the hooks apply to $version ($log)"
		status=1
	fi
done
exit $status
