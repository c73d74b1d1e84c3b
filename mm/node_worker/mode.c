// SPDX-License-Identifier: GPL-2.0-only
/*
 * NUMA balancing by node workers: bit 4 of kernel.numa_balancing.
 *
 * Owns the static key that every hook tests. Setting the bit starts the
 * threads, then turns the key; clearing it turns the key, waits until no
 * tick or fault that saw it set is under way, and has the workers drop all
 * that is queued, so that no mark of a request is left behind.
 *
 * The sysctl handler brackets its change with node_worker_mode_begin() and
 * _end(), which hold mode_mutex: two writers cannot leave the key set with the
 * bit clear. Keys are switched outside node_worker_setup_mutex, as they take
 * cpus_read_lock(): memory hotplug holds that when it comes to khugepaged_mutex,
 * under which khugepaged/N are started and stopped.
 */
#define pr_fmt(fmt) "node_worker: " fmt

#include <linux/init.h>
#include <linux/node_worker.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>
#include <linux/sched/numa_balancing.h>
#include <linux/sched/sysctl.h>
#include <linux/string.h>

#include "balancing.h"

DEFINE_STATIC_KEY_FALSE(node_worker_balancing);

const int node_worker_mode_max = NUMA_BALANCING_NORMAL |
				 NUMA_BALANCING_MEMORY_TIERING |
				 NUMA_BALANCING_WORKERS;

/* numa_balancing=workers was on the command line. */
static bool boot_workers __initdata;

/* Who writes kernel.numa_balancing; taken before all other locks of ours. */
static DEFINE_MUTEX(mode_mutex);

static int enable_workers(void)
{
	int err;

	if (!node_worker_known(NODE_WORKER_SCAN) ||
	    !node_worker_known(NODE_WORKER_MIGRATE))
		return -ENODEV;
	mutex_lock(&node_worker_setup_mutex);
	err = node_worker_want(NODE_WORKER_SCAN, true);
	if (!err)
		err = node_worker_want(NODE_WORKER_MIGRATE, true);
	mutex_unlock(&node_worker_setup_mutex);
	if (!err)
		static_branch_enable(&node_worker_balancing);
	return err;
}

static void disable_workers(int mode)
{
	static_branch_disable(&node_worker_balancing);
	/* Ticks and faults post inside a read-side section. */
	synchronize_rcu();
	node_worker_drain_all(NODE_WORKER_SCAN);
	node_worker_drain_all(NODE_WORKER_MIGRATE);
	if (mode)
		pr_info_once("kernel.numa_balancing=%d: back to the applications' own threads\n",
			     mode);
}

/**
 * node_worker_mode_begin - kernel.numa_balancing is about to change
 * @mode: the new value, in range
 *
 * Context: process; sleeps. On success mode_mutex is held until
 * node_worker_mode_end().
 * Return: 0; -EINVAL for the workers' bit without a policy; or a negative
 * errno if threads could not be started. Nothing has changed then.
 */
int node_worker_mode_begin(int mode)
{
	bool want = mode & NUMA_BALANCING_WORKERS;
	int err = 0;

	if (mode == NUMA_BALANCING_WORKERS)
		return -EINVAL;
	mutex_lock(&mode_mutex);
	if (want && !node_worker_enabled())
		err = enable_workers();
	else if (!want && node_worker_enabled())
		disable_workers(mode);
	if (err)
		node_worker_mode_end();
	return err;
}

/**
 * node_worker_mode_end - kernel.numa_balancing has changed
 *
 * Context: process, after a successful node_worker_mode_begin().
 */
void node_worker_mode_end(void)
{
	mutex_unlock(&mode_mutex);
}

/**
 * node_worker_boot_param - is it numa_balancing=workers?
 * @str: the parameter's value
 *
 * Context: boot, while the command line is parsed: only remembered, as
 * threads cannot be started yet.
 */
bool __init node_worker_boot_param(const char *str)
{
	if (strcmp(str, "workers"))
		return false;
	boot_workers = true;
	return true;
}

static int __init node_worker_balancing_init(void)
{
	int err = node_scan_register();

	if (!err)
		err = node_migrate_register();
	if (err || !boot_workers || num_node_state(N_MEMORY) == 1)
		return err;
	err = node_worker_mode_begin(sysctl_numa_balancing_mode |
				     NUMA_BALANCING_WORKERS);
	if (err)
		return err;
	sysctl_numa_balancing_mode |= NUMA_BALANCING_WORKERS;
	node_worker_mode_end();
	return 0;
}
late_initcall(node_worker_balancing_init);
