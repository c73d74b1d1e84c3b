/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Node workers: what the files of the collapse function share.
 */
#ifndef _MM_NODE_WORKER_COLLAPSE_H
#define _MM_NODE_WORKER_COLLAPSE_H

#include <linux/spinlock.h>

#include "internal.h"
#include "khugepaged.h"

/* Ranges that wait for a worker: as much as it scans in 16 default rounds. */
#define NODE_INBOX_SIZE		128

/**
 * struct node_inbox - ranges that other nodes' workers hand to a node's
 * @lock: protects all of it; taken with khugepaged_mm_lock or mmap_lock held
 * @first: the oldest entry
 * @used: entries from there on
 * @in_hand: the address space of the entry that the worker is at, or NULL
 * @addr_in_hand: the range that it is at, if it is at one
 * @full: ranges that found no room
 * @stale: ranges that were no longer to be collapsed here
 * @entry: each pins its mm by mm_count
 */
struct node_inbox {
	spinlock_t		lock;	/* all of it */
	unsigned int		first;
	unsigned int		used;
	struct mm_struct	*in_hand;
	unsigned long		addr_in_hand;
	unsigned long		full;
	unsigned long		stale;
	struct node_inbox_entry {
		struct mm_struct	*mm;
		unsigned long		addr;
		unsigned long		since;
	} entry[NODE_INBOX_SIZE];
};

/* The machine's setting goes for the node. */
#define NODE_COLLAPSE_UNSET	-1

/**
 * struct node_collapse - a collapse worker's own state
 * @cc: its node's list, cursor and collapse_control in mm/khugepaged.c
 * @left: pages left of this round; the thread's
 * @heads: passes begun in this round; the thread's
 * @drains: drains of the CPUs' batches, when it last began a pass; the thread's
 * @failed: a huge page was not to be had in this round, or just now; the thread's
 * @serve: it is the inbox's turn; the thread's
 * @rest_until: no scan before these jiffies, if @resting; the thread's
 * @resting: the round is over; the thread's
 * @starved: resting for want of a huge page: takes no hand-offs. Written by the
 *	thread, READ_ONCE()
 * @woken: end the rest; set by anybody, taken by the thread with xchg()
 * @pages_to_scan: the administrator's, for this node; or NODE_COLLAPSE_UNSET
 * @scan_sleep_ms: likewise
 * @alloc_sleep_ms: likewise
 * @inbox: what others hand to it
 */
struct node_collapse {
	struct collapse_control	*cc;
	unsigned int		left;
	unsigned int		heads;
	int			drains;
	bool			failed;
	bool			serve;
	bool			resting;
	bool			starved;
	int			woken;
	unsigned long		rest_until;
	long			pages_to_scan;
	long			scan_sleep_ms;
	long			alloc_sleep_ms;
	struct node_inbox	inbox;
};

/* inbox.c */
void node_inbox_init(struct node_inbox *box);
bool node_inbox_empty(struct node_inbox *box);
bool node_inbox_take(struct node_inbox *box, struct mm_struct **mm,
		     unsigned long *addr);
void node_inbox_done(struct node_inbox *box);
void node_inbox_flush(struct node_inbox *box);
unsigned long node_inbox_backlog(struct node_inbox *box, unsigned long *since);

/* collapse_sysfs.c */
void node_collapse_stat(struct node_worker *w, struct seq_buf *s);
extern const struct attribute_group node_collapse_tunables;
extern const struct attribute_group node_collapse_globals;

#endif /* _MM_NODE_WORKER_COLLAPSE_H */
