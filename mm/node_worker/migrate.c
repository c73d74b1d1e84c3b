// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers: kmigrated/N, which moves misplaced pages to node N.
 *
 * Hinting faults post pages to the ring of the node they should be on; that
 * node's worker takes them, checks what has become of them, and migrates
 * them in small batches: migrate_pages() unmaps a whole list before it
 * copies, so whoever touches a page of the batch waits for all of it.
 *
 * Between the post and the take a pfn may have come to be anything. An entry
 * is stale unless the folio is still elsewhere and the last user that the
 * fault left in it is still on this node, or on one without room nearer to this
 * than to the folio's: freeing and migrating a folio reset that, and a fault
 * from another node replaces it. In tiering mode a
 * folio in slow memory has the time of the fault there instead. And if a policy
 * of the mm has changed since the fault, all that it had posted is stale.
 *
 * Every posted page ends as migrated, stale or failed. Nothing is retried:
 * the page will fault again. A huge page moves whole or not at all.
 *
 * The ring is written by any CPU (ring.c); the batch is the thread's.
 */
#include <linux/gfp.h>
#include <linux/ksm.h>
#include <linux/memcontrol.h>
#include <linux/memory-tiers.h>
#include <linux/memory_hotplug.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/node_worker.h>
#include <linux/sched/sysctl.h>
#include <linux/slab.h>
#include <linux/vmstat.h>

#include <trace/events/node_worker.h>

#include "balancing.h"

/* The rate limit's window; a limit in MB/s is kept over each. */
#define RATE_WINDOW	(HZ / 10)

/*
 * Pages whose migration failed after the fault had reported success, by a
 * hash of the mm: two that collide slow down each other's scans, no more.
 */
static atomic_t late_failures[BIT(NODE_POST_HASH_BITS)];

/* Changes of memory policy, by the same hash: two lose each other's posts. */
static atomic_t policy_changes[BIT(NODE_POST_HASH_BITS)];

/**
 * node_worker_policy_changed - memory of an mm may now be bound elsewhere
 * @mm: the mm
 * @shared: other mms that map the same file have its new policy as well
 *
 * By mbind() or as its cpuset's memory nodes have changed; a task's own policy is
 * about pages to come. A batch that is already on its way is not stopped.
 *
 * Context: process; after the change, mmap_lock held for write, so that no
 * fault is under way.
 */
void node_worker_policy_changed(struct mm_struct *mm, bool shared)
{
	unsigned int i;

	if (!shared) {
		atomic_inc(&policy_changes[node_mm_hash(mm)]);
		return;
	}
	for (i = 0; i < ARRAY_SIZE(policy_changes); i++)
		atomic_inc(&policy_changes[i]);
}

/**
 * node_migrate_stamp - what must still be so when a posted folio is moved
 * @folio: the folio
 * @mm_hash: of the mm that posts it, or has
 *
 * Context: any, with a reference to the folio or the page-table lock.
 */
unsigned int node_migrate_stamp(struct folio *folio, unsigned int mm_hash)
{
	unsigned int stamp = atomic_read(&policy_changes[mm_hash]);

	if (folio_use_access_time(folio))
		stamp ^= folio_last_cpupid(folio);
	return stamp & NODE_POST_STAMP_MASK;
}

/**
 * node_migrate_late_failures - take an mm's late failures
 * @mm_hash: its node_mm_hash()
 *
 * Context: any.
 * Return: pages that failed since the last call.
 */
unsigned int node_migrate_late_failures(unsigned int mm_hash)
{
	atomic_t *count = &late_failures[mm_hash];

	if (likely(!atomic_read(count)))
		return 0;
	return atomic_xchg(count, 0);
}

/* Would the node be above its high watermark with @nr pages more? */
static bool above_watermark(int nid, unsigned long nr)
{
	pg_data_t *pgdat = NODE_DATA(nid);
	int z;

	for (z = pgdat->nr_zones - 1; z >= 0; z--) {
		struct zone *zone = pgdat->node_zones + z;

		if (managed_zone(zone) &&
		    zone_watermark_ok(zone, 0, high_wmark_pages(zone) + nr,
				      ZONE_MOVABLE, ALLOC_CMA))
			return true;
	}
	return false;
}

static bool within_rate(struct node_migrate *m, unsigned int nr)
{
	unsigned long limit = READ_ONCE(m->rate_mb);
	unsigned long start = READ_ONCE(m->window);

	if (!limit)
		return true;
	if (time_after_eq(jiffies, start + RATE_WINDOW) &&
	    try_cmpxchg(&m->window, &start, jiffies))
		atomic_long_set(&m->window_pages, 0);
	limit = (limit << (20 - PAGE_SHIFT)) * RATE_WINDOW / HZ;
	return atomic_long_read(&m->window_pages) + nr <= limit;
}

/**
 * node_migrate_has_room - has a node memory for pages, and those on their way?
 * @nid: the node
 * @nr: how many
 *
 * Context: any; in an RCU read-side section for who then posts there.
 */
bool node_migrate_has_room(int nid, unsigned int nr)
{
	struct node_worker *w = node_worker_get(NODE_WORKER_MIGRATE, nid);
	struct node_migrate *m;

	if (!node_worker_live(w))
		return false;
	m = w->priv;
	return above_watermark(nid, nr + node_ring_used(&m->ring));
}

/**
 * node_migrate_accepts - would a worker take pages now, if there is room?
 * @w: a migration worker that takes posts
 * @nr: how many
 *
 * Context: hinting fault, under the page-table lock.
 */
bool node_migrate_accepts(struct node_worker *w, unsigned int nr)
{
	return !READ_ONCE(w->paused) && within_rate(w->priv, nr);
}

/**
 * node_migrate_post - hand folios to the node they should be on
 * @w: the node's migration worker, which accepts
 * @words: the folios, packed
 * @nr: how many
 * @pages: pages they have together
 *
 * Context: hinting fault, under the page-table lock that maps the folios.
 * Return: false if the ring has not room for all; they are then forgotten.
 */
bool node_migrate_post(struct node_worker *w, const u64 *words,
		       unsigned int nr, unsigned int pages)
{
	struct node_migrate *m = w->priv;

	if (!node_ring_post(&m->ring, words, nr))
		return false;
	mod_node_page_state(NODE_DATA(w->nid), NODE_WORKER_POSTED, pages);
	if (READ_ONCE(m->rate_mb))
		atomic_long_add(pages, &m->window_pages);
	node_worker_kick(w);
	return true;
}

/*
 * The node that the folio was last used from, as far as hinting faults tell;
 * NUMA_NO_NODE: they do not.
 */
static int last_used_from(struct folio *folio)
{
	int cpupid = folio_last_cpupid(folio);
	unsigned int cpu = cpupid_to_cpu(cpupid);

	/* Reset, all bits are set; that may well be a valid CPU number. */
	if (cpupid == (-1 & LAST_CPUPID_MASK) || cpu >= nr_cpu_ids)
		return NUMA_NO_NODE;
	return cpu_to_node(cpu);
}

/* Would a fault of the folio's last user still have it posted to @nid? */
static bool user_wants(struct folio *folio, int nid)
{
	int from = last_used_from(folio);

	if (from == nid || from == NUMA_NO_NODE)
		return from == nid;
	/* See nearest_with_room(). */
	return node_distance(from, nid) <
	       node_distance(from, folio_nid(folio)) &&
	       !node_migrate_has_room(from, folio_nr_pages(folio));
}

/* Is the folio still what was posted, and still wanted on @nid? */
static bool still_wanted(struct folio *folio, const struct node_post *p,
			 int nid)
{
	if (!folio_test_lru(folio) || folio_order(folio) != p->order ||
	    folio_nid(folio) == nid || !folio_mapped(folio))
		return false;
	if (p->stamp != node_migrate_stamp(folio, p->mm_hash))
		return false;
	return folio_use_access_time(folio) || user_wants(folio, nid);
}

/* Can it be moved as it is? Our own reference is among those it has. */
static bool movable(struct folio *folio)
{
	if (folio_test_ksm(folio) || folio_is_zone_device(folio) ||
	    folio_ref_count(folio) != folio_expected_ref_count(folio) + 1)
		return false;
	if (!folio_test_large(folio))
		return true;
	/* migrate_pages() would split these. */
	if (folio_test_pmd_mappable(folio) && !thp_migration_supported())
		return false;
	return folio_order(folio) < 2 || !folio_test_partially_mapped(folio);
}

static void count_stale(int nid, const struct node_post *p)
{
	mod_node_page_state(NODE_DATA(nid), NODE_WORKER_STALE, 1 << p->order);
	trace_node_worker_stale(nid, p->pfn, p->order);
}

static void count_failed(int nid, unsigned int nr, unsigned int mm_hash)
{
	mod_node_page_state(NODE_DATA(nid), NODE_WORKER_FAILED, nr);
	atomic_add(nr, &late_failures[mm_hash]);
}

static void add_to_batch(struct node_migrate *m, struct folio *folio,
			 const struct node_post *p)
{
	struct node_moving *mv = &m->moving[m->nr_moving++];

	mv->folio = folio;
	/* Put by settle(). */
	mv->memcg = get_mem_cgroup_from_folio(folio);
	mv->nid = folio_nid(folio);
	mv->nr = folio_nr_pages(folio);
	mv->mm_hash = p->mm_hash;
	mv->failed = false;
	list_add_tail(&folio->lru, &m->folios);
	node_stat_mod_folio(folio,
			    NR_ISOLATED_ANON + folio_is_file_lru(folio),
			    mv->nr);
}

/* The folio that is at the posted pfn now, with a reference; or NULL. */
static struct folio *get_posted(const struct node_post *p)
{
	struct folio *folio = NULL;
	struct page *page;

	/* As little time as can be for its memory to be hot-removed in. */
	preempt_disable();
	page = pfn_to_online_page(p->pfn);
	if (page)
		folio = folio_get_nontail_page(page);
	preempt_enable();
	return folio;
}

/* Check a posted page and, if all is well, isolate it into the batch. */
static void consider(struct node_worker *w, const struct node_post *p)
{
	struct node_migrate *m = w->priv;
	struct folio *folio = get_posted(p);

	if (!folio) {
		count_stale(w->nid, p);
		return;
	}
	if (!still_wanted(folio, p, w->nid))
		count_stale(w->nid, p);
	else if (movable(folio) && folio_isolate_lru(folio))
		add_to_batch(m, folio, p);
	else
		count_failed(w->nid, 1 << p->order, p->mm_hash);
	/* The isolation has a reference of its own. */
	folio_put(folio);
}

static struct folio *alloc_here(struct folio *src, unsigned long nid)
{
	gfp_t gfp = __GFP_THISNODE | __GFP_NOWARN;

	if (folio_test_large(src))
		gfp |= GFP_TRANSHUGE_LIGHT;
	else
		gfp |= (GFP_HIGHUSER_MOVABLE & ~__GFP_RECLAIM) |
		       __GFP_NOMEMALLOC | __GFP_NORETRY;
	return __folio_alloc_node(gfp, folio_order(src), nid);
}

/* Mark what migrate_pages() has left on the list, and put it back. */
static void put_back(struct node_migrate *m)
{
	struct folio *folio;
	unsigned int i;

	list_for_each_entry(folio, &m->folios, lru)
		for (i = 0; i < m->nr_moving; i++)
			if (m->moving[i].folio == folio)
				m->moving[i].failed = true;
	if (!list_empty(&m->folios))
		putback_movable_pages(&m->folios);
}

static void count_migrated(int nid, struct node_moving *mv)
{
	struct lruvec *lruvec;

	mod_node_page_state(NODE_DATA(nid), NODE_WORKER_MIGRATED, mv->nr);
	count_vm_numa_events(NUMA_PAGE_MIGRATE, mv->nr);
	count_memcg_events(mv->memcg, NUMA_PAGE_MIGRATE, mv->nr);
	if (!(sysctl_numa_balancing_mode & NUMA_BALANCING_MEMORY_TIERING) ||
	    node_is_toptier(mv->nid) || !node_is_toptier(nid))
		return;
	lruvec = mem_cgroup_lruvec(mv->memcg, NODE_DATA(nid));
	mod_lruvec_state(lruvec, PGPROMOTE_SUCCESS, mv->nr);
}

static unsigned int settle(int nid, struct node_migrate *m)
{
	unsigned int i, done = 0;

	for (i = 0; i < m->nr_moving; i++) {
		struct node_moving *mv = &m->moving[i];

		if (mv->failed) {
			count_failed(nid, mv->nr, mv->mm_hash);
		} else {
			count_migrated(nid, mv);
			done += mv->nr;
		}
		/* Taken by add_to_batch(). */
		mem_cgroup_put(mv->memcg);
	}
	m->nr_moving = 0;
	return done;
}

static void migrate_batch(struct node_worker *w)
{
	struct node_migrate *m = w->priv;
	unsigned int done, asked = m->nr_moving;

	if (!asked)
		return;
	migrate_pages(&m->folios, alloc_here, NULL, w->nid, MIGRATE_ASYNC,
		      MR_NUMA_MISPLACED, NULL);
	put_back(m);
	done = settle(w->nid, m);
	trace_node_worker_batch(w->nid, asked, done);
}

static bool next_post(struct node_migrate *m, struct node_post *p)
{
	if (!m->holds)
		return node_ring_take(&m->ring, p);
	*p = m->held;
	m->holds = false;
	return true;
}

/* The worker's run(): one batch, of base pages or of one large folio. */
static long migrate_run(struct node_worker *w)
{
	struct node_migrate *m = w->priv;
	unsigned int batch = READ_ONCE(m->batch);
	struct node_post p;

	while (m->nr_moving < batch && next_post(m, &p)) {
		if (p.order && m->nr_moving) {
			m->held = p;
			m->holds = true;
			break;
		}
		consider(w, &p);
		if (p.order)
			break;
	}
	migrate_batch(w);
	return 0;
}

static void migrate_drain(struct node_worker *w)
{
	struct node_migrate *m = w->priv;
	struct node_post p;

	while (next_post(m, &p))
		count_stale(w->nid, &p);
}

static bool migrate_has_work(struct node_worker *w)
{
	struct node_migrate *m = w->priv;

	return m->holds || node_ring_used(&m->ring);
}

static unsigned long migrate_backlog(struct node_worker *w,
				     unsigned long *since)
{
	struct node_migrate *m = w->priv;

	return m ? node_ring_backlog(&m->ring, since) + READ_ONCE(m->holds) : 0;
}

static int migrate_start(struct node_worker *w)
{
	struct node_migrate *m = w->priv;

	if (m)
		return 0;
	m = kzalloc_node(sizeof(*m), GFP_KERNEL, w->nid);
	if (!m)
		return -ENOMEM;
	if (node_ring_init(&m->ring, w->nid, node_present_pages(w->nid))) {
		kfree(m);
		return -ENOMEM;
	}
	INIT_LIST_HEAD(&m->folios);
	m->batch = NODE_BATCH_MAX;
	w->priv = m;
	return 0;
}

static const struct node_worker_ops migrate_ops = {
	.name		= "migrate",
	.thread		= "kmigrated/%d",
	.start		= migrate_start,
	.has_work	= migrate_has_work,
	.run		= migrate_run,
	.drain		= migrate_drain,
	.backlog	= migrate_backlog,
	.stat		= node_migrate_stat,
	.tunables	= &node_migrate_tunables,
};

/**
 * node_migrate_register - make migration a function of the workers
 *
 * Context: boot, once.
 * Return: 0 or a negative errno.
 */
int __init node_migrate_register(void)
{
	return node_worker_register(NODE_WORKER_MIGRATE, &migrate_ops);
}
