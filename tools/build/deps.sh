#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Install the packages of tools/packages.list that are missing. Called by
# `make deps`, and through it by every target that builds something.
#
# Nothing missing is the usual case and must cost nothing: no apt-get, no
# network, no root.
set -eu

list=$(dirname "$0")/../packages.list

missing=
for package in $(sed 's/#.*//' "$list"); do
	case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) in
	installed) ;;
	*) missing="$missing $package" ;;
	esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
	echo "deps: root is needed to install:$missing" >&2
	exit 1
fi
echo "deps: installing$missing"
export DEBIAN_FRONTEND=noninteractive
# $missing is a list on purpose.
# shellcheck disable=SC2086
if ! { apt-get update -qq && apt-get install -qqy -o Dpkg::Use-Pty=0 --no-install-recommends $missing; }; then
	echo "deps: apt-get could not install:$missing" >&2
	exit 1
fi
