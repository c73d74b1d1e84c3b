// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers: the ring of misplaced pages on their way to a node.
 *
 * Bounded, many posters (hinting faults, under a page-table lock), one taker
 * (the node's kmigrated). No lock: a poster claims a place by advancing
 * @head, then fills it; the taker stops at a place that is claimed but not
 * yet filled, so an interrupted poster delays those behind it and no more.
 * An entry is one word, so it is never seen half written; 0 is an empty
 * place. A full ring refuses: the page will fault again.
 *
 * Ordering: the taker empties a place before it gives it back with a release
 * of @tail, which a poster reads with acquire before it may claim the place
 * again.
 */
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "balancing.h"

/*
 * A pass may find a quarter of a node's worth of pages misplaced before the
 * taker gets to run. What is refused faults again, but only in the next pass,
 * and refusals slow down the scans.
 */
#define RING_MIN	4096UL
#define RING_MAX	131072UL

#define POST_VALID		BIT_ULL(63)
#define POST_HASH_SHIFT		55
#define POST_STAMP_SHIFT	45
#define POST_ORDER_SHIFT	40
#define POST_PFN_MASK		GENMASK_ULL(POST_ORDER_SHIFT - 1, 0)

static u64 pack(const struct node_post *p)
{
	return POST_VALID | (u64)(p->mm_hash & 0xff) << POST_HASH_SHIFT |
	       (u64)(p->stamp & 0x3ff) << POST_STAMP_SHIFT |
	       (u64)(p->order & 0x1f) << POST_ORDER_SHIFT |
	       (p->pfn & POST_PFN_MASK);
}

static void unpack(u64 word, struct node_post *p)
{
	p->mm_hash = word >> POST_HASH_SHIFT & 0xff;
	p->stamp = word >> POST_STAMP_SHIFT & 0x3ff;
	p->order = word >> POST_ORDER_SHIFT & 0x1f;
	p->pfn = word & POST_PFN_MASK;
}

/**
 * node_ring_init - give a ring its memory
 * @r: the ring, zeroed
 * @nid: the node whose worker will take from it
 * @pages: pages the node has
 *
 * Context: process; sleeps.
 * Return: 0 or -ENOMEM.
 */
int node_ring_init(struct node_ring *r, int nid, unsigned long pages)
{
	r->size = rounddown_pow_of_two(clamp(pages / 4, RING_MIN, RING_MAX));
	r->slot = kvcalloc_node(r->size, sizeof(*r->slot), GFP_KERNEL, nid);
	return r->slot ? 0 : -ENOMEM;
}

/**
 * node_ring_post - add an entry
 * @r: the ring
 * @p: the entry
 *
 * Context: any.
 * Return: false if the ring is full.
 */
bool node_ring_post(struct node_ring *r, const struct node_post *p)
{
	unsigned long head = READ_ONCE(r->head);

	do {
		/* Pairs with the release in node_ring_take(): it is empty. */
		if (head - smp_load_acquire(&r->tail) >= r->size)
			return false;
	} while (!try_cmpxchg(&r->head, &head, head + 1));
	WRITE_ONCE(r->slot[head & (r->size - 1)], pack(p));
	return true;
}

/**
 * node_ring_take - take the oldest entry
 * @r: the ring
 * @p: filled in
 *
 * Context: the one taker: the worker's thread, or who has stopped it.
 * Return: false if there is none, or it is not yet complete.
 */
bool node_ring_take(struct node_ring *r, struct node_post *p)
{
	u64 *place = &r->slot[r->tail & (r->size - 1)];
	u64 word = READ_ONCE(*place);

	if (!word)
		return false;
	WRITE_ONCE(*place, 0);
	/* Pairs with the acquire in node_ring_post(). */
	smp_store_release(&r->tail, r->tail + 1);
	unpack(word, p);
	return true;
}

/**
 * node_ring_used - entries in the ring, those still being filled in included
 * @r: the ring
 *
 * Context: any; a snapshot.
 */
unsigned long node_ring_used(const struct node_ring *r)
{
	unsigned long tail = READ_ONCE(r->tail);

	/* In this order, or takers in between would make it negative. */
	smp_rmb();
	return READ_ONCE(r->head) - tail;
}
