// SPDX-License-Identifier: GPL-2.0-only
/*
 * memwalk - write buffers over and over: the load of the meter's self-test and
 * of benches. tools/meter/Makefile builds it, static.
 *
 *   -b MIB      buffer of each thread (16)
 *   -n NODE     bind the buffers to NODE
 *   -f NODE     touch the buffers first, bound to NODE, then drop the binding
 *   -c CPU      pin thread k to CPU + k
 *   -t THREADS  (1)
 *   -S          one buffer of -b MIB: each thread walks its slice of it
 *   -A          one buffer of -b MIB: each thread walks the whole
 *   -H          no huge pages
 *   -r ROUNDS   end after so many walks ...
 *   -s SECONDS  ... or after so long, whichever comes first (10)
 *   -m          numa_mark(1) at the start, 2 at half time, 3 at the end
 *   -T FILE     write 1 to FILE when the walks start and 0 when they end
 *   -l          time each page, and print the longest: the worst stall
 *   -y          PAUSE after every fourth page, for the sake of QEMU's icount mode:
 *               its vCPUs take turns, and one that does not pause or halt goes on
 *               until some timer is due, the first one first, while the last starve
 *
 * Prints "memwalk walks=N seconds=N mib_per_s=N walks_min=N walks_max=N": sums
 * over the threads, and those of the slowest and of the fastest; with -l
 * " stall_max_us=N" as well.
 */
#define _GNU_SOURCE
#include <err.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "numamark.h"

#define MAX_THREADS 256
#define LINE 64
#define PAGE 4096

struct walker {
	pthread_t thread;
	int cpu;
	char *buf;
	size_t size;
	uint64_t walks;
	double stall;
};

static size_t mib = 16;
static int bind_node = -1, first_node = -1, first_cpu = -1, nr_threads = 1;
static const char *switch_file;
static bool slices, shared, no_huge, marks, stalls, yields;
static uint64_t max_rounds = UINT64_MAX;
static double seconds = 10;
static struct walker walkers[MAX_THREADS];
static pthread_barrier_t ready;
static atomic_bool stop;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void set_policy(void *p, size_t size, int policy, int node)
{
	unsigned long mask = policy == MPOL_BIND ? 1UL << node : 0;

	if (syscall(SYS_mbind, p, size, policy, mask ? &mask : NULL, mask ? 8 * sizeof(mask) : 0, 0))
		err(1, "mbind to node %d", node);
}

static void walk_page(char *buf, size_t at)
{
	for (size_t i = 0; i < PAGE; i += LINE)
		(*(volatile uint64_t *)(buf + at + i))++;
	if (yields && !(at / PAGE & 3))
		__builtin_ia32_pause();
}

static void walk(char *buf, size_t size)
{
	for (size_t i = 0; i < size; i += PAGE)
		walk_page(buf, i);
}

/* As walk(); a page that takes longer than any before is remembered. */
static void walk_timed(struct walker *w)
{
	double last = now(), t;

	for (size_t i = 0; i < w->size; i += PAGE) {
		walk_page(w->buf, i);
		t = now();
		if (t - last > w->stall)
			w->stall = t - last;
		last = t;
	}
}

static char *new_buffer(size_t size)
{
	char *buf = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (buf == MAP_FAILED)
		err(1, "mmap of %zu bytes", size);
	if (no_huge)
		madvise(buf, size, MADV_NOHUGEPAGE);
	if (bind_node >= 0)
		set_policy(buf, size, MPOL_BIND, bind_node);
	if (first_node >= 0) {
		set_policy(buf, size, MPOL_BIND, first_node);
		walk(buf, size);
		set_policy(buf, size, MPOL_DEFAULT, 0);
	}
	return buf;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "pin to CPU %d", cpu);
}

/* A tracefs switch, say. */
static void flip(const char *state)
{
	FILE *f = switch_file ? fopen(switch_file, "w") : NULL;

	if (switch_file && (!f || fputs(state, f) < 0 || fclose(f)))
		err(1, "%s", switch_file);
}

/* Thread 0 keeps the time for all. */
static void keep_time(const struct walker *w, double start)
{
	static bool half;
	double t = now() - start;

	if (marks && !half && (t >= seconds / 2 || w->walks >= max_rounds / 2)) {
		half = true;
		numa_mark(2);
	}
	if (t >= seconds || w->walks >= max_rounds)
		stop = true;
}

static void *run(void *arg)
{
	struct walker *w = arg;
	double start;

	if (w->cpu >= 0)
		pin(w->cpu);
	if (bind_node >= 0 || first_node < 0)
		walk(w->buf, w->size);
	if (w == walkers)
		flip("1");
	pthread_barrier_wait(&ready);
	start = now();
	if (marks && w == walkers)
		numa_mark(1);
	while (!stop) {
		if (stalls)
			walk_timed(w);
		else
			walk(w->buf, w->size);
		w->walks++;
		if (w == walkers)
			keep_time(w, start);
	}
	if (marks && w == walkers)
		numa_mark(3);
	if (w == walkers)
		flip("0");
	return NULL;
}

static void parse_options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "b:n:f:c:t:SAHr:s:mlyT:")) != -1) {
		switch (c) {
		case 'b': mib = strtoul(optarg, NULL, 0); break;
		case 'n': bind_node = atoi(optarg); break;
		case 'f': first_node = atoi(optarg); break;
		case 'c': first_cpu = atoi(optarg); break;
		case 't': nr_threads = atoi(optarg); break;
		case 'S': slices = true; break;
		case 'A': shared = true; break;
		case 'H': no_huge = true; break;
		case 'r': max_rounds = strtoull(optarg, NULL, 0); break;
		case 's': seconds = atof(optarg); break;
		case 'm': marks = true; break;
		case 'T': switch_file = optarg; break;
		case 'l': stalls = true; break;
		case 'y': yields = true; break;
		default: exit(2);
		}
	}
	if (optind < argc || !mib || nr_threads < 1 || nr_threads > MAX_THREADS)
		errx(2, "bad arguments: see the head of memwalk.c");
}

static void set_up(struct walker *w, int k, char *common)
{
	size_t size = mib << 20, part = size / nr_threads & ~(size_t)(PAGE - 1);

	w->cpu = first_cpu < 0 ? -1 : first_cpu + k;
	w->buf = common ? common + (slices ? k * part : 0) : new_buffer(size);
	w->size = slices ? part : size;
}

int main(int argc, char **argv)
{
	char *common = NULL;
	uint64_t walks = 0, fewest = UINT64_MAX, most = 0;
	double start, bytes = 0, stall = 0;

	parse_options(argc, argv);
	pthread_barrier_init(&ready, NULL, nr_threads);
	if (slices || shared)
		common = new_buffer(mib << 20);
	for (int k = 0; k < nr_threads; k++)
		set_up(&walkers[k], k, common);
	start = now();
	for (int k = 1; k < nr_threads; k++)
		if (pthread_create(&walkers[k].thread, NULL, run, &walkers[k]))
			errx(1, "no thread %d", k);
	run(&walkers[0]);
	for (int k = 0; k < nr_threads; k++) {
		if (k)
			pthread_join(walkers[k].thread, NULL);
		walks += walkers[k].walks;
		bytes += (double)walkers[k].walks * walkers[k].size;
		fewest = walkers[k].walks < fewest ? walkers[k].walks : fewest;
		most = walkers[k].walks > most ? walkers[k].walks : most;
		stall = walkers[k].stall > stall ? walkers[k].stall : stall;
	}
	printf("memwalk walks=%lu seconds=%.3f mib_per_s=%.1f walks_min=%lu walks_max=%lu",
	       walks, now() - start, bytes / (now() - start) / (1 << 20), fewest, most);
	if (stalls)
		printf(" stall_max_us=%.0f", stall * 1e6);
	printf("\n");
	return 0;
}
