// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers: the hinting fault.
 *
 * Runs in the faulting task under the page-table lock, after mainline has
 * accounted the fault and decided, with the two-stage filter, whether the
 * page is misplaced. Where mainline would now isolate and copy the page, it
 * is posted to the destination's kmigrated; the caller then makes the PTE
 * present again and the task goes on. Nothing is allocated, isolated or
 * flushed here, and nobody is woken: the worker looks at the next tick.
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
#include <linux/hash.h>
#include <linux/ksm.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/node_worker.h>
#include <linux/sched.h>
#include <linux/sched/numa_balancing.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include <trace/events/node_worker.h>

#include "../internal.h"
#include "balancing.h"

/**
 * struct node_fault - one hinting fault
 * @vmf: the fault
 * @folio: the folio it was for
 * @nid: the node that is on
 * @to: the destination's worker, NULL to leave the pages where they are
 * @mm_hash: tells the mm apart from others, most of the time
 * @cpupid: who faults, and where
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

/* The worker that would take the folio to node @target, or NULL. */
static struct node_worker *destination(struct node_fault *f, int target)
{
	struct node_worker *w = node_worker_get(NODE_WORKER_MIGRATE, target);
	unsigned int nr = folio_nr_pages(f->folio);

	if (test_bit(NWM_OPTOUT, &f->vmf->vma->vm_mm->node_worker.flags))
		return NULL;
	if (!node_isset(target, cpuset_current_mems_allowed) ||
	    !vma_lets_move(f->vmf->vma, f->folio))
		return NULL;
	if (!node_migrate_accepts(w, nr)) {
		wake_demotion(target, folio_order(f->folio));
		return NULL;
	}
	return w;
}

static void add_post(struct node_fault *f, struct folio *folio)
{
	f->words[f->nr_words++] = node_post_pack(folio, f->mm_hash);
	f->posted += folio_nr_pages(folio);
}

/* A neighbour in the block, for which the fault speaks as well. */
static void fault_neighbour(struct node_fault *f, struct folio *folio)
{
	/* Only what would be armed itself. */
	if (folio_nid(folio) != f->nid || folio_test_ksm(folio) ||
	    folio_is_zone_device(folio) ||
	    node_folio_not_ours(f->vmf->vma, folio))
		return;
	f->pages += folio_nr_pages(folio);
	folio_xchg_last_cpupid(folio, f->cpupid);
	if (f->to && vma_lets_move(f->vmf->vma, folio))
		add_post(f, folio);
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
		folio = vm_normal_folio(vma, addr, val);
		if (!folio || folio == f->folio || folio == last)
			continue;
		last = folio;
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
	f->mm_hash = hash_ptr(vmf->vma->vm_mm, NODE_POST_HASH_BITS);
	f->cpupid = cpu_pid_to_cpupid(raw_smp_processor_id(), current->pid);
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
 * worker. Does not sleep, wake or allocate.
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
	if (f.to)
		add_post(&f, folio);
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
