// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers: the hinting fault.
 *
 * Runs in the faulting task under the page-table lock, after mainline has
 * accounted the fault and decided, with the two-stage filter, whether the
 * page is misplaced. Where mainline would now isolate and copy the page, it
 * is posted to the destination's kmigrated; the caller then makes the PTE
 * present again and the task goes on. Nothing is allocated, isolated or
 * flushed here, and no worker is woken: it looks at the next tick.
 *
 * With granularity block the fault speaks for the block around it: each page
 * of it on the same node is marked as used by this task, posted if the
 * faulting page is, and accounted.
 *
 * The scheduler is told that the pages are on the destination if it has
 * taken them, as they soon will be; that the migration failed if not, which
 * slows down the scans. What fails later is told to the next fault.
 */
#include <linux/cpuset.h>
#include <linux/ksm.h>
#include <linux/memory-tiers.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/node_worker.h>
#include <linux/sched.h>
#include <linux/sched/numa_balancing.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include <trace/events/node_worker.h>

#include "balancing.h"

/**
 * struct node_fault - one hinting fault
 * @vmf: the fault
 * @folio: the folio it was for
 * @nid: the node that is on
 * @to: the destination's worker, NULL to leave the pages where they are
 * @mm_hash: of the mm: node_mm_hash()
 * @cpupid: who faults, and where
 * @base: what the words have in common
 * @pages: pages the fault speaks for
 * @posted: pages among them to be posted, and then those that were
 * @nr_words: folios those make up
 * @words: them, packed
 */
struct node_fault {
	struct vm_fault		*vmf;
	struct folio		*folio;
	int			nid;
	struct node_worker	*to;
	unsigned int		mm_hash;
	int			cpupid;
	u64			base;
	unsigned int		pages;
	unsigned int		posted;
	unsigned int		nr_words;
	u64			words[NODE_BLOCK_MAX];
};

/* What only the fault knows about whether the folio may be moved. */
static inline bool vma_lets_move(struct vm_area_struct *vma, struct folio *folio)
{
	if (!folio_is_file_lru(folio))
		return true;
	/* Shared code, or what a migration that does not wait cannot move. */
	return !((vma->vm_flags & VM_EXEC) &&
		 folio_likely_mapped_shared(folio)) &&
	       !folio_test_dirty(folio);
}

/*
 * Once: NUMA balancing is in tiering mode and the fast node is full, so its
 * kswapd has to make room by demotion.
 */
static void wake_demotion(int nid, unsigned int order)
{
	pg_data_t *pgdat = NODE_DATA(nid);
	int z;

	if (!(sysctl_numa_balancing_mode & NUMA_BALANCING_MEMORY_TIERING))
		return;
	for (z = pgdat->nr_zones - 1; z >= 0; z--) {
		if (managed_zone(pgdat->node_zones + z)) {
			wakeup_kswapd(pgdat->node_zones + z, 0, order,
				      ZONE_MOVABLE);
			return;
		}
	}
}

static bool has_room(struct node_fault *f, int nid)
{
	return node_migrate_has_room(nid, folio_nr_pages(f->folio));
}

/* Are pages of the VMA bound to nodes that @nid is none of? */
static bool bound_elsewhere(struct vm_fault *vmf, int nid)
{
	struct mempolicy *pol;
	pgoff_t ilx;
	bool bound;

	pol = get_vma_policy(vmf->vma, vmf->address, 0, &ilx);
	bound = (pol->mode == MPOL_BIND || pol->mode == MPOL_PREFERRED_MANY) &&
		!node_isset(nid, pol->nodes);
	mpol_cond_put(pol);
	return bound;
}

/* May the folio wait on @nid for room where it belongs? */
static bool may_detour(struct node_fault *f, int nid)
{
	return node_isset(nid, cpuset_current_mems_allowed) &&
	       (node_is_toptier(nid) || !node_is_toptier(f->nid)) &&
	       !bound_elsewhere(f->vmf, nid) && has_room(f, nid);
}

/*
 * The node to move the folio to: @target if it has room, else the nearest to it
 * that has, is nearer than where the folio is, and is as fast. NUMA_NO_NODE: none.
 * What is in slow memory waits for @target: once in fast memory, it may have no
 * more hints that would bring it there.
 */
static int nearest_with_room(struct node_fault *f, int target)
{
	int nid, best = NUMA_NO_NODE, dist = node_distance(target, f->nid);

	if (!node_isset(target, cpuset_current_mems_allowed))
		return NUMA_NO_NODE;
	if (likely(has_room(f, target)))
		return target;
	wake_demotion(target, folio_order(f->folio));
	if (folio_use_access_time(f->folio))
		return NUMA_NO_NODE;
	for_each_node_state(nid, N_MEMORY) {
		if (node_distance(target, nid) < dist && may_detour(f, nid)) {
			dist = node_distance(target, nid);
			best = nid;
		}
	}
	return best;
}

/* The worker that would take the folio to node @target or near it, or NULL. */
static struct node_worker *destination(struct node_fault *f, int target)
{
	struct node_worker *w;
	int nid;

	if (test_bit(NWM_OPTOUT, &f->vmf->vma->vm_mm->node_worker.flags) ||
	    !vma_lets_move(f->vmf->vma, f->folio))
		return NULL;
	nid = nearest_with_room(f, target);
	if (nid == NUMA_NO_NODE)
		return NULL;
	w = node_worker_get(NODE_WORKER_MIGRATE, nid);
	return node_migrate_accepts(w, folio_nr_pages(f->folio)) ? w : NULL;
}

static inline void add_post(struct node_fault *f, struct folio *folio,
			    unsigned int order)
{
	f->words[f->nr_words++] = node_post_pack(f->base, folio, order);
	f->posted += 1U << order;
}

/* A neighbour in the block, for which the fault speaks as well. */
static inline void fault_neighbour(struct node_fault *f, struct folio *folio)
{
	unsigned int order;

	/* Only what would be armed itself. */
	if (folio_nid(folio) != f->nid || folio_test_ksm(folio) ||
	    folio_is_zone_device(folio) ||
	    node_folio_not_ours(f->vmf->vma, folio))
		return;
	order = folio_order(folio);
	f->pages += 1U << order;
	folio_xchg_last_cpupid(folio, f->cpupid);
	if (f->to && vma_lets_move(f->vmf->vma, folio))
		add_post(f, folio, order);
}

/* The rest of the faulting PTE's block: in one page table and VMA. */
static void fault_block(struct node_fault *f)
{
	unsigned long size = READ_ONCE(node_scan_block_pages) << PAGE_SHIFT;
	struct vm_area_struct *vma = f->vmf->vma;
	unsigned long here = f->vmf->address & PAGE_MASK;
	unsigned long addr = max(ALIGN_DOWN(here, size), vma->vm_start);
	unsigned long end = min(ALIGN_DOWN(here, size) + size, vma->vm_end);
	pte_t *pte = f->vmf->pte - ((here - addr) >> PAGE_SHIFT);
	struct folio *folio, *last = f->folio;

	for (; addr < end; addr += PAGE_SIZE, pte++) {
		pte_t val = ptep_get(pte);

		/* One that is armed itself will have its own fault. */
		if (!pte_present(val) || pte_protnone(val))
			continue;
		folio = node_pte_folio(vma, addr, val);
		if (!folio)
			continue;
		/* Every page of one would be told of all of it. */
		if (folio_test_large(folio)) {
			if (folio == f->folio || folio == last)
				continue;
			last = folio;
		}
		fault_neighbour(f, folio);
	}
}

static bool speaks_for_block(struct node_fault *f)
{
	struct node_worker_mm *slot = &f->vmf->vma->vm_mm->node_worker;

	return f->vmf->pte && !folio_use_access_time(f->folio) &&
	       node_granularity(slot) == NODE_GRAN_BLOCK;
}

/* The words are left as they are: there are many, and @nr_words says how many. */
static void begin_fault(struct node_fault *f, struct vm_fault *vmf,
			struct folio *folio, unsigned int pages)
{
	f->vmf = vmf;
	f->folio = folio;
	f->nid = folio_nid(folio);
	f->to = NULL;
	f->mm_hash = node_mm_hash(vmf->vma->vm_mm);
	f->cpupid = cpu_pid_to_cpupid(raw_smp_processor_id(), current->pid);
	f->base = node_post_base(node_migrate_stamp(folio, f->mm_hash),
				 f->mm_hash);
	f->pages = pages;
	f->posted = 0;
	f->nr_words = 0;
}

/* Post what the fault has gathered; false if it is refused, all of it. */
static bool post_all(struct node_fault *f, int target)
{
	struct node_worker_mm *slot = &f->vmf->vma->vm_mm->node_worker;

	if (!f->to ||
	    !node_migrate_post(f->to, f->words, f->nr_words, f->posted))
		f->posted = 0;
	if (f->posted)
		atomic_long_add(f->posted, &slot->posted);
	if (f->posted < f->pages)
		mod_node_page_state(NODE_DATA(target), NODE_WORKER_DROPPED,
				    f->pages - f->posted);
	return f->posted;
}

/**
 * __node_worker_fault - the part of a hinting fault that is not mainline's
 * @vmf: the fault; @vmf->pte is NULL if it is for a huge PMD
 * @folio: the folio
 * @target: node it should be on, NUMA_NO_NODE if it may stay
 * @nid: its node; set to @target if it is as good as there
 * @nr_pages: pages to account; those of the rest of the block are added
 * @flags: TNF_*; added to
 *
 * Context: hinting fault, under the page-table lock, which makes the caller
 * a read-side section for whoever clears the sysctl's bit or retires the
 * worker. Does not sleep or allocate.
 * Return: true: make the entry present again and account the fault.
 */
bool __node_worker_fault(struct vm_fault *vmf, struct folio *folio, int target,
			 int *nid, int *nr_pages, int *flags)
{
	struct node_fault f;
	bool misplaced = target != NUMA_NO_NODE;

	lockdep_assert_held(vmf->ptl);
	/* ksmd, say, in a user's mm: its place means nothing to the page. */
	if (!current->mm)
		return true;
	begin_fault(&f, vmf, folio, *nr_pages);
	if (misplaced)
		f.to = destination(&f, target);
	if (f.to) {
		target = f.to->nid;
		add_post(&f, folio, folio_order(folio));
	}
	if (speaks_for_block(&f))
		fault_block(&f);
	if (f.nid != numa_node_id())
		mod_node_page_state(folio_pgdat(folio), NODE_WORKER_FOREIGN,
				    f.pages);
	if (misplaced && post_all(&f, target)) {
		*nid = target;
		*flags |= TNF_MIGRATED;
	} else if (misplaced) {
		*flags |= TNF_MIGRATE_FAIL;
	}
	if (node_migrate_late_failures(f.mm_hash))
		*flags |= TNF_MIGRATE_FAIL;
	*nr_pages = f.pages;
	trace_node_worker_fault(vmf->vma->vm_mm, vmf->address,
				f.nid, target, f.pages, f.posted);
	return true;
}
