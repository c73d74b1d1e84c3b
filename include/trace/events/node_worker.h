/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints of the per-node memory workers.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM node_worker

#if !defined(_TRACE_NODE_WORKER_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_NODE_WORKER_H

#include <linux/mm_types.h>
#include <linux/tracepoint.h>

TRACE_EVENT(node_worker_scan,
	TP_PROTO(struct mm_struct *mm, unsigned long addr,
		 unsigned long armed, u64 held_ns),
	TP_ARGS(mm, addr, armed, held_ns),

	TP_STRUCT__entry(
		__field(struct mm_struct *, mm)
		__field(unsigned long, addr)
		__field(unsigned long, armed)
		__field(u64, held_ns)
	),

	TP_fast_assign(
		__entry->mm = mm;
		__entry->addr = addr;
		__entry->armed = armed;
		__entry->held_ns = held_ns;
	),

	TP_printk("mm=%p addr=0x%lx armed=%lu held_ns=%llu",
		  __entry->mm, __entry->addr, __entry->armed,
		  __entry->held_ns)
);

TRACE_EVENT(node_worker_skip,
	TP_PROTO(struct mm_struct *mm, int reason),
	TP_ARGS(mm, reason),

	TP_STRUCT__entry(
		__field(struct mm_struct *, mm)
		__field(int, reason)
	),

	TP_fast_assign(
		__entry->mm = mm;
		__entry->reason = reason;
	),

	TP_printk("mm=%p reason=%s", __entry->mm,
		  __print_symbolic(__entry->reason,
				   { 0, "one_node" }, { 1, "optout" },
				   { 2, "isolated" }, { 3, "exiting" },
				   { 4, "debt" }, { 5, "locked" },
				   { 6, "fallback" }))
);

TRACE_EVENT(node_worker_fault,
	TP_PROTO(struct mm_struct *mm, unsigned long addr, int nid, int target,
		 unsigned int pages, unsigned int posted),
	TP_ARGS(mm, addr, nid, target, pages, posted),

	TP_STRUCT__entry(
		__field(struct mm_struct *, mm)
		__field(unsigned long, addr)
		__field(int, nid)
		__field(int, target)
		__field(unsigned int, pages)
		__field(unsigned int, posted)
	),

	TP_fast_assign(
		__entry->mm = mm;
		__entry->addr = addr;
		__entry->nid = nid;
		__entry->target = target;
		__entry->pages = pages;
		__entry->posted = posted;
	),

	TP_printk("mm=%p addr=0x%lx nid=%d target=%d pages=%u posted=%u",
		  __entry->mm, __entry->addr, __entry->nid, __entry->target,
		  __entry->pages, __entry->posted)
);

TRACE_EVENT(node_worker_batch,
	TP_PROTO(int nid, unsigned int folios, unsigned int migrated),
	TP_ARGS(nid, folios, migrated),

	TP_STRUCT__entry(
		__field(int, nid)
		__field(unsigned int, folios)
		__field(unsigned int, migrated)
	),

	TP_fast_assign(
		__entry->nid = nid;
		__entry->folios = folios;
		__entry->migrated = migrated;
	),

	TP_printk("nid=%d folios=%u migrated_pages=%u", __entry->nid,
		  __entry->folios, __entry->migrated)
);

TRACE_EVENT(node_worker_stale,
	TP_PROTO(int nid, unsigned long pfn, unsigned int order),
	TP_ARGS(nid, pfn, order),

	TP_STRUCT__entry(
		__field(int, nid)
		__field(unsigned long, pfn)
		__field(unsigned int, order)
	),

	TP_fast_assign(
		__entry->nid = nid;
		__entry->pfn = pfn;
		__entry->order = order;
	),

	TP_printk("nid=%d pfn=0x%lx order=%u", __entry->nid, __entry->pfn,
		  __entry->order)
);

/* A range is offered to the collapse worker of a node: enum node_handoff. */
TRACE_EVENT(node_worker_handoff,
	TP_PROTO(struct mm_struct *mm, unsigned long addr, int nid, int result),
	TP_ARGS(mm, addr, nid, result),

	TP_STRUCT__entry(
		__field(struct mm_struct *, mm)
		__field(unsigned long, addr)
		__field(int, nid)
		__field(int, result)
	),

	TP_fast_assign(
		__entry->mm = mm;
		__entry->addr = addr;
		__entry->nid = nid;
		__entry->result = result;
	),

	TP_printk("mm=%p addr=0x%lx nid=%d result=%s", __entry->mm,
		  __entry->addr, __entry->nid,
		  __print_symbolic(__entry->result,
				   { 0, "posted" }, { 1, "full" },
				   { 2, "refused" }))
);

/* A node's worker has collapsed a range to a huge page on @page_nid. */
TRACE_EVENT(node_worker_collapse,
	TP_PROTO(int nid, int page_nid, bool handed),
	TP_ARGS(nid, page_nid, handed),

	TP_STRUCT__entry(
		__field(int, nid)
		__field(int, page_nid)
		__field(bool, handed)
	),

	TP_fast_assign(
		__entry->nid = nid;
		__entry->page_nid = page_nid;
		__entry->handed = handed;
	),

	TP_printk("nid=%d page_nid=%d handed=%d", __entry->nid,
		  __entry->page_nid, __entry->handed)
);

DECLARE_EVENT_CLASS(node_worker_change,
	TP_PROTO(struct mm_struct *mm, int from, int to),
	TP_ARGS(mm, from, to),

	TP_STRUCT__entry(
		__field(struct mm_struct *, mm)
		__field(int, from)
		__field(int, to)
	),

	TP_fast_assign(
		__entry->mm = mm;
		__entry->from = from;
		__entry->to = to;
	),

	TP_printk("mm=%p from=%d to=%d", __entry->mm, __entry->from,
		  __entry->to)
);

/* The slot's home node. */
DEFINE_EVENT(node_worker_change, node_worker_rehome,
	TP_PROTO(struct mm_struct *mm, int from, int to),
	TP_ARGS(mm, from, to)
);

/* How its hints are armed: enum node_granularity. */
DEFINE_EVENT(node_worker_change, node_worker_fallback,
	TP_PROTO(struct mm_struct *mm, int from, int to),
	TP_ARGS(mm, from, to)
);

#endif /* _TRACE_NODE_WORKER_H */

#include <trace/define_trace.h>
