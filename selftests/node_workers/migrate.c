// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers' selftest: misplaced pages arrive, and others stay.
 *
 * Planted faults: selftests/planted/migrate-*.patch.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "nw.h"

#define PAGES	1024
#define LEN	(PAGES * NW_PAGE)

FIXTURE(migrate) {
	long splits;
};

FIXTURE_VARIANT(migrate) {
	const char *granularity;
	int forks;
};

FIXTURE_VARIANT_ADD(migrate, page) {
	.granularity = "page",
	.forks = 200,
};

FIXTURE_VARIANT_ADD(migrate, block) {
	.granularity = "block",
	.forks = 2000,
};

FIXTURE_SETUP(migrate)
{
	ASSERT_TRUE(nw_setup(variant->granularity));
	ASSERT_EQ(0, nw_run_on(nw_cpu(0, 0)));
	self->splits = nw_splits();
}

FIXTURE_TEARDOWN(migrate)
{
	nw_pause_scan(false);
	nw_set_all("migrate", "paused", 0);
	nw_set_all("migrate", "rate_limit_mbps", 0);
}

/* Everything posted comes to one of three ends. */
static bool accounts_for_all(void)
{
	nw_pause_scan(true);
	return nw_until(!nw_in_flight());
}

TEST_F_TIMEOUT(migrate, anon_arrives, 300)
{
	long stock = nw_vmstat("numa_pages_migrated");
	long ours = nw_node_vmstat(0, "node_worker_migrated");
	char *mem = nw_alloc_on(1, LEN);

	ASSERT_NE(NULL, mem);
	EXPECT_TRUE(nw_arrives(mem, LEN, 0, PAGES - NW_UNLISTED));
	EXPECT_TRUE(accounts_for_all());
	ours = nw_node_vmstat(0, "node_worker_migrated") - ours;
	EXPECT_LE(PAGES - NW_UNLISTED, ours);
	EXPECT_EQ(ours, nw_vmstat("numa_pages_migrated") - stock);
}

/* memfd memory, of which stock leaves most where it is. */
TEST_F_TIMEOUT(migrate, memfd_follows_its_user, 600)
{
	size_t len = 32UL << 20;
	int fd = memfd_create("follow", MFD_CLOEXEC);
	char *mem = nw_shared_on(1, fd, len);

	ASSERT_NE(NULL, mem);
	ASSERT_EQ((long)(len / NW_PAGE), nw_pages_on(mem, len, 1));
	EXPECT_TRUE(nw_arrives(mem, len, 0, len / NW_PAGE * 95 / 100));
	munmap(mem, len);
	close(fd);
}

TEST_F_TIMEOUT(migrate, huge_page_whole, 300)
{
	char *mem = nw_alloc_thp_on(1, 4 * NW_THP);

	ASSERT_NE(NULL, mem);
	ASSERT_EQ(4 * 512, nw_pages_on(mem, 4 * NW_THP, 1));
	EXPECT_TRUE(nw_arrives(mem, 4 * NW_THP, 0, 4 * 512));
	EXPECT_EQ(self->splits, nw_splits());
}

static void *wait_fn(void *arg)
{
	sem_wait(arg);
	return NULL;
}

/*
 * What is already in its place has hints, but does not move, nor is it posted. With
 * a second thread, or there would be no hints.
 */
TEST_F_TIMEOUT(migrate, placed_stays, 300)
{
	char *mem = nw_alloc_on(0, LEN);
	pthread_t thread;
	sem_t over;

	ASSERT_NE(NULL, mem);
	ASSERT_EQ(0, sem_init(&over, 0, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_fn, &over));
	ASSERT_EQ(0, nw_trace("node_worker/node_worker_fault", true));
	EXPECT_TRUE(nw_touch_passes(mem, LEN, 4));
	nw_trace("node_worker/node_worker_fault", false);
	EXPECT_EQ(PAGES, nw_pages_on(mem, LEN, 0));
	EXPECT_EQ(0, nw_traced_posted(mem, LEN));
	sem_post(&over);
	pthread_join(thread, NULL);
}

static int far_node(int from)
{
	char path[64], text[64], *p = text;
	int node, dist, far = from, max = 0;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/distance",
		 from);
	nw_read(path, text, sizeof(text));
	for (node = 0; node < nw_nodes(); node++) {
		dist = strtol(p, &p, 10);
		if (dist > max && nw_has_memory(node)) {
			far = node;
			max = dist;
		}
	}
	return far;
}

/*
 * A node that is full sends its pages to the next nearest, and gets them when it
 * has room. In a guest of four, node 1 is nearer to node 0 than node 3 is.
 */
TEST_F_TIMEOUT(migrate, next_nearest, 600)
{
	long factor = nw_read_long(NW_VM "watermark_scale_factor");
	char *mem, *filler;
	size_t room;

	if (nw_nodes() < 4 || far_node(0) != 3)
		SKIP(return, "needs nodes at different distances");
	mem = nw_alloc_on(3, LEN);
	ASSERT_NE(NULL, mem);
	ASSERT_EQ(0, nw_write_long(NW_VM "watermark_scale_factor", 1000));
	filler = nw_fill(0, &room);
	ASSERT_NE(NULL, filler);
	EXPECT_TRUE(nw_arrives(mem, LEN, 1, PAGES - NW_UNLISTED));
	EXPECT_EQ(0, nw_pages_on(mem, LEN, 0));
	munmap(filler, room);
	EXPECT_TRUE(nw_arrives(mem, LEN, 0, PAGES - NW_UNLISTED));
	EXPECT_EQ(0, nw_write_long(NW_VM "watermark_scale_factor", factor));
}

/* Pages of a file on a disk, which are shared with the page cache, and clean. */
TEST_F_TIMEOUT(migrate, file_follows_its_user, 300)
{
	volatile char *use;
	long i, sum;
	char *mem;
	int fd;

	if (!nw_mount_files())
		SKIP(return, "needs a RAM disk and a filesystem");
	mem = nw_file_on(1, &fd, LEN);
	ASSERT_NE(NULL, mem);
	use = mem;
	ASSERT_EQ(PAGES, nw_pages_on(mem, LEN, 1));
	EXPECT_TRUE(nw_until(({
		for (i = sum = 0; i < PAGES; i++)
			sum += use[i * NW_PAGE];
		nw_pages_on(mem, LEN, 0) >= PAGES - NW_UNLISTED; })));
	EXPECT_EQ(PAGES, sum);
	munmap(mem, LEN);
	close(fd);
	EXPECT_EQ(0, umount(NW_FILES));
}

/* Opted out between arming and touching: the hint is undone, and no more. */
TEST_F_TIMEOUT(migrate, opt_out_at_fault, 300)
{
	long armed, posted;
	char *mem;

	nw_pause_scan(true);
	mem = nw_alloc_on(1, LEN);
	ASSERT_NE(NULL, mem);
	armed = nw_node_vmstat(1, "node_worker_armed");
	ASSERT_TRUE(nw_arm(1, armed, 1));
	ASSERT_EQ(0, nw_write("/proc/self/numa_balancing", "0"));
	posted = nw_vmstat("node_worker_posted");
	nw_touch(mem, LEN);
	EXPECT_EQ(posted, nw_vmstat("node_worker_posted"));
	EXPECT_EQ(PAGES, nw_pages_on(mem, LEN, 1));
	nw_write("/proc/self/numa_balancing", "1");
}

/* A paused destination takes nothing; the pages follow once it resumes. */
TEST_F_TIMEOUT(migrate, paused_destination, 300)
{
	long dropped = nw_node_vmstat(0, "node_worker_dropped");
	char *mem;

	ASSERT_EQ(0, nw_set("migrate", 0, "paused", 1));
	mem = nw_alloc_on(1, LEN);
	ASSERT_NE(NULL, mem);
	EXPECT_TRUE(nw_until((nw_touch(mem, LEN),
			      nw_node_vmstat(0, "node_worker_dropped") >
			      dropped)));
	EXPECT_EQ(PAGES, nw_pages_on(mem, LEN, 1));
	ASSERT_EQ(0, nw_set("migrate", 0, "paused", 0));
	EXPECT_TRUE(nw_arrives(mem, LEN, 0, PAGES - NW_UNLISTED));
}

/* Keep a node's kmigrated from running until we let go of our CPU. */
static void starve_migration(int node, bool starve)
{
	char path[128], cpu[16];

	snprintf(cpu, sizeof(cpu), "%d", nw_cpu(node, 0));
	nw_file(path, sizeof(path), "migrate", node, "cpulist");
	if (starve)
		nw_write(path, cpu);
	else
		nw_write(path, nw_possible_cpus());
	nw_set("migrate", node, "nice", starve ? 19 : 0);
	syscall(SYS_setpriority, 0, 0, starve ? -20 : 0);
}

/*
 * The page frames of posted pages are freed and come back to the same memory
 * before they are looked at: as other pages, that nobody asked to move.
 */
TEST_F_TIMEOUT(migrate, reused_pfn_stays, 300)
{
	long armed, stale = nw_node_vmstat(0, "node_worker_stale");
	char *mem;

	nw_pause_scan(true);
	mem = nw_alloc_on(1, LEN);
	ASSERT_NE(NULL, mem);
	armed = nw_node_vmstat(1, "node_worker_armed");
	ASSERT_TRUE(nw_arm(1, armed, 1));
	nw_pause_scan(false);
	ASSERT_TRUE(nw_wait_passes(2));
	nw_pause_scan(true);
	starve_migration(0, true);
	nw_touch(mem, LEN);
	ASSERT_EQ(0, madvise(mem, LEN, MADV_DONTNEED));
	nw_policy(MPOL_BIND, 1);
	memset(mem, 1, LEN);
	nw_policy(MPOL_DEFAULT, -1);
	starve_migration(0, false);
	EXPECT_TRUE(nw_until(!nw_in_flight()));
	EXPECT_LT(stale, nw_node_vmstat(0, "node_worker_stale"));
	EXPECT_EQ(PAGES, nw_pages_on(mem, LEN, 1));
}

/* The cpuset's memory nodes bound what a migration may do. */
TEST_F_TIMEOUT(migrate, cpuset_mems_kept, 300)
{
	char *mem, mems[16];

	if (nw_nodes() < 3)
		SKIP(return, "needs three nodes");
	nw_write("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset");
	mkdir("/sys/fs/cgroup/mems", 0755);
	snprintf(mems, sizeof(mems), "1-%d", nw_nodes() - 1);
	ASSERT_EQ(0, nw_write("/sys/fs/cgroup/mems/cpuset.mems", mems));
	ASSERT_EQ(0, nw_write("/sys/fs/cgroup/mems/cgroup.procs", "0"));
	mem = nw_alloc_on(1, LEN);
	ASSERT_NE(NULL, mem);
	EXPECT_TRUE(nw_touch_passes(mem, LEN, 4));
	EXPECT_EQ(0, nw_pages_on(mem, LEN, 0));
	nw_write("/sys/fs/cgroup/cgroup.procs", "0");
	rmdir("/sys/fs/cgroup/mems");
}

/* The bit goes and comes under load; each time all posts come to an end. */
TEST_F_TIMEOUT(migrate, mode_switched_under_load, 600)
{
	char *mem = nw_alloc_on(1, LEN);
	int i;

	ASSERT_NE(NULL, mem);
	for (i = 0; i < 40; i++) {
		nw_touch(mem, LEN);
		ASSERT_EQ(0, nw_write(NW_MODE, i & 1 ? "5" : "1"));
		nw_spin_ms(20);
	}
	ASSERT_EQ(0, nw_write(NW_MODE, "1"));
	EXPECT_EQ(0, nw_in_flight());
	ASSERT_EQ(0, nw_write(NW_MODE, "5"));
	EXPECT_TRUE(nw_arrives(mem, LEN, 0, PAGES - NW_UNLISTED));
}

/* More is posted than can be moved in the time that the switch takes by itself. */
TEST_F_TIMEOUT(migrate, switched_off_with_posts, 300)
{
	size_t len = 16 * LEN;
	char *mem;

	nw_pause_scan(true);
	mem = nw_alloc_on(1, len);
	ASSERT_NE(NULL, mem);
	nw_pause_scan(false);
	ASSERT_TRUE(nw_wait_passes(2));
	nw_pause_scan(true);
	nw_touch(mem, len);
	ASSERT_LT(0, nw_in_flight());
	ASSERT_EQ(0, nw_write(NW_MODE, "1"));
	EXPECT_EQ(0, nw_in_flight());
	ASSERT_EQ(0, nw_write(NW_MODE, "5"));
}

/* Forks under scan leave nothing behind that holds an mm_struct. */
TEST_F_TIMEOUT(migrate, forks_leak_no_mm, 600)
{
	long before = nw_mm_structs();
	char *mem = nw_alloc_on(1, LEN);
	int i, status;
	pid_t pid;

	ASSERT_NE(NULL, mem);
	ASSERT_LT(0, before);
	for (i = 0; i < variant->forks; i++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			nw_touch(mem, LEN / 16);
			nw_spin_ms(i % 50 ? 1 : 120);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		ASSERT_EQ(0, status);
	}
	EXPECT_TRUE(nw_until(nw_mm_structs() <= before + 64));
}

TEST_HARNESS_MAIN
