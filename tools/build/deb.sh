#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# deb.sh - build installable kernel packages in build/deb, with the configuration of
# the running kernel, or of $CONFIG, and node workers in it. Called by `make deb`;
# a distribution's configuration takes hours on a small machine.
. "$(dirname "$0")/common.sh"

obj=$linux/deb
log=build/log/deb.log
config=${CONFIG:-/boot/config-$(uname -r)}

[ -r "$config" ] || die "no configuration $config: name one, make deb CONFIG=FILE"
mkdir -p "$obj" build/deb build/log
lock_trees
cp "$config" "$obj/.config"
"$linux/scripts/config" --file "$obj/.config" --enable NODE_WORKERS --enable NODE_WORKERS_BALANCING \
	--set-str LOCALVERSION -nodeworkers --set-str SYSTEM_TRUSTED_KEYS '' --disable DEBUG_INFO_BTF
kmake "$linux" deb olddefconfig > "$log" 2>&1 || die "cannot configure ($log)"
grep -q '^CONFIG_NODE_WORKERS_BALANCING=y' "$obj/.config" ||
	die "$config has no NUMA balancing to build on"
echo "deb: building, see $log"
kmake "$linux" deb -j$(($(nproc) + 1)) bindeb-pkg >> "$log" 2>&1 ||
	die "$(grep -m1 -E 'error:|\*\*\*' "$log" || tail -n 1 "$log") ($log)"
rm -f build/deb/*.deb
mv "$linux"/*.deb build/deb/
rm -f "$linux"/*.buildinfo "$linux"/*.changes
ls build/deb/*.deb
