/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * khugepaged by node: part of mm/khugepaged.c, which includes it at its end for
 * the sake of what is static there.
 *
 * Every node with memory gets a struct khugepaged_node once: a list of slots with
 * a cursor, and a collapse_control. While its worker runs the node is open, and a
 * new slot goes onto the list of the nearest open node. With none open, all slots
 * are on the one thread's list, and everything is as without this file.
 *
 * khugepaged_mm_lock protects lists and cursors, which node is open, and what
 * full_scans is made of. A node's collapse_control and its counts are its
 * worker's. khugepaged_mutex protects which kind of thread there is.
 *
 * A slot is only ever on one list, and moves only while no thread can have its
 * cursor on it: when its node's worker, or the one thread, has ended.
 */
#include <linux/delay.h>

/**
 * struct khugepaged_node - khugepaged, as far as it is one node's
 * @cc: its collapse_control
 * @scan: its slots and cursor; khugepaged_mm_lock
 * @nid: the node
 * @open: it takes slots; khugepaged_mm_lock
 * @handed: the range in hand came from another node's worker; the thread's
 * @got_nid: the node of the last huge page allocated; the thread's
 * @began: full_scans when its pass began; khugepaged_mm_lock
 * @done: a pass begun since full_scans last went up has ended; khugepaged_mm_lock
 * @collapsed: its part of pages_collapsed; the thread's, READ_ONCE()
 */
struct khugepaged_node {
	struct collapse_control cc;
	struct khugepaged_scan scan;
	int nid;
	bool open;
	bool handed;
	int got_nid;
	unsigned int began;
	bool done;
	unsigned int collapsed;
};

/* Set once each, for ever, under khugepaged_mm_lock. */
static struct khugepaged_node *khugepaged_node[MAX_NUMNODES];

/* The administrator wants a thread a node; khugepaged_mutex. */
static bool khugepaged_nodes_wanted = true;

static struct khugepaged_node *khugepaged_node_of(struct collapse_control *cc)
{
	if (!cc->is_khugepaged || cc == &khugepaged_collapse_control)
		return NULL;
	return container_of(cc, struct khugepaged_node, cc);
}

static struct khugepaged_scan *khugepaged_scan_of(struct collapse_control *cc)
{
	struct khugepaged_node *kn = khugepaged_node_of(cc);

	return kn ? &kn->scan : &khugepaged_scan;
}

static struct khugepaged_node *khugepaged_nearest_open(int nid)
{
	struct khugepaged_node *kn, *best = NULL;
	int n;

	lockdep_assert_held(&khugepaged_mm_lock);
	for_each_node_state(n, N_MEMORY) {
		kn = khugepaged_node[n];
		if (!kn || !kn->open)
			continue;
		if (!best ||
		    node_distance(nid, n) < node_distance(nid, best->nid))
			best = kn;
	}
	return best;
}

/* A new slot's list: that of the node that the caller runs on or near. */
static struct khugepaged_scan *
khugepaged_new_scan(struct khugepaged_mm_slot *mm_slot)
{
	struct khugepaged_node *kn;

	mm_slot->home = numa_mem_id();
	kn = khugepaged_nearest_open(mm_slot->home);
	mm_slot->scan = kn ? &kn->scan : &khugepaged_scan;
	return mm_slot->scan;
}

static void khugepaged_wake_scan(struct khugepaged_scan *scan)
{
	if (scan == &khugepaged_scan)
		wake_up_interruptible(&khugepaged_wait);
	else
		node_collapse_wake(container_of(scan, struct khugepaged_node,
						scan)->nid);
}

/* Each slot goes to where a new one with its home would go. */
static void khugepaged_move_slots(struct khugepaged_scan *from)
{
	struct khugepaged_mm_slot *mm_slot;
	struct khugepaged_node *kn;
	struct mm_slot *slot, *next;
	LIST_HEAD(slots);

	lockdep_assert_held(&khugepaged_mm_lock);
	/* They may go to where they come from. */
	list_splice_init(&from->mm_head, &slots);
	list_for_each_entry_safe(slot, next, &slots, mm_node) {
		mm_slot = mm_slot_entry(slot, struct khugepaged_mm_slot, slot);
		kn = khugepaged_nearest_open(mm_slot->home);
		mm_slot->scan = kn ? &kn->scan : &khugepaged_scan;
		/* What its old worker had not come to yet is to be seen to. */
		if (kn)
			kn->done = false;
		list_move_tail(&slot->mm_node, &mm_slot->scan->mm_head);
	}
}

/* The cursor's thread has ended, or starts its pass anew. */
static void khugepaged_drop_cursor(struct khugepaged_scan *scan)
{
	struct khugepaged_mm_slot *mm_slot = scan->mm_slot;

	lockdep_assert_held(&khugepaged_mm_lock);
	scan->mm_slot = NULL;
	if (mm_slot)
		collect_mm_slot(mm_slot);
}

/**
 * khugepaged_node_alloc - make a node's list, once
 * @nid: the node
 *
 * Context: process; sleeps.
 * Return: the node's collapse_control, which stays for ever, or NULL.
 */
struct collapse_control *khugepaged_node_alloc(int nid)
{
	struct khugepaged_node *kn;

	kn = kzalloc_node(sizeof(*kn), GFP_KERNEL, nid);
	if (!kn)
		return NULL;
	kn->cc.is_khugepaged = true;
	kn->nid = nid;
	INIT_LIST_HEAD(&kn->scan.mm_head);
	spin_lock(&khugepaged_mm_lock);
	khugepaged_node[nid] = kn;
	spin_unlock(&khugepaged_mm_lock);
	return &kn->cc;
}

/**
 * khugepaged_node_close - a node's worker has ended: give its slots away
 * @cc: the node's
 *
 * Context: process.
 */
void khugepaged_node_close(struct collapse_control *cc)
{
	struct khugepaged_node *kn = khugepaged_node_of(cc);

	spin_lock(&khugepaged_mm_lock);
	kn->open = false;
	kn->done = false;
	khugepaged_drop_cursor(&kn->scan);
	khugepaged_move_slots(&kn->scan);
	spin_unlock(&khugepaged_mm_lock);
	/* What each of them lacks until then is a wake-up. */
	wake_up_interruptible(&khugepaged_wait);
	node_collapse_wake_all();
}

/**
 * khugepaged_node_rewind - let go of the address space being scanned
 * @cc: the node's
 *
 * It is the first to be scanned when the worker goes on, from its beginning.
 *
 * Context: process, in the worker.
 */
void khugepaged_node_rewind(struct collapse_control *cc)
{
	struct khugepaged_scan *scan = khugepaged_scan_of(cc);

	spin_lock(&khugepaged_mm_lock);
	if (scan->mm_slot)
		list_rotate_to_front(&scan->mm_slot->slot.mm_node,
				     &scan->mm_head);
	khugepaged_drop_cursor(scan);
	spin_unlock(&khugepaged_mm_lock);
}

/**
 * khugepaged_node_has_work - is there anything for a node's worker to scan?
 * @cc: the node's
 *
 * Context: any, no locks.
 */
bool khugepaged_node_has_work(struct collapse_control *cc)
{
	return !list_empty_careful(&khugepaged_scan_of(cc)->mm_head) &&
	       hugepage_pmd_enabled();
}

/**
 * khugepaged_nodes_with_slots - among how many workers pages_to_scan is divided
 *
 * Context: any.
 * Return: at least 1.
 */
unsigned int khugepaged_nodes_with_slots(void)
{
	unsigned int nr = 0;
	int nid;

	spin_lock(&khugepaged_mm_lock);
	for_each_node_state(nid, N_MEMORY)
		if (khugepaged_node[nid] &&
		    !list_empty(&khugepaged_node[nid]->scan.mm_head))
			nr++;
	spin_unlock(&khugepaged_mm_lock);
	return max(nr, 1U);
}

/**
 * khugepaged_node_collapsed - a node's part of pages_collapsed
 * @cc: the node's
 *
 * Context: any.
 */
unsigned long khugepaged_node_collapsed(struct collapse_control *cc)
{
	return READ_ONCE(khugepaged_node_of(cc)->collapsed);
}

/**
 * khugepaged_node_at_head - is a node's next piece the first of a pass?
 * @cc: the node's
 * @pass: set to the machine's full scans so far
 *
 * Context: process, in the worker.
 */
bool khugepaged_node_at_head(struct collapse_control *cc, unsigned int *pass)
{
	struct khugepaged_node *kn = khugepaged_node_of(cc);
	bool at_head;

	spin_lock(&khugepaged_mm_lock);
	at_head = !kn->scan.mm_slot;
	*pass = khugepaged_full_scans;
	spin_unlock(&khugepaged_mm_lock);
	return at_head;
}

/**
 * khugepaged_node_scan - scan on from a node's cursor, in one address space
 * @cc: the node's
 * @pages: about how many pages, more than 0
 * @no_huge_page: set if one was wanted and could not be had
 *
 * Context: process, in the worker; sleeps.
 * Return: what is to be taken off the budget; 0 if there is nothing to scan.
 */
unsigned int khugepaged_node_scan(struct collapse_control *cc,
				  unsigned int pages, bool *no_huge_page)
{
	struct khugepaged_node *kn = khugepaged_node_of(cc);
	unsigned int progress = 0;
	int result = SCAN_FAIL;

	kn->handed = false;
	spin_lock(&khugepaged_mm_lock);
	if (!list_empty(&kn->scan.mm_head)) {
		if (!kn->scan.mm_slot)
			kn->began = khugepaged_full_scans;
		progress = khugepaged_scan_mm_slot(pages, &result, cc);
		/* An address space whose lock was taken costs something too. */
		progress = max(progress, 1U);
	}
	spin_unlock(&khugepaged_mm_lock);
	*no_huge_page = result == SCAN_ALLOC_HUGE_PAGE_FAIL;
	return progress;
}

/*
 * While other workers collapse ranges of an address space they hold its lock for
 * write, a range's copy at a time. khugepaged, which has no such company, goes on to
 * the next; a worker would keep missing. So it waits, asleep, some ranges' time and
 * no longer: an application may hold the lock for ever.
 */
static bool khugepaged_read_trylock(struct mm_struct *mm,
				    struct collapse_control *cc)
{
	int tries = khugepaged_node_of(cc) ? 256 : 1;

	while (!mmap_read_trylock(mm)) {
		if (!--tries)
			return false;
		usleep_range_state(500, 1000, TASK_IDLE);
	}
	return true;
}

/* Enters and leaves with mmap_lock held for read, or returns with it dropped. */
static int khugepaged_collapse_range(struct mm_struct *mm,
				     struct vm_area_struct *vma,
				     unsigned long addr, bool *locked,
				     struct collapse_control *cc)
{
	struct file *file;
	pgoff_t pgoff;
	int result;

	if (!IS_ENABLED(CONFIG_SHMEM) || vma_is_anonymous(vma))
		return hpage_collapse_scan_pmd(mm, vma, addr, locked, cc);
	pgoff = linear_page_index(vma, addr);
	/* Pins the file without the lock; put below. */
	file = get_file(vma->vm_file);
	mmap_read_unlock(mm);
	*locked = false;
	result = hpage_collapse_scan_file(mm, addr, file, pgoff, cc);
	fput(file);
	return result;
}

/**
 * khugepaged_node_collapse - see to a range that another worker handed over
 * @cc: the node's
 * @mm: the address space, pinned by the caller and in hand: node_collapse_exit()
 *	waits for its mmap_lock, so that its page tables stay while it is held
 * @addr: the range
 * @no_huge_page: set if one was wanted and could not be had
 *
 * Nothing that the other worker saw is relied on: the range is looked at again.
 * One that is no longer to be collapsed, or not on this node, is left to the
 * next pass of its address space's worker.
 *
 * Context: process, in the worker; sleeps.
 */
void khugepaged_node_collapse(struct collapse_control *cc,
			      struct mm_struct *mm, unsigned long addr,
			      bool *no_huge_page)
{
	struct khugepaged_node *kn = khugepaged_node_of(cc);
	struct vm_area_struct *vma;
	bool locked = true;
	int result;

	*no_huge_page = false;
	if (!khugepaged_read_trylock(mm, cc)) {
		node_collapse_stale(kn->nid);
		return;
	}
	kn->handed = true;
	result = hugepage_vma_revalidate(mm, addr, false, &vma, cc);
	if (result == SCAN_SUCCEED) {
		result = khugepaged_collapse_range(mm, vma, addr, &locked, cc);
		if (result == SCAN_SUCCEED)
			WRITE_ONCE(kn->collapsed, kn->collapsed + 1);
	} else {
		node_collapse_stale(kn->nid);
	}
	if (locked)
		mmap_read_unlock(mm);
	*no_huge_page = result == SCAN_ALLOC_HUGE_PAGE_FAIL;
}

/*
 * Before a collapse: is it another worker's? Then the range is in its inbox, or
 * left to a later pass. mmap_lock, if it is held, stays so.
 */
static bool khugepaged_hand_over(struct mm_struct *mm, unsigned long addr,
				 struct collapse_control *cc)
{
	struct khugepaged_node *kn = khugepaged_node_of(cc);
	int target;

	if (!kn)
		return false;
	target = hpage_collapse_find_target_node(cc);
	if (target == kn->nid)
		return false;
	if (kn->handed) {
		/* Passed on, it could go round for ever. */
		node_collapse_stale(kn->nid);
		return true;
	}
	return node_collapse_offer(target, mm, addr) != NODE_HANDOFF_FULL;
}

/* A huge page has been allocated; on ties it need not be on the target node. */
static void khugepaged_got(struct collapse_control *cc, struct folio *folio)
{
	struct khugepaged_node *kn = khugepaged_node_of(cc);

	if (kn)
		kn->got_nid = folio_nid(folio);
}

/* A collapse has ended. */
static void khugepaged_count(struct collapse_control *cc, int result)
{
	struct khugepaged_node *kn = khugepaged_node_of(cc);

	if (kn && result == SCAN_SUCCEED)
		node_collapse_count(kn->nid, kn->got_nid, kn->handed);
}

/* A scan found, or made, a range huge: for pages_collapsed. */
static void khugepaged_add_collapsed(struct collapse_control *cc)
{
	struct khugepaged_node *kn = khugepaged_node_of(cc);

	if (kn)
		WRITE_ONCE(kn->collapsed, kn->collapsed + 1);
	else
		khugepaged_pages_collapsed++;
}

static unsigned int khugepaged_sum_collapsed(void)
{
	unsigned int sum = READ_ONCE(khugepaged_pages_collapsed);
	int nid;

	for_each_node(nid)
		if (READ_ONCE(khugepaged_node[nid]))
			sum += READ_ONCE(khugepaged_node[nid]->collapsed);
	return sum;
}

/*
 * full_scans goes up once every node with slots has ended a pass that began
 * after it last went up, and what they handed over is done. So a range that was
 * ready when it stood at n has been seen to when it stands at n + 2.
 */
static void khugepaged_try_full_scan(void)
{
	bool any = false;
	int nid;

	lockdep_assert_held(&khugepaged_mm_lock);
	if (node_collapse_handoffs_out())
		return;
	for_each_node(nid) {
		struct khugepaged_node *kn = khugepaged_node[nid];

		if (!kn || !kn->open)
			continue;
		if (!kn->done && !list_empty(&kn->scan.mm_head))
			return;
		any |= kn->done;
	}
	if (!any)
		return;
	for_each_node(nid)
		if (khugepaged_node[nid])
			khugepaged_node[nid]->done = false;
	khugepaged_full_scans++;
}

/* A cursor has reached the end of its list. */
static void khugepaged_pass_ended(struct collapse_control *cc)
{
	struct khugepaged_node *kn = khugepaged_node_of(cc);

	if (!kn) {
		khugepaged_full_scans++;
		return;
	}
	if (kn->began == khugepaged_full_scans)
		kn->done = true;
	khugepaged_try_full_scan();
}

/**
 * khugepaged_handoffs_done - nothing that was handed over is left
 *
 * Context: process, no locks held.
 */
void khugepaged_handoffs_done(void)
{
	spin_lock(&khugepaged_mm_lock);
	khugepaged_try_full_scan();
	spin_unlock(&khugepaged_mm_lock);
}

/**
 * khugepaged_get_tunables - read the machine's tunables
 * @t: filled in
 *
 * Context: any.
 */
void khugepaged_get_tunables(struct khugepaged_tunables *t)
{
	t->pages_to_scan = READ_ONCE(khugepaged_pages_to_scan);
	t->scan_sleep_ms = READ_ONCE(khugepaged_scan_sleep_millisecs);
	t->alloc_sleep_ms = READ_ONCE(khugepaged_alloc_sleep_millisecs);
}

/* Workers run: let them have the slots that the one thread had. */
static void khugepaged_open_nodes(void)
{
	int nid;

	lockdep_assert_held(&khugepaged_mutex);
	spin_lock(&khugepaged_mm_lock);
	/* A worker that is retired closes its node under the same lock, later. */
	for_each_node(nid)
		if (khugepaged_node[nid] && node_collapse_running(nid))
			khugepaged_node[nid]->open = true;
	if (!khugepaged_thread)
		khugepaged_move_slots(&khugepaged_scan);
	spin_unlock(&khugepaged_mm_lock);
	node_collapse_wake_all();
}

static bool khugepaged_nodes_want(void)
{
	return khugepaged_nodes_wanted && hugepage_pmd_enabled() &&
	       num_node_state(N_MEMORY) > 1;
}

/* Start or stop the workers. Returns whether they do the one thread's work. */
static bool khugepaged_start_stop_nodes(void)
{
	lockdep_assert_held(&khugepaged_mutex);
	if (khugepaged_nodes_want() && !node_collapse_start())
		return true;
	node_collapse_stop();
	return false;
}

static bool khugepaged_nodes_run(void)
{
	int nid;

	for_each_node_state(nid, N_MEMORY)
		if (node_collapse_running(nid))
			return true;
	return false;
}

static int khugepaged_start_one(void)
{
	struct task_struct *task;

	if (khugepaged_thread)
		return 0;
	task = kthread_run(khugepaged, NULL, "khugepaged");
	if (IS_ERR(task))
		return PTR_ERR(task);
	khugepaged_thread = task;
	return 0;
}

static void khugepaged_stop_one(void)
{
	if (!khugepaged_thread)
		return;
	kthread_stop(khugepaged_thread);
	khugepaged_thread = NULL;
}

/*
 * As start_stop_khugepaged(), but what an administrator made of min_free_kbytes
 * since is none of its business.
 */
static int khugepaged_switch(void)
{
	int err = 0;

	lockdep_assert_held(&khugepaged_mutex);
	/* Before the workers go: a writer that is being killed gets no thread. */
	if (!khugepaged_nodes_want() && hugepage_pmd_enabled())
		err = khugepaged_start_one();
	if (err)
		return err;
	if (khugepaged_start_stop_nodes())
		khugepaged_stop_one();
	else if (hugepage_pmd_enabled())
		err = khugepaged_start_one();
	khugepaged_open_nodes();
	return err;
}

/**
 * khugepaged_by_node - is a thread a node wanted?
 *
 * Context: process.
 */
bool khugepaged_by_node(void)
{
	return READ_ONCE(khugepaged_nodes_wanted);
}

/**
 * khugepaged_set_by_node - choose between one thread and one a node
 * @on: one a node
 *
 * Context: process; takes khugepaged_mutex and sleeps.
 * Return: 0 or a negative errno; it is as before then.
 */
int khugepaged_set_by_node(bool on)
{
	bool before;
	int err;

	mutex_lock(&khugepaged_mutex);
	before = khugepaged_nodes_wanted;
	WRITE_ONCE(khugepaged_nodes_wanted, on);
	err = khugepaged_switch();
	if (err)
		WRITE_ONCE(khugepaged_nodes_wanted, before);
	mutex_unlock(&khugepaged_mutex);
	return err;
}

/**
 * khugepaged_nodes_changed - nodes have got or lost their memory
 *
 * Context: process; takes khugepaged_mutex and sleeps.
 */
void khugepaged_nodes_changed(void)
{
	mutex_lock(&khugepaged_mutex);
	if (khugepaged_switch())
		pr_warn("could not be started again\n");
	mutex_unlock(&khugepaged_mutex);
}
