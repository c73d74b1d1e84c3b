#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# kernel.sh NAME [TARGET...] - configure one kernel and build its bzImage, or TARGETs,
# in build/linux/NAME; the configuration is release's and, on top, configs/NAME.config.
# `stock` is the stock source with release's configuration, in build/stock/obj.
# Called by `make kernel`, `make baseline` and by the scripts of `make check-full`.
. "$(dirname "$0")/common.sh"

name=${1:-}
fragments=configs/release.config source=$linux obj=$name
case $name in
release)	;;
stock)		source=$stock obj=obj ;;
*)		[ -f "configs/$name.config" ] || die "no configuration configs/$name.config"
		fragments="$fragments configs/$name.config" ;;
esac
shift
[ $# -gt 0 ] || set -- bzImage
tree=$source/$obj
log=build/log/kernel-$name.log

# --- configuration

# Everything that the configuration depends on.
config_inputs() {
	cat build/stock.version
	gcc --version | head -n 1
	# shellcheck disable=SC2086
	sha256sum $fragments
	[ "$source" = "$stock" ] ||
		(cd "$linux" && grep -E '(^|/)Kconfig[^/]*$' ../linux.manifest | xargs -r sha256sum)
}

# Symbols of our own, which the stock kernel cannot have.
own_symbols() {
	[ ! -f Kconfig ] || sed -n 's/^\(menu\)\{0,1\}config[[:space:]]*/CONFIG_/p' Kconfig
}

# Asked for in a fragment (the last word counts) but not so in the configuration.
missing_symbols() {
	# shellcheck disable=SC2086
	cat $fragments | awk -v config="$1" -v own="$2" '
		function note(into) {
			if ($0 ~ /^CONFIG_[A-Z0-9_a-z]+=/)
				into[substr($0, 1, index($0, "=") - 1)] = substr($0, index($0, "=") + 1)
			else if ($0 ~ /^# CONFIG_.* is not set/)
				into[$2] = "n"
		}
		BEGIN {
			while ((getline < config) > 0)
				note(have)
			split(own, list)
			for (i in list)
				ignore[list[i]]
		}
		{ note(want) }
		END {
			for (s in want)
				if (!(s in ignore) && want[s] != ((s in have) ? have[s] : "n"))
					printf " %s=%s", s, want[s]
		}'
}

# KCONFIG_CONFIG keeps all of it away from .config, whose time must stay if
# its content does: a new .config means a look at everything.
configure() {
	stamp=$tree/.config.inputs
	config_inputs > "build/log/$name.inputs"
	[ ! -f "$tree/.config" ] || ! cmp -s "build/log/$name.inputs" "$stamp" || return 0
	mkdir -p "$tree"
	new=$PWD/$tree/.config.new
	config_log=build/log/configure-$name.log
	rm -f "$new"
	{
		kmake "$source" "$obj" KCONFIG_CONFIG="$new" tinyconfig &&
		KCONFIG_CONFIG=$new "$source/scripts/kconfig/merge_config.sh" -m "$new" $fragments &&
		kmake "$source" "$obj" KCONFIG_CONFIG="$new" olddefconfig
	} > "$config_log" 2>&1 || die "cannot configure $name ($config_log)"
	own=
	[ "$source" = "$linux" ] || own=$(own_symbols)
	missing=$(missing_symbols "$new" "$own")
	[ -z "$missing" ] || die "$name: the configuration refuses$missing ($new)"
	cmp -s "$new" "$tree/.config" || cp "$new" "$tree/.config"
	mv "build/log/$name.inputs" "$stamp"
}

# --- build

# A line each 30 s: nobody should wonder whether it still runs.
progress() {
	start=$(date +%s)
	while sleep 30; do
		echo "$name: $(($(date +%s) - start)) s, $(grep -c '^  [A-Z]' "$log") steps," \
			"$(tail -n 1 "$log" | sed 's/^ *//')"
	done
}

build() {
	progress 9>&- &
	ticker=$!
	trap 'kill $ticker 2>/dev/null' EXIT
	trap 'exit 1' HUP INT TERM
	status=0
	kmake "$source" "$obj" -j$(($(nproc) + 1)) "$@" > "$log" 2>&1 || status=$?
	kill $ticker
	trap - EXIT HUP INT TERM
	[ $status -eq 0 ] && return 0
	first=$(grep -m1 -E 'error:|undefined reference|\*\*\*' "$log" || tail -n 1 "$log")
	die "$name: $first ($log)"
}

mkdir -p build/log
lock_trees
configure
build "$@"
[ "$1" != bzImage ] || echo "$name: $tree/arch/x86/boot/bzImage"
