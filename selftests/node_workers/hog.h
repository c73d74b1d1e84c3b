/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Node workers' selftests: a CPU taken away from a worker.
 *
 * For tests of what happens while something waits in a queue.
 */
#ifndef NW_HOG_H
#define NW_HOG_H

#include <pthread.h>

#include "nw.h"

/* Has a CPU to itself, as real time, until told to stop. */
struct nw_hog {
	pthread_t thread;
	int cpu;
	char cpulist[128];
	volatile bool stop;
};

static inline void *nw_hog_fn(void *arg)
{
	struct sched_param rt = { .sched_priority = 1 };
	struct nw_hog *hog = arg;

	nw_run_on(hog->cpu);
	sched_setscheduler(0, SCHED_FIFO, &rt);
	while (!hog->stop)
		nw_relax();
	return NULL;
}

/*
 * Real-time tasks may have all of a CPU. run.sh has seen to the second half of that, as
 * it is to be done on an idle CPU.
 */
static inline void nw_no_fair_server(int cpu)
{
	char path[96];

	nw_write("/proc/sys/kernel/sched_rt_runtime_us", "-1");
	snprintf(path, sizeof(path),
		 "/sys/kernel/debug/sched/fair_server/cpu%d/runtime", cpu);
	if (nw_read_long(path) > 0)
		nw_write(path, "0");
}

/*
 * Keep a node's worker from running, by a CPU that only the hog gets. Nor
 * does any other thread of the kernel: until nw_feed(), nothing may wait for work
 * on every CPU, as a read of nw_vmstat() would.
 */
static inline bool nw_starve(struct nw_hog *hog, const char *fn, int node)
{
	char cpu[16];

	hog->cpu = nw_cpu(node, 1);
	hog->stop = false;
	nw_file(hog->cpulist, sizeof(hog->cpulist), fn, node, "cpulist");
	snprintf(cpu, sizeof(cpu), "%d", hog->cpu);
	nw_no_fair_server(hog->cpu);
	if (nw_write(hog->cpulist, cpu))
		return false;
	if (pthread_create(&hog->thread, NULL, nw_hog_fn, hog))
		return false;
	/* So that it is there. */
	nw_spin_ms(50);
	return true;
}

static inline void nw_feed(struct nw_hog *hog)
{
	hog->stop = true;
	pthread_join(hog->thread, NULL);
	nw_write("/proc/sys/kernel/sched_rt_runtime_us", "950000");
	nw_write(hog->cpulist, nw_possible_cpus());
}

#endif /* NW_HOG_H */
