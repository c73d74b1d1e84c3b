/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * NUMA balancing by node workers: what mode.c, slot.c, scan.c, arm.c,
 * fault.c, ring.c and migrate.c share.
 */
#ifndef _MM_NODE_WORKER_BALANCING_H
#define _MM_NODE_WORKER_BALANCING_H

#include <linux/hash.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mm.h>
#include <linux/node_worker.h>
#include <linux/spinlock.h>

#include <asm/tlb.h>

#include "../internal.h"
#include "internal.h"

/* Why an address space was not scanned; the order of skip_name[]. */
enum node_skip_reason {
	NODE_SKIP_ONE_NODE,	/* cpuset leaves one memory node */
	NODE_SKIP_OPTOUT,	/* /proc/PID/numa_balancing */
	NODE_SKIP_ISOLATED,	/* a thread on an isolated CPU */
	NODE_SKIP_EXITING,	/* its last user has gone */
	NODE_SKIP_DEBT,		/* has not paid for its last scans */
	NODE_SKIP_LOCKED,	/* mmap_lock was never free */
	NODE_SKIP_FALLBACK,	/* its pages ping-pong */
	NR_NODE_SKIP_REASONS,
};

/* slot.c */
/**
 * struct node_slots - the slots whose request one node's worker serves
 * @posts: requests from ticks, any CPU, not yet taken
 * @lock: taken by the thread to change @slots or take @posts, and by who counts
 *	them for sysfs, who changes nothing. No tick takes it
 * @slots: requests that have been taken
 * @nr_slots: how many; READ_ONCE()
 */
struct node_slots {
	struct llist_head	posts;
	spinlock_t		lock;		/* @slots, @nr_slots */
	struct list_head	slots;
	unsigned int		nr_slots;
};

void node_slots_init(struct node_slots *q);
bool node_slots_empty(struct node_slots *q);
struct node_worker_mm *node_slots_next(struct node_slots *q);
void node_slot_rotate(struct node_slots *q, struct node_worker_mm *slot);
void node_slot_release(struct node_slots *q, struct node_worker_mm *slot);
void node_slots_drain(struct node_slots *q);
void node_slots_sweep(struct node_slots *q);
unsigned long node_slots_backlog(struct node_slots *q, unsigned long *since);
void node_slot_need_residency(struct node_worker_mm *slot);
void node_slot_saw(struct node_worker_mm *slot, int nid, unsigned long nr);
void node_slot_end_pass(struct node_worker_mm *slot);
bool node_slot_skip(struct node_worker_mm *slot, enum node_skip_reason reason);
unsigned long node_skip_sum(int nid, enum node_skip_reason reason);

/**
 * node_slot_mm - the mm that a slot is part of
 * @slot: the slot
 *
 * Context: any; the slot holds the mm_struct while it is queued.
 */
static inline struct mm_struct *node_slot_mm(struct node_worker_mm *slot)
{
	return container_of(slot, struct mm_struct, node_worker);
}

/* scan.c */
void node_scan_adapt(struct node_worker_mm *slot, unsigned long pages);
#define NODE_BLOCK_MAX	32

/* Set through sysfs; READ_ONCE(). The first is a power of two. */
extern unsigned int node_scan_block_pages;
extern unsigned int node_scan_granularity;

/**
 * node_granularity - how the hints of an mm are armed now
 * @slot: the slot
 *
 * Context: any.
 * Return: enum node_granularity: no finer than the mm's own or the sysfs file's.
 */
static inline u8 node_granularity(const struct node_worker_mm *slot)
{
	return max_t(u8, READ_ONCE(slot->granularity),
		     READ_ONCE(node_scan_granularity));
}

/**
 * struct node_scan - one node's scan worker
 * @q: its slots
 * @permille: of a CPU's time for each CPU of the node; READ_ONCE()
 * @allowance: ns of CPU time that may be used now
 * @allowed_at: ns; when @allowance was last added to
 * @cost: ns of CPU time that the walks of the last visit took
 * @holds: holds of an mmap_lock
 * @missed: times that one was not to be had
 * @flushes: TLB flushes at the end of a visit
 * @flush_cpus: CPUs that they had to interrupt
 * @longest_hold: ns
 *
 * All but @q and @permille are the thread's; sysfs reads them racily.
 */
struct node_scan {
	struct node_slots	q;
	unsigned int		permille;
	s64			allowance;
	u64			allowed_at;
	u64			cost;
	unsigned long		holds;
	unsigned long		missed;
	unsigned long		flushes;
	unsigned long		flush_cpus;
	u64			longest_hold;
};

struct node_slots *node_scan_slots(struct node_worker *w);
bool node_scan_accepts(struct node_worker *w);
int node_scan_register(void);
void node_scan_stat(struct node_worker *w, struct seq_buf *out);
extern const struct attribute_group node_scan_tunables;
extern const struct attribute_group node_scan_globals;

/**
 * struct node_visit - a scan worker's visit to an mm: some holds of mmap_lock
 * @mm: the address space, whose exit waits for a hold
 * @slot: its slot
 * @tlb: one for the visit: one flush at its end
 * @left: work that the hold may still do, in PTEs
 * @over: it is time to let go of mmap_lock
 * @gran: granularity in force for the visit
 * @local_nid: node of the mm's only thread, NUMA_NO_NODE if it has several
 * @fresh: the VMA's pages are to be counted as resident, see node_slot_end_pass()
 * @run_nid: node of the pages counted in @run_scanned and @run_armed
 * @run_scanned: pages looked at and not yet added to the counters
 * @run_armed: PTEs, or pages of PMDs, armed and not yet added
 * @armed: all that the visit armed
 */
struct node_visit {
	struct mm_struct	*mm;
	struct node_worker_mm	*slot;
	struct mmu_gather	tlb;
	int			left;
	bool			over;
	u8			gran;
	int			local_nid;
	bool			fresh;
	int			run_nid;
	unsigned long		run_scanned;
	unsigned long		run_armed;
	unsigned long		armed;
};

bool node_hold_over(struct node_visit *v);

/* arm.c */
/**
 * node_pte_folio - the folio of a PTE, as vm_normal_folio() has it
 * @vma: the VMA
 * @addr: the PTE's address
 * @pte: a present PTE
 *
 * Inline, since it is most of what a PTE costs: where PTEs tell whether they
 * are special, those that are not have a page.
 *
 * Context: page-table lock held.
 * Return: NULL if it is special or bad.
 */
static inline struct folio *node_pte_folio(struct vm_area_struct *vma,
					   unsigned long addr, pte_t pte)
{
	if (!IS_ENABLED(CONFIG_ARCH_HAS_PTE_SPECIAL) || pte_special(pte) ||
	    unlikely(pte_pfn(pte) > highest_memmap_pfn))
		return vm_normal_folio(vma, addr, pte);
	return pfn_folio(pte_pfn(pte));
}

/**
 * node_folio_not_ours - is a folio no single task's to move?
 * @vma: a VMA that maps it
 * @folio: the folio
 *
 * Shared copy-on-write since a fork, or held by I/O. For a small folio, and
 * nearly all are, both are told by a word each.
 *
 * Context: page-table lock held.
 */
static inline bool node_folio_not_ours(struct vm_area_struct *vma,
				       struct folio *folio)
{
	if (!is_cow_mapping(vma->vm_flags))
		return false;
	if (folio_test_large(folio))
		return folio_maybe_dma_pinned(folio) ||
		       folio_likely_mapped_shared(folio);
	return atomic_read(&folio->_mapcount) > 0 ||
	       (unsigned int)folio_ref_count(folio) >= GUP_PIN_COUNTING_BIAS;
}

unsigned long node_arm_range(struct node_visit *v, struct vm_area_struct *vma,
			     unsigned long start, unsigned long end);
void node_arm_flush_run(struct node_visit *v);

/* ring.c */
/**
 * struct node_ring - misplaced pages on their way to one destination
 * @slot: entries; 0 is an empty place
 * @size: how many, a power of two
 * @head: places handed out to posters
 * @tail: places emptied by the thread
 * @mark: the @head of a while ago, at @since; the thread's
 * @since: jiffies; the oldest entry is no younger. Of whoever posts to an empty
 *	ring or takes the entry before @mark; READ_ONCE()
 */
struct node_ring {
	u64		*slot;
	unsigned long	size;
	unsigned long	head ____cacheline_aligned_in_smp;
	unsigned long	tail ____cacheline_aligned_in_smp;
	unsigned long	mark;
	unsigned long	since;
};

/**
 * struct node_post - a posted folio, unpacked
 * @pfn: its first page
 * @order: its order
 * @stamp: low bits of the mm's count of changes of policy, in slow memory mixed
 *	with the folio's last cpupid, which is a time there
 * @mm_hash: whose fault it was: node_mm_hash()
 */
struct node_post {
	unsigned long	pfn;
	unsigned int	order;
	unsigned int	stamp;
	unsigned int	mm_hash;
};

#define NODE_POST_PFN_BITS	40
#define NODE_POST_ORDER_BITS	5
#define NODE_POST_STAMP_BITS	10
#define NODE_POST_HASH_BITS	8
#define NODE_POST_STAMP_MASK	(BIT(NODE_POST_STAMP_BITS) - 1)

/**
 * node_post_base - what all posts of a fault have in common
 * @stamp: node_migrate_stamp() of the folios
 * @mm_hash: node_mm_hash() of the mm
 *
 * A post in a ring is one word, never 0. From the lowest bit: pfn, order, stamp,
 * mm_hash, a one.
 *
 * Context: any.
 * Return: a word for node_post_pack().
 */
static inline u64 node_post_base(unsigned int stamp, unsigned int mm_hash)
{
	u64 word = 1;

	word = word << NODE_POST_HASH_BITS | mm_hash;
	word = word << NODE_POST_STAMP_BITS | (stamp & NODE_POST_STAMP_MASK);
	return word << (NODE_POST_ORDER_BITS + NODE_POST_PFN_BITS);
}

/**
 * node_post_pack - a post as it is in a ring
 * @base: node_post_base() of the fault
 * @folio: the folio
 * @order: its order
 *
 * Context: page-table lock held.
 * Return: the word.
 */
static inline u64 node_post_pack(u64 base, struct folio *folio,
				 unsigned int order)
{
	return base | (u64)order << NODE_POST_PFN_BITS | folio_pfn(folio);
}

int node_ring_init(struct node_ring *r, int nid, unsigned long pages);
bool node_ring_post(struct node_ring *r, const u64 *words, unsigned int nr);
bool node_ring_take(struct node_ring *r, struct node_post *p);
unsigned long node_ring_used(const struct node_ring *r);
unsigned long node_ring_backlog(const struct node_ring *r, unsigned long *since);

/* migrate.c */
#define NODE_BATCH_MAX	32

/**
 * node_mm_hash - tell an mm apart from others, most of the time
 * @mm: the mm
 *
 * Context: any.
 * Return: a number of NODE_POST_HASH_BITS bits.
 */
static inline unsigned int node_mm_hash(struct mm_struct *mm)
{
	return hash_ptr(mm, NODE_POST_HASH_BITS);
}

/**
 * struct node_moving - a folio of the batch
 * @folio: the folio; only compared with once it has been migrated
 * @memcg: its memcg, with a reference
 * @nid: the node it comes from
 * @nr: its pages
 * @mm_hash: whose fault posted it
 * @failed: it was still there after the migration
 */
struct node_moving {
	struct folio		*folio;
	struct mem_cgroup	*memcg;
	int			nid;
	unsigned int		nr;
	unsigned int		mm_hash;
	bool			failed;
};

/**
 * struct node_migrate - one node's migration worker
 * @ring: pages to move here
 * @batch: base pages to move at a time; READ_ONCE()
 * @rate_mb: MB/s to accept, 0 for all; READ_ONCE()
 * @window: jiffies at which the rate limit's window began; cmpxchg()
 * @window_pages: pages accepted in it
 * @held: a huge page's post that did not fit into a batch; the thread's
 * @holds: there is one
 * @moving: the batch; the thread's
 * @nr_moving: folios in it
 * @folios: them, isolated
 */
struct node_migrate {
	struct node_ring	ring;
	unsigned int		batch;
	unsigned int		rate_mb;
	unsigned long		window;
	atomic_long_t		window_pages;
	struct node_post	held;
	bool			holds;
	struct node_moving	moving[NODE_BATCH_MAX];
	unsigned int		nr_moving;
	struct list_head	folios;
};

bool node_migrate_has_room(int nid, unsigned int nr);
bool node_migrate_accepts(struct node_worker *w, unsigned int nr);
bool node_migrate_post(struct node_worker *w, const u64 *words,
		       unsigned int nr, unsigned int pages);
unsigned int node_migrate_late_failures(unsigned int mm_hash);
unsigned int node_migrate_stamp(struct folio *folio, unsigned int mm_hash);
int node_migrate_register(void);
void node_migrate_stat(struct node_worker *w, struct seq_buf *s);
extern const struct attribute_group node_migrate_tunables;

#endif /* _MM_NODE_WORKER_BALANCING_H */
