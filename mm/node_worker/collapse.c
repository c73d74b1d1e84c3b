// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers: collapse, khugepaged/N.
 *
 * A worker first sees to what others handed to it (inbox.c), a range at a time,
 * then scans on from its node's cursor, an address space at a time. As with
 * khugepaged, a round of pages_to_scan pages is followed by a rest of
 * scan_sleep_millisecs; pages_to_scan is the machine's and is shared out among
 * the workers that have something to scan. A hand-off ends a rest: the other
 * node's budget has been spent on it.
 *
 * If no huge page is to be had the worker rests for alloc_sleep_millisecs and
 * takes no hand-offs meanwhile; the second time on end that ends the round.
 *
 * A struct node_collapse is its thread's, but for what collapse.h says.
 */
#include <linux/init.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmstat.h>

#include <trace/events/node_worker.h>

#include "collapse.h"

/* Of address space at most in one hold of mmap_lock, whatever the budget is. */
#define PIECE_PAGES	4096U

static unsigned int tunable(long own, unsigned int machine)
{
	return own == NODE_COLLAPSE_UNSET ? machine : own;
}

static unsigned int round_pages(struct node_collapse *c)
{
	struct khugepaged_tunables t;
	long own = READ_ONCE(c->pages_to_scan);

	khugepaged_get_tunables(&t);
	if (own != NODE_COLLAPSE_UNSET)
		return own;
	return DIV_ROUND_UP_ULL(t.pages_to_scan, khugepaged_nodes_with_slots());
}

static void rest(struct node_collapse *c, unsigned int ms)
{
	unsigned long until = jiffies + msecs_to_jiffies(ms);

	/* What has been spent is spent: a failed hand-off shortens no rest. */
	if (!c->resting || time_after(until, c->rest_until))
		c->rest_until = until;
	c->resting = true;
}

static void end_round(struct node_collapse *c)
{
	struct khugepaged_tunables t;

	khugepaged_get_tunables(&t);
	c->left = 0;
	rest(c, tunable(READ_ONCE(c->scan_sleep_ms), t.scan_sleep_ms));
}

static void begin_round(struct node_collapse *c)
{
	c->left = round_pages(c);
	c->heads = 0;
	c->failed = false;
}

/* No huge page on the node: nobody need hand us anything. */
static void starve(struct node_collapse *c)
{
	struct khugepaged_tunables t;
	unsigned int ms;

	WRITE_ONCE(c->starved, true);
	/* Those that missed it: their ranges are found again. */
	synchronize_rcu();
	node_inbox_flush(&c->inbox);
	khugepaged_get_tunables(&t);
	ms = tunable(READ_ONCE(c->alloc_sleep_ms), t.alloc_sleep_ms);
	if (c->failed) {
		c->left = 0;
		ms = max(ms, tunable(READ_ONCE(c->scan_sleep_ms),
				     t.scan_sleep_ms));
	}
	c->failed = true;
	rest(c, ms);
}

/* Jiffies that are left of the rest; 0: scan. */
static long rest_left(struct node_collapse *c)
{
	unsigned long now = jiffies;

	if (xchg(&c->woken, 0))
		c->rest_until = now;
	if (c->resting && time_before(now, c->rest_until))
		return c->rest_until - now;
	c->resting = false;
	WRITE_ONCE(c->starved, false);
	return 0;
}

static void serve_inbox(struct node_collapse *c)
{
	bool no_huge_page = false;
	struct mm_struct *mm;
	unsigned long addr;

	if (!node_inbox_take(&c->inbox, &mm, &addr))
		return;
	khugepaged_node_collapse(c->cc, mm, addr, &no_huge_page);
	node_inbox_done(&c->inbox);
	if (no_huge_page)
		starve(c);
	else
		c->failed = false;
}

/* One address space, or a piece of it; ends the round if that is due. */
static void scan_piece(struct node_collapse *c)
{
	bool no_huge_page = false;
	unsigned int pass, used = 0;

	if (khugepaged_node_at_head(c->cc, &pass)) {
		if (c->heads++)
			goto out;
		node_lru_drain(pass, &c->drains);
	}
	used = khugepaged_node_scan(c->cc, min(c->left, PIECE_PAGES),
				    &no_huge_page);
out:
	c->left -= min(used, c->left);
	if (!used || !c->left)
		end_round(c);
	else if (no_huge_page)
		starve(c);
}

static long collapse_run(struct node_worker *w)
{
	struct node_collapse *c = w->priv;
	long left;

	/* By turns: others may always find something for it to do. */
	c->serve = !c->serve;
	if (c->serve && !node_inbox_empty(&c->inbox)) {
		serve_inbox(c);
		return 0;
	}
	left = rest_left(c);
	if (left)
		return node_inbox_empty(&c->inbox) ? left : 0;
	if (!c->left)
		begin_round(c);
	scan_piece(c);
	return 0;
}

static bool collapse_has_work(struct node_worker *w)
{
	struct node_collapse *c = w->priv;

	/* Starved, it has to see to it that it is no longer. */
	return !node_inbox_empty(&c->inbox) || READ_ONCE(c->starved) ||
	       khugepaged_node_has_work(c->cc);
}

static bool collapse_urgent(struct node_worker *w)
{
	struct node_collapse *c = w->priv;

	return READ_ONCE(c->woken) || !node_inbox_empty(&c->inbox);
}

/* Paused: no exited mm is to be kept, by an entry or by the cursor. */
static void collapse_drain(struct node_worker *w)
{
	struct node_collapse *c = w->priv;

	node_inbox_flush(&c->inbox);
	khugepaged_node_rewind(c->cc);
}

static void collapse_retire(struct node_worker *w)
{
	struct node_collapse *c = w->priv;

	khugepaged_node_close(c->cc);
	c->left = 0;
	c->resting = false;
	WRITE_ONCE(c->starved, false);
}

static unsigned long collapse_backlog(struct node_worker *w,
				      unsigned long *since)
{
	struct node_collapse *c = w->priv;

	return node_inbox_backlog(&c->inbox, since);
}

static int collapse_start(struct node_worker *w)
{
	struct node_collapse *c;

	if (w->priv)
		return 0;
	c = kzalloc_node(sizeof(*c), GFP_KERNEL, w->nid);
	if (!c)
		return -ENOMEM;
	c->cc = khugepaged_node_alloc(w->nid);
	if (!c->cc) {
		kfree(c);
		return -ENOMEM;
	}
	c->pages_to_scan = NODE_COLLAPSE_UNSET;
	c->scan_sleep_ms = NODE_COLLAPSE_UNSET;
	c->alloc_sleep_ms = NODE_COLLAPSE_UNSET;
	node_inbox_init(&c->inbox);
	WRITE_ONCE(w->priv, c);
	return 0;
}

static const struct node_worker_ops collapse_ops = {
	.name		= "collapse",
	.thread		= "khugepaged/%d",
	.nice		= MAX_NICE,
	.start		= collapse_start,
	.has_work	= collapse_has_work,
	.run		= collapse_run,
	.drain		= collapse_drain,
	.urgent		= collapse_urgent,
	.retire		= collapse_retire,
	.nodes_changed	= khugepaged_nodes_changed,
	.backlog	= collapse_backlog,
	.stat		= node_collapse_stat,
	.tunables	= &node_collapse_tunables,
	.globals	= &node_collapse_globals,
};

static int want(bool on)
{
	int err;

	if (!node_worker_known(NODE_WORKER_COLLAPSE))
		return -ENODEV;
	mutex_lock(&node_worker_setup_mutex);
	err = node_worker_want(NODE_WORKER_COLLAPSE, on);
	mutex_unlock(&node_worker_setup_mutex);
	return err;
}

/**
 * node_collapse_start - start the workers, on every node with memory
 *
 * Context: process, under khugepaged_mutex; sleeps.
 * Return: 0 or a negative errno; some may run then.
 */
int node_collapse_start(void)
{
	return want(true);
}

/**
 * node_collapse_stop - end the workers
 *
 * Context: process, under khugepaged_mutex; sleeps.
 */
void node_collapse_stop(void)
{
	want(false);
}

/**
 * node_collapse_running - has a node a worker?
 * @nid: the node
 *
 * Context: any.
 */
bool node_collapse_running(int nid)
{
	return node_worker_known(NODE_WORKER_COLLAPSE) &&
	       node_worker_live(node_worker_get(NODE_WORKER_COLLAPSE, nid));
}

/**
 * node_collapse_wake - a node's list is no longer empty
 * @nid: the node
 *
 * Context: any that may wake a task.
 */
void node_collapse_wake(int nid)
{
	wake_up(&node_worker_get(NODE_WORKER_COLLAPSE, nid)->wait);
}

/**
 * node_collapse_wake_all - end every worker's rest: a sleep has been changed
 *
 * Context: any that may wake a task.
 */
void node_collapse_wake_all(void)
{
	struct node_collapse *c;
	struct node_worker *w;
	int nid;

	if (!node_worker_known(NODE_WORKER_COLLAPSE))
		return;
	for_each_node(nid) {
		w = node_worker_get(NODE_WORKER_COLLAPSE, nid);
		c = READ_ONCE(w->priv);
		if (!c)
			continue;
		WRITE_ONCE(c->woken, 1);
		wake_up(&w->wait);
	}
}

/**
 * node_collapse_count - a worker has collapsed a range
 * @nid: the worker's node
 * @page_nid: the huge page's
 * @handed: another worker handed the range over
 *
 * Context: process, in the worker.
 */
void node_collapse_count(int nid, int page_nid, bool handed)
{
	enum node_stat_item item;

	if (nid != page_nid)
		item = THP_COLLAPSE_REMOTE;
	else
		item = handed ? THP_COLLAPSE_HANDOFF : THP_COLLAPSE_LOCAL;
	mod_node_page_state(NODE_DATA(page_nid), item, HPAGE_PMD_NR);
	trace_node_worker_collapse(nid, page_nid, handed);
}

/**
 * current_is_node_collapse - is this a collapse worker?
 *
 * Context: any.
 */
bool current_is_node_collapse(void)
{
	return node_worker_current(NODE_WORKER_COLLAPSE);
}

static int __init node_collapse_init(void)
{
	int err;

	if (!has_transparent_hugepage())
		return 0;
	node_lru_init();
	err = node_worker_register(NODE_WORKER_COLLAPSE, &collapse_ops);
	if (err)
		return err;
	/* Until now there was one thread. */
	return khugepaged_set_by_node(node_worker_boot_wants(collapse_ops.name));
}
late_initcall(node_collapse_init);
