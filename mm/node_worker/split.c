// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers: counting huge pages that are split.
 *
 * thp_split_node counts the pages of every large folio that is split, on their
 * node. thp_split_numa counts what NUMA balancing splits, folios and huge PMDs:
 * in a worker's thread whatever the reason; in an application's where mainline's
 * scan and hinting fault can. It is to stay 0 in the workers' modes.
 *
 * Called by mm/huge_memory.c, mm/migrate.c and mm/mprotect.c. No state but the
 * counters'.
 */
#include <linux/migrate_mode.h>
#include <linux/mm.h>
#include <linux/node_worker.h>
#include <linux/vmstat.h>

#include "internal.h"

static bool worker_places(void)
{
	return node_worker_current(NODE_WORKER_SCAN) ||
	       node_worker_current(NODE_WORKER_MIGRATE);
}

static void count(int nid, enum node_stat_item item, int nr_pages)
{
	mod_node_page_state(NODE_DATA(nid), item, nr_pages);
}

/**
 * node_worker_folio_split - a large folio has been split
 * @nid: its node
 * @nr_pages: its size until then
 *
 * Context: any but NMI.
 */
void node_worker_folio_split(int nid, int nr_pages)
{
	count(nid, THP_SPLIT_NODE, nr_pages);
	if (worker_places())
		count(nid, THP_SPLIT_NUMA, nr_pages);
}

/**
 * node_worker_pmd_split - a huge PMD is being split
 * @nid: its page's node
 *
 * Context: under the PMD's lock.
 */
void node_worker_pmd_split(int nid)
{
	if (worker_places())
		count(nid, THP_SPLIT_NUMA, HPAGE_PMD_NR);
}

/**
 * node_worker_split_to_arm - the scan of an application's thread splits a huge PMD
 * @nid: its page's node
 *
 * Context: any but NMI.
 */
void node_worker_split_to_arm(int nid)
{
	if (!worker_places())
		count(nid, THP_SPLIT_NUMA, HPAGE_PMD_NR);
}

/**
 * node_worker_split_to_move - migrate_pages() has split a large folio
 * @nid: its node
 * @nr_pages: its size until then
 * @reason: why it was to be moved, an enum migrate_reason
 *
 * Context: any but NMI.
 */
void node_worker_split_to_move(int nid, int nr_pages, int reason)
{
	/* A worker's was counted as it was split. */
	if (reason == MR_NUMA_MISPLACED && !worker_places())
		count(nid, THP_SPLIT_NUMA, nr_pages);
}
