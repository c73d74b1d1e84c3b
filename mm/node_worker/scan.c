// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers: knuma_scand/N, which arms NUMA hints.
 *
 * Owns the order of a pass over an address space: which VMAs, from where,
 * how much for one request. The policy is that of task_numa_work(); the
 * thread that executes it is not the application's, so nothing here reads
 * current->mm or anything else of the task that asked: that came with the
 * request (struct node_scan_request).
 *
 * A request is served in visits, with the slots of the worker taking turns. A
 * visit is a few short holds of mmap_lock, taken for read with a trylock, and
 * one TLB flush after the last. Between two holds the address space may change
 * at will: all that survives is an address, in the slot's cursor. Within a hold
 * the worker neither sleeps nor waits, and lets go when it has looked at enough
 * or somebody waits for the lock.
 *
 * What the walks cost, in the thread's CPU time, is taken from the worker's own
 * allowance, which grows with time and the node's CPUs, and added to the mm's
 * debit, which its threads pay off as they run. The flush is not charged: it is
 * a wait for the mm's CPUs to answer, however long these take.
 *
 * Called by the worker's thread (core.c); arm.c does the page tables.
 */
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/node_worker.h>
#include <linux/pid.h>
#include <linux/sched/clock.h>
#include <linux/sched/cputime.h>
#include <linux/sched/isolation.h>
#include <linux/sched/mm.h>
#include <linux/sched/numa_balancing.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include <trace/events/node_worker.h>
#include <trace/events/sched.h>

#include "balancing.h"

/*
 * Work in a hold of mmap_lock: a present PTE looked at counts one, an armed one
 * two, of empty ones eight: 60 to 80 instructions for each, so 100 us or two on
 * a slow machine. A limit in work and not in time, as time would count what
 * interrupts or a hypervisor took meanwhile, and another, no shorter hold for
 * the rest would be all that came of letting go early for that.
 */
#define HOLD_PTES	1024

/* What a hold's walk may be charged with; the rest of the time was not its. */
#define MAX_HOLD_NS	NSEC_PER_MSEC

/* Holds in a visit, for which there is one TLB flush. */
#define VISIT_HOLDS	8

/* Look at this much more address space than may be armed. */
#define VIRT_FACTOR	8

/* Give a request up after so many failed trylocks. */
#define MAX_MISSES	16

/* Allowance saved up while there was nothing to do. */
#define MAX_SAVED_NS	(2 * NSEC_PER_MSEC)

/* Requests turned down before hints are tried again. */
#define RETRY_REQUESTS	16

unsigned int node_scan_block_pages = 8;
unsigned int node_scan_granularity = NODE_GRAN_BLOCK;

/**
 * node_scan_accepts - may a request be posted to a worker?
 * @w: a scan worker that takes posts
 *
 * One without an allowance would visit no slot, so it must not hold any.
 *
 * Context: scheduler tick.
 */
bool node_scan_accepts(struct node_worker *w)
{
	struct node_scan *s = w->priv;

	return !READ_ONCE(w->paused) && READ_ONCE(s->permille);
}

/**
 * node_scan_slots - what a scan worker has to serve
 * @w: a scan worker that has or had a thread
 *
 * Context: any.
 * Return: its slots, which stay.
 */
struct node_slots *node_scan_slots(struct node_worker *w)
{
	return &((struct node_scan *)w->priv)->q;
}

/* What a hold came to. */
enum hold_result {
	HOLD_MORE,	/* the request goes on */
	HOLD_DONE,	/* it has armed or seen all that it may */
	HOLD_END,	/* the end of the address space was reached */
};

/**
 * node_hold_over - must the worker let go of mmap_lock?
 * @v: the visit
 *
 * Context: the worker's thread, mmap_lock held for read.
 */
bool node_hold_over(struct node_visit *v)
{
	if (!v->over)
		v->over = v->left <= 0 || mmap_lock_is_contended(v->mm);
	return v->over;
}

/* Does a fault on the VMA's pages ever migrate them? */
static bool vma_mof(struct vm_area_struct *vma, bool task_mof)
{
	struct mempolicy *pol;
	pgoff_t ilx;
	bool mof;

	pol = __get_vma_policy(vma, vma->vm_start, &ilx);
	mof = pol ? pol->flags & MPOL_F_MOF : task_mof;
	mpol_cond_put(pol);
	return mof;
}

/* NUMAB_SKIP_* if no page of the VMA may ever be armed, else -1. */
static int vma_never(struct node_visit *v, struct vm_area_struct *vma)
{
	if (!vma_migratable(vma) || !vma_mof(vma, v->slot->req.mof) ||
	    is_vm_hugetlb_page(vma) || (vma->vm_flags & VM_MIXEDMAP))
		return NUMAB_SKIP_UNSUITABLE;
	/* Most likely a library, cached wherever it is used. */
	if (vma->vm_file &&
	    (vma->vm_flags & (VM_READ | VM_WRITE)) == VM_READ)
		return NUMAB_SKIP_SHARED_RO;
	/* An armed PTE looks just like one of these. */
	if (!vma_is_accessible(vma))
		return NUMAB_SKIP_INACCESSIBLE;
	return -1;
}

/* The VMA's scan state; NULL if there is none and no memory for it now. */
static struct vma_numab_state *numab_state(struct mm_struct *mm,
					   struct vm_area_struct *vma)
{
	unsigned long delay =
		msecs_to_jiffies(READ_ONCE(sysctl_numa_balancing_scan_delay));
	struct vma_numab_state *state = READ_ONCE(vma->numab_state);

	if (state)
		return state;
	/* mmap_lock is held: without memory at hand, the next pass will do. */
	state = kzalloc(sizeof(*state), GFP_NOWAIT | __GFP_NOWARN);
	if (!state)
		return NULL;
	state->start_scan_seq = mm->numa_scan_seq;
	state->next_scan = jiffies + delay;
	state->pids_active_reset = state->next_scan + 4 * delay;
	state->prev_scan_seq = mm->numa_scan_seq - 1;
	/* Mainline's scan may still be running in a task after a switch. */
	if (cmpxchg(&vma->numab_state, NULL, state)) {
		kfree(state);
		return vma->numab_state;
	}
	return state;
}

/* Forget the accesses of the period before last. */
static void age_pids(struct vma_numab_state *state)
{
	if (!time_after(jiffies, state->pids_active_reset))
		return;
	state->pids_active_reset += 4 *
		msecs_to_jiffies(READ_ONCE(sysctl_numa_balancing_scan_delay));
	state->pids_active[0] = READ_ONCE(state->pids_active[1]);
	state->pids_active[1] = 0;
}

/* Has a task that asked touched the VMA, or is it the VMA's turn anyway? */
static bool vma_wanted(struct node_visit *v, struct vm_area_struct *vma,
		       struct vma_numab_state *state)
{
	struct node_scan_cursor *cur = &v->slot->cur;
	int seq = v->mm->numa_scan_seq;
	unsigned long pids;

	/* Twice without asking, so that each page gets a first fault. */
	if (seq - state->start_scan_seq < 2)
		return true;
	pids = READ_ONCE(state->pids_active[0]) |
	       READ_ONCE(state->pids_active[1]);
	if (pids & cur->pids)
		return true;
	/* Begun is finished, or it never would be with many threads. */
	if (cur->addr > vma->vm_start) {
		trace_sched_skip_vma_numa(v->mm, vma, NUMAB_SKIP_IGNORE_PID);
		return true;
	}
	/* Every thread had its turn to ask and none wanted it. */
	return seq > state->prev_scan_seq + v->slot->req.nr_threads;
}

/* NUMAB_SKIP_* if the VMA is to be left out of this pass, else -1. */
static int vma_not_now(struct node_visit *v, struct vm_area_struct *vma)
{
	struct vma_numab_state *state = numab_state(v->mm, vma);
	struct node_scan_cursor *cur = &v->slot->cur;
	int seq = v->mm->numa_scan_seq;

	if (!state || (seq && time_before(jiffies, state->next_scan)))
		return NUMAB_SKIP_SCAN_DELAY;
	if (seq)
		age_pids(state);
	if (state->prev_scan_seq == seq)
		return NUMAB_SKIP_SEQ_COMPLETED;
	if (!cur->forced && !vma_wanted(v, vma, state)) {
		cur->skipped = true;
		return NUMAB_SKIP_PID_INACTIVE;
	}
	return -1;
}

static bool vma_skipped(struct node_visit *v, struct vm_area_struct *vma)
{
	int why = vma_never(v, vma);

	if (why < 0)
		why = vma_not_now(v, vma);
	if (why < 0)
		return false;
	trace_sched_skip_vma_numa(v->mm, vma, why);
	return true;
}

/* Arm a stretch of the VMA and charge it to the request. */
static void scan_stretch(struct node_visit *v, struct vm_area_struct *vma)
{
	struct node_scan_cursor *cur = &v->slot->cur;
	unsigned long start = cur->addr, armed = v->armed;
	unsigned long end = start + (cur->pages << PAGE_SHIFT);
	long seen;

	end = min(ALIGN(end, PMD_SIZE), vma->vm_end);
	cur->addr = node_arm_range(v, vma, start, end);
	seen = (cur->addr - start) >> PAGE_SHIFT;
	cur->virt -= seen;
	/* Empty and already armed stretches are cheap: they count less. */
	if (v->armed != armed)
		cur->pages -= seen;
}

static bool request_used_up(const struct node_scan_cursor *cur)
{
	return cur->pages <= 0 || cur->virt <= 0;
}

/*
 * Each VMA once for each time that the counts are folded: if it has not been
 * gone through since then, nor since it is there.
 */
static void count_residency(struct node_visit *v, struct vm_area_struct *vma)
{
	struct vma_numab_state *state = vma->numab_state;
	bool fresh = state->prev_scan_seq - v->slot->folded < 0 ||
		     state->prev_scan_seq - state->start_scan_seq < 0;

	if (fresh != v->fresh)
		node_arm_flush_run(v);
	v->fresh = fresh;
}

/*
 * Arm what is left of a VMA. The hold's end is looked at after each piece of
 * work, not before it, so that every hold gets somewhere.
 */
static enum hold_result scan_vma(struct node_visit *v,
				 struct vm_area_struct *vma)
{
	struct node_scan_cursor *cur = &v->slot->cur;

	count_residency(v, vma);
	cur->addr = max(cur->addr, vma->vm_start);
	for (;;) {
		scan_stretch(v, vma);
		if (cur->addr >= vma->vm_end)
			break;
		if (request_used_up(cur))
			return HOLD_DONE;
		if (node_hold_over(v))
			return HOLD_MORE;
	}
	vma->numab_state->prev_scan_seq = v->mm->numa_scan_seq;
	/* If nobody wanted it, one VMA a request is enough. */
	return cur->forced || request_used_up(cur) ? HOLD_DONE : HOLD_END;
}

static enum hold_result scan_vmas(struct node_visit *v)
{
	struct node_scan_cursor *cur = &v->slot->cur;
	enum hold_result result = HOLD_END;
	struct vm_area_struct *vma;
	struct vma_iterator vmi;

	vma_iter_init(&vmi, v->mm, cur->addr);
	for_each_vma(vmi, vma) {
		if (!vma_skipped(v, vma))
			result = scan_vma(v, vma);
		if (result != HOLD_END)
			return result;
		cur->addr = vma->vm_end;
		if (node_hold_over(v))
			return HOLD_MORE;
	}
	return HOLD_END;
}

/* Counted before tlb_finish_mmu() forgets whether it has to flush. */
static void count_flush(struct node_scan *s, struct node_visit *v)
{
	if (!v->armed)
		return;
	s->flushes++;
	s->flush_cpus += cpumask_weight(mm_cpumask(v->mm));
}

static void begin_visit(struct node_visit *v, struct node_worker_mm *slot)
{
	*v = (struct node_visit) {
		.mm		= node_slot_mm(slot),
		.slot		= slot,
		.gran		= node_granularity(slot),
		.local_nid	= slot->req.single ? slot->req.node :
						     NUMA_NO_NODE,
		.run_nid	= NUMA_NO_NODE,
	};
	tlb_gather_mmu(&v->tlb, v->mm);
}

/*
 * The one flush of a visit, with mmap_lock free: nobody who wants that should
 * have to wait for CPUs to answer. It is safe there, as from tlb_gather_mmu()
 * until now tlb_flush_pending of the mm has told everybody else who changes a
 * PTE, under its lock, that an armed one may still be in a TLB. For the
 * gather no more than the mm_struct has to stay.
 */
static void end_visit(struct node_scan *s, struct node_visit *v)
{
	count_flush(s, v);
	tlb_finish_mmu(&v->tlb);
}

static enum hold_result hold_and_scan(struct node_scan *s,
				      struct node_visit *v)
{
	u64 start = local_clock(), used = task_sched_runtime(current);
	unsigned long armed = v->armed;
	enum hold_result result;

	mmap_assert_locked(v->mm);
	v->left = HOLD_PTES;
	v->over = false;
	result = scan_vmas(v);
	node_arm_flush_run(v);
	used = task_sched_runtime(current) - used;
	s->cost += min_t(u64, used, MAX_HOLD_NS);
	s->holds++;
	start = local_clock() - start;
	s->longest_hold = max(s->longest_hold, start);
	trace_node_worker_scan(v->mm, v->slot->cur.addr, v->armed - armed,
			       start);
	return result;
}

/* Is a thread of the mm bound to find a hint on an isolated CPU? */
static bool has_isolated_thread(struct mm_struct *mm, pid_t tgid)
{
	struct task_struct *p, *t;
	bool found = false;

	guard(rcu)();
	p = find_task_by_pid_ns(tgid, &init_pid_ns);
	if (!p)
		return false;
	for_each_thread(p, t) {
		if (READ_ONCE(t->mm) == mm && cpu_is_isolated(task_cpu(t))) {
			found = true;
			break;
		}
	}
	return found;
}

static void set_granularity(struct node_worker_mm *slot, u8 gran)
{
	trace_node_worker_fallback(node_slot_mm(slot), slot->granularity, gran);
	slot->moved = 0;
	slot->retry = RETRY_REQUESTS;
	WRITE_ONCE(slot->granularity, gran);
}

/* Looked up at the start of each pass: reasons not to make it. */
static bool pass_skipped(struct node_worker_mm *slot)
{
	struct mm_struct *mm = node_slot_mm(slot);

	if (test_bit(NWM_OPTOUT, &slot->flags))
		return node_slot_skip(slot, NODE_SKIP_OPTOUT);
	if (node_granularity(slot) == NODE_GRAN_NONE) {
		if (!--slot->retry)
			set_granularity(slot, NODE_GRAN_BLOCK);
		return node_slot_skip(slot, NODE_SKIP_FALLBACK);
	}
	if (!mm->numa_scan_offset && has_isolated_thread(mm, slot->req.tgid))
		return node_slot_skip(slot, NODE_SKIP_ISOLATED);
	return false;
}

static void end_pass(struct node_worker_mm *slot)
{
	struct mm_struct *mm = node_slot_mm(slot);

	/* Read by the tasks, which place themselves once a pass. */
	WRITE_ONCE(mm->numa_scan_seq, mm->numa_scan_seq + 1);
	mm->numa_scan_offset = 0;
	node_slot_end_pass(slot);
}

static void begin_request(struct node_worker_mm *slot)
{
	unsigned long mb = READ_ONCE(sysctl_numa_balancing_scan_size);
	struct node_scan_cursor *cur = &slot->cur;

	cur->pages = mb << (20 - PAGE_SHIFT);
	cur->virt = cur->pages * VIRT_FACTOR;
	cur->start = node_slot_mm(slot)->numa_scan_offset;
	cur->addr = cur->start;
	cur->pids = xchg(&slot->pids, 0);
	cur->begun = true;
	node_slot_need_residency(slot);
}

/* True if the request goes on, in another hold. */
static bool request_continues(struct node_worker_mm *slot,
			      enum hold_result result)
{
	struct mm_struct *mm = node_slot_mm(slot);
	struct node_scan_cursor *cur = &slot->cur;

	if (result == HOLD_MORE)
		return true;
	if (result == HOLD_DONE) {
		mm->numa_scan_offset = cur->addr;
		return false;
	}
	if (cur->skipped && !cur->forced) {
		cur->forced = true;
		cur->addr = cur->start;
		return true;
	}
	end_pass(slot);
	return false;
}

/* One hold, if it can be had. True if the request goes on. */
static bool hold_once(struct node_scan *s, struct node_visit *v)
{
	enum hold_result result = HOLD_MORE;
	struct node_worker_mm *slot = v->slot;
	bool exited;

	if (!mmap_read_trylock(v->mm)) {
		s->missed++;
		return ++slot->cur.misses < MAX_MISSES ||
		       !node_slot_skip(slot, NODE_SKIP_LOCKED);
	}
	slot->cur.misses = 0;
	/* See node_worker_exit(). */
	exited = !atomic_read(&v->mm->mm_users);
	if (!exited)
		result = hold_and_scan(s, v);
	mmap_read_unlock(v->mm);
	if (exited)
		return !node_slot_skip(slot, NODE_SKIP_EXITING);
	return request_continues(slot, result);
}

/*
 * A slot's turn: a few holds, and a flush. A CPU that is wanted is given up, if
 * not in the midst of a hold. True if the request goes on.
 */
static bool visit(struct node_scan *s, struct node_worker_mm *slot)
{
	struct node_visit v;
	int holds = 0;
	bool more;

	if (!slot->cur.begun) {
		if (pass_skipped(slot))
			return false;
		begin_request(slot);
		if (slot->cur.pages <= 0)
			return false;
	}
	begin_visit(&v, slot);
	do
		more = hold_once(s, &v);
	while (more && !slot->cur.misses && ++holds < VISIT_HOLDS &&
	       !need_resched());
	end_visit(s, &v);
	return more;
}

static unsigned int allowance_permille(struct node_worker *w,
				       struct node_scan *s)
{
	unsigned int cpus = cpumask_weight(cpumask_of_node(w->nid));

	return READ_ONCE(s->permille) * max(cpus, 1U);
}

/* Jiffies until the worker may work again; 0: now. */
static long allowance_left(struct node_worker *w, struct node_scan *s)
{
	u64 now = local_clock(), permille = allowance_permille(w, s);
	u64 grown = div_u64((now - s->allowed_at) * permille, 1000);

	s->allowed_at = now;
	s->allowance = min_t(s64, s->allowance + grown, MAX_SAVED_NS);
	if (s->allowance >= 0)
		return 0;
	if (!permille)
		return HZ;
	return nsecs_to_jiffies(div64_u64(-s->allowance * 1000, permille)) + 1;
}

/* The worker's run(): a visit to the slot whose turn it is. */
static long scan_run(struct node_worker *w)
{
	struct node_scan *s = w->priv;
	struct node_worker_mm *slot;
	bool more;
	long rest;

	rest = allowance_left(w, s);
	if (rest) {
		node_slots_sweep(&s->q);
		return rest;
	}
	slot = node_slots_next(&s->q);
	if (!slot)
		return 0;
	s->cost = 0;
	more = visit(s, slot);
	s->allowance -= s->cost;
	/* In ns of scanning; the tick takes off its share of run time. */
	atomic64_add(s->cost, &slot->debit);
	rest = more && slot->cur.misses ? 1 : 0;
	if (more)
		node_slot_rotate(&s->q, slot);
	else
		node_slot_release(&s->q, slot);
	return rest;
}

/**
 * node_scan_adapt - choose how a slot's hints are to be armed
 * @slot: a slot whose pass is complete
 * @pages: pages it has
 *
 * Pages that are moved again and again gain nothing: fall back from block
 * to page, whose faults tell sharers apart, then to no hints for a while.
 *
 * Context: the owner's thread.
 */
void node_scan_adapt(struct node_worker_mm *slot, unsigned long pages)
{
	u8 gran = node_granularity(slot);

	/* Half as many moves again as pages, over two or three passes. */
	if (gran < NODE_GRAN_NONE && slot->moved > pages + pages / 2)
		set_granularity(slot, gran + 1);
}

static int scan_start(struct node_worker *w)
{
	struct node_scan *s = w->priv;

	if (!s) {
		s = kzalloc_node(sizeof(*s), GFP_KERNEL, w->nid);
		if (!s)
			return -ENOMEM;
		node_slots_init(&s->q);
		s->permille = 30;
		w->priv = s;
	}
	s->allowed_at = local_clock();
	return 0;
}

static bool scan_has_work(struct node_worker *w)
{
	return !node_slots_empty(node_scan_slots(w));
}

static void scan_drain(struct node_worker *w)
{
	node_slots_drain(node_scan_slots(w));
}

static unsigned long scan_backlog(struct node_worker *w, unsigned long *since)
{
	return w->priv ? node_slots_backlog(node_scan_slots(w), since) : 0;
}

static const struct node_worker_ops scan_ops = {
	.name		= "scan",
	.thread		= "knuma_scand/%d",
	.start		= scan_start,
	.has_work	= scan_has_work,
	.run		= scan_run,
	.drain		= scan_drain,
	.backlog	= scan_backlog,
	.stat		= node_scan_stat,
	.tunables	= &node_scan_tunables,
	.globals	= &node_scan_globals,
};

/**
 * node_scan_register - make scanning a function of the workers
 *
 * Context: boot, once.
 * Return: 0 or a negative errno.
 */
int __init node_scan_register(void)
{
	return node_worker_register(NODE_WORKER_SCAN, &scan_ops);
}
