// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers: the sysfs files of the migrate function.
 *
 * Tunables are plain words, written here and read with READ_ONCE() by the
 * worker and the hinting fault.
 */
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/vmstat.h>

#include "balancing.h"

static const enum node_stat_item stat_item[] = {
	NODE_WORKER_POSTED, NODE_WORKER_DROPPED, NODE_WORKER_MIGRATED,
	NODE_WORKER_STALE, NODE_WORKER_FAILED,
};

/**
 * node_migrate_stat - print a migration worker's own statistics
 * @w: the worker
 * @s: where to
 *
 * Context: process.
 */
void node_migrate_stat(struct node_worker *w, struct seq_buf *s)
{
	const size_t prefix = strlen("node_worker_");
	int i;

	for (i = 0; i < ARRAY_SIZE(stat_item); i++)
		seq_buf_printf(s, "%s %lu\n",
			       node_stat_name(stat_item[i]) + prefix,
			       node_page_state_pages(NODE_DATA(w->nid),
						     stat_item[i]));
}

static ssize_t batch_show(struct kobject *kobj, struct kobj_attribute *attr,
			  char *buf)
{
	struct node_migrate *m = node_worker_of(kobj)->priv;

	return sysfs_emit(buf, "%u\n", READ_ONCE(m->batch));
}

static ssize_t batch_store(struct kobject *kobj, struct kobj_attribute *attr,
			   const char *buf, size_t count)
{
	struct node_migrate *m = node_worker_of(kobj)->priv;

	return node_worker_store_uint(&m->batch, 1, NODE_BATCH_MAX, buf, count);
}

static struct kobj_attribute batch_attr = __ATTR_RW(batch);

static ssize_t rate_limit_mbps_show(struct kobject *kobj,
				    struct kobj_attribute *attr, char *buf)
{
	struct node_migrate *m = node_worker_of(kobj)->priv;

	return sysfs_emit(buf, "%u\n", READ_ONCE(m->rate_mb));
}

static ssize_t rate_limit_mbps_store(struct kobject *kobj,
				     struct kobj_attribute *attr,
				     const char *buf, size_t count)
{
	struct node_migrate *m = node_worker_of(kobj)->priv;

	return node_worker_store_uint(&m->rate_mb, 0, UINT_MAX, buf, count);
}

static struct kobj_attribute rate_limit_mbps_attr = __ATTR_RW(rate_limit_mbps);

static struct attribute *migrate_tunables[] = {
	&batch_attr.attr,
	&rate_limit_mbps_attr.attr,
	NULL
};

const struct attribute_group node_migrate_tunables = {
	.attrs = migrate_tunables,
};
