/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Per-node memory workers: what the rest of the kernel calls.
 *
 * Each hook in an existing file is a call of something declared here; with
 * the part configured out it is an empty inline and leaves no trace in the
 * object. With the part configured in but not enabled it costs the test of
 * a static key.
 */
#ifndef _LINUX_NODE_WORKER_H
#define _LINUX_NODE_WORKER_H

#include <linux/jump_label.h>
#include <linux/sched/sysctl.h>
#include <linux/types.h>

struct folio;
struct mm_struct;
struct task_struct;
struct vm_fault;

#ifdef CONFIG_NODE_WORKERS
void node_worker_cpus_changed(void);
#else
static inline void node_worker_cpus_changed(void) { }
#endif

#if defined(CONFIG_NODE_WORKERS) && defined(CONFIG_TRANSPARENT_HUGEPAGE)
void node_worker_folio_split(int nid, int nr_pages);
void node_worker_pmd_split(int nid);
void node_worker_split_to_arm(int nid);
void node_worker_split_to_move(int nid, int nr_pages, int reason);
#else
static inline void node_worker_folio_split(int nid, int nr_pages) { }
static inline void node_worker_pmd_split(int nid) { }
static inline void node_worker_split_to_arm(int nid) { }

static inline void node_worker_split_to_move(int nid, int nr_pages, int reason)
{
}
#endif

#ifdef CONFIG_NODE_WORKERS_BALANCING
/* Bit of kernel.numa_balancing: node workers execute the policy. */
#define NUMA_BALANCING_WORKERS	0x4

DECLARE_STATIC_KEY_FALSE(node_worker_balancing);

/* Mainline's, in debugfs under sched/numa_balancing/; READ_ONCE(). */
extern unsigned int sysctl_numa_balancing_scan_delay;
extern unsigned int sysctl_numa_balancing_scan_size;

/* /proc/PID/numa_balancing, in fs/proc/node_worker.c. */
extern const struct file_operations proc_pid_numa_balancing_operations;

/* The largest value kernel.numa_balancing takes, for its sysctl table. */
extern const int node_worker_mode_max;
#define NODE_WORKER_MODE_MAX	((void *)&node_worker_mode_max)

int node_worker_mode_begin(int mode);
void node_worker_mode_end(void);
bool node_worker_boot_param(const char *str);

void node_worker_mm_init(struct mm_struct *mm);
void node_worker_mm_free(struct mm_struct *mm);
void node_worker_exit(struct mm_struct *mm);
void node_worker_policy_changed(struct mm_struct *mm, bool shared);

bool __node_worker_tick(struct task_struct *p, int cpu, u64 period);
bool __node_worker_fault(struct vm_fault *vmf, struct folio *folio, int target,
			 int *nid, int *nr_pages, int *flags);

/**
 * node_worker_enabled - does bit 4 of kernel.numa_balancing say workers?
 *
 * Context: any. A reader inside an RCU read-side section (interrupts off
 * will do) is waited for when the bit is cleared.
 */
static inline bool node_worker_enabled(void)
{
	return static_branch_unlikely(&node_worker_balancing);
}

/* See __node_worker_tick(). False: mainline goes on with the tick. */
static inline bool node_worker_tick(struct task_struct *p, int cpu, u64 period)
{
	return node_worker_enabled() && __node_worker_tick(p, cpu, period);
}

/* See __node_worker_fault(). False: mainline goes on with the fault. */
static inline bool node_worker_fault(struct vm_fault *vmf, struct folio *folio,
				     int target, int *nid, int *nr_pages,
				     int *flags)
{
	return node_worker_enabled() &&
	       __node_worker_fault(vmf, folio, target, nid, nr_pages, flags);
}
#else
#define NODE_WORKER_MODE_MAX	SYSCTL_FOUR
static inline int node_worker_mode_begin(int mode) { return 0; }
static inline void node_worker_mode_end(void) { }
static inline bool node_worker_boot_param(const char *str) { return false; }
static inline void node_worker_mm_init(struct mm_struct *mm) { }
static inline void node_worker_mm_free(struct mm_struct *mm) { }
static inline void node_worker_exit(struct mm_struct *mm) { }
static inline void node_worker_policy_changed(struct mm_struct *mm, bool shared)
{
}

static inline bool node_worker_tick(struct task_struct *p, int cpu, u64 period)
{
	return false;
}

static inline bool node_worker_fault(struct vm_fault *vmf, struct folio *folio,
				     int target, int *nid, int *nr_pages,
				     int *flags)
{
	return false;
}
#endif /* CONFIG_NODE_WORKERS_BALANCING */

/* For a huge PMD, whose fault speaks for its @nr_pages and no more. */
static inline bool node_worker_huge_fault(struct vm_fault *vmf,
					  struct folio *folio, int target,
					  int *nid, int nr_pages, int *flags)
{
	return node_worker_fault(vmf, folio, target, nid, &nr_pages, flags);
}

#endif /* _LINUX_NODE_WORKER_H */
