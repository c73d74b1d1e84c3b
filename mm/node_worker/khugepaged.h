/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Node workers: what mm/khugepaged.c and mm/node_worker/ know of each other.
 *
 * mm/khugepaged.c has the slots and knows how a range is scanned and collapsed.
 * khugepaged_nodes.h, which it includes at its end, gives it a list and a cursor
 * for each node; collapse.c and inbox.c decide when a node's worker scans and
 * which node's worker collapses a range.
 */
#ifndef _MM_NODE_WORKER_KHUGEPAGED_H
#define _MM_NODE_WORKER_KHUGEPAGED_H

#include <linux/types.h>

struct collapse_control;
struct folio;
struct mm_struct;

#ifdef CONFIG_NODE_WORKERS_COLLAPSE

/* What came of offering a range to the worker of the node that has its pages. */
enum node_handoff {
	NODE_HANDOFF_POSTED,	/* it will see to it */
	NODE_HANDOFF_FULL,	/* it has too much to do: collapse it here */
	NODE_HANDOFF_REFUSED,	/* has it already, is paused or has no huge page */
};

/**
 * struct khugepaged_tunables - transparent_hugepage/khugepaged/, for the machine
 * @pages_to_scan: pages between two sleeps
 * @scan_sleep_ms: how long a sleep is
 * @alloc_sleep_ms: how long after a huge page was not to be had
 */
struct khugepaged_tunables {
	unsigned int	pages_to_scan;
	unsigned int	scan_sleep_ms;
	unsigned int	alloc_sleep_ms;
};

/* khugepaged_nodes.h: called by collapse.c and inbox.c. */
struct collapse_control *khugepaged_node_alloc(int nid);
void khugepaged_node_close(struct collapse_control *cc);
void khugepaged_node_rewind(struct collapse_control *cc);
bool khugepaged_node_has_work(struct collapse_control *cc);
unsigned int khugepaged_nodes_with_slots(void);
unsigned long khugepaged_node_collapsed(struct collapse_control *cc);
bool khugepaged_node_at_head(struct collapse_control *cc, unsigned int *pass);
unsigned int khugepaged_node_scan(struct collapse_control *cc,
				  unsigned int pages, bool *no_huge_page);
void khugepaged_node_collapse(struct collapse_control *cc,
			      struct mm_struct *mm, unsigned long addr,
			      bool *no_huge_page);
void khugepaged_handoffs_done(void);
void khugepaged_get_tunables(struct khugepaged_tunables *t);
bool khugepaged_by_node(void);
int khugepaged_set_by_node(bool on);
void khugepaged_nodes_changed(void);

/* collapse.c: called by mm/khugepaged.c. */
int node_collapse_start(void);
void node_collapse_stop(void);
bool node_collapse_running(int nid);
void node_collapse_wake(int nid);
void node_collapse_wake_all(void);
void node_collapse_count(int nid, int page_nid, bool handed);
bool current_is_node_collapse(void);

/* inbox.c: called by mm/khugepaged.c. */
enum node_handoff node_collapse_offer(int nid, struct mm_struct *mm,
				      unsigned long addr);
void node_collapse_stale(int nid);
bool node_collapse_handoffs_out(void);
void node_collapse_exit(struct mm_struct *mm);

/* lru.c, and its hook in mm/swap.c. */
void node_lru_init(void);
void node_lru_drain(unsigned int pass, int *drains);
bool lru_needs_drain(unsigned int cpu);

#else

static inline void node_collapse_wake_all(void) { }
static inline void node_collapse_exit(struct mm_struct *mm) { }
static inline bool current_is_node_collapse(void) { return false; }

#endif /* CONFIG_NODE_WORKERS_COLLAPSE */
#endif /* _MM_NODE_WORKER_KHUGEPAGED_H */
