// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers: arming NUMA hints in the page tables.
 *
 * A hint is a PTE or PMD made inaccessible, so that the next touch faults
 * and tells who uses the page. What may be armed is what change_prot_numa()
 * would arm; it cannot be used itself, because it asks current for the node
 * of a single-threaded process, and because it knows no blocks.
 *
 * Granularity page arms every PTE. Granularity block arms one PTE for each
 * block of neighbouring ones whose pages sit on one node; the fault on it
 * speaks for the block (fault.c). A block with pages of several nodes is
 * armed page by page, until it has come together. Whether a huge PMD is
 * armed does not depend on the granularity, and it is never split.
 *
 * Called by scan.c with mmap_lock held for read. Takes the page-table lock.
 */
#include <linux/hash.h>
#include <linux/ksm.h>
#include <linux/memcontrol.h>
#include <linux/memory-tiers.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mmu_notifier.h>
#include <linux/node_worker.h>
#include <linux/sched/sysctl.h>
#include <linux/vmstat.h>

#include "balancing.h"

/* What a huge PMD costs, in PTEs that are present and left alone. */
#define HUGE_COST	8

/* So many empty PTEs cost as much as one of those. */
#define EMPTY_PTES	8

/* Look at the hold's end after this many PTEs; a multiple of any block. */
#define CHECK_PTES	64

/**
 * struct arm_table - the page table being armed
 * @v: the visit
 * @vma: the VMA
 * @covered: large folio that the block before ends in: a hint is out for it
 */
struct arm_table {
	struct node_visit	*v;
	struct vm_area_struct	*vma;
	struct folio		*covered;
};

/**
 * struct arm_block - a block of neighbouring PTEs, as found
 * @pte: the first
 * @addr: its address
 * @nr: how many there are
 * @fit: those that may be armed, a bit each
 * @nid: node of the fit ones' pages
 * @mixed: they are on several
 * @armed: one is armed already
 */
struct arm_block {
	pte_t		*pte;
	unsigned long	addr;
	unsigned int	nr;
	u32		fit;
	int		nid;
	bool		mixed;
	bool		armed;
};

/**
 * node_arm_flush_run - add what was seen and armed on a node to the counters
 * @v: the visit
 *
 * Context: the worker's thread.
 */
void node_arm_flush_run(struct node_visit *v)
{
	struct pglist_data *pgdat;

	if (v->run_nid == NUMA_NO_NODE)
		return;
	pgdat = NODE_DATA(v->run_nid);
	if (v->fresh)
		node_slot_saw(v->slot, v->run_nid, v->run_scanned);
	mod_node_page_state(pgdat, NODE_WORKER_SCANNED, v->run_scanned);
	if (v->run_armed) {
		mod_node_page_state(pgdat, NODE_WORKER_ARMED, v->run_armed);
		count_vm_numa_events(NUMA_PTE_UPDATES, v->run_armed);
		count_memcg_events_mm(v->mm, NUMA_PTE_UPDATES, v->run_armed);
	}
	v->run_nid = NUMA_NO_NODE;
	v->run_scanned = 0;
	v->run_armed = 0;
}

static void saw_pages(struct node_visit *v, int nid, unsigned long nr)
{
	if (nid != v->run_nid)
		node_arm_flush_run(v);
	v->run_nid = nid;
	v->run_scanned += nr;
}

static void armed_pages(struct node_visit *v, int nid, unsigned long nr)
{
	saw_pages(v, nid, 0);
	v->run_armed += nr;
	v->armed += nr;
}

/* With tiering alone, only pages of slow memory are of interest. */
static bool node_wanted(int nid)
{
	return (sysctl_numa_balancing_mode & NUMA_BALANCING_NORMAL) ||
	       !node_is_toptier(nid);
}

/* May a hint on a PTE of this folio lead to anything? */
static bool folio_fits(struct node_visit *v, struct vm_area_struct *vma,
		       struct folio *folio)
{
	int nid = folio_nid(folio);

	if (node_folio_not_ours(vma, folio))
		return false;
	/* Not every filesystem migrates dirty pages without waiting. */
	if (folio_is_file_lru(folio) && folio_test_dirty(folio))
		return false;
	/* The only thread's own node: nothing to learn. */
	if (nid == v->local_nid && !(vma->vm_flags & VM_SHARED))
		return false;
	return node_wanted(nid);
}

static struct folio *pte_folio_or_null(struct vm_area_struct *vma,
				       unsigned long addr, pte_t pte)
{
	struct folio *folio = node_pte_folio(vma, addr, pte);

	if (!folio || folio_is_zone_device(folio) || folio_test_ksm(folio))
		return NULL;
	return folio;
}

/* Fill in all but @pte, @addr and @nr. */
static void look_at_block(struct arm_table *t, struct arm_block *b)
{
	struct folio *folio, *last = NULL;
	unsigned int i;

	b->nid = NUMA_NO_NODE;
	for (i = 0; i < b->nr; i++) {
		unsigned long addr = b->addr + i * PAGE_SIZE;
		pte_t pte = ptep_get(b->pte + i);

		if (!pte_present(pte))
			continue;
		t->v->left--;
		folio = pte_folio_or_null(t->vma, addr, pte);
		if (!folio)
			continue;
		saw_pages(t->v, folio_nid(folio), 1);
		last = folio;
		if (pte_protnone(pte)) {
			b->armed = true;
			continue;
		}
		if (folio == t->covered || !folio_fits(t->v, t->vma, folio))
			continue;
		b->mixed |= b->fit && folio_nid(folio) != b->nid;
		b->nid = folio_nid(folio);
		b->fit |= BIT(i);
	}
	if (t->v->gran == NODE_GRAN_BLOCK)
		t->covered = last && folio_test_large(last) ? last : NULL;
}

static void arm_pte(struct arm_table *t, struct arm_block *b, unsigned int i)
{
	unsigned long addr = b->addr + i * PAGE_SIZE;
	pte_t old, pte = ptep_get(b->pte + i);
	struct folio *folio = node_pte_folio(t->vma, addr, pte);

	/* Slow memory keeps the time of arming in place of the last user. */
	if (folio_use_access_time(folio))
		folio_xchg_access_time(folio, jiffies_to_msecs(jiffies));
	old = ptep_modify_prot_start(t->vma, addr, b->pte + i);
	pte = pte_modify(old, PAGE_NONE);
	ptep_modify_prot_commit(t->vma, addr, b->pte + i, old, pte);
	if (pte_needs_flush(old, pte))
		tlb_flush_pte_range(&t->v->tlb, addr, PAGE_SIZE);
	armed_pages(t->v, folio_nid(folio), 1);
	t->v->left--;
}

/*
 * The PTE that stands for a block: by chance, so that no access pattern can
 * hide from all blocks, yet the same one each pass, until the block moves.
 */
static unsigned int pick_pte(struct arm_table *t, struct arm_block *b)
{
	unsigned int from = hash_64(b->addr ^ (unsigned long)t->v->mm ^ b->nid,
				    32) % b->nr;
	u32 late = b->fit & ~(BIT(from) - 1);

	return __ffs(late ?: b->fit);
}

static void arm_block(struct arm_table *t, struct arm_block *b)
{
	unsigned long fit;
	unsigned int i;

	look_at_block(t, b);
	if (!b->fit)
		return;
	if (t->v->gran == NODE_GRAN_BLOCK && !b->mixed &&
	    node_is_toptier(b->nid)) {
		if (!b->armed)
			arm_pte(t, b, pick_pte(t, b));
		return;
	}
	fit = b->fit;
	for_each_set_bit(i, &fit, b->nr)
		arm_pte(t, b, i);
}

/* Blocks are aligned, so that the fault finds the same ones. */
static unsigned long block_end(unsigned long addr, unsigned long end)
{
	unsigned long size = READ_ONCE(node_scan_block_pages) << PAGE_SHIFT;

	return min(ALIGN(addr + 1, size), end);
}

/* Returns the first address not looked at. */
static unsigned long arm_ptes(struct node_visit *v, struct vm_area_struct *vma,
			      pmd_t *pmd, unsigned long addr,
			      unsigned long end)
{
	struct arm_table t = { .v = v, .vma = vma };
	unsigned long check = addr + CHECK_PTES * PAGE_SIZE;
	pte_t *start_pte, *pte;
	spinlock_t *ptl;

	start_pte = pte_offset_map_lock(v->mm, pmd, addr, &ptl);
	if (!start_pte)
		return end;
	pte = start_pte;
	tlb_change_page_size(&v->tlb, PAGE_SIZE);
	/* Reclaim may have left entries in TLBs that it means to flush. */
	flush_tlb_batched_pending(v->mm);
	arch_enter_lazy_mmu_mode();
	while (addr < end) {
		struct arm_block b = { .pte = pte, .addr = addr };

		b.nr = (block_end(addr, end) - addr) >> PAGE_SHIFT;
		arm_block(&t, &b);
		v->left -= DIV_ROUND_UP(b.nr, EMPTY_PTES);
		pte += b.nr;
		addr += b.nr * PAGE_SIZE;
		if (addr >= check) {
			if (node_hold_over(v))
				break;
			check += CHECK_PTES * PAGE_SIZE;
		}
	}
	arch_leave_lazy_mmu_mode();
	pte_unmap_unlock(start_pte, ptl);
	return addr;
}

/* Node of the huge page that the PMD maps; NUMA_NO_NODE: none, or no more. */
static int huge_pmd_nid(struct vm_area_struct *vma, pmd_t *pmd)
{
	spinlock_t *ptl = pmd_trans_huge_lock(pmd, vma);
	int nid = NUMA_NO_NODE;

	if (!ptl)
		return nid;
	if (pmd_present(*pmd) && !is_huge_zero_pmd(*pmd))
		nid = folio_nid(pmd_folio(*pmd));
	spin_unlock(ptl);
	return nid;
}

static void arm_huge(struct node_visit *v, struct vm_area_struct *vma,
		     pmd_t *pmd, unsigned long addr)
{
	int nid = huge_pmd_nid(vma, pmd);

	if (nid == NUMA_NO_NODE)
		return;
	saw_pages(v, nid, HPAGE_PMD_NR);
	v->left -= HUGE_COST;
	/* Arms what it finds under the lock, which may be another page. */
	if (pmd_protnone(pmdp_get_lockless(pmd)) ||
	    change_huge_pmd(&v->tlb, vma, pmd, addr, PAGE_NONE,
			    MM_CP_PROT_NUMA) != HPAGE_PMD_NR)
		return;
	count_vm_numa_event(NUMA_HUGE_PTE_UPDATES);
	armed_pages(v, nid, HPAGE_PMD_NR);
}

/* Returns the first address not looked at. */
static unsigned long arm_pmd(struct node_visit *v, struct vm_area_struct *vma,
			     pmd_t *pmd, unsigned long start,
			     unsigned long end)
{
	pmd_t val = pmdp_get_lockless(pmd);

	if (pmd_none(val))
		return end;
	if (!pmd_trans_huge(val) && !is_swap_pmd(val) && !pmd_devmap(val))
		return arm_ptes(v, vma, pmd, start, end);
	/* Part of one is left only if it became huge since the last hold. */
	if (end - start == HPAGE_PMD_SIZE)
		arm_huge(v, vma, pmd, start);
	return end;
}

static unsigned long arm_pmds(struct node_visit *v, struct vm_area_struct *vma,
			      unsigned long addr, unsigned long end)
{
	do {
		unsigned long next = pmd_addr_end(addr, end);
		pmd_t *pmd = mm_find_pmd(v->mm, addr);

		addr = pmd ? arm_pmd(v, vma, pmd, addr, next) : next;
	} while (addr < end && !node_hold_over(v));
	return addr;
}

/*
 * How far the hold will get if memory goes on as it is at @pmd. This much is
 * announced to the MMU notifiers at once: a hypervisor takes all of it from its
 * guest and stops the guest's CPUs for that, so it should be neither one
 * page table a time nor more than is going to be armed.
 */
static unsigned long stretch_end(struct node_visit *v, pmd_t *pmd,
				 unsigned long start, unsigned long end)
{
	unsigned long ptes = max(v->left, 1);
	unsigned long size = ptes << PAGE_SHIFT;

	if (pmd_trans_huge(pmdp_get_lockless(pmd)))
		size = DIV_ROUND_UP(ptes, HUGE_COST) * HPAGE_PMD_SIZE;
	return min(ALIGN(start + size, PMD_SIZE), end);
}

/**
 * node_arm_range - arm the hints of a part of a VMA
 * @v: the visit
 * @vma: an eligible VMA of the mm
 * @start: where to begin
 * @end: where to end, not past the VMA
 *
 * Context: the worker's thread, mmap_lock held for read; sleeps only in MMU
 * notifiers, which may.
 * Return: the first address not looked at, after @start. Ends before @end if
 * the hold is over, or with a stretch of memory.
 */
unsigned long node_arm_range(struct node_visit *v, struct vm_area_struct *vma,
			     unsigned long start, unsigned long end)
{
	pmd_t *pmd = mm_find_pmd(v->mm, start);
	struct mmu_notifier_range range;

	mmap_assert_locked(v->mm);
	/* Where nothing is, there is nothing to announce. */
	if (!pmd || pmd_none(pmdp_get_lockless(pmd)))
		return pmd_addr_end(start, end);
	end = stretch_end(v, pmd, start, end);
	mmu_notifier_range_init(&range, MMU_NOTIFY_PROTECTION_VMA, 0, v->mm,
				start, end);
	mmu_notifier_invalidate_range_start(&range);
	tlb_start_vma(&v->tlb, vma);
	start = arm_pmds(v, vma, start, end);
	tlb_end_vma(&v->tlb, vma);
	mmu_notifier_invalidate_range_end(&range);
	return start;
}
