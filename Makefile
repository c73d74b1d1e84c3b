# SPDX-License-Identifier: GPL-2.0-only
#
# nodeworkers: everything a user or a developer runs starts here. The work is
# done by the scripts in tools/; every result lands in build/.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 26

kernel: overlay ## both kernels: build/{release,debug}/arch/x86/boot/bzImage
	@tools/build/kernel.sh release
	@tools/build/kernel.sh debug

release: overlay ## the kernel that is measured
	@tools/build/kernel.sh release

debug: overlay ## the kernel with KASAN, lockdep and the like
	@tools/build/kernel.sh debug

stock: source ## the stock kernel, same configuration: build/stock/obj
	@tools/build/kernel.sh stock

baseline: stock selftests ## what of the kernel's own mm selftests passes on it
	@tools/build/baseline.sh

source: deps ## unpack the kernel source package to build/stock
	@tools/build/source.sh

overlay: source ## our files and patches on it: build/linux
	@tools/build/overlay.sh

deps: ## install the Debian packages that are missing (root)
	@tools/build/deps.sh

selftests: source ## build/selftests
	@tools/build/selftests.sh

meter: deps ## the NUMA meter: build/meter
	@$(MAKE) -s -C tools/meter

demo: release meter ## off, mainline and node workers on a misplaced load: a table, a chart
	@tools/demo

bench: release stock meter ## the figures of the documentation (hours)
	@tools/bench one
	@tools/bench stock
	@tools/bench cost
	@tools/bench place
	@tools/bench collapse

series: overlay ## patches for `git am` to the stock source: build/series
	@tools/build/series.sh

deb: overlay ## kernel packages, with the running kernel's configuration or CONFIG=FILE: build/deb
	@tools/build/deb.sh

check-planted: release selftests ## each planted fault must turn its test red (an hour or more)
	@tools/build/check-planted.sh

check: ## build all, run all tests, count: the last line is the result
	@tools/check

check-full: check stock ## more: other configurations, packages, planted faults (hours)
	@tools/check -n selftests/check-full.list
	@tools/build/check-planted.sh

meter-selftest: meter ## does the meter tell local from remote?
	@tools/meter/selftest.sh

clean: ## remove what we built; keep the unpacked source, stock's kernel, measured figures
	rm -rf build/linux build/linux.* build/release build/debug build/stage build/base
	rm -rf build/planted build/headers build/series build/packages
	rm -rf build/guest build/meter build/selftests build/log build/static*

distclean: ## remove build/
	rm -rf build

.PHONY: help bench check-planted demo kernel release debug stock baseline source overlay deps selftests meter check check-full series deb \
	meter-selftest clean distclean
