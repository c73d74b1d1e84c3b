/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Node workers' selftests: what the programs share.
 *
 * The tests run as root on a machine of their own with at least two nodes
 * that have CPUs and memory. They wait for events (a pass completed, a
 * counter reached), never for an amount of time, except that a wait fails
 * after 200 seconds, or after $NW_PATIENCE.
 */
#ifndef NW_H
#define NW_H

#include <dirent.h>
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
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define NW_SYSFS	"/sys/kernel/mm/node_workers/"
#define NW_VM		"/proc/sys/vm/"
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

/* The functions that have workers, and their threads' names. */
#define NW_FNS	3
__attribute__((unused))
static const char * const nw_fn[NW_FNS] = { "scan", "migrate", "collapse" };
__attribute__((unused))
static const char * const nw_thread[NW_FNS] = {
	"knuma_scand/%d", "kmigrated/%d", "khugepaged/%d",
};

/* The worker's thread; 0: it has none, -1: nor a directory. */
static inline int nw_pid(const char *fn, int node)
{
	char path[128];

	return nw_read_long(nw_file(path, sizeof(path), fn, node, "pid"));
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

/* As nw_set(), for the workers of all nodes. */
static inline void nw_set_all(const char *fn, const char *file, long val)
{
	int node;

	for (node = 0; node < nw_nodes(); node++)
		nw_set(fn, node, file, val);
}

static inline void nw_pause_scan(bool paused)
{
	nw_set_all("scan", "paused", paused);
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

static inline bool nw_has_memory(int node)
{
	char list[64], *p;

	/* "0-3" or "0,2": enough for fewer than ten nodes. */
	nw_read("/sys/devices/system/node/has_memory", list, sizeof(list));
	for (p = list; *p; p++) {
		if (*p - '0' == node)
			return true;
		if (*p == '-' && p[-1] - '0' < node && p[1] - '0' > node)
			return true;
	}
	return false;
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

/* A filesystem that writes back to a disk, at NW_FILES; false: not to be had. */
#define NW_FILES	"/tmp/files"
static inline bool nw_mount_files(void)
{
	mkdir(NW_FILES, 0755);
	return !system("mke2fs /dev/ram0 > /dev/null 2>&1") &&
	       !mount("/dev/ram0", NW_FILES, "ext2", 0, NULL);
}

/* A shared file's pages on @node. */
static inline char *nw_shared_on(int node, int fd, size_t len)
{
	char *mem;

	if (fd < 0 || ftruncate(fd, len))
		return NULL;
	mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED)
		return NULL;
	nw_policy(MPOL_BIND, node);
	memset(mem, 1, len);
	nw_policy(MPOL_DEFAULT, -1);
	return mem;
}

/* As nw_shared_on(), clean pages of a new file at NW_FILES. */
static inline char *nw_file_on(int node, int *fd, size_t len)
{
	char *mem;

	*fd = open(NW_FILES "/data", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	mem = nw_shared_on(node, *fd, len);
	return mem && !fsync(*fd) ? mem : NULL;
}

/* "pages free", or a watermark, of all zones of a node. */
static inline long nw_zone_sum(int node, const char *what)
{
	FILE *f = fopen("/proc/zoneinfo", "re");
	char line[256], name[32];
	long val, sum = 0;
	int in = -1;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Node %d, zone", &in) == 1 || in != node)
			continue;
		if (sscanf(line, " pages %31s %ld", name, &val) != 2 &&
		    sscanf(line, " %31s %ld", name, &val) != 2)
			continue;
		if (!strcmp(name, what))
			sum += val;
	}
	if (f)
		fclose(f);
	return sum;
}

/*
 * Take memory of a node until what is left is half way between the low and the high
 * watermark; @len is the size of the mapping that has it.
 */
static inline char *nw_fill(int node, size_t *len)
{
	const size_t step = 1UL << 20;
	long left = (nw_zone_sum(node, "low") + nw_zone_sum(node, "high")) / 2;
	char *mem;
	size_t at;

	*len = nw_zone_sum(node, "free") * NW_PAGE;
	mem = mmap(NULL, *len, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mem == MAP_FAILED)
		return NULL;
	nw_policy(MPOL_BIND, node);
	for (at = 0; at + step <= *len && nw_zone_sum(node, "free") > left;
	     at += step)
		memset(mem + at, 1, step);
	nw_policy(MPOL_DEFAULT, -1);
	return mem;
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

/* Passes that have been made over a process's address space, or over ours. */
static inline long nw_passes_of(int pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/sched", pid);
	return nw_field(path, "mm->numa_scan_seq");
}

static inline long nw_passes(void)
{
	return nw_passes_of(getpid());
}

/* In a loop that waits: an emulator runs another CPU meanwhile. */
static inline void nw_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

/* Use CPU time, as only that lets a scan become due. */
static inline void nw_spin_ms(long ms)
{
	double end = nw_now() + ms / 1e3;

	while (nw_now() < end)
		nw_relax();
}

static inline double nw_patience(void)
{
	const char *seconds = getenv("NW_PATIENCE");

	return seconds ? atof(seconds) : 200;
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
 * Let the scan workers run until @pages more of the pages on @node than @before
 * are armed; they are paused afterwards.
 */
static inline bool nw_arm(int node, long before, long pages)
{
	bool ok;

	nw_pause_scan(false);
	ok = nw_until(nw_node_vmstat(node, "node_worker_armed") - before >=
		      pages);
	nw_pause_scan(true);
	return ok;
}

static inline void nw_touch(char *mem, size_t len)
{
	size_t i;

	for (i = 0; i < len; i += NW_PAGE)
		mem[i]++;
}

/*
 * Pages that may wait on their CPU for their batch to be put on an LRU list:
 * until then they cannot be isolated, and nothing may come to fill the batch.
 */
#define NW_UNLISTED	32

/* Use the memory until so many pages of it are on the node. */
static inline bool nw_arrives(char *mem, size_t len, int node, long pages)
{
	return nw_until((nw_touch(mem, len),
			 nw_pages_on(mem, len, node) >= pages));
}

/* Use the memory until @n more passes have been made over it. */
static inline bool nw_touch_passes(char *mem, size_t len, long n)
{
	long goal = nw_passes() + n;

	return nw_until((nw_touch(mem, len), nw_passes() >= goal));
}

/* mm_structs there are, without those that the allocator or KASAN holds back. */
static inline long nw_mm_structs(void)
{
	nw_write("/sys/kernel/slab/mm_struct/shrink", "1");
	return nw_field("/proc/slabinfo", "mm_struct");
}

#define NW_TRACING	"/sys/kernel/tracing/"

/* Record an event, say "sched/sched_switch", from now on, or no more. */
static inline int nw_trace(const char *event, bool on)
{
	char path[128];

	snprintf(path, sizeof(path), NW_TRACING "events/%s/enable", event);
	if (on)
		nw_write(NW_TRACING "trace", "");
	return nw_write(path, on ? "1" : "0");
}

/* The largest number behind "key=" in what has been recorded; -1: none. */
static inline long nw_traced_max(const char *key)
{
	FILE *f = fopen(NW_TRACING "trace", "re");
	char line[512], *p;
	long max = -1;

	while (f && fgets(line, sizeof(line), f)) {
		p = *line == '#' ? NULL : strstr(line, key);
		if (p && atol(p + strlen(key)) > max)
			max = atol(p + strlen(key));
	}
	if (f)
		fclose(f);
	return max;
}

/* Pages posted by recorded faults on a piece of memory; -1: none was recorded. */
static inline long nw_traced_posted(const char *mem, size_t len)
{
	FILE *f = fopen(NW_TRACING "trace", "re");
	unsigned long addr, posted;
	char line[512], *p;
	long sum = -1;

	while (f && fgets(line, sizeof(line), f)) {
		p = strstr(line, "addr=");
		if (!p || sscanf(p, "addr=%lx nid=%*d target=%*d pages=%*u posted=%lu",
				 &addr, &posted) != 2 ||
		    addr - (uintptr_t)mem >= len)
			continue;
		sum = posted + (sum < 0 ? 0 : sum);
	}
	if (f)
		fclose(f);
	return sum;
}

/* Has a line with both words been recorded? */
static inline bool nw_traced(const char *word, const char *other)
{
	FILE *f = fopen(NW_TRACING "trace", "re");
	bool found = false;
	char line[512];

	while (f && !found && fgets(line, sizeof(line), f))
		found = *line != '#' && strstr(line, word) &&
			strstr(line, other);
	if (f)
		fclose(f);
	return found;
}

/* THP splits of either kind since boot. */
static inline long nw_splits(void)
{
	return nw_vmstat("thp_split_page") + nw_vmstat("thp_split_pmd");
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

/* Node workers there are, by the names of their threads. */
static inline int nw_threads(void)
{
	struct dirent *entry;
	char path[300], comm[32];
	DIR *proc = opendir("/proc");
	int n = 0;

	while (proc && (entry = readdir(proc))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		if (!nw_read(path, comm, sizeof(comm)))
			n += !strncmp(comm, "knuma_scand", 11) ||
			     !strncmp(comm, "kmigrated", 9) ||
			     !strncmp(comm, "khugepaged/", 11);
	}
	closedir(proc);
	return n;
}

#endif /* NW_H */
