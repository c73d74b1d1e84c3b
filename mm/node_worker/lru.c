// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers: draining the CPUs' LRU batches for collapse.
 *
 * A page in a CPU's batch is on no LRU list and cannot be collapsed. khugepaged
 * drains all CPUs before every round, one by one, and waits for each: a CPU that
 * a real-time task keeps busy holds up the machine's collapses, and isolated CPUs
 * are disturbed. Here the first worker to begin a pass since full_scans last went
 * up asks the CPUs that keep house and have something to drain; it and the others
 * that begin a pass meanwhile wait until they have done so, but not for long.
 * What stays in a batch is a later pass's. Where full_scans stands still, as a
 * hand-over waits, no worker begins two passes without a drain between.
 *
 * No lock is held while waiting. lru_pending counts work items that have been
 * queued and not run, and those about to queue some.
 */
#include <linux/cpuset.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/sched/isolation.h>
#include <linux/swap.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "../internal.h"
#include "khugepaged.h"

/* A CPU that has not come to it in this time is busy with better things. */
#define DRAIN_WAIT	(HZ / 10)

static atomic_t lru_pending = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(lru_wait);

/* The pass that the CPUs were last asked for, plus 1; xchg(). */
static unsigned int lru_asked;

/* How often they were asked. */
static atomic_t lru_drains = ATOMIC_INIT(0);

static void drain_ended(void)
{
	if (atomic_dec_and_test(&lru_pending))
		wake_up_all(&lru_wait);
}

static void drain_fn(struct work_struct *work)
{
	lru_add_drain();
	drain_ended();
}

static DEFINE_PER_CPU(struct work_struct, drain_work);

static void ask_cpus(void)
{
	int cpu;

	for_each_online_cpu(cpu) {
		if (cpu_is_isolated(cpu) || !lru_needs_drain(cpu))
			continue;
		atomic_inc(&lru_pending);
		/* Queued before, it is still counted. */
		if (!queue_work_on(cpu, mm_percpu_wq, &per_cpu(drain_work, cpu)))
			drain_ended();
	}
}

/**
 * node_lru_init - before anything else here
 *
 * Context: process.
 */
void __init node_lru_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		INIT_WORK(&per_cpu(drain_work, cpu), drain_fn);
}

/**
 * node_lru_drain - a worker begins a pass
 * @pass: the machine's full scans so far
 * @drains: the worker's: how many drains there had been when it last was here
 *
 * Context: process; sleeps, for a tenth of a second at most.
 */
void node_lru_drain(unsigned int pass, int *drains)
{
	/* Whoever finds the pass asked for also finds the asker's count. */
	atomic_inc(&lru_pending);
	if (xchg(&lru_asked, pass + 1) != pass + 1 ||
	    atomic_read(&lru_drains) == *drains) {
		atomic_inc(&lru_drains);
		ask_cpus();
	}
	*drains = atomic_read(&lru_drains);
	drain_ended();
	wait_event_timeout(lru_wait, !atomic_read(&lru_pending), DRAIN_WAIT);
}
