/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Node workers' selftests: what the programs share.
 *
 * The tests run as root on a machine of their own with at least two nodes
 * that have CPUs and memory. They wait for events (a pass completed, a
 * counter reached), never for an amount of time, except that a wait fails
 * after a minute, or after $NW_PATIENCE seconds.
 */
#ifndef NW_H
#define NW_H

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define NW_SYSFS	"/sys/kernel/mm/node_workers/"
#define NW_DEBUGFS	"/sys/kernel/debug/sched/numa_balancing/"
#define NW_MODE		"/proc/sys/kernel/numa_balancing"
#define NW_PAGE		4096UL
#define NW_THP		(2UL << 20)

/* Write text to a file. 0 or a negative errno. */
static inline int nw_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	n = n < 0 ? -errno : 0;
	close(fd);
	return n;
}

static inline int nw_write_long(const char *path, long val)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", val);
	return nw_write(path, text);
}

/* Read a small file, without the newline at its end. 0 or negative errno. */
static inline int nw_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, size - 1);
	close(fd);
	if (n < 0)
		return -errno;
	text[n] = 0;
	if (n && text[n - 1] == '\n')
		text[n - 1] = 0;
	return 0;
}

static inline long nw_read_long(const char *path)
{
	char text[64];

	return nw_read(path, text, sizeof(text)) ? -1 : atol(text);
}

/* The value behind a name in a file of "name value" lines; -1: not there. */
static inline long nw_field(const char *path, const char *name)
{
	char line[256], key[128];
	long val, found = -1;
	FILE *f = fopen(path, "re");

	if (!f)
		return -1;
	while (found < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "%127[^ :] %*[:] %ld", key, &val) == 2 ||
		    sscanf(line, "%127s %ld", key, &val) == 2)
			if (!strcmp(key, name))
				found = val;
	fclose(f);
	return found;
}

/* The kernel folds its per-CPU counts in when asked to. */
static inline long nw_vmstat(const char *name)
{
	nw_write("/proc/sys/vm/stat_refresh", "1");
	return nw_field("/proc/vmstat", name);
}

static inline long nw_node_vmstat(int node, const char *name)
{
	char path[96];

	nw_write("/proc/sys/vm/stat_refresh", "1");
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/vmstat",
		 node);
	return nw_field(path, name);
}

static inline char *nw_file(char *buf, size_t size, const char *fn, int node,
			    const char *file)
{
	snprintf(buf, size, NW_SYSFS "%s/node%d/%s", fn, node, file);
	return buf;
}

static inline long nw_stat(const char *fn, int node, const char *name)
{
	char path[128];

	return nw_field(nw_file(path, sizeof(path), fn, node, "stat"), name);
}

static inline int nw_set(const char *fn, int node, const char *file, long val)
{
	char path[128];

	return nw_write_long(nw_file(path, sizeof(path), fn, node, file), val);
}

/* The highest node number and one; nodes are numbered without holes here. */
static inline int nw_nodes(void)
{
	char path[64];
	int n;

	for (n = 0; ; n++) {
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d",
			 n);
		if (access(path, F_OK))
			return n;
	}
}

static inline void nw_pause_scan(bool paused)
{
	int node;

	for (node = 0; node < nw_nodes(); node++)
		nw_set("scan", node, "paused", paused);
}

/* The @nth CPU of a node; -1: it has not so many. */
static inline int nw_cpu(int node, int nth)
{
	char path[96];
	int cpu;

	for (cpu = 0; cpu < 1024; cpu++) {
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%d/node%d", cpu, node);
		if (!access(path, F_OK) && !nth--)
			return cpu;
	}
	return -1;
}

/* Is a CPU in a list such as "2-3,5"? */
static inline bool nw_listed(const char *list, int cpu)
{
	int first, last, n;

	for (; *list; list += *list == ',') {
		if (sscanf(list, "%d%n", &first, &n) != 1)
			return false;
		list += n;
		last = first;
		if (*list == '-' && sscanf(list, "-%d%n", &last, &n) == 1)
			list += n;
		if (first <= cpu && cpu <= last)
			return true;
	}
	return false;
}

/* Is a CPU isolated by the kernel command line? */
static inline bool nw_isolated(int cpu)
{
	char list[128];

	if (!nw_read("/sys/devices/system/cpu/isolated", list, sizeof(list)) &&
	    nw_listed(list, cpu))
		return true;
	return !nw_read("/sys/devices/system/cpu/nohz_full", list,
			sizeof(list)) && nw_listed(list, cpu);
}

/* The first CPU that is, or is not, isolated; -1: there is none. */
static inline int nw_first_cpu(bool isolated)
{
	char path[64];
	int cpu;

	for (cpu = 0; ; cpu++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d",
			 cpu);
		if (access(path, F_OK))
			return -1;
		if (nw_isolated(cpu) == isolated)
			return cpu;
	}
}

/* All CPUs there may be, as a list. */
static inline const char *nw_possible_cpus(void)
{
	static char list[64];

	nw_read("/sys/devices/system/cpu/possible", list, sizeof(list));
	return list;
}

static inline int nw_run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

static inline long nw_policy(int mode, int node)
{
	unsigned long mask = node < 0 ? 0 : 1UL << node;

	return syscall(SYS_set_mempolicy, mode, mask ? &mask : NULL,
		       mask ? 64 : 0);
}

static inline long nw_mbind(void *addr, size_t len, int mode, int node)
{
	unsigned long mask = 1UL << node;

	return syscall(SYS_mbind, addr, len, mode, &mask, 64, 0);
}

static inline double nw_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Base pages of anonymous memory that lie on @node, with default policy. */
static inline char *nw_alloc_on(int node, size_t len)
{
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, len, MADV_NOHUGEPAGE);
	nw_policy(MPOL_BIND, node);
	memset(p, 1, len);
	nw_policy(MPOL_DEFAULT, -1);
	return p;
}

/* As nw_alloc_on(), one huge page a 2 MiB; NULL if they are not to be had. */
static inline char *nw_alloc_thp_on(int node, size_t len)
{
	char *p = mmap(NULL, len + NW_THP, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	p = (char *)(((uintptr_t)p + NW_THP - 1) & ~(NW_THP - 1));
	madvise(p, len, MADV_HUGEPAGE);
	nw_policy(MPOL_BIND, node);
	memset(p, 1, len);
	nw_policy(MPOL_DEFAULT, -1);
	return p;
}

/* How many of the pages of [p, p + len) are on @node. */
static inline long nw_pages_on(char *p, size_t len, int node)
{
	size_t i, n = len / NW_PAGE;
	void **addr = calloc(n, sizeof(*addr));
	int *status = calloc(n, sizeof(*status));
	long found = 0;

	for (i = 0; i < n; i++)
		addr[i] = p + i * NW_PAGE;
	if (!syscall(SYS_move_pages, 0, n, addr, NULL, status, 0))
		for (i = 0; i < n; i++)
			found += status[i] == node;
	free(addr);
	free(status);
	return found;
}

/* Passes that have been made over this process's address space. */
static inline long nw_passes(void)
{
	return nw_field("/proc/self/sched", "mm->numa_scan_seq");
}

/* Use CPU time, as only that lets a scan become due. */
static inline void nw_spin_ms(long ms)
{
	double end = nw_now() + ms / 1e3;
	volatile int i;

	while (nw_now() < end)
		for (i = 0; i < 1000; i++)
			;
}

static inline double nw_patience(void)
{
	const char *seconds = getenv("NW_PATIENCE");

	return seconds ? atof(seconds) : 60;
}

/* Run until @cond, or for nw_patience(); does it hold in the end? */
#define nw_until(cond)							\
({									\
	double _end = nw_now() + nw_patience();				\
	bool _ok;							\
									\
	while (!(_ok = (cond)) && nw_now() < _end)			\
		nw_spin_ms(20);						\
	_ok;								\
})

static inline bool nw_wait_passes(long n)
{
	long goal = nw_passes() + n;

	return nw_until(nw_passes() >= goal);
}

/* Posted pages that have not come to an end yet, over all nodes. */
static inline long nw_in_flight(void)
{
	return nw_vmstat("node_worker_posted") -
	       nw_vmstat("node_worker_migrated") -
	       nw_vmstat("node_worker_stale") -
	       nw_vmstat("node_worker_failed");
}

/*
 * The workers on, scans quick to come, counters at rest. False if the
 * kernel is not one of ours.
 */
static inline bool nw_setup(const char *granularity)
{
	if (nw_write(NW_MODE, "5") || nw_nodes() < 2)
		return false;
	nw_write_long(NW_DEBUGFS "scan_delay_ms", 50);
	nw_write_long(NW_DEBUGFS "scan_period_min_ms", 50);
	nw_write_long(NW_DEBUGFS "scan_period_max_ms", 200);
	nw_pause_scan(false);
	return !nw_write(NW_SYSFS "scan/granularity", granularity);
}

#endif /* NW_H */
