// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers: the ring of misplaced pages on their way to a node.
 *
 * Bounded, many posters (hinting faults, under a page-table lock), one taker
 * (the node's kmigrated). No lock: a poster claims places by advancing
 * @head, then fills them; the taker stops at a place that is claimed but not
 * yet filled, so an interrupted poster delays those behind it and no more.
 * An entry is one word, so it is never seen half written; 0 is an empty
 * place. A full ring refuses: the pages will fault again.
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

static unsigned int low_bits(u64 *word, unsigned int bits)
{
	unsigned int low = *word & (BIT(bits) - 1);

	*word >>= bits;
	return low;
}

/* The reverse of node_post_pack(). */
static void unpack(u64 word, struct node_post *p)
{
	p->pfn = word & (BIT(NODE_POST_PFN_BITS) - 1);
	word >>= NODE_POST_PFN_BITS;
	p->order = low_bits(&word, NODE_POST_ORDER_BITS);
	p->stamp = low_bits(&word, NODE_POST_STAMP_BITS);
	p->mm_hash = low_bits(&word, NODE_POST_HASH_BITS);
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
 * node_ring_post - add entries
 * @r: the ring
 * @words: the entries, of node_post_pack()
 * @nr: how many
 *
 * Context: any.
 * Return: false if there is not room for all; then none is added.
 */
bool node_ring_post(struct node_ring *r, const u64 *words, unsigned int nr)
{
	unsigned long tail, head = READ_ONCE(r->head);
	unsigned int i;

	do {
		/* Pairs with the release in node_ring_take(): it is empty. */
		tail = smp_load_acquire(&r->tail);
		if (head + nr - tail > r->size)
			return false;
		/* Before it can be seen; too young, if another is first. */
		if (head == tail)
			WRITE_ONCE(r->since, jiffies);
	} while (!try_cmpxchg(&r->head, &head, head + nr));
	for (i = 0; i < nr; i++)
		WRITE_ONCE(r->slot[(head + i) & (r->size - 1)], words[i]);
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
	if (r->tail == r->mark) {
		/* All that came after this one came after the last mark. */
		r->mark = READ_ONCE(r->head);
		WRITE_ONCE(r->since, jiffies);
	}
	/* Pairs with the acquire in node_ring_post(). */
	smp_store_release(&r->tail, r->tail + 1);
	unpack(word, p);
	return true;
}

/**
 * node_ring_backlog - entries in the ring, and since when
 * @r: the ring
 * @since: jiffies; the oldest entry, if there is one, is that old at least
 *
 * Context: any; a snapshot.
 */
unsigned long node_ring_backlog(const struct node_ring *r, unsigned long *since)
{
	unsigned long used = node_ring_used(r);

	/* Pairs with the cmpxchg of @head in node_ring_post(). */
	smp_rmb();
	*since = READ_ONCE(r->since);
	return used;
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
