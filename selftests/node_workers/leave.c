// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers' selftest: what must not be moved, though it is used from afar.
 *
 * Memory is put on node 1 and used from node 0. Either it is of a kind that
 * stays where it is, or something happens between the post and the move that
 * makes the post stale. Planted faults: selftests/planted/leave-*.patch.
 */
#define _GNU_SOURCE
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>

#include "../kselftest_harness.h"
#include "hog.h"
#include "nw.h"

#define PAGES	256
#define LEN	(PAGES * NW_PAGE)

#define KSM	"/sys/kernel/mm/ksm/"

FIXTURE(leave) {
	long splits, armed;
};

FIXTURE_SETUP(leave)
{
	ASSERT_TRUE(nw_setup("page"));
	ASSERT_EQ(0, nw_run_on(nw_cpu(0, 0)));
	nw_pause_scan(true);
	self->splits = nw_splits();
	self->armed = nw_node_vmstat(1, "node_worker_armed");
}

FIXTURE_TEARDOWN(leave)
{
	nw_pause_scan(false);
	nw_set_all("migrate", "paused", 0);
	nw_set_all("migrate", "rate_limit_mbps", 0);
	nw_write(KSM "run", "2");
}

/* As in mm/gup_test.h. */
struct pin_longterm_test {
	__u64 addr;
	__u64 size;
	__u32 flags;
};

#define PIN_LONGTERM_TEST_START	_IOW('g', 7, struct pin_longterm_test)
#define PIN_LONGTERM_TEST_STOP	_IO('g', 8)

/*
 * Pages that I/O may write to at any time. They are not even unmapped: whoever
 * uses them would wait for nothing.
 */
TEST_F_TIMEOUT(leave, pinned, 300)
{
	char *mem = nw_shared_on(1, memfd_create("pinned", MFD_CLOEXEC), LEN);
	struct pin_longterm_test pin = { (uintptr_t)mem, LEN, 1 };
	int gup = open("/sys/kernel/debug/gup_test", O_RDWR | O_CLOEXEC);
	long tried = nw_vmstat("pgmigrate_fail");
	long failed = nw_node_vmstat(0, "node_worker_failed");

	ASSERT_NE(NULL, mem);
	if (gup < 0)
		SKIP(return, "needs CONFIG_GUP_TEST");
	ASSERT_EQ(0, ioctl(gup, PIN_LONGTERM_TEST_START, &pin));
	nw_pause_scan(false);
	EXPECT_TRUE(nw_until((nw_touch(mem, LEN),
			      nw_node_vmstat(0, "node_worker_failed") >=
			      failed + PAGES)));
	EXPECT_EQ(PAGES, nw_pages_on(mem, LEN, 1));
	EXPECT_EQ(tried, nw_vmstat("pgmigrate_fail"));
	ASSERT_EQ(0, ioctl(gup, PIN_LONGTERM_TEST_STOP));
	close(gup);
}

/* Its pages are not in the kernel's own map, so nobody could copy them: no hints. */
TEST_F_TIMEOUT(leave, secretmem, 300)
{
	char *mem = nw_shared_on(1, syscall(SYS_memfd_secret, 0), LEN);
	long i, armed = nw_vmstat("node_worker_armed");

	if (!mem)
		SKIP(return, "needs memfd_secret");
	ASSERT_EQ(PAGES, nw_pages_on(mem, LEN, 1));
	nw_pause_scan(false);
	EXPECT_TRUE(nw_touch_passes(mem, LEN, 4));
	/* The harness shares a page with us. */
	EXPECT_GE(armed + 1, nw_vmstat("node_worker_armed"));
	EXPECT_EQ(PAGES, nw_pages_on(mem, LEN, 1));
	for (i = 1; i < PAGES; i++)
		ASSERT_EQ(mem[0], mem[i * NW_PAGE]);
}

/*
 * Merged pages have no place of their own, and so no hints. Pairs of equal pages
 * are merged, then one of each is unmapped: many users alone would keep hints
 * away from any page.
 */
TEST_F_TIMEOUT(leave, ksm, 300)
{
	char *mem = nw_alloc_on(1, LEN);
	long i, armed;

	ASSERT_NE(NULL, mem);
	for (i = 0; i < PAGES / 2; i++) {
		memset(mem + i * NW_PAGE, i + 1, NW_PAGE / 2);
		memset(mem + LEN / 2 + i * NW_PAGE, i + 1, NW_PAGE / 2);
	}
	if (madvise(mem, LEN, MADV_MERGEABLE))
		SKIP(return, "needs CONFIG_KSM");
	nw_write(KSM "pages_to_scan", "1000");
	nw_write(KSM "sleep_millisecs", "10");
	nw_write(KSM "run", "1");
	ASSERT_TRUE(nw_until(nw_read_long(KSM "pages_sharing") >= PAGES / 2));
	nw_write(KSM "run", "0");
	ASSERT_EQ(0, munmap(mem + LEN / 2, LEN / 2));
	armed = nw_vmstat("node_worker_armed");
	nw_pause_scan(false);
	ASSERT_TRUE(nw_wait_passes(4));
	/* The harness shares a page with us. */
	EXPECT_GE(armed + 1, nw_vmstat("node_worker_armed"));
	for (i = 0; i < PAGES / 2; i++)
		EXPECT_EQ((char)(i + 1), mem[i * NW_PAGE]);
}

/* ksmd reads, write-protects and merges pages with hints on; no harm is done. */
TEST_F_TIMEOUT(leave, ksmd_meets_hints, 300)
{
	char *mem = nw_alloc_on(1, LEN);
	long i, hints;

	ASSERT_NE(NULL, mem);
	if (madvise(mem, LEN, MADV_MERGEABLE))
		SKIP(return, "needs CONFIG_KSM");
	ASSERT_TRUE(nw_arm(1, self->armed, PAGES));
	hints = nw_vmstat("numa_hint_faults");
	nw_write(KSM "pages_to_scan", "1000");
	nw_write(KSM "sleep_millisecs", "10");
	nw_write(KSM "run", "1");
	ASSERT_TRUE(nw_until(nw_read_long(KSM "pages_sharing") >= PAGES - 2));
	/* ksmd is no user of the pages: it takes no hint. */
	EXPECT_EQ(hints, nw_vmstat("numa_hint_faults"));
	nw_touch(mem, LEN);
	for (i = 0; i < PAGES; i++)
		ASSERT_EQ(2, mem[i * NW_PAGE]);
}

/* Half of a huge page is gone: a migration would split it. */
TEST_F_TIMEOUT(leave, partial_huge_page, 300)
{
	char *mem = nw_alloc_thp_on(1, NW_THP);
	long half = NW_THP / 2;

	ASSERT_NE(NULL, mem);
	ASSERT_EQ(512, nw_pages_on(mem, NW_THP, 1));
	/* Nor is khugepaged to make it whole again. */
	ASSERT_EQ(0, madvise(mem, NW_THP, MADV_NOHUGEPAGE));
	ASSERT_EQ(0, madvise(mem + half, half, MADV_DONTNEED));
	/* The mapping was split by the madvise() just now, by nobody else. */
	self->splits = nw_splits();
	nw_pause_scan(false);
	EXPECT_TRUE(nw_touch_passes(mem, half, 6));
	EXPECT_EQ(256, nw_pages_on(mem, half, 1));
	EXPECT_EQ(self->splits, nw_splits());
}

static void *write_fn(void *mem)
{
	*(volatile char *)mem = 2;
	return NULL;
}

/* A page that is write-protected for its pager still is after a hint. */
TEST_F_TIMEOUT(leave, userfaultfd_protection, 300)
{
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	char *mem = nw_alloc_on(1, LEN);
	struct uffdio_writeprotect wp = {
		.range = { (uintptr_t)mem, LEN },
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	struct uffdio_register reg = {
		.range = wp.range,
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_api api = { .api = UFFD_API };
	struct pollfd pfd = { uffd, POLLIN, 0 };
	volatile char *use = mem;
	pthread_t writer;
	long i, sum = 0;

	ASSERT_NE(NULL, mem);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) ||
	    ioctl(uffd, UFFDIO_REGISTER, &reg))
		SKIP(return, "needs userfaultfd");
	ASSERT_EQ(0, ioctl(uffd, UFFDIO_WRITEPROTECT, &wp));
	ASSERT_TRUE(nw_arm(1, self->armed, PAGES));
	for (i = 0; i < PAGES; i++)
		sum += use[i * NW_PAGE];
	ASSERT_EQ(PAGES, sum);
	ASSERT_TRUE(nw_until(!nw_in_flight()));
	/* Wherever it is now, a write is the pager's to let through. */
	ASSERT_EQ(0, pthread_create(&writer, NULL, write_fn, mem));
	EXPECT_EQ(1, poll(&pfd, 1, 1000 * nw_patience()));
	EXPECT_EQ(1, use[0]);
	wp.mode = 0;
	ASSERT_EQ(0, ioctl(uffd, UFFDIO_WRITEPROTECT, &wp));
	pthread_join(writer, NULL);
	EXPECT_EQ(2, use[0]);
	close(uffd);
}

/*
 * Arm, and post by a touch from node 0, with node 0's kmigrated held up. It may
 * have been at work when it lost its CPU; all the rest waits in its ring.
 */
static char *posted_on_1(struct nw_hog *hog, long armed)
{
	char *mem = nw_alloc_on(1, LEN);

	if (!mem || !nw_arm(1, armed, PAGES) || !nw_starve(hog, "migrate", 0))
		return NULL;
	nw_touch(mem, LEN);
	return nw_stat("migrate", 0, "backlog") >= PAGES / 2 ? mem : NULL;
}

/* Freed before the worker came to look: there is nothing to move any more. */
TEST_F_TIMEOUT(leave, unmapped, 300)
{
	long moved = nw_node_vmstat(0, "node_worker_migrated");
	struct nw_hog hog;
	char *mem;

	if (nw_cpu(0, 1) < 0)
		SKIP(return, "needs two CPUs a node");
	mem = posted_on_1(&hog, self->armed);
	ASSERT_NE(NULL, mem);
	munmap(mem, LEN);
	nw_feed(&hog);
	EXPECT_TRUE(nw_until(!nw_in_flight()));
	moved = nw_node_vmstat(0, "node_worker_migrated") - moved;
	EXPECT_GE(PAGES / 2, moved);
}

/* Bound meanwhile to where it was. */
TEST_F_TIMEOUT(leave, bound_since, 300)
{
	struct nw_hog hog;
	char *mem;

	if (nw_cpu(0, 1) < 0)
		SKIP(return, "needs two CPUs a node");
	mem = posted_on_1(&hog, self->armed);
	ASSERT_NE(NULL, mem);
	ASSERT_EQ(0, nw_mbind(mem, LEN, MPOL_BIND, 1));
	nw_feed(&hog);
	EXPECT_TRUE(nw_until(!nw_in_flight()));
	EXPECT_LE(PAGES / 2, nw_pages_on(mem, LEN, 1));
}

/* Somebody on another node has used it since. */
TEST_F_TIMEOUT(leave, used_elsewhere_since, 300)
{
	struct nw_hog hog;
	long passes;
	char *mem;

	if (nw_cpu(0, 1) < 0 || nw_nodes() < 3)
		SKIP(return, "needs three nodes with two CPUs");
	mem = posted_on_1(&hog, self->armed);
	ASSERT_NE(NULL, mem);
	ASSERT_EQ(0, nw_set("migrate", 2, "paused", 1));
	ASSERT_EQ(0, nw_run_on(nw_cpu(2, 0)));
	nw_pause_scan(false);
	passes = nw_wait_passes(4);
	nw_pause_scan(true);
	nw_touch(mem, LEN);
	nw_feed(&hog);
	EXPECT_TRUE(passes);
	EXPECT_TRUE(nw_until(!nw_in_flight()));
	EXPECT_LE(PAGES / 2, nw_pages_on(mem, LEN, 1));
}

/*
 * More than the ring has room for: what is refused stays, and none of the rest
 * is lost. A ring has at most 131072 entries, one for four pages of the node.
 */
TEST_F_TIMEOUT(leave, full_ring, 600)
{
	long pages = nw_node_vmstat(0, "nr_free_pages") / 4 + 8192;
	long i, dropped = nw_node_vmstat(0, "node_worker_dropped");
	struct nw_hog hog;
	char *mem;

	if (nw_cpu(0, 1) < 0)
		SKIP(return, "needs two CPUs a node");
	if (nw_node_vmstat(1, "nr_free_pages") < pages + 16384)
		SKIP(return, "node 1 has no room");
	mem = nw_alloc_on(1, pages * NW_PAGE);
	ASSERT_NE(NULL, mem);
	ASSERT_TRUE(nw_arm(1, self->armed, pages));
	ASSERT_TRUE(nw_starve(&hog, "migrate", 0));
	nw_touch(mem, pages * NW_PAGE);
	nw_feed(&hog);
	EXPECT_LT(dropped, nw_node_vmstat(0, "node_worker_dropped"));
	EXPECT_TRUE(nw_until(!nw_in_flight()));
	for (i = 0; i < pages; i++)
		ASSERT_EQ(2, mem[i * NW_PAGE]);
}

static long direct_reclaims(void)
{
	return nw_vmstat("pgscan_direct") + nw_vmstat("allocstall_normal") +
	       nw_vmstat("allocstall_movable");
}

/*
 * A full node takes nothing: no reclaim for the sake of placement. With
 * watermarks far apart it is full long before anything is reclaimed for others.
 */
TEST_F_TIMEOUT(leave, full_node, 600)
{
	long factor = nw_read_long(NW_VM "watermark_scale_factor");
	long reclaims, dropped;
	size_t room;
	char *mem, *filler;

	ASSERT_EQ(0, nw_write_long(NW_VM "watermark_scale_factor", 1000));
	mem = nw_alloc_on(1, LEN);
	ASSERT_NE(NULL, mem);
	reclaims = direct_reclaims();
	filler = nw_fill(0, &room);
	ASSERT_NE(NULL, filler);
	dropped = nw_node_vmstat(0, "node_worker_dropped");
	nw_pause_scan(false);
	EXPECT_TRUE(nw_touch_passes(mem, LEN, 4));
	EXPECT_EQ(PAGES, nw_pages_on(mem, LEN, 1));
	EXPECT_LT(dropped, nw_node_vmstat(0, "node_worker_dropped"));
	EXPECT_EQ(reclaims, direct_reclaims());
	munmap(filler, room);
	EXPECT_TRUE(nw_arrives(mem, LEN, 0, PAGES - NW_UNLISTED));
	EXPECT_EQ(0, nw_write_long(NW_VM "watermark_scale_factor", factor));
}

/* A limit in MB/s is one, over any tenth of a second. */
TEST_F_TIMEOUT(leave, over_the_rate_limit, 300)
{
	long dropped = nw_node_vmstat(0, "node_worker_dropped");
	long posted = nw_node_vmstat(0, "node_worker_posted");
	char *mem = nw_alloc_on(1, 4 * LEN);
	double since = nw_now();

	ASSERT_NE(NULL, mem);
	ASSERT_EQ(0, nw_set("migrate", 0, "rate_limit_mbps", 1));
	ASSERT_TRUE(nw_arm(1, self->armed, 4 * PAGES));
	nw_touch(mem, 4 * LEN);
	posted = nw_node_vmstat(0, "node_worker_posted") - posted;
	EXPECT_LT(0, posted);
	/* 25 pages in each window, one begun before and one not yet ended. */
	EXPECT_GE((nw_now() - since) * 256 + 50, posted);
	EXPECT_LE(dropped + 4 * PAGES - posted - 1,
		  nw_node_vmstat(0, "node_worker_dropped"));
}

/* Use memory from another node's CPU, as a thread of our own. */
static void *touch_fn(void *mem)
{
	nw_run_on(nw_cpu(2, 0));
	nw_touch(mem, LEN);
	return NULL;
}

/*
 * The two-stage filter: a page that another node's thread used last is not
 * moved at our first fault, only if ours is the next one as well.
 */
TEST_F_TIMEOUT(leave, used_once, 300)
{
	long posted = nw_node_vmstat(0, "node_worker_posted");
	char *mem = nw_alloc_on(1, LEN);
	pthread_t thread;

	if (nw_nodes() < 3)
		SKIP(return, "needs three nodes");
	ASSERT_NE(NULL, mem);
	ASSERT_TRUE(nw_arm(1, self->armed, PAGES));
	ASSERT_EQ(0, nw_set("migrate", 2, "paused", 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, touch_fn, mem));
	pthread_join(thread, NULL);
	self->armed = nw_node_vmstat(1, "node_worker_armed");
	ASSERT_TRUE(nw_arm(1, self->armed, PAGES));
	nw_touch(mem, LEN);
	EXPECT_EQ(posted, nw_node_vmstat(0, "node_worker_posted"));
	self->armed = nw_node_vmstat(1, "node_worker_armed");
	ASSERT_TRUE(nw_arm(1, self->armed, PAGES));
	nw_touch(mem, LEN);
	EXPECT_LE(posted + PAGES, nw_node_vmstat(0, "node_worker_posted"));
}

TEST_HARNESS_MAIN
