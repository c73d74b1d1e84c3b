// SPDX-License-Identifier: GPL-2.0-only
/*
 * collapse - in the guest: have khugepaged collapse memory on several nodes, and say
 * what it cost. Called by collapse.sh; built by tools/meter/Makefile, static.
 *
 *   collapse MIB NODE...
 *
 * Has MIB of base pages on each of the nodes, then asks for huge pages, and
 * waits until all are. numa_mark(1) when it begins, 2 when all is huge. Prints
 * "collapse_ranges N", "collapse_ms N" (guest time) and "collapse_cpu_us N", the
 * time that threads by the name of khugepaged ran meanwhile.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../meter/numamark.h"

#define HUGE	(2UL << 20)
#define PAGE	4096

/* linux/fs.h has these from 6.7 on. */
struct region {
	uint64_t start, end, categories;
};

struct scan_arg {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages,
		 inverted, mask, anyof, returned;
};

#define SCAN		_IOWR('f', 16, struct scan_arg)
#define IS_HUGE		(1 << 6)

static size_t huge_bytes(int fd, char *mem, size_t len)
{
	struct region region[64];
	struct scan_arg arg = {
		.size = sizeof(arg),
		.start = (uintptr_t)mem,
		.end = (uintptr_t)mem + len,
		.vec = (uintptr_t)region,
		.vec_len = 64,
		.mask = IS_HUGE,
		.returned = IS_HUGE,
	};
	size_t sum = 0;
	int i, n = ioctl(fd, SCAN, &arg);

	if (n < 0)
		err(1, "PAGEMAP_SCAN");
	for (i = 0; i < n; i++)
		sum += region[i].end - region[i].start;
	return sum;
}

static char *place(size_t len, int node)
{
	unsigned long mask = 1UL << node;
	char *mem = mmap(NULL, len + HUGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t i;

	if (mem == MAP_FAILED)
		err(1, "mmap");
	mem = (char *)(((uintptr_t)mem + HUGE - 1) & ~(HUGE - 1));
	madvise(mem, len, MADV_NOHUGEPAGE);
	if (syscall(SYS_set_mempolicy, MPOL_BIND, &mask, 64))
		err(1, "node %d", node);
	for (i = 0; i < len; i += PAGE)
		mem[i] = 1;
	syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
	return mem;
}

/* Nanoseconds that khugepaged's threads have run. */
static uint64_t ran(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	char path[300], text[64];
	uint64_t sum = 0, ns;
	FILE *f;

	while (proc && (entry = readdir(proc))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (!fgets(text, sizeof(text), f))
			*text = 0;
		fclose(f);
		if (strncmp(text, "khugepaged", 10))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/schedstat",
			 entry->d_name);
		f = fopen(path, "re");
		if (f && fscanf(f, "%lu", &ns) == 1)
			sum += ns;
		if (f)
			fclose(f);
	}
	closedir(proc);
	return sum;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	int i, fd = open("/proc/self/pagemap", O_RDONLY);
	struct timespec pause = { .tv_nsec = 5000000 };
	size_t len, huge;
	uint64_t cpu;
	char **mem;
	double start;

	if (argc < 3)
		errx(1, "usage: collapse MIB NODE...");
	len = strtoul(argv[1], NULL, 0) << 20;
	mem = calloc(argc, sizeof(*mem));
	for (i = 2; i < argc; i++)
		mem[i] = place(len, atoi(argv[i]));
	/* The last of them are to be on the LRU lists when it begins. */
	place(1 << 20, atoi(argv[2]));
	cpu = ran();
	start = now();
	numa_mark(1);
	for (i = 2; i < argc; i++)
		madvise(mem[i], len, MADV_HUGEPAGE);
	do {
		nanosleep(&pause, NULL);
		for (huge = 0, i = 2; i < argc; i++)
			huge += huge_bytes(fd, mem[i], len);
	} while (huge < (argc - 2) * len);
	numa_mark(2);
	printf("collapse_ms %.0f\n", (now() - start) * 1e3);
	printf("collapse_cpu_us %.0f\n", (ran() - cpu) / 1e3);
	printf("collapse_ranges %lu\n", (argc - 2) * len / HUGE);
	return 0;
}
