// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers: mm slots, and who owns them.
 *
 * A slot is what the workers keep in an mm_struct. Its life, for scanning:
 *
 *	idle --tick: set NWM_PENDING, fill in the request, llist_add()-->
 *	posted --owner: llist_del_all()--> being served --owner: clear-->  idle
 *
 * NWM_PENDING is the slot's lock: whoever sets it owns the request, and by
 * posting hands it to the home's worker, which owns the whole slot until it
 * clears the bit. So there is one request a slot at a time, and no lock that
 * a tick could wait for. Ticks that find the bit set only add their task's pid
 * bit. Whoever reads a worker's stat looks at queue and list under a lock, which
 * the thread takes when it changes them, and changes nothing.
 *
 * A posted slot pins the mm_struct (mm_count), never its memory (mm_users):
 * an exit would otherwise be over for those who wait for it before the
 * memory is free. The owner looks at mm_users with mmap_lock held for read;
 * the exit, once mm_users is 0, waits in node_worker_exit() for a hold that
 * may have begun before. So a hold has an address space, and an exited mm
 * leaves the lists at the owner's next visit.
 *
 * A slot's home is the node whose worker owns it: at first the memory node
 * nearest to the CPU that asked first, then, decided at the end of a pass,
 * the node that has most of its pages.
 *
 * Called by the scheduler's tick, by fork and by scan.c.
 */
#include <linux/hash.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/node_worker.h>
#include <linux/sched.h>
#include <linux/sched/isolation.h>
#include <linux/sched/mm.h>
#include <linux/sched/numa_balancing.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include <trace/events/node_worker.h>

#include "balancing.h"

/* Scanning may cost an mm's threads one part in this of their CPU time. */
#define SCAN_SHARE	32

/* Passes that are taken together at most before the home is thought over. */
#define MAX_FOLD_PASSES	8

/* A new home must have this part more of the pages than the old one. */
#define HOME_HYSTERESIS	4

/*
 * Skips of address spaces, by the CPU that found the reason. Added to with
 * this_cpu_inc(); summed for a node by node_skip_sum(), who may be late.
 */
static DEFINE_PER_CPU(unsigned long [NR_NODE_SKIP_REASONS], skips);

/**
 * node_slot_skip - count and trace a reason not to scan
 * @slot: the slot
 * @reason: why its mm is not scanned
 *
 * Context: any.
 * Return: true.
 */
bool node_slot_skip(struct node_worker_mm *slot, enum node_skip_reason reason)
{
	this_cpu_inc(skips[reason]);
	trace_node_worker_skip(node_slot_mm(slot), reason);
	return true;
}

/**
 * node_skip_sum - skips counted by the CPUs of a node
 * @nid: the node
 * @reason: those for this reason
 *
 * Context: any.
 * Return: how many; the last ones may be missing.
 */
unsigned long node_skip_sum(int nid, enum node_skip_reason reason)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		if (cpu_to_node(cpu) == nid)
			sum += per_cpu(skips[reason], cpu);
	return sum;
}

/**
 * node_worker_mm_init - a new mm_struct, perhaps a byte copy of another
 * @mm: the mm; @current is the task that forks or execs
 *
 * An opt-out is inherited. The child of a fork also starts at its parent's
 * home, as its pages do; after an exec all is zero.
 *
 * Context: process.
 */
void node_worker_mm_init(struct mm_struct *mm)
{
	struct node_worker_mm *slot = &mm->node_worker;
	bool homed = slot->homed;
	int home = slot->home;

	memset(slot, 0, sizeof(*slot));
	INIT_LIST_HEAD(&slot->link);
	slot->homed = homed;
	slot->home = home;
	if (current->mm && test_bit(NWM_OPTOUT, &current->mm->node_worker.flags))
		__set_bit(NWM_OPTOUT, &slot->flags);
}

/**
 * node_worker_mm_free - the last reference to an mm_struct is gone
 * @mm: the mm
 *
 * Context: any that may free memory.
 */
void node_worker_mm_free(struct mm_struct *mm)
{
	kfree(mm->node_worker.resident);
}

/**
 * node_worker_exit - the last user of an mm has gone
 * @mm: the mm, before its address space is taken apart
 *
 * Waits for a scan worker's hold of mmap_lock, if there is a request: later
 * holds see that mm_users is 0. No request can be posted any more, as only
 * a task of the mm does that.
 *
 * Context: process; sleeps.
 */
void node_worker_exit(struct mm_struct *mm)
{
	/* Pairs with clear_bit_unlock(): the owner has let go of the mm. */
	if (!test_bit_acquire(NWM_PENDING, &mm->node_worker.flags))
		return;
	mmap_write_lock(mm);
	mmap_write_unlock(mm);
}

/*
 * The task has used @period ns of CPU time since it was last here; it pays
 * its share of the mm's scans. True if the mm is out of debt.
 */
static bool pay(struct node_worker_mm *slot, u64 period)
{
	s64 debit = atomic64_read(&slot->debit);

	if (likely(debit <= 0))
		return true;
	/* With a period of less than a tick, we are called at each tick. */
	period = max_t(u64, period, TICK_NSEC);
	return atomic64_sub_return(min_t(s64, debit, period / SCAN_SHARE),
				   &slot->debit) <= 0;
}

/*
 * Is it time for the next part of the mm's pass? One of the threads that ask
 * in the same period wins; it is then put back a little so that another
 * will win the next time.
 */
static bool scan_due(struct task_struct *p, struct mm_struct *mm)
{
	unsigned long next = READ_ONCE(mm->numa_next_scan);

	if (!next) {
		next = jiffies +
		       msecs_to_jiffies(sysctl_numa_balancing_scan_delay);
		WRITE_ONCE(mm->numa_next_scan, next);
		return false;
	}
	if (time_before(jiffies, next) ||
	    !try_cmpxchg(&mm->numa_next_scan, &next,
			 jiffies + msecs_to_jiffies(p->numa_scan_period)))
		return false;
	p->node_stamp += 2 * TICK_NSEC;
	return true;
}

/* What can be told without a look at the address space. */
static bool tick_skips(struct node_worker_mm *slot)
{
	if (test_bit(NWM_OPTOUT, &slot->flags))
		return node_slot_skip(slot, NODE_SKIP_OPTOUT);
	if (nodes_weight(cpuset_current_mems_allowed) == 1)
		return node_slot_skip(slot, NODE_SKIP_ONE_NODE);
	return false;
}

/*
 * @p is current and the tick has interrupted it: nothing of its own that is
 * read here can change meanwhile.
 */
static void fill_request(struct task_struct *p, struct node_scan_request *req)
{
	req->tgid = p->tgid;
	req->nr_threads = get_nr_threads(p);
	req->node = numa_node_id();
	/* The workers never hold a user reference. */
	req->single = atomic_read(&p->mm->mm_users) == 1;
	req->mof = get_task_policy(p)->flags & MPOL_F_MOF;
	req->since = jiffies;
}

static void post(struct task_struct *p, struct mm_struct *mm)
{
	struct node_worker_mm *slot = &mm->node_worker;
	struct node_worker *w;

	set_bit(hash_32(p->pid, ilog2(BITS_PER_LONG)), &slot->pids);
	if (test_bit(NWM_PENDING, &slot->flags) ||
	    test_and_set_bit_lock(NWM_PENDING, &slot->flags))
		return;
	if (!slot->homed) {
		slot->home = numa_nearest_node(numa_node_id(), N_MEMORY);
		slot->homed = true;
	}
	w = node_worker_nearest(NODE_WORKER_SCAN, slot->home);
	if (!w || !node_scan_accepts(w)) {
		clear_bit_unlock(NWM_PENDING, &slot->flags);
		return;
	}
	fill_request(p, &slot->req);
	/* For the queue; put by node_slot_release(). */
	mmgrab(mm);
	llist_add(&slot->post, &node_scan_slots(w)->posts);
	node_worker_kick(w);
}

/**
 * __node_worker_tick - a task has run for another scan period
 * @p: the task that the tick interrupted
 * @cpu: the CPU whose tick it is
 * @period: CPU time, in ns, since the last call for this task
 *
 * Asks the mm's home worker for a part of a pass if one is due. The tick of
 * a nohz_full CPU may run elsewhere, where @p may be in the middle of an
 * exec: that one does not ask, and neither does an isolated CPU, whose owner
 * wants no hint on it.
 *
 * Context: scheduler tick, interrupts off, runqueue lock held.
 * Return: true: there is nothing left for mainline to do.
 */
bool __node_worker_tick(struct task_struct *p, int cpu, u64 period)
{
	struct mm_struct *mm = p->mm;

	if (cpu != smp_processor_id() || cpu_is_isolated(cpu))
		return true;
	if (!pay(&mm->node_worker, period)) {
		node_slot_skip(&mm->node_worker, NODE_SKIP_DEBT);
		return true;
	}
	if (scan_due(p, mm) && !tick_skips(&mm->node_worker))
		post(p, mm);
	return true;
}

/**
 * node_slots_init - have no slots yet
 * @q: the worker's slots
 *
 * Context: before the worker has a thread.
 */
void node_slots_init(struct node_slots *q)
{
	init_llist_head(&q->posts);
	spin_lock_init(&q->lock);
	INIT_LIST_HEAD(&q->slots);
}

/**
 * node_slots_empty - is nothing queued?
 * @q: the worker's slots
 *
 * Context: any; exact only for the owner and if nobody posts.
 * Return: true if there is neither a post nor a slot.
 */
bool node_slots_empty(struct node_slots *q)
{
	return llist_empty(&q->posts) && !READ_ONCE(q->nr_slots);
}

/* Under the lock from the first step, as node_slots_backlog() walks both. */
static void take_posts(struct node_slots *q)
{
	struct node_worker_mm *slot, *next;
	struct llist_node *list;

	if (llist_empty(&q->posts))
		return;
	guard(spinlock)(&q->lock);
	list = llist_reverse_order(llist_del_all(&q->posts));
	llist_for_each_entry_safe(slot, next, list, post) {
		list_add_tail(&slot->link, &q->slots);
		WRITE_ONCE(q->nr_slots, q->nr_slots + 1);
	}
}

/**
 * node_slots_next - the slot whose turn it is
 * @q: the worker's slots
 *
 * Context: the worker's thread.
 * Return: NULL if no slot has a request.
 */
struct node_worker_mm *node_slots_next(struct node_slots *q)
{
	take_posts(q);
	return list_first_entry_or_null(&q->slots, struct node_worker_mm, link);
}

/**
 * node_slot_rotate - let the other slots have their turn
 * @q: the worker's slots
 * @slot: one of them, which goes to the end
 *
 * Context: the worker's thread.
 */
void node_slot_rotate(struct node_slots *q, struct node_worker_mm *slot)
{
	guard(spinlock)(&q->lock);
	list_move_tail(&slot->link, &q->slots);
}

/**
 * node_slot_release - a slot's request has been served, or never will be
 * @q: the worker's slots
 * @slot: one of them; the mm may be gone on return
 *
 * Context: the worker's thread; may sleep.
 */
void node_slot_release(struct node_slots *q, struct node_worker_mm *slot)
{
	scoped_guard(spinlock, &q->lock) {
		list_del_init(&slot->link);
		WRITE_ONCE(q->nr_slots, q->nr_slots - 1);
	}
	memset(&slot->cur, 0, sizeof(slot->cur));
	/* Hands the slot back: the next tick may fill in the request. */
	clear_bit_unlock(NWM_PENDING, &slot->flags);
	/* Taken by post(). */
	mmdrop(node_slot_mm(slot));
}

/**
 * node_slots_sweep - release the slots whose mm has exited
 * @q: the worker's slots
 *
 * For a worker that may not scan now and so visits nobody.
 *
 * Context: the worker's thread; may sleep.
 */
void node_slots_sweep(struct node_slots *q)
{
	struct node_worker_mm *slot, *next;

	take_posts(q);
	list_for_each_entry_safe(slot, next, &q->slots, link)
		if (!atomic_read(&node_slot_mm(slot)->mm_users))
			node_slot_release(q, slot);
}

static unsigned long older(const struct node_worker_mm *slot,
			   unsigned long since)
{
	return time_before(slot->req.since, since) ? slot->req.since : since;
}

/**
 * node_slots_backlog - requests that have not been served to their end
 * @q: the worker's slots
 * @since: the jiffies at which the oldest was made, if there is one
 *
 * Context: process.
 * Return: how many, those included that the thread has not yet taken.
 */
unsigned long node_slots_backlog(struct node_slots *q, unsigned long *since)
{
	unsigned long nr, oldest = jiffies;
	struct node_worker_mm *slot;

	/*
	 * Ticks only put posts in front of the first, which is read once, and
	 * only the thread takes any off, under the lock. What is in either list
	 * has its mm_count, and its request stands.
	 */
	guard(spinlock)(&q->lock);
	nr = q->nr_slots;
	list_for_each_entry(slot, &q->slots, link)
		oldest = older(slot, oldest);
	llist_for_each_entry(slot, READ_ONCE(q->posts.first), post) {
		oldest = older(slot, oldest);
		nr++;
	}
	*since = oldest;
	return nr;
}

/**
 * node_slots_drain - release all slots, unserved
 * @q: the worker's slots
 *
 * Context: the worker's thread, or none left; may sleep.
 */
void node_slots_drain(struct node_slots *q)
{
	struct node_worker_mm *slot;

	while ((slot = node_slots_next(q)))
		node_slot_release(q, slot);
}

/**
 * node_slot_need_residency - have somewhere to count a slot's pages
 * @slot: the slot
 *
 * Failure is no error: the slot then keeps its home.
 *
 * Context: the owner's thread, no locks; sleeps.
 */
void node_slot_need_residency(struct node_worker_mm *slot)
{
	if (!slot->resident)
		slot->resident = kcalloc(2 * nr_node_ids, sizeof(long),
					 GFP_KERNEL | __GFP_NOWARN);
}

/**
 * node_slot_saw - pages of the slot's mm were seen on a node
 * @slot: the slot
 * @nid: the node
 * @nr: how many
 *
 * Context: the owner's thread.
 */
void node_slot_saw(struct node_worker_mm *slot, int nid, unsigned long nr)
{
	if (slot->resident)
		slot->resident[nid] += nr;
}

static unsigned long pages_seen(const struct node_worker_mm *slot)
{
	unsigned long sum = 0;
	int nid;

	for (nid = 0; nid < nr_node_ids; nid++)
		sum += slot->resident[nid];
	return sum;
}

/* Fold the counts into the means. */
static void fold_residency(struct node_worker_mm *slot)
{
	unsigned long *now = slot->resident, *mean = now + nr_node_ids;
	int nid;

	for (nid = 0; nid < nr_node_ids; nid++) {
		mean[nid] = (mean[nid] + now[nid]) / 2;
		now[nid] = 0;
	}
}

static void decide_home(struct node_worker_mm *slot)
{
	unsigned long *mean = slot->resident + nr_node_ids;
	int nid, home = slot->home, best = home;

	for_each_node_state(nid, N_MEMORY)
		if (mean[nid] > mean[best])
			best = nid;
	if (mean[best] <= mean[home] + mean[home] / HOME_HYSTERESIS)
		return;
	trace_node_worker_rehome(node_slot_mm(slot), home, best);
	slot->home = best;
}

/**
 * node_slot_end_pass - a pass over a slot's address space is complete
 * @slot: the slot
 *
 * Decides the slot's home, which the next request is posted to, and, from
 * how many of its pages were posted for migration against how many there
 * are, how its hints are to be armed. A pass may leave out most of the memory,
 * what nobody is known to use: then the next ones are taken together with it,
 * counting each VMA once, until they have seen most of it or are enough.
 *
 * Context: the owner's thread.
 */
void node_slot_end_pass(struct node_worker_mm *slot)
{
	unsigned long rss = get_mm_rss(node_slot_mm(slot));
	int passes, seq = node_slot_mm(slot)->numa_scan_seq;

	/* A fork has its parent's sequence begin again. */
	slot->folded = min(slot->folded, seq - 1);
	passes = seq - slot->folded;
	if (!slot->resident ||
	    (pages_seen(slot) < rss - rss / 4 && passes < MAX_FOLD_PASSES))
		return;
	slot->folded = seq;
	slot->moved = slot->moved / 2 +
		      atomic_long_xchg(&slot->posted, 0) / passes;
	fold_residency(slot);
	decide_home(slot);
	node_scan_adapt(slot, rss);
}
