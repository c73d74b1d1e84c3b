/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Node workers' selftests: memory for khugepaged/N to collapse.
 */
#ifndef NW_COLLAPSE_H
#define NW_COLLAPSE_H

#include <sys/ioctl.h>

#include "nw.h"

#define NW_KHUGE	"/sys/kernel/mm/transparent_hugepage/khugepaged/"
#define NW_COLLAPSE	NW_SYSFS "collapse/"
#define NW_RANGE	512	/* pages of a range */

/* A piece of address space of so many ranges, which khugepaged is not to touch. */
static inline char *nw_reserve(int ranges)
{
	size_t len = ranges * NW_THP;
	char *p = mmap(NULL, len + NW_THP, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	p = (char *)(((uintptr_t)p + NW_THP - 1) & ~(NW_THP - 1));
	madvise(p, len, MADV_NOHUGEPAGE);
	return p;
}

/* What the @i-th page from @mem holds; the same for a page of any range. */
static inline char nw_tag(size_t i)
{
	return i % NW_RANGE % 127 + 1;
}

/* Have pages [first, first + nr) from @mem on a node, each with its tag. */
static inline void nw_place(char *mem, size_t first, size_t nr, int node)
{
	size_t i;

	nw_policy(MPOL_BIND, node);
	for (i = first; i < first + nr; i++)
		mem[i * NW_PAGE] = nw_tag(i);
	nw_policy(MPOL_DEFAULT, -1);
}

/* Ranges of base pages that are all on one node. */
static inline char *nw_ranges_on(int node, int ranges)
{
	char *mem = nw_reserve(ranges);

	if (mem)
		nw_place(mem, 0, ranges * NW_RANGE, node);
	return mem;
}

/* Ranges of which @nr pages are there, on a node. */
static inline char *nw_sparse_on(int node, int ranges, int nr)
{
	char *mem = nw_reserve(ranges);
	int i;

	for (i = 0; mem && i < ranges; i++)
		nw_place(mem, i * NW_RANGE, nr, node);
	return mem;
}

/* Is each page of a range still what nw_place() wrote? */
static inline bool nw_intact(const char *mem)
{
	size_t i;

	for (i = 0; i < NW_RANGE; i++)
		if (mem[i * NW_PAGE] != nw_tag(i))
			return false;
	return true;
}

/* linux/fs.h has these from 6.7 on. */
struct nw_page_region {
	uint64_t start, end, categories;
};

struct nw_pm_scan_arg {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages,
		 inverted, mask, anyof, returned;
};

#define NW_PAGEMAP_SCAN	_IOWR('f', 16, struct nw_pm_scan_arg)
#define NW_PAGE_IS_HUGE	(1 << 6)

/* How many of the ranges from @mem on are mapped as one. */
static inline int nw_huge_in(const char *mem, int ranges)
{
	struct nw_page_region region[64];
	struct nw_pm_scan_arg arg = {
		.size = sizeof(arg),
		.start = (uintptr_t)mem,
		.end = (uintptr_t)mem + ranges * NW_THP,
		.vec = (uintptr_t)region,
		.vec_len = 64,
		.mask = NW_PAGE_IS_HUGE,
		.returned = NW_PAGE_IS_HUGE,
	};
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), i, n;
	long sum = 0;

	n = ioctl(fd, NW_PAGEMAP_SCAN, &arg);
	close(fd);
	for (i = 0; i < n; i++)
		sum += region[i].end - region[i].start;
	return n < 0 ? -1 : sum / (long)NW_THP;
}

static inline void nw_huge_wanted(char *mem, int ranges, bool wanted)
{
	madvise(mem, ranges * NW_THP, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

/* Ask for the ranges to be collapsed, and wait until they are. */
static inline bool nw_collapses(char *mem, int ranges)
{
	nw_huge_wanted(mem, ranges, true);
	return nw_until(nw_huge_in(mem, ranges) == ranges);
}

static inline long nw_full_scans(void)
{
	return nw_read_long(NW_KHUGE "full_scans");
}

/* Wait for passes in which whatever is ready now is seen to. */
static inline bool nw_full_pass(void)
{
	long goal = nw_full_scans() + 2;

	return nw_until(nw_full_scans() >= goal);
}

/* khugepaged/N, quick; false if the kernel has none. */
static inline bool nw_collapse_setup(void)
{
	if (nw_nodes() < 2 || nw_write(NW_COLLAPSE "enabled", "1"))
		return false;
	nw_write("/sys/kernel/mm/transparent_hugepage/enabled", "madvise");
	nw_write(NW_KHUGE "defrag", "1");
	nw_write(NW_KHUGE "max_ptes_none", "511");
	nw_write(NW_KHUGE "pages_to_scan", "4096");
	nw_write(NW_KHUGE "alloc_sleep_millisecs", "10");
	return !nw_write(NW_KHUGE "scan_sleep_millisecs", "10");
}

#endif /* NW_COLLAPSE_H */
