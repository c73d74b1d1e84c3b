// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers' selftest: khugepaged/N collapse on the node of the pages.
 *
 * Planted faults: selftests/planted/collapse-*.patch.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "collapse.h"
#include "hog.h"

#define EVENT	"node_worker/node_worker_collapse"
#define HANDOFF	"node_worker/node_worker_handoff"

/* The first, as the others change it. */
TEST(boot_setting)
{
	char line[1024];
	bool one;

	ASSERT_EQ(0, nw_read("/proc/cmdline", line, sizeof(line)));
	one = strstr(line, "node_workers=collapse:0");
	EXPECT_EQ(!one, nw_read_long(NW_COLLAPSE "enabled"));
	EXPECT_EQ(one, nw_pid("collapse", 0) <= 0);
	EXPECT_EQ(one, !system("pidof khugepaged > /dev/null"));
}

FIXTURE(collapse) {
	int nodes;
	int last;	/* the highest node with memory */
};

FIXTURE_SETUP(collapse)
{
	ASSERT_TRUE(nw_collapse_setup());
	/* What has a hint and is not used is not writable, nor collapsed. */
	ASSERT_EQ(0, nw_write(NW_MODE, "0"));
	self->nodes = nw_nodes();
	for (self->last = self->nodes - 1; !nw_has_memory(self->last); )
		self->last--;
}

FIXTURE_TEARDOWN(collapse)
{
	nw_trace(EVENT, false);
	nw_trace(HANDOFF, false);
	nw_set_all("collapse", "paused", 0);
	nw_set_all("collapse", "pages_to_scan", -1);
	nw_set_all("collapse", "scan_sleep_millisecs", -1);
	nw_set_all("collapse", "alloc_sleep_millisecs", -1);
	nw_write(NW_MODE, "1");
}

struct counts {
	long local, handoff, remote, ranges;
};

static struct counts counts(void)
{
	return (struct counts) {
		.local = nw_vmstat("thp_collapse_local"),
		.handoff = nw_vmstat("thp_collapse_handoff"),
		.remote = nw_vmstat("thp_collapse_remote"),
		.ranges = nw_read_long(NW_KHUGE "pages_collapsed"),
	};
}

/*
 * How many of the collapses recorded were made by khugepaged/@node, on a CPU of its,
 * to a page of its; -1: there is one of which only a part of that is true.
 */
static int recorded(int node)
{
	FILE *f = fopen(NW_TRACING "trace", "re");
	char line[512], thread[32], list[64], path[96], *p;
	int n = 0, cpu, nid, page_nid;

	snprintf(thread, sizeof(thread), "khugepaged/%d-", node);
	snprintf(path, sizeof(path),
		 "/sys/devices/system/node/node%d/cpulist", node);
	nw_read(path, list, sizeof(list));
	while (f && n >= 0 && fgets(line, sizeof(line), f)) {
		p = strstr(line, "nid=");
		if (*line == '#' || !strstr(line, "node_worker_collapse:") ||
		    !p || sscanf(p, "nid=%d page_nid=%d", &nid, &page_nid) != 2)
			continue;
		if (nid != node && page_nid != node && !strstr(line, thread))
			continue;
		p = strchr(line, '[');
		cpu = p ? atoi(p + 1) : -1;
		if (nid == node && page_nid == node && strstr(line, thread) &&
		    (!*list || nw_listed(list, cpu)))
			n++;
		else
			n = -1;
	}
	if (f)
		fclose(f);
	return n;
}

/* One address space with ranges on each node. */
TEST_F_TIMEOUT(collapse, own_node, 300)
{
	struct counts before = counts(), after;
	char *mem[16] = { };
	int node, n = 0;

	for (node = 0; node < self->nodes; node++) {
		if (!nw_has_memory(node))
			continue;
		mem[node] = nw_ranges_on(node, 4);
		ASSERT_NE(NULL, mem[node]);
		ASSERT_EQ(4 * NW_RANGE,
			  nw_pages_on(mem[node], 4 * NW_THP, node));
	}
	ASSERT_EQ(0, nw_trace(EVENT, true));
	for (node = 0; node < self->nodes; node++) {
		if (!mem[node])
			continue;
		EXPECT_TRUE(nw_collapses(mem[node], 4));
		EXPECT_EQ(4 * NW_RANGE,
			  nw_pages_on(mem[node], 4 * NW_THP, node));
		n += 4;
	}
	nw_trace(EVENT, false);
	for (node = 0; node < self->nodes; node++)
		EXPECT_EQ(mem[node] ? 4 : 0, recorded(node));
	after = counts();
	EXPECT_EQ(before.remote, after.remote);
	EXPECT_EQ(n * NW_RANGE, after.local - before.local +
		  after.handoff - before.handoff);
	EXPECT_LT(0, after.local - before.local);
	EXPECT_LT(0, after.handoff - before.handoff);
	EXPECT_EQ(n, after.ranges - before.ranges);
}

/* Collapse ranges of which @nr pages are on node @a and the others on @b. */
static char *mixed(int nr, int a, int b)
{
	char *mem = nw_reserve(4);
	int i;

	for (i = 0; i < 4; i++) {
		nw_place(mem, i * NW_RANGE, nr, a);
		nw_place(mem, i * NW_RANGE + nr, NW_RANGE - nr, b);
	}
	return nw_collapses(mem, 4) ? mem : NULL;
}

TEST_F_TIMEOUT(collapse, majority, 300)
{
	long remote = counts().remote;
	char *mem;

	mem = mixed(300, 0, self->last);
	ASSERT_NE(NULL, mem);
	EXPECT_EQ(4 * NW_RANGE, nw_pages_on(mem, 4 * NW_THP, 0));
	mem = mixed(200, 0, self->last);
	ASSERT_NE(NULL, mem);
	EXPECT_EQ(4 * NW_RANGE, nw_pages_on(mem, 4 * NW_THP, self->last));
	EXPECT_EQ(remote, counts().remote);
}

/* Whichever worker scans, and each time. */
TEST_F_TIMEOUT(collapse, ties, 300)
{
	struct counts before = counts(), after;
	char *mem;
	int cpu = nw_cpu(self->last, 0);

	/* The address space becomes the other node's, if that has a CPU. */
	if (cpu >= 0)
		nw_run_on(cpu);
	mem = mixed(256, self->last, 0);
	ASSERT_NE(NULL, mem);
	EXPECT_EQ(4 * NW_RANGE, nw_pages_on(mem, 4 * NW_THP, 0));
	after = counts();
	EXPECT_EQ(before.remote, after.remote);
	if (cpu >= 0)
		EXPECT_EQ(4 * NW_RANGE, after.handoff - before.handoff);
}

TEST_F_TIMEOUT(collapse, shared_memory, 300)
{
	struct counts before = counts(), after;
	int fd = memfd_create("shared", MFD_CLOEXEC), i;
	char *at = nw_reserve(4), *mem;
	long huge;

	ASSERT_EQ(0, nw_write("/sys/kernel/mm/transparent_hugepage/shmem_enabled",
			      "never"));
	ASSERT_EQ(0, ftruncate(fd, 4 * NW_THP));
	mem = mmap(at, 4 * NW_THP, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_FIXED, fd, 0);
	ASSERT_EQ(at, mem);
	nw_place(mem, 0, 4 * NW_RANGE, self->last);
	ASSERT_EQ(4 * NW_RANGE, nw_pages_on(mem, 4 * NW_THP, self->last));
	ASSERT_EQ(0, nw_write("/sys/kernel/mm/transparent_hugepage/shmem_enabled",
			      "advise"));
	/* khugepaged leaves it to later faults to map it as huge. */
	huge = nw_field("/proc/meminfo", "ShmemHugePages");
	nw_huge_wanted(mem, 4, true);
	EXPECT_TRUE(nw_until(nw_field("/proc/meminfo", "ShmemHugePages") ==
			     huge + 4 * 2048));
	nw_write("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "never");
	for (i = 0; i < 4; i++)
		EXPECT_TRUE(nw_intact(mem + i * NW_THP));
	EXPECT_EQ(4 * NW_RANGE, nw_pages_on(mem, 4 * NW_THP, self->last));
	after = counts();
	EXPECT_EQ(before.remote, after.remote);
	EXPECT_EQ(4 * NW_RANGE, after.handoff - before.handoff +
		  after.local - before.local);
}

static bool end(int pid)
{
	return !kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid;
}

/* With the worker of @node starved: ranges of ours in its inbox. */
static bool queued(struct nw_hog *hog, char *mem, int ranges, int node)
{
	if (!nw_starve(hog, "collapse", node))
		return false;
	nw_huge_wanted(mem, ranges, true);
	if (nw_until(nw_stat("collapse", node, "backlog") >= ranges))
		return true;
	nw_feed(hog);
	return false;
}

/* What stood at n when something was ready stands at n + 2 once it is done. */
TEST_F_TIMEOUT(collapse, full_scans, 300)
{
	struct nw_hog hog;
	char *mem[16] = { };
	int node, round;
	long scans;

	for (round = 0; round < 4; round++) {
		for (node = 0; node < self->nodes; node++)
			if (nw_has_memory(node))
				mem[node] = nw_ranges_on(node, 6);
		for (node = 0; node < self->nodes; node++)
			if (mem[node])
				nw_huge_wanted(mem[node], 6, true);
		ASSERT_TRUE(nw_full_pass());
		for (node = 0; node < self->nodes; node++) {
			if (!mem[node])
				continue;
			EXPECT_EQ(6, nw_huge_in(mem[node], 6));
			munmap(mem[node], 6 * NW_THP);
		}
	}
	/* Nor does it go on while a hand-over waits. */
	nw_run_on(nw_cpu(0, 0));
	mem[1] = nw_ranges_on(1, 2);
	ASSERT_TRUE(queued(&hog, mem[1], 2, 1));
	scans = nw_full_scans();
	nw_spin_ms(1000);
	EXPECT_EQ(scans, nw_full_scans());
	nw_feed(&hog);
	ASSERT_TRUE(nw_full_pass());
	EXPECT_EQ(2, nw_huge_in(mem[1], 2));
}

/* What becomes of a range between hand-over and collapse. */
TEST_F_TIMEOUT(collapse, changed_meanwhile, 300)
{
	long stale = nw_stat("collapse", 1, "stale");
	char *mem, *moved = nw_reserve(1);
	struct nw_hog hog;
	int i, child;

	nw_run_on(nw_cpu(0, 0));
	mem = nw_ranges_on(1, 8);
	ASSERT_NE(NULL, mem);
	ASSERT_TRUE(queued(&hog, mem, 8, 1));

	munmap(mem + 0 * NW_THP, NW_THP);
	nw_huge_wanted(mem + 1 * NW_THP, 1, false);
	EXPECT_EQ(moved, mremap(mem + 2 * NW_THP, NW_THP, NW_THP,
				MREMAP_MAYMOVE | MREMAP_FIXED, moved));
	EXPECT_EQ(0, madvise(mem + 3 * NW_THP, NW_THP, MADV_PAGEOUT));
	EXPECT_EQ(0, mlock(mem + 4 * NW_THP, NW_THP));
	EXPECT_EQ(0, madvise(mem + 5 * NW_THP, NW_THP, MADV_DONTNEED));
	nw_place(mem, 5 * NW_RANGE, NW_RANGE, 0);
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	nw_feed(&hog);
	EXPECT_TRUE(nw_until(!nw_stat("collapse", 1, "backlog")));
	EXPECT_TRUE(nw_full_pass());
	EXPECT_TRUE(end(child));

	EXPECT_EQ(0, nw_huge_in(mem + NW_THP, 1));
	for (i = 1; i < 8; i++)
		EXPECT_TRUE(nw_intact(i == 2 ? moved : mem + i * NW_THP));
	/* Unmapped, not wanted, moved away. */
	EXPECT_LE(3, nw_stat("collapse", 1, "stale") - stale);
	/* Shared with the child they may have been left as they were. */
	nw_place(mem, 4 * NW_RANGE, 4 * NW_RANGE, 1);
	EXPECT_TRUE(nw_until(nw_huge_in(mem + 4 * NW_THP, 4) == 4));
	EXPECT_EQ(NW_RANGE, nw_pages_on(mem + 5 * NW_THP, NW_THP, 0));
	EXPECT_EQ(2 * NW_RANGE, nw_pages_on(mem + 6 * NW_THP, 2 * NW_THP, 1));
}

/* A range that is another node's by now is not passed on, but found again. */
TEST_F_TIMEOUT(collapse, another_node_meanwhile, 300)
{
	long stale = nw_stat("collapse", 1, "stale");
	struct nw_hog hog;
	char *mem;

	nw_run_on(nw_cpu(0, 0));
	mem = nw_ranges_on(1, 2);
	ASSERT_NE(NULL, mem);
	ASSERT_TRUE(queued(&hog, mem, 2, 1));
	/* Not to be found again too early. */
	EXPECT_EQ(0, nw_set("collapse", 0, "paused", 1));
	EXPECT_EQ(0, madvise(mem, NW_THP, MADV_DONTNEED));
	nw_place(mem, 0, NW_RANGE, self->last == 1 ? 0 : self->last);
	/* These push the last of them out of the CPU's batch. */
	ASSERT_NE(NULL, nw_alloc_on(0, 64 * NW_PAGE));
	nw_feed(&hog);
	EXPECT_TRUE(nw_until(nw_huge_in(mem + NW_THP, 1) == 1));
	EXPECT_TRUE(nw_until(!nw_stat("collapse", 1, "backlog")));
	EXPECT_EQ(1, nw_stat("collapse", 1, "stale") - stale);
	EXPECT_EQ(0, nw_set("collapse", 0, "paused", 0));
	EXPECT_TRUE(nw_until(nw_huge_in(mem, 2) == 2));
	EXPECT_EQ(NW_RANGE, nw_pages_on(mem, NW_THP,
					self->last == 1 ? 0 : self->last));
	EXPECT_EQ(NW_RANGE, nw_pages_on(mem + NW_THP, NW_THP, 1));
}

#define TOO_MANY	200	/* an inbox has room for 128 */

/* A process on node @node with sparse ranges on node @mem_node, until it is killed. */
static int child_with_ranges(int node, int mem_node, int ranges)
{
	int pid = fork();
	char *mem;

	if (pid)
		return pid;
	nw_run_on(nw_cpu(node, 0));
	mem = nw_sparse_on(mem_node, ranges, 2);
	nw_huge_wanted(mem, ranges, true);
	pause();
	_exit(0);
}

/* Full: what finds no room is collapsed from afar, and the exit waits for nobody. */
TEST_F_TIMEOUT(collapse, exit_with_full_inbox, 300)
{
	struct counts before = counts(), after;
	long full = nw_stat("collapse", 1, "inbox_full"), mms, left;
	struct nw_hog hog;
	int pid;

	mms = nw_mm_structs();
	ASSERT_TRUE(nw_starve(&hog, "collapse", 1));
	pid = child_with_ranges(0, 1, TOO_MANY);
	ASSERT_LT(0, pid);
	EXPECT_TRUE(nw_until(nw_stat("collapse", 1, "inbox_full") - full >=
			     TOO_MANY - 128));
	EXPECT_EQ(128, nw_stat("collapse", 1, "backlog"));
	EXPECT_TRUE(end(pid));
	/* Nor does the inbox keep its mm. */
	EXPECT_EQ(0, nw_stat("collapse", 1, "backlog"));
	left = nw_field("/proc/slabinfo", "mm_struct");
	nw_feed(&hog);
	EXPECT_TRUE(nw_until(nw_mm_structs() <= mms));
	EXPECT_LE(0, left);
	after = counts();
	EXPECT_LE((TOO_MANY - 128) * NW_RANGE, after.remote - before.remote);
}

/* Paused, a worker takes nothing, keeps nothing, and hinders nobody. */
TEST_F_TIMEOUT(collapse, paused, 300)
{
	struct counts before;
	char *mem, *other;
	long mms;
	int pid;

	nw_run_on(nw_cpu(0, 0));
	mms = nw_mm_structs();
	ASSERT_EQ(0, nw_set("collapse", 1, "paused", 1));
	pid = child_with_ranges(0, 1, TOO_MANY);
	ASSERT_LT(0, pid);
	mem = nw_ranges_on(1, 4);
	other = nw_ranges_on(0, 4);
	before = counts();
	nw_huge_wanted(mem, 4, true);
	EXPECT_TRUE(nw_collapses(other, 4));
	EXPECT_TRUE(nw_full_pass());
	EXPECT_EQ(0, nw_huge_in(mem, 4));
	EXPECT_EQ(0, nw_stat("collapse", 1, "backlog"));
	EXPECT_EQ(before.remote, counts().remote);
	EXPECT_TRUE(end(pid));
	EXPECT_TRUE(nw_until(nw_mm_structs() <= mms));
	ASSERT_EQ(0, nw_set("collapse", 1, "paused", 0));
	EXPECT_TRUE(nw_collapses(mem, 4));
}

/* The address space that a worker is paused in may go. */
TEST_F_TIMEOUT(collapse, exit_under_cursor, 300)
{
	long mms = nw_mm_structs();
	int pid;

	ASSERT_EQ(0, nw_set("collapse", 0, "pages_to_scan", 512));
	ASSERT_EQ(0, nw_set("collapse", 0, "scan_sleep_millisecs", 100));
	pid = child_with_ranges(0, 1, TOO_MANY);
	ASSERT_LT(0, pid);
	/* It has begun with it, and is far from its end. */
	ASSERT_EQ(0, nw_trace(HANDOFF, true));
	EXPECT_TRUE(nw_until(nw_traced("node_worker_handoff:", "nid=1")));
	nw_trace(HANDOFF, false);
	ASSERT_EQ(0, nw_set("collapse", 0, "paused", 1));
	EXPECT_TRUE(end(pid));
	EXPECT_TRUE(nw_until(nw_mm_structs() <= mms));
}

/* One thread or one a node, under load; no slot and no range is lost. */
TEST_F_TIMEOUT(collapse, switched_under_load, 600)
{
	char *mem[16] = { }, comm[64];
	int round, node, one, child[2];

	ASSERT_EQ(0, nw_write(NW_VM "min_free_kbytes", "30000"));
	for (round = 0; round < 12; round++) {
		one = round & 1;
		for (node = 0; node < self->nodes; node++) {
			if (!nw_has_memory(node))
				continue;
			mem[node] = nw_sparse_on(node, 24, 4);
			nw_huge_wanted(mem[node], 24, true);
		}
		ASSERT_EQ(0, nw_write_long(NW_COLLAPSE "enabled", !one));
		EXPECT_EQ(!one, nw_pid("collapse", 0) > 0);
		snprintf(comm, sizeof(comm), "pidof khugepaged > /dev/null");
		EXPECT_EQ(one, !system(comm));
		for (node = 0; node < self->nodes; node++) {
			if (!mem[node])
				continue;
			EXPECT_TRUE(nw_until(nw_huge_in(mem[node], 24) == 24));
			munmap(mem[node], 24 * NW_THP);
		}
	}
	EXPECT_EQ(30000, nw_read_long(NW_VM "min_free_kbytes"));
	/* Turned on and off with the huge pages, it is khugepaged's as ever. */
	child[0] = child_with_ranges(0, 1, 4);
	child[1] = child_with_ranges(1, 0, 4);
	ASSERT_EQ(0, nw_write(NW_COLLAPSE "enabled", "1"));
	nw_write("/sys/kernel/mm/transparent_hugepage/enabled", "never");
	EXPECT_TRUE(nw_until(nw_pid("collapse", 0) <= 0));
	nw_write("/sys/kernel/mm/transparent_hugepage/enabled", "madvise");
	EXPECT_LT(0, nw_pid("collapse", 0));
	EXPECT_TRUE(end(child[0]));
	EXPECT_TRUE(end(child[1]));
}

/* N workers have one khugepaged's budget between them. */
TEST_F_TIMEOUT(collapse, shared_budget, 300)
{
	int node, n = 0, pid[16] = { }, round;
	long before, done;

	ASSERT_EQ(0, nw_write(NW_KHUGE "pages_to_scan", "16384"));
	ASSERT_EQ(0, nw_write(NW_KHUGE "scan_sleep_millisecs", "3600000"));
	nw_set_all("collapse", "paused", 1);
	for (node = 0; node < self->nodes; node++) {
		if (!nw_has_memory(node) || nw_cpu(node, 0) < 0)
			continue;
		pid[node] = child_with_ranges(node, node, 64);
		n++;
	}
	ASSERT_LT(1, n);
	nw_spin_ms(1000);
	nw_set_all("collapse", "paused", 0);
	/* Each time one round, of 32 ranges on the whole. */
	for (round = 0; round < 2; round++) {
		nw_spin_ms(500);
		before = nw_read_long(NW_KHUGE "pages_collapsed");
		ASSERT_EQ(0, nw_write(NW_KHUGE "scan_sleep_millisecs",
				      "3600000"));
		EXPECT_TRUE(nw_until(nw_read_long(NW_KHUGE "pages_collapsed") >
				     before));
		nw_spin_ms(500);
		done = nw_read_long(NW_KHUGE "pages_collapsed") - before;
		/* One a worker for what is counted besides. */
		EXPECT_GE(32 + n, done);
	}
	for (node = 0; node < self->nodes; node++)
		if (pid[node])
			EXPECT_TRUE(end(pid[node]));
}

#define HUGETLB	"/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages"

/* No huge page to be had on a node: the others go on, and so does it when there is. */
TEST_F_TIMEOUT(collapse, no_huge_page, 300)
{
	char *mem, *other;
	long remote;

	nw_run_on(nw_cpu(0, 0));
	/* More than CPUs may keep for themselves of those that were freed. */
	mem = nw_sparse_on(1, 32, 8);
	other = nw_sparse_on(0, 24, 8);
	ASSERT_EQ(0, nw_write(NW_KHUGE "defrag", "0"));
	ASSERT_EQ(0, nw_write(NW_KHUGE "alloc_sleep_millisecs", "3600000"));
	ASSERT_EQ(0, nw_write(HUGETLB, "100000"));
	remote = counts().remote;
	nw_huge_wanted(mem, 32, true);
	EXPECT_TRUE(nw_until(nw_stat("collapse", 1, "starved") == 1));
	EXPECT_TRUE(nw_collapses(other, 24));
	EXPECT_GT(32, nw_huge_in(mem, 32));
	EXPECT_EQ(remote, counts().remote);
	ASSERT_EQ(0, nw_write(HUGETLB, "0"));
	ASSERT_EQ(0, nw_write(NW_KHUGE "alloc_sleep_millisecs", "10"));
	EXPECT_TRUE(nw_until(nw_huge_in(mem, 32) == 32));
}

static void *stay_on(void *arg)
{
	struct nw_hog *hog = arg;
	size_t len = 20 * NW_PAGE;
	char *mem;

	/* Pages that are left in this CPU's batch. */
	nw_run_on(hog->cpu);
	mem = mmap(NULL, len, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	nw_hog_fn(hog);
	munmap(mem, len);
	return NULL;
}

/* A CPU that a real-time task has for itself holds up nobody's collapses. */
TEST_F_TIMEOUT(collapse, real_time_task, 300)
{
	struct nw_hog hog = { .cpu = nw_cpu(1, 1) };
	char *mem[16] = { };
	int node;

	for (node = 0; node < self->nodes; node++)
		if (nw_has_memory(node))
			mem[node] = nw_ranges_on(node, 4);
	nw_no_fair_server(hog.cpu);
	ASSERT_EQ(0, pthread_create(&hog.thread, NULL, stay_on, &hog));
	nw_spin_ms(100);
	for (node = 0; node < self->nodes; node++)
		if (mem[node] && node != 1)
			EXPECT_TRUE(nw_collapses(mem[node], 4));
	/* No lock is held that these take. */
	EXPECT_EQ(0, nw_write(NW_KHUGE "scan_sleep_millisecs", "11"));
	EXPECT_EQ(0, nw_write("/sys/kernel/mm/transparent_hugepage/enabled",
			      "always"));
	hog.stop = true;
	pthread_join(hog.thread, NULL);
	nw_write("/proc/sys/kernel/sched_rt_runtime_us", "950000");
	EXPECT_TRUE(nw_collapses(mem[1], 4));
}

static int set_one(const char *file, const char *val)
{
	char path[128];

	return nw_write(nw_file(path, sizeof(path), "collapse", 1, file), val);
}

TEST_F_TIMEOUT(collapse, tunables, 300)
{
	static const char * const bad[] = { "x", " ", "-2", "4294967296" };
	static const char * const file[] = {
		"pages_to_scan", "scan_sleep_millisecs", "alloc_sleep_millisecs",
	};
	char *mem;
	size_t f, i;

	/* Ranges on node 1 of an address space that is node 1's. */
	nw_run_on(nw_cpu(1, 0));
	for (f = 0; f < 3; f++) {
		for (i = 0; i < 4; i++)
			EXPECT_GT(0, set_one(file[f], bad[i]));
		EXPECT_EQ(-1, atol(({ static char v[32], p[128];
				      nw_read(nw_file(p, sizeof(p), "collapse",
						      1, file[f]), v, 32);
				      v; })));
	}
	EXPECT_EQ(-EINVAL, set_one("pages_to_scan", "0"));
	EXPECT_EQ(-EINVAL, nw_write(NW_COLLAPSE "enabled", "2"));
	EXPECT_EQ(-EINVAL, nw_write(NW_COLLAPSE "enabled", "-1"));
	EXPECT_EQ(1, nw_read_long(NW_COLLAPSE "enabled"));

	EXPECT_EQ(0, set_one("scan_sleep_millisecs", "0"));
	EXPECT_EQ(0, set_one("alloc_sleep_millisecs", "0"));
	EXPECT_EQ(0, set_one("pages_to_scan", "1"));
	mem = nw_ranges_on(1, 4);
	EXPECT_TRUE(nw_collapses(mem, 4));
	munmap(mem, 4 * NW_THP);

	EXPECT_EQ(0, set_one("pages_to_scan", "4294967295"));
	EXPECT_EQ(0, set_one("alloc_sleep_millisecs", "4294967295"));
	mem = nw_ranges_on(1, 4);
	EXPECT_TRUE(nw_collapses(mem, 4));
	munmap(mem, 4 * NW_THP);

	/* Asleep for weeks, and then not. */
	EXPECT_EQ(0, set_one("scan_sleep_millisecs", "4294967295"));
	nw_spin_ms(300);
	mem = nw_ranges_on(1, 4);
	nw_huge_wanted(mem, 4, true);
	nw_spin_ms(300);
	EXPECT_EQ(0, nw_huge_in(mem, 4));
	EXPECT_EQ(0, set_one("scan_sleep_millisecs", "-1"));
	EXPECT_TRUE(nw_until(nw_huge_in(mem, 4) == 4));
}

static void *wait_fn(void *arg)
{
	pause();
	return arg;
}

/* Ranges that are armed with hints are collapsed; then both are at rest. */
TEST_F_TIMEOUT(collapse, converges_with_balancing, 600)
{
	struct counts before, after;
	long goal, splits, numa = nw_vmstat("thp_split_numa");
	pthread_t thread;
	char *mem;

	ASSERT_TRUE(nw_setup("page"));
	/* Placed memory of a single thread gets no hints. */
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_fn, NULL));
	nw_run_on(nw_cpu(0, 0));
	mem = nw_ranges_on(1, 8);
	nw_huge_wanted(mem, 8, true);
	EXPECT_TRUE(nw_until((nw_touch(mem, 8 * NW_THP),
			      nw_huge_in(mem, 8) == 8 &&
			      nw_pages_on(mem, 8 * NW_THP, 0) == 8 * NW_RANGE)));
	before = counts();
	splits = nw_vmstat("thp_split_node");
	goal = nw_full_scans() + 4;
	EXPECT_TRUE(nw_touch_passes(mem, 8 * NW_THP, 5));
	EXPECT_TRUE(nw_until((nw_touch(mem, 8 * NW_THP),
			      nw_full_scans() >= goal)));
	after = counts();
	EXPECT_EQ(8, nw_huge_in(mem, 8));
	EXPECT_EQ(before.local + before.handoff + before.remote,
		  after.local + after.handoff + after.remote);
	EXPECT_EQ(splits, nw_vmstat("thp_split_node"));
	EXPECT_EQ(numa, nw_vmstat("thp_split_numa"));
}

/*
 * thp_split_numa can count: mainline splits a huge page of which a part has been
 * unmapped, to move what is left. Workers leave it alone.
 */
TEST_F_TIMEOUT(collapse, splits_counted, 300)
{
	long numa, node, half = NW_THP / 2;
	char *mem;

	ASSERT_TRUE(nw_setup("page"));
	nw_run_on(nw_cpu(0, 0));
	mem = nw_alloc_thp_on(1, NW_THP);
	ASSERT_NE(NULL, mem);
	ASSERT_EQ(0, madvise(mem, NW_THP, MADV_NOHUGEPAGE));
	ASSERT_EQ(0, madvise(mem + half, half, MADV_DONTNEED));
	numa = nw_node_vmstat(1, "thp_split_numa");
	node = nw_node_vmstat(1, "thp_split_node");
	EXPECT_TRUE(nw_touch_passes(mem, half, 5));
	EXPECT_EQ(numa, nw_node_vmstat(1, "thp_split_numa"));
	EXPECT_EQ(node, nw_node_vmstat(1, "thp_split_node"));
	ASSERT_EQ(0, nw_write(NW_MODE, "1"));
	EXPECT_TRUE(nw_arrives(mem, half, 0, 200));
	EXPECT_EQ(NW_RANGE, nw_node_vmstat(1, "thp_split_numa") - numa);
	EXPECT_EQ(NW_RANGE, nw_node_vmstat(1, "thp_split_node") - node);
}

TEST_HARNESS_MAIN
