// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers' selftest: what a scan arms, and what it must leave alone.
 *
 * Each test is a process of its own with one thread, whose own memory is not
 * armed because it is local (run.sh starts it on node 0); so all that is armed
 * is what the test puts on another node. Planted faults:
 * selftests/planted/scan-*.patch.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "nw.h"

#define HUGETLB_2M "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages"

/* The harness shares a page with its tests: that is armed, even if local. */
#define HARNESS	1

#define PAGES	512
#define LEN	(PAGES * NW_PAGE)

FIXTURE(scan) {
	char *mem;
	long armed;
};

FIXTURE_SETUP(scan)
{
	ASSERT_TRUE(nw_setup("page"));
	ASSERT_EQ(0, nw_run_on(nw_cpu(0, 0)));
	self->mem = nw_alloc_on(1, LEN);
	ASSERT_NE(NULL, self->mem);
	ASSERT_EQ(PAGES, nw_pages_on(self->mem, LEN, 1));
	self->armed = nw_node_vmstat(1, "node_worker_armed");
	ASSERT_LE(0, self->armed);
}

FIXTURE_TEARDOWN(scan)
{
	nw_write("/proc/self/numa_balancing", "1");
	munmap(self->mem, LEN);
}

static long armed_since(long before)
{
	return nw_node_vmstat(1, "node_worker_armed") - before;
}

/* Every page once armed, once touched, gives one fault, no more, no less. */
TEST_F_TIMEOUT(scan, one_fault_a_page, 300)
{
	long faults, i;

	ASSERT_TRUE(nw_until(armed_since(self->armed) >= PAGES));
	nw_pause_scan(true);
	EXPECT_EQ(PAGES, armed_since(self->armed));
	faults = nw_vmstat("numa_hint_faults");
	for (i = 0; i < PAGES; i++)
		self->mem[i * NW_PAGE]++;
	EXPECT_EQ(faults + PAGES, nw_vmstat("numa_hint_faults"));
	for (i = 0; i < PAGES; i++)
		self->mem[i * NW_PAGE]++;
	EXPECT_EQ(faults + PAGES, nw_vmstat("numa_hint_faults"));
	nw_pause_scan(false);
}

/* One PTE for each block; its fault accounts for, and moves, all of it. */
TEST_F_TIMEOUT(scan, one_fault_a_block, 300)
{
	long faults, block, i;

	nw_pause_scan(true);
	ASSERT_EQ(0, nw_write(NW_SYSFS "scan/granularity", "block"));
	block = nw_read_long(NW_SYSFS "scan/block_pages");
	ASSERT_LT(1, block);
	/* Whatever was armed before is gone with its memory. */
	munmap(self->mem, LEN);
	self->mem = nw_alloc_on(1, LEN);
	self->armed = nw_node_vmstat(1, "node_worker_armed");
	faults = nw_vmstat("numa_hint_faults");
	nw_pause_scan(false);
	ASSERT_TRUE(nw_wait_passes(3));
	nw_pause_scan(true);
	/* The VMA may begin or end within a block. */
	EXPECT_LE(PAGES / block, armed_since(self->armed));
	EXPECT_GE(PAGES / block + 1, armed_since(self->armed));
	for (i = 0; i < PAGES; i++)
		self->mem[i * NW_PAGE]++;
	faults = nw_vmstat("numa_hint_faults") - faults;
	EXPECT_LE(armed_since(self->armed), faults);
	EXPECT_GE(armed_since(self->armed) + HARNESS, faults);
	/* The last few may wait on their CPU to be put on an LRU list. */
	EXPECT_TRUE(nw_until(nw_pages_on(self->mem, LEN, 0) >= PAGES - 32));
	nw_pause_scan(false);
}

/* What is already where its only thread runs is of no interest. */
TEST_F_TIMEOUT(scan, single_thread_local, 300)
{
	char *local = nw_alloc_on(0, LEN);
	long armed = nw_node_vmstat(0, "node_worker_armed");

	ASSERT_NE(NULL, local);
	ASSERT_TRUE(nw_wait_passes(3));
	EXPECT_LT(0, armed_since(self->armed));
	EXPECT_GE(armed + HARNESS, nw_node_vmstat(0, "node_worker_armed"));
}

/* The VMA's own policy binds it: hints would have no effect. */
TEST_F_TIMEOUT(scan, bound_vma, 300)
{
	ASSERT_EQ(0, nw_mbind(self->mem, LEN, MPOL_BIND, 1));
	self->armed = nw_node_vmstat(1, "node_worker_armed");
	ASSERT_TRUE(nw_wait_passes(3));
	EXPECT_EQ(0, armed_since(self->armed));
}

/* numactl --membind: the policy is the task's, not the worker's. */
TEST_F_TIMEOUT(scan, bound_task, 300)
{
	nw_pause_scan(true);
	ASSERT_EQ(0, nw_policy(MPOL_BIND, 1));
	self->armed = nw_node_vmstat(1, "node_worker_armed");
	nw_pause_scan(false);
	ASSERT_TRUE(nw_wait_passes(3));
	EXPECT_EQ(0, armed_since(self->armed));
}

TEST_F_TIMEOUT(scan, inaccessible_vma, 300)
{
	ASSERT_EQ(0, mprotect(self->mem, LEN, PROT_NONE));
	self->armed = nw_node_vmstat(1, "node_worker_armed");
	ASSERT_TRUE(nw_wait_passes(3));
	EXPECT_EQ(0, armed_since(self->armed));
}

/* A library's text, say, is shared and cached wherever it is used. */
TEST_F_TIMEOUT(scan, read_only_file, 300)
{
	int fd = memfd_create("ro", MFD_CLOEXEC);
	char *map;
	long i, sum = 0;

	ASSERT_LE(0, fd);
	munmap(self->mem, LEN);
	ASSERT_EQ(0, ftruncate(fd, LEN));
	nw_policy(MPOL_BIND, 1);
	for (i = 0; i < PAGES; i++)
		ASSERT_EQ(1, pwrite(fd, "x", 1, i * NW_PAGE));
	nw_policy(MPOL_DEFAULT, -1);
	map = mmap(NULL, LEN, PROT_READ, MAP_PRIVATE, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	for (i = 0; i < PAGES; i++)
		sum += map[i * NW_PAGE];
	ASSERT_EQ('x' * PAGES, sum);
	self->armed = nw_node_vmstat(1, "node_worker_armed");
	ASSERT_TRUE(nw_wait_passes(3));
	EXPECT_EQ(0, armed_since(self->armed));
	self->mem = map;
}

/* Pages that a fork shares copy-on-write belong to nobody in particular. */
TEST_F_TIMEOUT(scan, shared_by_fork, 300)
{
	int pipefd[2];
	pid_t child;
	char c;

	nw_pause_scan(true);
	ASSERT_EQ(0, pipe(pipefd));
	child = fork();
	if (!child) {
		close(pipefd[1]);
		_exit(read(pipefd[0], &c, 1));
	}
	self->armed = nw_node_vmstat(1, "node_worker_armed");
	nw_pause_scan(false);
	ASSERT_TRUE(nw_wait_passes(3));
	EXPECT_EQ(0, armed_since(self->armed));
	close(pipefd[1]);
	waitpid(child, NULL, 0);
}

static long skipped(const char *reason)
{
	char name[64];
	long sum = 0;
	int node;

	snprintf(name, sizeof(name), "skip_%s", reason);
	for (node = 0; node < nw_nodes(); node++)
		sum += nw_stat("scan", node, name);
	return sum;
}

TEST_F_TIMEOUT(scan, opted_out, 300)
{
	long skips;

	nw_pause_scan(true);
	ASSERT_EQ(0, nw_write("/proc/self/numa_balancing", "0"));
	ASSERT_EQ(0, nw_read_long("/proc/self/numa_balancing"));
	self->armed = nw_node_vmstat(1, "node_worker_armed");
	skips = skipped("optout");
	nw_pause_scan(false);
	ASSERT_TRUE(nw_until(skipped("optout") >= skips + 3));
	EXPECT_EQ(0, armed_since(self->armed));
}

/* The opt-out is kept by fork and by exec. */
TEST_F(scan, opt_out_inherited)
{
	int status;
	pid_t child;

	ASSERT_EQ(0, nw_write("/proc/self/numa_balancing", "0"));
	child = fork();
	if (!child)
		_exit(nw_read_long("/proc/self/numa_balancing"));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	child = fork();
	if (!child) {
		execl("/bin/sh", "sh", "-c",
		      "exit $(cat /proc/self/numa_balancing)", NULL);
		_exit(99);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
}

/* A cpuset of one memory node: stock arms and moves nothing; we do neither. */
TEST_F_TIMEOUT(scan, one_node_cpuset, 300)
{
	long skips;

	nw_pause_scan(true);
	nw_write("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset");
	mkdir("/sys/fs/cgroup/one", 0755);
	ASSERT_EQ(0, nw_write("/sys/fs/cgroup/one/cpuset.mems", "1"));
	ASSERT_EQ(0, nw_write("/sys/fs/cgroup/one/cgroup.procs", "0"));
	self->armed = nw_node_vmstat(1, "node_worker_armed");
	skips = skipped("one_node");
	nw_pause_scan(false);
	EXPECT_TRUE(nw_until(skipped("one_node") >= skips + 3));
	EXPECT_EQ(0, armed_since(self->armed));
	ASSERT_EQ(0, nw_write("/sys/fs/cgroup/cgroup.procs", "0"));
	rmdir("/sys/fs/cgroup/one");
}

/*
 * A VMA that no thread is known to touch gets its turn all the same: pages
 * that appear in it late, without a hinting fault, are armed in the end.
 */
TEST_F_TIMEOUT(scan, no_vma_starved, 300)
{
	char *quiet = nw_alloc_on(1, LEN);

	ASSERT_NE(NULL, quiet);
	ASSERT_EQ(0, madvise(quiet, LEN / 2, MADV_DONTNEED));
	/* Past the two passes that do not ask who touches what. */
	ASSERT_TRUE(nw_wait_passes(4));
	nw_pause_scan(true);
	self->armed = nw_node_vmstat(1, "node_worker_armed");
	nw_policy(MPOL_BIND, 1);
	memset(quiet, 1, LEN / 2);
	nw_policy(MPOL_DEFAULT, -1);
	nw_pause_scan(false);
	EXPECT_TRUE(nw_until(armed_since(self->armed) >= PAGES / 2));
}

/* A VMA is left in peace at first: most do not live long. */
TEST_F_TIMEOUT(scan, new_vma_delayed, 300)
{
	char *fresh, start[32];

	/* The first pass has no such delay: it would end a process's youth. */
	ASSERT_TRUE(nw_wait_passes(1));
	nw_write_long(NW_DEBUGFS "scan_delay_ms", 5000);
	/* Of its own, not merged with a neighbour that is older. */
	fresh = mmap(NULL, 3 * LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	ASSERT_NE(MAP_FAILED, fresh);
	fresh += LEN;
	munmap(self->mem, LEN);
	self->mem = fresh;
	ASSERT_EQ(0, nw_trace("sched/sched_skip_vma_numa", true));
	ASSERT_EQ(0, mprotect(fresh, LEN, PROT_READ | PROT_WRITE));
	madvise(fresh, LEN, MADV_NOHUGEPAGE);
	nw_policy(MPOL_BIND, 1);
	memset(fresh, 1, LEN);
	nw_policy(MPOL_DEFAULT, -1);
	self->armed = nw_node_vmstat(1, "node_worker_armed");
	snprintf(start, sizeof(start), "%lX", (unsigned long)fresh);
	/* It has been come by, and left alone; but not for ever. */
	EXPECT_TRUE(nw_until(nw_traced(start, "reason=scan_delay")));
	EXPECT_EQ(0, armed_since(self->armed));
	nw_trace("sched/sched_skip_vma_numa", false);
	EXPECT_TRUE(nw_until(armed_since(self->armed) >= PAGES));
	nw_write_long(NW_DEBUGFS "scan_delay_ms", 50);
}

/* Huge pages of hugetlbfs stay where they were reserved. */
TEST_F_TIMEOUT(scan, hugetlb, 300)
{
	const char *pool = HUGETLB_2M;
	char *mem;

	nw_pause_scan(true);
	if (nw_write(pool, "2") || nw_read_long(pool) != 2)
		SKIP(return, "needs hugetlb pages on node 1");
	mem = mmap(NULL, 2 * NW_THP, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	ASSERT_NE(MAP_FAILED, mem);
	memset(mem, 1, 2 * NW_THP);
	ASSERT_EQ(1024, nw_pages_on(mem, 2 * NW_THP, 1));
	munmap(self->mem, LEN);
	self->mem = mem;
	self->armed = nw_node_vmstat(1, "node_worker_armed");
	nw_pause_scan(false);
	EXPECT_TRUE(nw_wait_passes(3));
	EXPECT_EQ(0, armed_since(self->armed));
	munmap(mem, 2 * NW_THP);
	nw_write(pool, "0");
}

/* No hold of mmap_lock does more than a page table's worth of arming. */
TEST_F_TIMEOUT(scan, holds_are_short, 300)
{
	char *mem;

	nw_pause_scan(true);
	mem = nw_alloc_on(1, 8 * LEN);
	ASSERT_NE(NULL, mem);
	ASSERT_EQ(0, nw_trace("node_worker/node_worker_scan", true));
	ASSERT_TRUE(nw_arm(1, self->armed, 8 * PAGES));
	nw_trace("node_worker/node_worker_scan", false);
	EXPECT_LT(0, nw_traced_max("armed="));
	EXPECT_GE(512 + 64, nw_traced_max("armed="));
}

static void *spin_fn(void *arg)
{
	volatile bool *stop = arg;

	while (!*stop)
		nw_relax();
	return NULL;
}

/* However many threads want a scan of their memory, there is one at a time. */
TEST_F_TIMEOUT(scan, one_request_at_a_time, 300)
{
	pthread_t thread[6];
	volatile bool stop = false;
	long sum, most = 0, goal = nw_passes() + 2;
	char *mem = nw_alloc_on(0, 16 * LEN);
	int i, node;

	/* Slow to be served, so that many threads find it asked for. */
	ASSERT_NE(NULL, mem);
	nw_set_all("scan", "budget_permille", 1);
	for (i = 0; i < 6; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, spin_fn,
					    (void *)&stop));
	EXPECT_TRUE(nw_until(({
		for (sum = 0, node = 0; node < nw_nodes(); node++)
			sum += nw_stat("scan", node, "backlog");
		most = sum > most ? sum : most;
		nw_passes() >= goal;
	})));
	stop = true;
	for (i = 0; i < 6; i++)
		pthread_join(thread[i], NULL);
	nw_set_all("scan", "budget_permille", 30);
	EXPECT_GE(1, most);
}

/* 0 MiB is refused, as is what overflows to it: stock divides by it. */
TEST_F(scan, scan_size_zero)
{
	long before = nw_read_long(NW_DEBUGFS "scan_size_mb");

	EXPECT_EQ(-EINVAL, nw_write(NW_DEBUGFS "scan_size_mb", "0"));
	EXPECT_EQ(-EINVAL, nw_write(NW_DEBUGFS "scan_size_mb", "16777216"));
	EXPECT_EQ(before, nw_read_long(NW_DEBUGFS "scan_size_mb"));
}

TEST_HARNESS_MAIN
