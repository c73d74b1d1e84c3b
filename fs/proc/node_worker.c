// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/PID/numa_balancing: may node workers scan and move this memory?
 *
 * 1, or 0 if the address space is opted out. The bit is in the mm_struct, is
 * inherited over fork and exec (slot.c), and is looked at by the tick, the
 * scan worker and the hinting fault; see Documentation/admin-guide/mm/
 * node_workers.rst.
 *
 * An open file holds a reference to the mm_struct it was opened for, not to
 * its memory.
 */
#include <linux/fs.h>
#include <linux/mm_types.h>
#include <linux/ptrace.h>
#include <linux/sched/mm.h>
#include <linux/uaccess.h>

#include "internal.h"

static int numa_balancing_open(struct inode *inode, struct file *file)
{
	struct mm_struct *mm = proc_mem_open(inode, PTRACE_MODE_READ);

	if (IS_ERR_OR_NULL(mm))
		return mm ? PTR_ERR(mm) : -ESRCH;
	/* proc_mem_open()'s reference; put at release. */
	file->private_data = mm;
	return 0;
}

static ssize_t numa_balancing_read(struct file *file, char __user *buf,
				   size_t count, loff_t *ppos)
{
	struct mm_struct *mm = file->private_data;
	const char *text = test_bit(NWM_OPTOUT, &mm->node_worker.flags) ?
			   "0\n" : "1\n";

	return simple_read_from_buffer(buf, count, ppos, text, 2);
}

static ssize_t numa_balancing_write(struct file *file, const char __user *buf,
				    size_t count, loff_t *ppos)
{
	struct mm_struct *mm = file->private_data;
	unsigned int val;
	int err = kstrtouint_from_user(buf, count, 0, &val);

	if (err)
		return err;
	if (val > 1)
		return -EINVAL;
	if (val)
		clear_bit(NWM_OPTOUT, &mm->node_worker.flags);
	else
		set_bit(NWM_OPTOUT, &mm->node_worker.flags);
	return count;
}

static int numa_balancing_release(struct inode *inode, struct file *file)
{
	/* Taken at open. */
	mmdrop(file->private_data);
	return 0;
}

const struct file_operations proc_pid_numa_balancing_operations = {
	.open		= numa_balancing_open,
	.read		= numa_balancing_read,
	.write		= numa_balancing_write,
	.llseek		= generic_file_llseek,
	.release	= numa_balancing_release,
};
