/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What node workers keep in each mm_struct.
 *
 * Embedded in struct mm_struct, reset by node_worker_mm_init() (dup_mm() copies
 * the parent's byte by byte) and released by node_worker_mm_free(). Nothing
 * here is allocated before the first scan of the address space.
 */
#ifndef _LINUX_NODE_WORKER_TYPES_H
#define _LINUX_NODE_WORKER_TYPES_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/types.h>

/* Bits of node_worker_mm.flags; changed with atomic bitops only. */
enum node_worker_mm_flag {
	NWM_PENDING,	/* a request is posted or being served */
	NWM_OPTOUT,	/* /proc/PID/numa_balancing says 0; kept by fork, exec */
};

enum node_granularity {
	NODE_GRAN_BLOCK,	/* one armed PTE stands for its block */
	NODE_GRAN_PAGE,		/* every PTE is armed, as in mainline */
	NODE_GRAN_NONE,		/* pages ping-pong: arm nothing for a while */
};

/**
 * struct node_scan_request - what the asking task knew at its tick
 * @tgid: the asker's thread group in the initial namespace; its threads are
 *	looked at once a pass, for ones on isolated CPUs
 * @nr_threads: threads of that group
 * @node: node of the CPU the asker ran on
 * @since: jiffies at that tick
 * @single: the asker was the mm's only user
 * @mof: the asker's task policy allows migration on fault
 */
struct node_scan_request {
	pid_t		tgid;
	int		nr_threads;
	int		node;
	bool		single;
	bool		mof;
	unsigned long	since;
};

/**
 * struct node_scan_cursor - how far the request being served has come
 * @start: mm->numa_scan_offset when the request began
 * @addr: the next address to look at
 * @pages: pages still to be armed for this request
 * @virt: pages of address space still to be looked at for this request
 * @pids: the askers' pid hash bits, taken from node_worker_mm.pids
 * @misses: times in a row that mmap_lock was not to be had
 * @begun: the fields above are valid
 * @skipped: a VMA was left out only because no asker had touched it
 * @forced: nothing else was left: such VMAs are scanned, one a request
 */
struct node_scan_cursor {
	unsigned long	start;
	unsigned long	addr;
	long		pages;
	long		virt;
	unsigned long	pids;
	u8		misses;
	bool		begun;
	bool		skipped;
	bool		forced;
};

/**
 * struct node_worker_mm - an address space as the workers see it: an mm slot
 * @flags: NWM_*
 * @post: on the home's queue, from the tick's llist_add() until taken
 * @link: on the home's list of slots being served
 * @pids: union of the askers' pid hash bits; set_bit(), taken with xchg()
 * @debit: scan time, in ns, that the mm's threads have not yet paid for
 * @posted: pages posted for migration since the counts were last folded
 * @moved: decayed sum of @posted
 * @resident: two arrays by node, pages seen since then and their decayed mean;
 *	NULL until a worker could allocate them
 * @folded: mm->numa_scan_seq when the counts were last folded
 * @req: the request; the poster's until llist_add(), then the owner's
 * @cur: the owner's cursor
 * @home: the node whose worker owns the slot
 * @homed: @home has been decided
 * @retry: passes left until NODE_GRAN_NONE is given another try
 * @granularity: enum node_granularity; written by the owner, READ_ONCE() in
 *	the hinting fault
 *
 * The setter of NWM_PENDING owns @req until it posts the slot. The thread
 * that takes the slot off the queue, the owner, then has @link, @req, @cur,
 * @resident, @moved, @folded, @home and @retry to itself until it clears
 * NWM_PENDING.
 */
struct node_worker_mm {
#ifdef CONFIG_NODE_WORKERS_BALANCING
	unsigned long			flags;
	struct llist_node		post;
	struct list_head		link;
	unsigned long			pids;
	atomic64_t			debit;
	atomic_long_t			posted;
	unsigned long			moved;
	unsigned long			*resident;
	int				folded;
	struct node_scan_request	req;
	struct node_scan_cursor		cur;
	int				home;
	bool				homed;
	u8				retry;
	u8				granularity;
#endif
};

#endif /* _LINUX_NODE_WORKER_TYPES_H */
