// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers: the threads.
 *
 * Owns one struct node_worker for each function and possible node, allocated
 * when the function registers and never freed, so that a poster that found
 * one never has to ask whether it still exists. A worker has a thread while
 * its node has memory and its function is wanted. Machines with one memory
 * node have no threads at all.
 *
 * node_worker_setup_mutex serialises what starts and retires threads and
 * adds and removes their sysfs directories: the sysctl, the function's own
 * switch and memory hotplug.
 * node_worker_mutex, taken inside it, is that of the sysfs files: which
 * thread there is, pausing, nice, CPUs, draining. The threads themselves
 * take neither, nor a hotplug lock, so both may be held while waiting for
 * one of them.
 *
 * Lifetime of a thread: start_worker() publishes @live last. Retiring clears
 * @live, waits for posters with synchronize_rcu(), stops the thread, drains
 * in its place, and leaves the struct for the next start.
 *
 * Lock order: cpus_read_lock(), mem_hotplug_lock, khugepaged_mutex,
 * node_worker_setup_mutex, node_worker_mutex.
 */
#define pr_fmt(fmt) "node_worker: " fmt

#include <linux/freezer.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/memory.h>
#include <linux/sched.h>
#include <linux/sched/stat.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include <uapi/linux/sched/types.h>

#define CREATE_TRACE_POINTS
#include <trace/events/node_worker.h>

#include "internal.h"

/* About one batch of pages, or a few holds of mmap_lock. */
#define PIECE_NS	(NSEC_PER_MSEC / 2)

DEFINE_MUTEX(node_worker_setup_mutex);	/* which threads there are to be */
DEFINE_MUTEX(node_worker_mutex);	/* the workers, as sysfs sees them */

static const struct node_worker_ops *fn_ops[NR_NODE_WORKER_FNS];
static struct node_worker **fn_workers[NR_NODE_WORKER_FNS];

/*
 * Which functions are to have threads, on nodes that appear later too.
 * node_worker_setup_mutex.
 */
static bool wanted[NR_NODE_WORKER_FNS];

/* The command line's node_workers=; it stays in memory. */
static char *boot_param __initdata;

static void kick_fn(struct irq_work *work)
{
	wake_up(&container_of(work, struct node_worker, kick)->wait);
}

static bool drain_pending(struct node_worker *w)
{
	return READ_ONCE(w->drain_wanted) != w->drain_done;
}

static bool runnable(struct node_worker *w)
{
	return !READ_ONCE(w->paused) && w->ops->has_work(w);
}

static bool interrupted(struct node_worker *w)
{
	return kthread_should_stop() || drain_pending(w);
}

static bool rest_over(struct node_worker *w)
{
	return interrupted(w) ||
	       (w->ops->urgent && !READ_ONCE(w->paused) && w->ops->urgent(w));
}

static void serve_drain(struct node_worker *w)
{
	unsigned int wanted = READ_ONCE(w->drain_wanted);

	if (wanted == w->drain_done)
		return;
	w->ops->drain(w);
	/* Pairs with the acquire in node_worker_drain(). */
	smp_store_release(&w->drain_done, wanted);
	wake_up_all(&w->wait);
}

/*
 * After a piece of work. An application that shares the CPU is to be held up by no
 * more than one. Neither the tick nor schedule() sees to that: a thread that has
 * slept may be owed CPU time, up to a tick of it, and would be picked again until it
 * has had that. So the worker sleeps, for about as long as a piece takes; and once
 * it wakes it may find another CPU idle.
 */
static void let_others_run(void)
{
	ktime_t rest = ns_to_ktime(PIECE_NS);

	if (single_task_running()) {
		cond_resched();
		return;
	}
	/* kthread_stop() ends it early; a drain waits for it. */
	set_current_state(TASK_IDLE);
	schedule_hrtimeout(&rest, HRTIMER_MODE_REL);
}

static int node_worker_thread(void *data)
{
	struct node_worker *w = data;
	long rest;

	set_freezable();
	while (!kthread_should_stop()) {
		try_to_freeze();
		serve_drain(w);
		if (!runnable(w)) {
			wait_event_freezable(w->wait,
					     interrupted(w) || runnable(w));
			continue;
		}
		rest = w->ops->run(w);
		WRITE_ONCE(w->last_run, jiffies);
		if (rest)
			wait_event_freezable_timeout(w->wait, rest_over(w),
						     rest);
		else
			let_others_run();
	}
	return 0;
}

/**
 * node_worker_drain - have a worker drop what is queued
 * @w: the worker
 *
 * The caller has made sure that nothing more is posted. A caller that is
 * killed does not wait for the thread, which may be frozen.
 *
 * Context: process, under node_worker_mutex; sleeps until it is done.
 */
void node_worker_drain(struct node_worker *w)
{
	unsigned int wanted;

	lockdep_assert_held(&node_worker_mutex);
	if (!w->task)
		return;
	wanted = w->drain_wanted + 1;
	WRITE_ONCE(w->drain_wanted, wanted);
	wake_up_all(&w->wait);
	wait_event_killable(w->wait,
			    /* Pairs with the release in serve_drain(). */
			    smp_load_acquire(&w->drain_done) == wanted);
}

/* Pieces of work are short: a worker asks for little at a time, but soon. */
static void set_slice(struct task_struct *task, int nice)
{
	const struct sched_attr attr = {
		.size		= sizeof(attr),
		.sched_policy	= SCHED_NORMAL,
		.sched_nice	= nice,
		.sched_runtime	= PIECE_NS,
	};

	/* Refused, it has everybody's slice. */
	WARN_ON_ONCE(sched_setattr_nocheck(task, &attr));
}

static int start_worker(enum node_worker_fn fn, struct node_worker *w)
{
	struct task_struct *task;
	int err;

	lockdep_assert_held(&node_worker_mutex);
	if (w->task)
		return 0;
	err = w->ops->start(w);
	if (err)
		return err;
	task = kthread_create_on_node(node_worker_thread, w, w->nid,
				      w->ops->thread, w->nid);
	if (IS_ERR(task))
		return PTR_ERR(task);
	w->task = task;
	set_slice(task, w->nice);
	WRITE_ONCE(w->last_run, jiffies);
	node_worker_apply_cpus(w);
	node_worker_sysfs_add(fn, w);
	wake_up_process(task);
	/* Pairs with the acquire in node_worker_live(): priv is set. */
	smp_store_release(&w->live, true);
	return 0;
}

static void retire_worker(struct node_worker *w)
{
	lockdep_assert_held(&node_worker_mutex);
	if (!w->task)
		return;
	WRITE_ONCE(w->live, false);
	/* Posters look at @live and queue inside one read-side section. */
	synchronize_rcu();
	kthread_stop(w->task);
	irq_work_sync(&w->kick);
	/* Not the thread's last act: it may never have had a first. */
	w->ops->drain(w);
	if (w->ops->retire)
		w->ops->retire(w);
	WRITE_ONCE(w->drain_done, w->drain_wanted);
	w->task = NULL;
	node_worker_sysfs_remove(w);
}

/* Give every node with memory a worker, and take it from the others. */
static int reconcile_fn(enum node_worker_fn fn)
{
	bool want = wanted[fn] && num_node_state(N_MEMORY) > 1;
	int nid, err, ret = 0;

	lockdep_assert_held(&node_worker_setup_mutex);
	mutex_lock(&node_worker_mutex);
	for_each_node(nid) {
		struct node_worker *w = fn_workers[fn][nid];

		if (!want || !node_state(nid, N_MEMORY)) {
			retire_worker(w);
			continue;
		}
		err = start_worker(fn, w);
		if (err && !ret)
			ret = err;
	}
	mutex_unlock(&node_worker_mutex);
	return ret;
}

/* Once, as soon as there are workers to tell of. */
static void log_first_start(void)
{
	static bool logged;

	if (!logged && num_node_state(N_MEMORY) > 1)
		node_worker_log_cpus();
	logged = true;
}

static int __init keep_boot_param(char *str)
{
	boot_param = str;
	return 1;
}
__setup("node_workers=", keep_boot_param);

/**
 * node_worker_boot_wants - is a function to have workers from the beginning?
 * @name: its name
 *
 * Context: boot.
 * Return: false if the command line has node_workers= with NAME:0 in its list.
 */
bool __init node_worker_boot_wants(const char *name)
{
	size_t len = strlen(name);
	const char *p = boot_param;

	while (p) {
		if (!strncmp(p, name, len) && !strncmp(p + len, ":0", 2))
			return false;
		p = strchr(p, ',');
		if (p)
			p++;
	}
	return true;
}

/**
 * node_worker_want - start or retire a function's threads
 * @fn: the function, which has been registered
 * @want: whether nodes with memory are to have one, if there are several
 *
 * Context: process, under node_worker_setup_mutex; sleeps.
 * Return: 0, or a negative errno if a thread could not be had; those that
 * were started stay.
 */
int node_worker_want(enum node_worker_fn fn, bool want)
{
	int err;

	lockdep_assert_held(&node_worker_setup_mutex);
	wanted[fn] = want;
	err = reconcile_fn(fn);
	if (want && !err)
		log_first_start();
	return err;
}

/**
 * node_worker_drain_all - have a function's workers drop what is queued
 * @fn: the function, which has been registered
 *
 * The caller has made sure that nothing more is posted.
 *
 * Context: process; takes node_worker_mutex and sleeps until all have.
 */
void node_worker_drain_all(enum node_worker_fn fn)
{
	int nid;

	mutex_lock(&node_worker_mutex);
	for_each_node(nid)
		node_worker_drain(fn_workers[fn][nid]);
	mutex_unlock(&node_worker_mutex);
}

/**
 * node_worker_known - has a function been registered?
 * @fn: the function
 *
 * Context: process.
 */
bool node_worker_known(enum node_worker_fn fn)
{
	return fn_ops[fn];
}

/**
 * node_worker_get - the worker of a function and node
 * @fn: the function
 * @nid: a possible node
 *
 * Context: any. The struct stays for ever; it may have no thread.
 */
struct node_worker *node_worker_get(enum node_worker_fn fn, int nid)
{
	return fn_workers[fn][nid];
}

/**
 * node_worker_current - is this a function's thread?
 * @fn: the function
 *
 * Context: any; false in an interrupt's or an application's.
 */
bool node_worker_current(enum node_worker_fn fn)
{
	struct node_worker *w;

	if (!in_task() || kthread_func(current) != node_worker_thread)
		return false;
	w = kthread_data(current);
	return w->ops == fn_ops[fn];
}

/**
 * node_worker_nearest - the nearest worker that takes posts
 * @fn: the function
 * @nid: the node to be near to
 *
 * Context: any, in an RCU read-side section that ends after the post.
 * Return: NULL if no worker of @fn takes posts.
 */
struct node_worker *node_worker_nearest(enum node_worker_fn fn, int nid)
{
	struct node_worker *best = fn_workers[fn][nid];
	int n, dist = INT_MAX;

	if (node_worker_live(best))
		return best;
	best = NULL;
	for_each_node_state(n, N_MEMORY) {
		struct node_worker *w = fn_workers[fn][n];

		if (node_worker_live(w) && node_distance(nid, n) < dist) {
			dist = node_distance(nid, n);
			best = w;
		}
	}
	return best;
}

/**
 * node_worker_set_paused - stop or resume a worker for the administrator
 * @w: the worker
 * @paused: the new state
 *
 * A worker that is paused holds nothing: what was queued is dropped, and
 * posters stay away, so that no exited mm is kept until it resumes.
 *
 * Context: process, under node_worker_mutex; sleeps.
 */
void node_worker_set_paused(struct node_worker *w, bool paused)
{
	lockdep_assert_held(&node_worker_mutex);
	WRITE_ONCE(w->paused, paused);
	if (paused) {
		/* Posters look at @paused inside a read-side section. */
		synchronize_rcu();
		node_worker_drain(w);
	} else {
		wake_up(&w->wait);
	}
}

/**
 * node_worker_set_nice - set a worker's nice value, now and for later threads
 * @w: the worker
 * @nice: MIN_NICE to MAX_NICE
 *
 * Context: process, under node_worker_mutex.
 */
void node_worker_set_nice(struct node_worker *w, int nice)
{
	lockdep_assert_held(&node_worker_mutex);
	w->nice = nice;
	if (w->task)
		set_user_nice(w->task, nice);
}

static void reconcile_work_fn(struct work_struct *work)
{
	int fn, err = 0;

	for (fn = 0; fn < NR_NODE_WORKER_FNS; fn++) {
		if (!fn_ops[fn])
			continue;
		mutex_lock(&node_worker_setup_mutex);
		err = reconcile_fn(fn) ?: err;
		mutex_unlock(&node_worker_setup_mutex);
		if (fn_ops[fn]->nodes_changed)
			fn_ops[fn]->nodes_changed();
	}
	if (err)
		pr_warn("could not start the workers of every node\n");
}

static DECLARE_WORK(reconcile_work, reconcile_work_fn);

/*
 * Runs under the hotplug locks, which a worker's start and stop must not be
 * waited for under: leave it to a work item.
 */
static int memory_changed(struct notifier_block *nb, unsigned long action,
			  void *arg)
{
	if (action == MEM_ONLINE || action == MEM_OFFLINE)
		schedule_work(&reconcile_work);
	return NOTIFY_OK;
}

static struct node_worker *alloc_worker(const struct node_worker_ops *ops,
					int nid)
{
	int near = node_state(nid, N_MEMORY) ? nid : NUMA_NO_NODE;
	struct node_worker *w = kzalloc_node(sizeof(*w), GFP_KERNEL, near);

	if (!w)
		return NULL;
	if (!zalloc_cpumask_var(&w->requested, GFP_KERNEL)) {
		kfree(w);
		return NULL;
	}
	cpumask_setall(w->requested);
	w->ops = ops;
	w->nid = nid;
	w->nice = ops->nice;
	w->kick = IRQ_WORK_INIT_LAZY(kick_fn);
	init_waitqueue_head(&w->wait);
	return w;
}

static void free_workers(struct node_worker **workers)
{
	int nid;

	for_each_node(nid) {
		if (!workers[nid])
			continue;
		free_cpumask_var(workers[nid]->requested);
		kfree(workers[nid]);
	}
	kfree(workers);
}

/**
 * node_worker_register - make a function known, without starting it
 * @fn: which one
 * @ops: its operations, which must stay for ever
 *
 * Context: process, at boot; sleeps.
 * Return: 0 or -ENOMEM, with nothing registered.
 */
int node_worker_register(enum node_worker_fn fn,
			 const struct node_worker_ops *ops)
{
	struct node_worker **workers;
	int nid;

	workers = kcalloc(nr_node_ids, sizeof(*workers), GFP_KERNEL);
	if (!workers)
		return -ENOMEM;
	for_each_node(nid) {
		workers[nid] = alloc_worker(ops, nid);
		if (!workers[nid]) {
			free_workers(workers);
			return -ENOMEM;
		}
	}
	mutex_lock(&node_worker_mutex);
	fn_workers[fn] = workers;
	fn_ops[fn] = ops;
	mutex_unlock(&node_worker_mutex);
	return node_worker_sysfs_add_fn(fn, ops);
}

/**
 * node_worker_reapply_all - apply the CPU masks again; see affinity.c for when
 *
 * Context: process; takes node_worker_mutex.
 */
void node_worker_reapply_all(void)
{
	int fn, nid;

	mutex_lock(&node_worker_mutex);
	for (fn = 0; fn < NR_NODE_WORKER_FNS; fn++)
		for_each_node(nid)
			if (fn_ops[fn] && fn_workers[fn][nid]->task)
				node_worker_apply_cpus(fn_workers[fn][nid]);
	mutex_unlock(&node_worker_mutex);
}

static int __init node_worker_init(void)
{
	int err = node_worker_sysfs_init();

	if (err)
		return err;
	node_worker_affinity_init();
	/* After KSM's, which must have let go of a node's pages by then. */
	return hotplug_memory_notifier(memory_changed, KSM_CALLBACK_PRI - 1);
}
subsys_initcall(node_worker_init);
