// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers: which CPUs they run on.
 *
 * A worker runs on the CPUs of its node that the administrator's cpulist
 * allows and that keep house: those of housekeeping_cpumask(HK_TYPE_KTHREAD)
 * that are not isolated in any other way, as cpu_is_isolated() tells it:
 * isolcpus= only changes the domain mask and a cpuset partition none of them.
 * If nothing is left on the node, the nearest node's CPUs
 * serve, so a memory-only node has workers too.
 *
 * Three things rewrite a thread's mask behind our back: CPU hotplug, making
 * or removing a cpuset partition (which sets the mask of every kthread in
 * the root cpuset), and taskset. The first two are followed here, by setting
 * the mask again from a work item. A taskset is kept through that, since
 * set_cpus_allowed_ptr() narrows what it is given to p->user_cpus_ptr; it
 * ends when the administrator writes cpulist.
 *
 * node_worker_mutex protects the requested masks.
 */
#define pr_fmt(fmt) "node_worker: " fmt

#include <linux/cpu.h>
#include <linux/cpuset.h>
#include <linux/node_worker.h>
#include <linux/sched.h>
#include <linux/sched/isolation.h>
#include <linux/topology.h>
#include <linux/workqueue.h>

#include "internal.h"

/* Why no worker may run on a CPU; NULL: one may. */
static const char *left_out(int cpu)
{
	if (!housekeeping_test_cpu(cpu, HK_TYPE_DOMAIN))
		return "isolcpus";
	if (!housekeeping_test_cpu(cpu, HK_TYPE_TICK))
		return "nohz_full";
	if (cpuset_cpu_is_isolated(cpu))
		return "cpuset partition";
	if (!housekeeping_test_cpu(cpu, HK_TYPE_KTHREAD))
		return "not for kthreads";
	return NULL;
}

/* The CPUs of @nid on which a worker may run; false if there are none. */
static bool node_cpus(int nid, const struct cpumask *among,
		      struct cpumask *mask)
{
	int cpu;

	cpumask_clear(mask);
	for_each_cpu_and(cpu, cpumask_of_node(nid), cpu_online_mask)
		/* A CPU on its way out is online until the very end. */
		if (cpumask_test_cpu(cpu, among) && !cpu_dying(cpu) &&
		    !left_out(cpu))
			cpumask_set_cpu(cpu, mask);
	return !cpumask_empty(mask);
}

/* As node_cpus(), of the node nearest to @nid that has any. */
static bool nearest_cpus(int nid, const struct cpumask *among,
			 struct cpumask *mask)
{
	nodemask_t left = node_states[N_CPU];
	int n, best;

	node_clear(nid, left);
	while (!nodes_empty(left)) {
		best = first_node(left);
		for_each_node_mask(n, left)
			if (node_distance(nid, n) < node_distance(nid, best))
				best = n;
		if (node_cpus(best, among, mask))
			return true;
		node_clear(best, left);
	}
	return false;
}

/**
 * node_worker_effective_cpus - the CPUs a worker is given
 * @w: the worker
 * @mask: filled in; never empty
 *
 * Context: process, under node_worker_mutex.
 */
void node_worker_effective_cpus(struct node_worker *w, struct cpumask *mask)
{
	lockdep_assert_held(&node_worker_mutex);
	if (node_cpus(w->nid, w->requested, mask) ||
	    nearest_cpus(w->nid, w->requested, mask))
		return;
	/* The cpulist names no usable CPU now: it waits until one does. */
	if (node_cpus(w->nid, cpu_possible_mask, mask) ||
	    nearest_cpus(w->nid, cpu_possible_mask, mask))
		return;
	/* Every CPU is isolated: kthreads run where the boot CPU does. */
	cpumask_copy(mask, housekeeping_cpumask(HK_TYPE_KTHREAD));
}

/**
 * node_worker_apply_cpus - set a worker's CPU mask
 * @w: a worker with a thread
 *
 * Comparing masks first would prove nothing: the thread's may be narrowed
 * by a taskset or widened by a cpuset. So it is always set.
 *
 * Context: process, under node_worker_mutex.
 */
void node_worker_apply_cpus(struct node_worker *w)
{
	cpumask_var_t mask;

	if (!zalloc_cpumask_var(&mask, GFP_KERNEL))
		return;
	node_worker_effective_cpus(w, mask);
	/* Fails only if all its CPUs went offline: hotplug brings us back. */
	set_cpus_allowed_ptr(w->task, mask);
	free_cpumask_var(mask);
}

/**
 * node_worker_set_cpulist - the administrator's choice of CPUs
 * @w: the worker
 * @mask: the CPUs; those of other nodes and isolated ones do not count
 *
 * Releases an earlier taskset of the thread.
 *
 * Context: process, under node_worker_mutex.
 * Return: 0; -EINVAL if no possible CPU is named, -EPERM if the caller may
 * not set the thread's affinity or cannot see it; nothing changed then.
 */
int node_worker_set_cpulist(struct node_worker *w, const struct cpumask *mask)
{
	pid_t pid;
	int err;

	lockdep_assert_held(&node_worker_mutex);
	if (!cpumask_intersects(mask, cpu_possible_mask))
		return -EINVAL;
	if (w->task) {
		/* As seen from here; 0, which is ourselves, if it is not. */
		pid = task_pid_vnr(w->task);
		err = pid ? sched_setaffinity(pid, cpu_possible_mask) : -EPERM;
		if (err)
			return err;
	}
	cpumask_copy(w->requested, mask);
	if (w->task)
		node_worker_apply_cpus(w);
	return 0;
}

/**
 * node_worker_log_cpus - one line on what runs where
 *
 * Context: process, after the workers have been started.
 */
void node_worker_log_cpus(void)
{
	const char *sep = ", not on CPUs", *why;
	DECLARE_SEQ_BUF(out, 256);
	int cpu;

	for_each_online_cpu(cpu) {
		why = left_out(cpu);
		if (!why)
			continue;
		seq_buf_printf(&out, "%s %d (%s)", sep, cpu, why);
		sep = ",";
	}
	pr_info("on nodes %*pbl%s\n", nodemask_pr_args(&node_states[N_MEMORY]),
		seq_buf_used(&out) ? seq_buf_str(&out) : ", on all their CPUs");
}

static void reapply_fn(struct work_struct *work)
{
	node_worker_reapply_all();
}

static DECLARE_WORK(reapply_work, reapply_fn);

/**
 * node_worker_cpus_changed - CPUs came, went, or changed their isolation
 *
 * Called by the cpuset code after it has rewritten the masks of the root
 * cpuset's tasks and when it has changed which CPUs are isolated, and at CPU
 * hotplug.
 *
 * Context: any that may queue work.
 */
void node_worker_cpus_changed(void)
{
	schedule_work(&reapply_work);
}

static int cpu_changed(unsigned int cpu)
{
	node_worker_cpus_changed();
	return 0;
}

/**
 * node_worker_affinity_init - hear of CPUs that come and go
 *
 * Context: boot, once.
 */
void __init node_worker_affinity_init(void)
{
	/* Without it the masks follow hotplug at the next cpuset change. */
	WARN_ON_ONCE(cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN,
					       "mm/node_worker:online",
					       cpu_changed, cpu_changed) < 0);
}
