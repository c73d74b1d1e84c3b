// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers' selftest: misplaced pages arrive, and others stay.
 *
 * Planted faults: selftests/planted/migrate-*.patch.
 */
#define _GNU_SOURCE
#include <pthread.h>
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
};

FIXTURE_VARIANT_ADD(migrate, page) {
	.granularity = "page",
};

FIXTURE_VARIANT_ADD(migrate, block) {
	.granularity = "block",
};

FIXTURE_SETUP(migrate)
{
	ASSERT_TRUE(nw_setup(variant->granularity));
	ASSERT_EQ(0, nw_run_on(nw_cpu(0, 0)));
	self->splits = nw_vmstat("thp_split_page") + nw_vmstat("thp_split_pmd");
}

FIXTURE_TEARDOWN(migrate)
{
	int node;

	for (node = 0; node < nw_nodes(); node++) {
		nw_set("migrate", node, "paused", 0);
		nw_set("migrate", node, "rate_limit_mbps", 0);
	}
}

static void touch(char *mem, size_t len)
{
	size_t i;

	for (i = 0; i < len; i += NW_PAGE)
		mem[i]++;
}

/*
 * Pages that may wait on their CPU for their batch to be put on an LRU list:
 * until then they cannot be isolated, and nothing may come to fill the batch.
 */
#define UNLISTED	32

/* Use the memory until so many pages of it are on the node. */
static bool arrives(char *mem, size_t len, int node, long pages)
{
	return nw_until((touch(mem, len),
			 nw_pages_on(mem, len, node) >= pages));
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
	EXPECT_TRUE(arrives(mem, LEN, 0, PAGES - UNLISTED));
	EXPECT_TRUE(accounts_for_all());
	ours = nw_node_vmstat(0, "node_worker_migrated") - ours;
	EXPECT_LE(PAGES - UNLISTED, ours);
	EXPECT_EQ(ours, nw_vmstat("numa_pages_migrated") - stock);
}

/* memfd memory, of which stock leaves most where it is. */
TEST_F_TIMEOUT(migrate, memfd_follows_its_user, 600)
{
	size_t len = 32UL << 20;
	int fd = memfd_create("follow", MFD_CLOEXEC);
	char *mem;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ftruncate(fd, len));
	mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, mem);
	nw_policy(MPOL_BIND, 1);
	memset(mem, 1, len);
	nw_policy(MPOL_DEFAULT, -1);
	ASSERT_EQ((long)(len / NW_PAGE), nw_pages_on(mem, len, 1));
	EXPECT_TRUE(arrives(mem, len, 0, len / NW_PAGE * 95 / 100));
	munmap(mem, len);
	close(fd);
}

TEST_F_TIMEOUT(migrate, huge_page_whole, 300)
{
	char *mem = nw_alloc_thp_on(1, 4 * NW_THP);

	ASSERT_NE(NULL, mem);
	ASSERT_EQ(4 * 512, nw_pages_on(mem, 4 * NW_THP, 1));
	EXPECT_TRUE(arrives(mem, 4 * NW_THP, 0, 4 * 512));
	EXPECT_EQ(self->splits, nw_vmstat("thp_split_page") +
				nw_vmstat("thp_split_pmd"));
}

/* What is already in its place does not move, nor is it posted. */
TEST_F_TIMEOUT(migrate, placed_stays, 300)
{
	long posted = nw_vmstat("node_worker_posted");
	char *mem = nw_alloc_on(0, LEN);
	long goal = nw_passes() + 4;

	ASSERT_NE(NULL, mem);
	EXPECT_TRUE(nw_until((touch(mem, LEN), nw_passes() >= goal)));
	EXPECT_EQ(PAGES, nw_pages_on(mem, LEN, 0));
	EXPECT_EQ(posted, nw_vmstat("node_worker_posted"));
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
	nw_pause_scan(false);
	ASSERT_TRUE(nw_until(nw_node_vmstat(1, "node_worker_armed") > armed));
	ASSERT_EQ(0, nw_write("/proc/self/numa_balancing", "0"));
	posted = nw_vmstat("node_worker_posted");
	touch(mem, LEN);
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
	EXPECT_TRUE(nw_until((touch(mem, LEN),
			      nw_node_vmstat(0, "node_worker_dropped") >
			      dropped)));
	EXPECT_EQ(PAGES, nw_pages_on(mem, LEN, 1));
	ASSERT_EQ(0, nw_set("migrate", 0, "paused", 0));
	EXPECT_TRUE(arrives(mem, LEN, 0, PAGES - UNLISTED));
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
	nw_pause_scan(false);
	ASSERT_TRUE(nw_until(nw_node_vmstat(1, "node_worker_armed") > armed));
	ASSERT_TRUE(nw_wait_passes(2));
	nw_pause_scan(true);
	starve_migration(0, true);
	touch(mem, LEN);
	ASSERT_EQ(0, madvise(mem, LEN, MADV_DONTNEED));
	nw_policy(MPOL_BIND, 1);
	memset(mem, 1, LEN);
	nw_policy(MPOL_DEFAULT, -1);
	starve_migration(0, false);
	EXPECT_TRUE(nw_until(!nw_in_flight()));
	EXPECT_LT(stale, nw_node_vmstat(0, "node_worker_stale"));
	EXPECT_EQ(PAGES, nw_pages_on(mem, LEN, 1));
	nw_pause_scan(false);
}

/* The cpuset's memory nodes bound what a migration may do. */
TEST_F_TIMEOUT(migrate, cpuset_mems_kept, 300)
{
	char *mem, mems[16];
	long goal;

	if (nw_nodes() < 3)
		SKIP(return, "needs three nodes");
	nw_write("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset");
	mkdir("/sys/fs/cgroup/mems", 0755);
	snprintf(mems, sizeof(mems), "1-%d", nw_nodes() - 1);
	ASSERT_EQ(0, nw_write("/sys/fs/cgroup/mems/cpuset.mems", mems));
	ASSERT_EQ(0, nw_write("/sys/fs/cgroup/mems/cgroup.procs", "0"));
	mem = nw_alloc_on(1, LEN);
	ASSERT_NE(NULL, mem);
	goal = nw_passes() + 4;
	EXPECT_TRUE(nw_until((touch(mem, LEN), nw_passes() >= goal)));
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
		touch(mem, LEN);
		ASSERT_EQ(0, nw_write(NW_MODE, i & 1 ? "5" : "1"));
		nw_spin_ms(20);
	}
	ASSERT_EQ(0, nw_write(NW_MODE, "1"));
	EXPECT_EQ(0, nw_in_flight());
	ASSERT_EQ(0, nw_write(NW_MODE, "5"));
	EXPECT_TRUE(arrives(mem, LEN, 0, PAGES - UNLISTED));
}

/* mm_structs there are, without those that the allocator or KASAN holds back. */
static long mm_structs(void)
{
	nw_write("/sys/kernel/slab/mm_struct/shrink", "1");
	return nw_field("/proc/slabinfo", "mm_struct");
}

/* Forks under scan leave nothing behind that holds an mm_struct. */
TEST_F_TIMEOUT(migrate, forks_leak_no_mm, 600)
{
	long before = mm_structs();
	char *mem = nw_alloc_on(1, LEN);
	int i, status;
	pid_t pid;

	ASSERT_NE(NULL, mem);
	ASSERT_LT(0, before);
	for (i = 0; i < 200; i++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			touch(mem, LEN);
			nw_spin_ms(i % 2 ? 1 : 120);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		ASSERT_EQ(0, status);
	}
	EXPECT_TRUE(nw_until(mm_structs() <= before + 64));
}

TEST_HARNESS_MAIN
