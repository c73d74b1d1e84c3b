// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers: the sysfs files of the scan function.
 *
 * Tunables are plain words, written here and read with READ_ONCE() by the
 * workers and the hinting fault; a change takes effect at the next hold or
 * fault. Statistics are the threads' own and read without a lock.
 */
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "balancing.h"

static const char * const skip_name[NR_NODE_SKIP_REASONS] = {
	[NODE_SKIP_ONE_NODE]	= "one_node",
	[NODE_SKIP_OPTOUT]	= "optout",
	[NODE_SKIP_ISOLATED]	= "isolated",
	[NODE_SKIP_EXITING]	= "exiting",
	[NODE_SKIP_DEBT]	= "debt",
	[NODE_SKIP_LOCKED]	= "locked",
	[NODE_SKIP_FALLBACK]	= "fallback",
};

/**
 * node_scan_stat - print a scan worker's own statistics
 * @w: the worker, which has had a thread
 * @out: where to
 *
 * Context: process.
 */
void node_scan_stat(struct node_worker *w, struct seq_buf *out)
{
	struct node_scan *s = w->priv;
	int i;

	seq_buf_printf(out, "holds %lu\n", READ_ONCE(s->holds));
	seq_buf_printf(out, "longest_hold_us %llu\n",
		       div_u64(READ_ONCE(s->longest_hold), NSEC_PER_USEC));
	seq_buf_printf(out, "missed %lu\n", READ_ONCE(s->missed));
	seq_buf_printf(out, "flushes %lu\n", READ_ONCE(s->flushes));
	seq_buf_printf(out, "flush_cpus %lu\n", READ_ONCE(s->flush_cpus));
	for (i = 0; i < NR_NODE_SKIP_REASONS; i++)
		seq_buf_printf(out, "skip_%s %lu\n", skip_name[i],
			       node_skip_sum(w->nid, i));
}

static ssize_t budget_permille_show(struct kobject *kobj,
				    struct kobj_attribute *attr, char *buf)
{
	struct node_scan *s = node_worker_of(kobj)->priv;

	return sysfs_emit(buf, "%u\n", READ_ONCE(s->permille));
}

static ssize_t budget_permille_store(struct kobject *kobj,
				     struct kobj_attribute *attr,
				     const char *buf, size_t count)
{
	struct node_worker *w = node_worker_of(kobj);
	struct node_scan *s = w->priv;
	ssize_t ret;

	ret = node_worker_store_uint(&s->permille, 0, 1000, buf, count);
	if (ret > 0 && !READ_ONCE(s->permille)) {
		/* As if paused: what it holds would be kept for ever. */
		synchronize_rcu();
		mutex_lock(&node_worker_mutex);
		node_worker_drain(w);
		mutex_unlock(&node_worker_mutex);
	}
	return ret;
}

static struct kobj_attribute budget_permille_attr = __ATTR_RW(budget_permille);

static struct attribute *scan_tunables[] = {
	&budget_permille_attr.attr,
	NULL
};

const struct attribute_group node_scan_tunables = {
	.attrs = scan_tunables,
};

static const char * const gran_name[] = {
	[NODE_GRAN_BLOCK]	= "block",
	[NODE_GRAN_PAGE]	= "page",
};

static ssize_t granularity_show(struct kobject *kobj,
				struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n",
			  gran_name[READ_ONCE(node_scan_granularity)]);
}

static ssize_t granularity_store(struct kobject *kobj,
				 struct kobj_attribute *attr,
				 const char *buf, size_t count)
{
	int i = sysfs_match_string(gran_name, buf);

	if (i < 0)
		return i;
	WRITE_ONCE(node_scan_granularity, i);
	return count;
}

static struct kobj_attribute granularity_attr = __ATTR_RW(granularity);

static ssize_t block_pages_show(struct kobject *kobj,
				struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(node_scan_block_pages));
}

static ssize_t block_pages_store(struct kobject *kobj,
				 struct kobj_attribute *attr,
				 const char *buf, size_t count)
{
	unsigned int val;
	int err = kstrtouint(buf, 0, &val);

	if (err)
		return err;
	if (val > NODE_BLOCK_MAX || !is_power_of_2(val))
		return -EINVAL;
	WRITE_ONCE(node_scan_block_pages, val);
	return count;
}

static struct kobj_attribute block_pages_attr = __ATTR_RW(block_pages);

static struct attribute *scan_globals[] = {
	&granularity_attr.attr,
	&block_pages_attr.attr,
	NULL
};

const struct attribute_group node_scan_globals = {
	.attrs = scan_globals,
};
