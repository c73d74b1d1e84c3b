# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# Sourced by the scripts beside it, which set $0: where things are, how to fail.
# Every path below is relative to the top of the repository, the working
# directory of all of them.
set -eu
cd "$(dirname "$0")/../.."

# The scripts that source this use these.
# shellcheck disable=SC2034
{
stock=build/stock		# pristine source; its objects in obj/
linux=build/linux		# source with our files and patches; objects in release/, debug/
package=linux-source-6.12
}

die() {
	echo "${0##*/}: $*" >&2
	exit 1
}

# Two builds at once would take twice the time, and one that changes the source
# under another would spoil it. Held until the script that called exits.
lock_trees() {
	exec 9> build/kernel.lock
	flock -n 9 || {
		echo "${0##*/}: waiting for another kernel build"
		flock 9
	}
}

# The patches of the series, in order, from the top of patches/.
series() {
	sed 's/[[:space:]]*#.*//; s/[[:space:]].*//; /^$/d' patches/series
}

# named_by PATCH... - the files that they change or create
named_by() {
	sed -n 's,^\(---\|+++\) [ab]/\([^[:space:]]*\).*,\2,p' "$@" | LC_ALL=C sort -u
}

# kmake SOURCE OBJDIR ARG... - make in a kernel tree; OBJDIR is a child of SOURCE.
#
# kbuild then knows the source as "..", so that no command line holds a path of
# this machine, and ccache hits in every clone. The fixed time, user and host
# serve the same end. Not our caller's flags: a make -s is for what we say, and
# the log is what progress is told from.
kmake() {
	_source=$1 _obj=$2
	shift 2
	mkdir -p "$_source/$_obj"
	MAKEFLAGS= CCACHE_NOHASHDIR=1 make -C "$_source" O="$_obj" CC="$(kernel_cc)" \
		KBUILD_BUILD_TIMESTAMP='Thu Jan 1 00:00:00 UTC 1970' \
		KBUILD_BUILD_USER=nodeworkers KBUILD_BUILD_HOST=nodeworkers "$@"
}

kernel_cc() {
	if command -v ccache >/dev/null; then
		echo 'ccache gcc'
	else
		echo gcc
	fi
}
