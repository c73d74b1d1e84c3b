/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Node workers: what the files of mm/node_worker/ share.
 *
 * A function (scan, migrate, collapse) registers a struct node_worker_ops. The core
 * keeps a struct node_worker for it on every possible node, for ever, and
 * gives it a thread while its node has memory and the function is wanted.
 */
#ifndef _MM_NODE_WORKER_INTERNAL_H
#define _MM_NODE_WORKER_INTERNAL_H

#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/kobject.h>
#include <linux/mutex.h>
#include <linux/nodemask.h>
#include <linux/seq_buf.h>
#include <linux/wait.h>

struct node_worker;

/* Functions, in the order of their sysfs directories. */
enum node_worker_fn {
	NODE_WORKER_SCAN,
	NODE_WORKER_MIGRATE,
	NODE_WORKER_COLLAPSE,
	NR_NODE_WORKER_FNS,
};

/**
 * struct node_worker_ops - a function that node workers carry out
 * @name: its directory under /sys/kernel/mm/node_workers
 * @thread: format of the threads' names, with one %d for the node
 * @nice: the threads' nice value until an administrator sets another
 * @start: called before a node gets its first thread, in process context
 *	under node_worker_mutex; may sleep; 0 or a negative errno
 * @has_work: is there anything to run? Any context, no locks
 * @run: do one small piece of work, in the thread, no locks held; returns
 *	the jiffies to stay away from work, 0 to be called again at once
 * @drain: throw away all that is queued and clear every mark that says so;
 *	in the thread, or in process context once there is no thread
 * @urgent: is there work that ends a rest early? Any context, no locks; may be
 *	NULL
 * @retire: the thread is gone: give away what only it would have looked after;
 *	process context under both mutexes; may be NULL
 * @nodes_changed: nodes have got or lost their memory and the threads have
 *	followed; process context, no locks held; may be NULL
 * @backlog: items queued now and, if there are any, the jiffies at which the
 *	oldest was; process context
 * @stat: print the function's own lines of the stat file; process context
 * @tunables: files of a nodeN directory
 * @globals: files of the function's own directory
 */
struct node_worker_ops {
	const char	*name;
	const char	*thread;
	int		nice;
	int		(*start)(struct node_worker *w);
	bool		(*has_work)(struct node_worker *w);
	long		(*run)(struct node_worker *w);
	void		(*drain)(struct node_worker *w);
	bool		(*urgent)(struct node_worker *w);
	void		(*retire)(struct node_worker *w);
	void		(*nodes_changed)(void);
	unsigned long	(*backlog)(struct node_worker *w, unsigned long *since);
	void		(*stat)(struct node_worker *w, struct seq_buf *s);
	const struct attribute_group *tunables;
	const struct attribute_group *globals;
};

/**
 * struct node_worker - one function on one node
 * @ops: the function
 * @priv: the function's own state for the node; set by @ops->start
 * @nid: the node
 * @task: the thread, NULL while there is none; node_worker_mutex
 * @live: posts are welcome; written under node_worker_mutex, read with
 *	node_worker_live() by posters inside an RCU read-side section
 * @paused: by the administrator; written under node_worker_mutex, READ_ONCE()
 * @nice: node_worker_mutex
 * @requested: the administrator's cpulist; node_worker_mutex
 * @wait: where the thread sleeps and node_worker_drain() waits
 * @kick: lazy irq_work that wakes @wait at the next tick: posters hold a
 *	runqueue or page-table lock and must not wake anybody themselves
 * @drain_wanted: drains asked for; added to under node_worker_mutex
 * @drain_done: drains done; the thread's
 * @last_run: jiffies at the last piece of work; the thread's
 * @kobj: the nodeN directory, NULL if there is none; node_worker_setup_mutex
 */
struct node_worker {
	const struct node_worker_ops	*ops;
	void				*priv;
	int				nid;
	struct task_struct		*task;
	bool				live;
	bool				paused;
	int				nice;
	cpumask_var_t			requested;
	wait_queue_head_t		wait;
	struct irq_work			kick;
	unsigned int			drain_wanted;
	unsigned int			drain_done;
	unsigned long			last_run;
	struct kobject			*kobj;
};

extern struct mutex node_worker_setup_mutex;	/* outside of */
extern struct mutex node_worker_mutex;

/* core.c */
int node_worker_register(enum node_worker_fn fn,
			 const struct node_worker_ops *ops);
struct node_worker *node_worker_get(enum node_worker_fn fn, int nid);
struct node_worker *node_worker_nearest(enum node_worker_fn fn, int nid);
int node_worker_want(enum node_worker_fn fn, bool want);
void node_worker_drain(struct node_worker *w);
void node_worker_drain_all(enum node_worker_fn fn);
bool node_worker_known(enum node_worker_fn fn);
bool node_worker_current(enum node_worker_fn fn);
bool node_worker_boot_wants(const char *name);
void node_worker_set_paused(struct node_worker *w, bool paused);
void node_worker_set_nice(struct node_worker *w, int nice);

/**
 * node_worker_live - does a worker take posts?
 * @w: the worker
 *
 * Context: any, in an RCU read-side section that ends after the post. If it
 * does, @w->priv is set.
 */
static inline bool node_worker_live(struct node_worker *w)
{
	/* Pairs with the release in start_worker(). */
	return smp_load_acquire(&w->live);
}

/**
 * node_worker_kick - let a worker look for work at the next tick
 * @w: the worker
 *
 * Context: any, interrupts off and spinlocks held included. A full barrier:
 * what was queued before is seen by the worker.
 */
static inline void node_worker_kick(struct node_worker *w)
{
	irq_work_queue(&w->kick);
}

/* affinity.c */
void node_worker_effective_cpus(struct node_worker *w, struct cpumask *mask);
void node_worker_apply_cpus(struct node_worker *w);
int node_worker_set_cpulist(struct node_worker *w, const struct cpumask *mask);
void node_worker_affinity_init(void);
void node_worker_reapply_all(void);
void node_worker_log_cpus(void);

/* sysfs.c */
int node_worker_sysfs_init(void);
int node_worker_sysfs_add_fn(enum node_worker_fn fn,
			     const struct node_worker_ops *ops);
void node_worker_sysfs_add(enum node_worker_fn fn, struct node_worker *w);
void node_worker_sysfs_remove(struct node_worker *w);
struct node_worker *node_worker_of(struct kobject *kobj);
ssize_t node_worker_store_uint(unsigned int *var, unsigned int min,
			       unsigned int max, const char *buf,
			       size_t count);

#endif /* _MM_NODE_WORKER_INTERNAL_H */
