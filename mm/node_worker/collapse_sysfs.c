// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers: the sysfs files of the collapse function.
 *
 * A node's tunables are the machine's, those of transparent_hugepage/khugepaged/,
 * unless written here; -1 goes back to the machine's. They are plain words, read
 * with READ_ONCE() by the worker when it begins a round or a rest; a new sleep
 * ends the one under way.
 */
#include <linux/sysfs.h>

#include "collapse.h"

/**
 * node_collapse_stat - print a collapse worker's own statistics
 * @w: the worker
 * @s: where to
 *
 * Context: process.
 */
void node_collapse_stat(struct node_worker *w, struct seq_buf *s)
{
	struct node_collapse *c = w->priv;

	seq_buf_printf(s, "ranges %lu\n", khugepaged_node_collapsed(c->cc));
	seq_buf_printf(s, "inbox_full %lu\n", READ_ONCE(c->inbox.full));
	seq_buf_printf(s, "stale %lu\n", READ_ONCE(c->inbox.stale));
	seq_buf_printf(s, "starved %d\n", READ_ONCE(c->starved));
}

static struct node_collapse *collapse_of(struct kobject *kobj)
{
	return node_worker_of(kobj)->priv;
}

static ssize_t store_own(long *own, unsigned int min, const char *buf,
			 size_t count)
{
	long val;
	int err = kstrtol(buf, 0, &val);

	if (err)
		return err;
	if (val != NODE_COLLAPSE_UNSET && (val < min || val > UINT_MAX))
		return -EINVAL;
	WRITE_ONCE(*own, val);
	return count;
}

static ssize_t pages_to_scan_show(struct kobject *kobj,
				  struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%ld\n",
			  READ_ONCE(collapse_of(kobj)->pages_to_scan));
}

static ssize_t pages_to_scan_store(struct kobject *kobj,
				   struct kobj_attribute *attr,
				   const char *buf, size_t count)
{
	return store_own(&collapse_of(kobj)->pages_to_scan, 1, buf, count);
}

static struct kobj_attribute pages_to_scan_attr = __ATTR_RW(pages_to_scan);

static ssize_t store_sleep(struct kobject *kobj, long *own, const char *buf,
			   size_t count)
{
	struct node_worker *w = node_worker_of(kobj);
	struct node_collapse *c = w->priv;
	ssize_t ret = store_own(own, 0, buf, count);

	if (ret > 0) {
		WRITE_ONCE(c->woken, 1);
		wake_up(&w->wait);
	}
	return ret;
}

static ssize_t scan_sleep_millisecs_show(struct kobject *kobj,
					 struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%ld\n",
			  READ_ONCE(collapse_of(kobj)->scan_sleep_ms));
}

static ssize_t scan_sleep_millisecs_store(struct kobject *kobj,
					  struct kobj_attribute *attr,
					  const char *buf, size_t count)
{
	return store_sleep(kobj, &collapse_of(kobj)->scan_sleep_ms, buf, count);
}

static struct kobj_attribute scan_sleep_millisecs_attr =
	__ATTR_RW(scan_sleep_millisecs);

static ssize_t alloc_sleep_millisecs_show(struct kobject *kobj,
					  struct kobj_attribute *attr,
					  char *buf)
{
	return sysfs_emit(buf, "%ld\n",
			  READ_ONCE(collapse_of(kobj)->alloc_sleep_ms));
}

static ssize_t alloc_sleep_millisecs_store(struct kobject *kobj,
					   struct kobj_attribute *attr,
					   const char *buf, size_t count)
{
	return store_sleep(kobj, &collapse_of(kobj)->alloc_sleep_ms, buf,
			   count);
}

static struct kobj_attribute alloc_sleep_millisecs_attr =
	__ATTR_RW(alloc_sleep_millisecs);

static struct attribute *collapse_tunables[] = {
	&pages_to_scan_attr.attr,
	&scan_sleep_millisecs_attr.attr,
	&alloc_sleep_millisecs_attr.attr,
	NULL
};

const struct attribute_group node_collapse_tunables = {
	.attrs = collapse_tunables,
};

static ssize_t enabled_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	return sysfs_emit(buf, "%d\n", khugepaged_by_node());
}

static ssize_t enabled_store(struct kobject *kobj, struct kobj_attribute *attr,
			     const char *buf, size_t count)
{
	unsigned int val;
	int err = kstrtouint(buf, 0, &val);

	if (!err && val > 1)
		err = -EINVAL;
	if (!err)
		err = khugepaged_set_by_node(val);
	return err ?: count;
}

static struct kobj_attribute enabled_attr = __ATTR_RW(enabled);

static struct attribute *collapse_globals[] = {
	&enabled_attr.attr,
	NULL
};

const struct attribute_group node_collapse_globals = {
	.attrs = collapse_globals,
};
