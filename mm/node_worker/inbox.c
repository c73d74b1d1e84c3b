// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers: ranges that one collapse worker hands to another.
 *
 * A worker that finds a range whose pages are mostly another node's puts it into
 * that node's inbox and goes on. An entry pins its mm by mm_count, never by
 * mm_users: an exiting process frees its memory at its exit. Two things make that
 * safe. node_collapse_exit(), which runs once mm_users is 0 and before the page
 * tables go, takes the mm out of every inbox; and if a worker has an entry of it in
 * hand, waits for the mmap_lock that the worker held when it last found
 * mm_users not to be 0.
 *
 * Each inbox has a lock, under which nothing else is taken. handoffs_out counts
 * what is in any of them or in hand. It is raised before mm_users is looked at, and
 * looked at after mm_users has become 0, each with a full barrier between: so
 * either the exit sees the entry or the poster sees the exit.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>

#include <trace/events/node_worker.h>

#include "collapse.h"

static atomic_t handoffs_out = ATOMIC_INIT(0);

static struct node_inbox *inbox_of(int nid)
{
	struct node_worker *w = node_worker_get(NODE_WORKER_COLLAPSE, nid);
	/* Set before the worker first took posts, and for ever. */
	struct node_collapse *c = READ_ONCE(w->priv);

	return c ? &c->inbox : NULL;
}

static struct node_inbox_entry *entry_at(struct node_inbox *box, unsigned int i)
{
	return &box->entry[(box->first + i) % NODE_INBOX_SIZE];
}

/* @nr entries are done with. Not under khugepaged_mm_lock. */
static void handoffs_end(unsigned int nr)
{
	if (nr && atomic_sub_and_test(nr, &handoffs_out))
		khugepaged_handoffs_done();
}

/**
 * node_inbox_init - an empty inbox
 * @box: the inbox
 *
 * Context: any.
 */
void node_inbox_init(struct node_inbox *box)
{
	spin_lock_init(&box->lock);
}

/**
 * node_inbox_empty - is there nothing to take?
 * @box: the inbox
 *
 * Context: any, no locks.
 */
bool node_inbox_empty(struct node_inbox *box)
{
	return !READ_ONCE(box->used);
}

static bool is_there(struct node_inbox *box, struct mm_struct *mm,
		     unsigned long addr)
{
	unsigned int i;

	for (i = 0; i < box->used; i++)
		if (entry_at(box, i)->mm == mm && entry_at(box, i)->addr == addr)
			return true;
	return box->in_hand == mm && box->addr_in_hand == addr;
}

static enum node_handoff put(struct node_inbox *box, struct mm_struct *mm,
			     unsigned long addr)
{
	enum node_handoff ret = NODE_HANDOFF_POSTED;
	struct node_inbox_entry *e;

	spin_lock(&box->lock);
	if (!atomic_read(&mm->mm_users)) {
		ret = NODE_HANDOFF_REFUSED;
	} else if (is_there(box, mm, addr)) {
		/* From an earlier pass. */
		ret = NODE_HANDOFF_REFUSED;
	} else if (box->used == NODE_INBOX_SIZE) {
		WRITE_ONCE(box->full, box->full + 1);
		ret = NODE_HANDOFF_FULL;
	} else {
		e = entry_at(box, box->used);
		/* Dropped in node_inbox_done(), _flush() or purge(). */
		mmgrab(mm);
		e->mm = mm;
		e->addr = addr;
		e->since = jiffies;
		WRITE_ONCE(box->used, box->used + 1);
	}
	spin_unlock(&box->lock);
	return ret;
}

/**
 * node_collapse_offer - hand a range to the worker of another node
 * @nid: the node
 * @mm: the address space, pinned by the caller
 * @addr: the range
 *
 * Context: process, in a collapse worker; mmap_lock may be held.
 */
enum node_handoff node_collapse_offer(int nid, struct mm_struct *mm,
				      unsigned long addr)
{
	struct node_worker *w = node_worker_get(NODE_WORKER_COLLAPSE, nid);
	enum node_handoff ret = NODE_HANDOFF_REFUSED;
	struct node_collapse *c;

	atomic_inc(&handoffs_out);
	/* See the head of the file. */
	smp_mb__after_atomic();
	rcu_read_lock();
	if (!node_worker_live(w)) {
		/* No thread there, as while it is being started: do it here. */
		ret = NODE_HANDOFF_FULL;
	} else {
		c = w->priv;
		if (!READ_ONCE(w->paused) && !READ_ONCE(c->starved))
			ret = put(&c->inbox, mm, addr);
	}
	rcu_read_unlock();
	trace_node_worker_handoff(mm, addr, nid, ret);
	if (ret == NODE_HANDOFF_POSTED)
		wake_up(&w->wait);
	else
		handoffs_end(1);
	return ret;
}

/**
 * node_inbox_take - take the oldest range in hand
 * @box: the inbox
 * @mm: set to its address space, pinned until node_inbox_done()
 * @addr: set to the range
 *
 * Context: process, in the inbox's worker.
 * Return: false if there is none.
 */
bool node_inbox_take(struct node_inbox *box, struct mm_struct **mm,
		     unsigned long *addr)
{
	struct node_inbox_entry *e = NULL;

	spin_lock(&box->lock);
	if (box->used) {
		e = entry_at(box, 0);
		*mm = e->mm;
		*addr = e->addr;
		box->in_hand = e->mm;
		box->addr_in_hand = e->addr;
		box->first = (box->first + 1) % NODE_INBOX_SIZE;
		WRITE_ONCE(box->used, box->used - 1);
	}
	spin_unlock(&box->lock);
	/*
	 * An exit that came too early to see in_hand has purged the entry before
	 * it was taken; one that sees it waits for our mmap_lock, under which
	 * mm_users is looked at next.
	 */
	return e;
}

/**
 * node_inbox_done - let go of the range in hand
 * @box: the inbox
 *
 * Context: process, in the inbox's worker; mmap_lock not held.
 */
void node_inbox_done(struct node_inbox *box)
{
	struct mm_struct *mm;

	spin_lock(&box->lock);
	mm = box->in_hand;
	box->in_hand = NULL;
	spin_unlock(&box->lock);
	/* Grabbed in put(). */
	mmdrop(mm);
	handoffs_end(1);
}

/**
 * node_inbox_flush - throw away all that waits
 * @box: the inbox
 *
 * The ranges are found again in the next pass of their own worker.
 *
 * Context: process, in the inbox's worker or once there is none.
 */
void node_inbox_flush(struct node_inbox *box)
{
	struct mm_struct *mm;
	unsigned long addr;

	while (node_inbox_take(box, &mm, &addr))
		node_inbox_done(box);
}

/**
 * node_inbox_backlog - how many wait, and since when
 * @box: the inbox
 * @since: set to the jiffies at which the oldest came, if any waits
 *
 * Context: process.
 */
unsigned long node_inbox_backlog(struct node_inbox *box, unsigned long *since)
{
	unsigned long used;

	spin_lock(&box->lock);
	used = box->used;
	if (used)
		*since = entry_at(box, 0)->since;
	spin_unlock(&box->lock);
	return used;
}

/**
 * node_collapse_stale - a range handed over was not to be collapsed there
 * @nid: the node
 *
 * Context: process, in the node's worker.
 */
void node_collapse_stale(int nid)
{
	struct node_inbox *box = inbox_of(nid);

	WRITE_ONCE(box->stale, box->stale + 1);
}

/**
 * node_collapse_handoffs_out - is anything handed over and not done?
 *
 * Context: any.
 */
bool node_collapse_handoffs_out(void)
{
	return atomic_read(&handoffs_out);
}

/* Take an mm out of an inbox; returns how often it was there. */
static unsigned int purge(struct node_inbox *box, struct mm_struct *mm,
			  bool *in_hand)
{
	unsigned int i, kept = 0, gone;

	spin_lock(&box->lock);
	for (i = 0; i < box->used; i++) {
		if (entry_at(box, i)->mm != mm)
			*entry_at(box, kept++) = *entry_at(box, i);
		else
			/* Grabbed in put(); the exiting caller has another. */
			mmdrop(mm);
	}
	gone = box->used - kept;
	WRITE_ONCE(box->used, kept);
	if (box->in_hand == mm)
		*in_hand = true;
	spin_unlock(&box->lock);
	return gone;
}

/**
 * node_collapse_exit - an address space is about to lose its page tables
 * @mm: the address space, whose mm_users has become 0
 *
 * Context: process; sleeps.
 */
void node_collapse_exit(struct mm_struct *mm)
{
	struct node_inbox *box;
	unsigned int gone = 0;
	bool in_hand = false;
	int nid;

	/* Ordered by the atomic that made mm_users 0; see the file's head. */
	if (!atomic_read(&handoffs_out))
		return;
	for_each_node_state(nid, N_POSSIBLE) {
		box = inbox_of(nid);
		if (box)
			gone += purge(box, mm, &in_hand);
	}
	handoffs_end(gone);
	if (in_hand) {
		/* The worker holds it for read, or will find mm_users 0. */
		mmap_write_lock(mm);
		mmap_write_unlock(mm);
	}
}
