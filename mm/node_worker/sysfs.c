// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers: /sys/kernel/mm/node_workers.
 *
 * One directory for each function, in it one for each node whose worker has
 * a thread or once had. Here are the files that every worker has; a
 * function brings its own tunables as attribute groups in its ops.
 *
 * Stores, and shows of what a store can change, take node_worker_mutex. The
 * nodeN directories come and go under node_worker_setup_mutex, which no file
 * takes, since removing one waits for its files' users.
 */
#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/prio.h>
#include <linux/seq_buf.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "internal.h"

struct worker_kobj {
	struct kobject		kobj;
	struct node_worker	*worker;
};

static struct kobject *root_kobj;
static struct kobject *fn_kobj[NR_NODE_WORKER_FNS];

/**
 * node_worker_of - the worker whose nodeN directory this is
 * @kobj: the directory
 *
 * Context: any; the worker stays for ever.
 */
struct node_worker *node_worker_of(struct kobject *kobj)
{
	return container_of(kobj, struct worker_kobj, kobj)->worker;
}

/**
 * node_worker_store_uint - a sysfs store into a word within a range
 * @var: the word, read with READ_ONCE() elsewhere
 * @min: the least value taken
 * @max: the greatest
 * @buf: what was written
 * @count: how much
 *
 * Context: process.
 * Return: @count, or a negative errno with nothing changed.
 */
ssize_t node_worker_store_uint(unsigned int *var, unsigned int min,
			       unsigned int max, const char *buf, size_t count)
{
	unsigned int val;
	int err = kstrtouint(buf, 0, &val);

	if (err)
		return err;
	if (val < min || val > max)
		return -EINVAL;
	WRITE_ONCE(*var, val);
	return count;
}

static ssize_t cpulist_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	ssize_t len;

	mutex_lock(&node_worker_mutex);
	len = cpumap_print_to_pagebuf(true, buf,
				      node_worker_of(kobj)->requested);
	mutex_unlock(&node_worker_mutex);
	return len;
}

static ssize_t cpulist_store(struct kobject *kobj, struct kobj_attribute *attr,
			     const char *buf, size_t count)
{
	cpumask_var_t mask;
	int err;

	if (!zalloc_cpumask_var(&mask, GFP_KERNEL))
		return -ENOMEM;
	err = cpulist_parse(buf, mask);
	if (!err) {
		mutex_lock(&node_worker_mutex);
		err = node_worker_set_cpulist(node_worker_of(kobj), mask);
		mutex_unlock(&node_worker_mutex);
	}
	free_cpumask_var(mask);
	return err ?: count;
}

static struct kobj_attribute cpulist_attr = __ATTR_RW(cpulist);

static ssize_t effective_cpulist_show(struct kobject *kobj,
				      struct kobj_attribute *attr, char *buf)
{
	struct node_worker *w = node_worker_of(kobj);
	ssize_t len = -ENODEV;

	mutex_lock(&node_worker_mutex);
	/* What the scheduler goes by, a taskset included. */
	if (w->task)
		len = cpumap_print_to_pagebuf(true, buf, w->task->cpus_ptr);
	mutex_unlock(&node_worker_mutex);
	return len;
}

static struct kobj_attribute effective_cpulist_attr =
	__ATTR_RO(effective_cpulist);

static ssize_t paused_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(node_worker_of(kobj)->paused));
}

static ssize_t paused_store(struct kobject *kobj, struct kobj_attribute *attr,
			    const char *buf, size_t count)
{
	unsigned int val;
	int err = kstrtouint(buf, 0, &val);

	if (err)
		return err;
	if (val > 1)
		return -EINVAL;
	mutex_lock(&node_worker_mutex);
	node_worker_set_paused(node_worker_of(kobj), val);
	mutex_unlock(&node_worker_mutex);
	return count;
}

static struct kobj_attribute paused_attr = __ATTR_RW(paused);

static ssize_t nice_show(struct kobject *kobj, struct kobj_attribute *attr,
			 char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(node_worker_of(kobj)->nice));
}

static ssize_t nice_store(struct kobject *kobj, struct kobj_attribute *attr,
			  const char *buf, size_t count)
{
	int val, err = kstrtoint(buf, 0, &val);

	if (err)
		return err;
	if (val < MIN_NICE || val > MAX_NICE)
		return -EINVAL;
	mutex_lock(&node_worker_mutex);
	node_worker_set_nice(node_worker_of(kobj), val);
	mutex_unlock(&node_worker_mutex);
	return count;
}

static struct kobj_attribute nice_attr = __ATTR_RW(nice);

static ssize_t pid_show(struct kobject *kobj, struct kobj_attribute *attr,
			char *buf)
{
	struct node_worker *w = node_worker_of(kobj);
	pid_t pid;

	mutex_lock(&node_worker_mutex);
	pid = w->task ? task_pid_vnr(w->task) : 0;
	mutex_unlock(&node_worker_mutex);
	return sysfs_emit(buf, "%d\n", pid);
}

static struct kobj_attribute pid_attr = __ATTR_RO(pid);

/* Milliseconds since a time in jiffies, as far as jiffies go. */
static unsigned int ms_since(unsigned long then)
{
	return jiffies_to_msecs(jiffies - then);
}

static ssize_t stat_show(struct kobject *kobj, struct kobj_attribute *attr,
			 char *buf)
{
	struct node_worker *w = node_worker_of(kobj);
	unsigned long backlog, since;
	struct seq_buf s;

	seq_buf_init(&s, buf, PAGE_SIZE);
	mutex_lock(&node_worker_mutex);
	backlog = w->ops->backlog(w, &since);
	seq_buf_printf(&s, "backlog %lu\n", backlog);
	seq_buf_printf(&s, "oldest_ms_ago %u\n", backlog ? ms_since(since) : 0);
	seq_buf_printf(&s, "last_run_ms_ago %u\n",
		       ms_since(READ_ONCE(w->last_run)));
	w->ops->stat(w, &s);
	mutex_unlock(&node_worker_mutex);
	return seq_buf_used(&s);
}

static struct kobj_attribute stat_attr = __ATTR_RO(stat);

static struct attribute *worker_attrs[] = {
	&cpulist_attr.attr,
	&effective_cpulist_attr.attr,
	&paused_attr.attr,
	&nice_attr.attr,
	&pid_attr.attr,
	&stat_attr.attr,
	NULL
};
ATTRIBUTE_GROUPS(worker);

static void worker_kobj_release(struct kobject *kobj)
{
	kfree(container_of(kobj, struct worker_kobj, kobj));
}

static const struct kobj_type worker_ktype = {
	.release	= worker_kobj_release,
	.sysfs_ops	= &kobj_sysfs_ops,
	.default_groups	= worker_groups,
};

/**
 * node_worker_sysfs_add - add a worker's nodeN directory
 * @fn: its function
 * @w: the worker
 *
 * Without it the worker still runs, so a failure is told by the absence of the
 * directory only.
 *
 * Context: process, under both mutexes.
 */
void node_worker_sysfs_add(enum node_worker_fn fn, struct node_worker *w)
{
	struct worker_kobj *wk;

	lockdep_assert_held(&node_worker_setup_mutex);
	if (w->kobj || !fn_kobj[fn])
		return;
	wk = kzalloc(sizeof(*wk), GFP_KERNEL);
	if (!wk)
		return;
	wk->worker = w;
	if (kobject_init_and_add(&wk->kobj, &worker_ktype, fn_kobj[fn],
				 "node%d", w->nid)) {
		kobject_put(&wk->kobj);
		return;
	}
	w->kobj = &wk->kobj;
	if (w->ops->tunables && sysfs_create_group(w->kobj, w->ops->tunables))
		pr_warn("node_worker: no tunables for %s/node%d\n",
			w->ops->name, w->nid);
}

/**
 * node_worker_sysfs_remove - take a worker's directory away again
 * @w: the worker
 *
 * Waits for the users of its files, who may be waiting for node_worker_mutex.
 *
 * Context: process, under both mutexes; drops and retakes node_worker_mutex.
 */
void node_worker_sysfs_remove(struct node_worker *w)
{
	lockdep_assert_held(&node_worker_setup_mutex);
	if (!w->kobj)
		return;
	mutex_unlock(&node_worker_mutex);
	kobject_del(w->kobj);
	kobject_put(w->kobj);
	mutex_lock(&node_worker_mutex);
	w->kobj = NULL;
}

/**
 * node_worker_sysfs_add_fn - add a function's directory
 * @fn: the function
 * @ops: its operations
 *
 * Context: process, at boot.
 * Return: 0 or a negative errno.
 */
int node_worker_sysfs_add_fn(enum node_worker_fn fn,
			     const struct node_worker_ops *ops)
{
	fn_kobj[fn] = kobject_create_and_add(ops->name, root_kobj);
	if (!fn_kobj[fn])
		return -ENOMEM;
	return ops->globals ? sysfs_create_group(fn_kobj[fn], ops->globals) : 0;
}

/**
 * node_worker_sysfs_init - the directory of all workers
 *
 * Context: boot, once.
 * Return: 0 or a negative errno.
 */
int __init node_worker_sysfs_init(void)
{
	root_kobj = kobject_create_and_add("node_workers", mm_kobj);
	return root_kobj ? 0 : -ENOMEM;
}
