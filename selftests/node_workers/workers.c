// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers' selftest: the threads, their CPUs, and their files.
 *
 * Planted faults: selftests/planted/workers-*.patch.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <signal.h>
#include <sys/klog.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "hog.h"
#include "nw.h"

FIXTURE(workers) {
	int nodes;
};

FIXTURE_SETUP(workers)
{
	ASSERT_TRUE(nw_setup("block"));
	self->nodes = nw_nodes();
}

static void all_online(void)
{
	char path[96];
	int cpu;

	for (cpu = 0; cpu < 1024; cpu++) {
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%d/online", cpu);
		nw_write(path, "1");
	}
}

FIXTURE_TEARDOWN(workers)
{
	all_online();
	nw_write("/sys/fs/cgroup/part/cpuset.cpus.partition", "member");
	rmdir("/sys/fs/cgroup/part");
}

static bool has_cpus(int node)
{
	return nw_cpu(node, 0) >= 0;
}

static void affinity(int pid, cpu_set_t *set)
{
	CPU_ZERO(set);
	sched_getaffinity(pid, sizeof(*set), set);
}

/* May the worker run on exactly these of its node's CPUs: bit n, the nth? */
static bool runs_on(const char *fn, int node, unsigned int nths)
{
	cpu_set_t got, want;
	int nth, cpu;

	CPU_ZERO(&want);
	for (nth = 0; (cpu = nw_cpu(node, nth)) >= 0; nth++)
		if (nths & 1U << nth)
			CPU_SET(cpu, &want);
	affinity(nw_pid(fn, node), &got);
	return CPU_EQUAL(&got, &want);
}

TEST_F(workers, one_a_node)
{
	char path[64], want[32], comm[32];
	int fn, node;

	for (fn = 0; fn < NW_FNS; fn++)
		for (node = 0; node < self->nodes; node++) {
			ASSERT_EQ(nw_has_memory(node),
				  nw_pid(nw_fn[fn], node) > 0);
			if (!nw_has_memory(node))
				continue;
			snprintf(path, sizeof(path), "/proc/%d/comm",
				 nw_pid(nw_fn[fn], node));
			snprintf(want, sizeof(want), nw_thread[fn], node);
			ASSERT_EQ(0, nw_read(path, comm, sizeof(comm)));
			EXPECT_STREQ(want, comm);
		}
}

/* Each is allowed on CPUs that keep house only, of its own node if it can. */
TEST_F(workers, own_node)
{
	int fn, node, nth, cpu;
	cpu_set_t got;

	for (fn = 0; fn < NW_FNS; fn++)
		for (node = 0; node < self->nodes; node++) {
			if (!nw_has_memory(node))
				continue;
			affinity(nw_pid(nw_fn[fn], node), &got);
			EXPECT_LT(0, CPU_COUNT(&got));
			if (!has_cpus(node) || nw_first_cpu(true) >= 0)
				continue;
			for (nth = 0; (cpu = nw_cpu(node, nth)) >= 0; nth++)
				CPU_CLR(cpu, &got);
			EXPECT_EQ(0, CPU_COUNT(&got));
		}
}

TEST_F(workers, not_on_isolated)
{
	int fn, node, cpu;
	cpu_set_t got;

	if (nw_first_cpu(true) < 0)
		SKIP(return, "no CPU of this guest is isolated");
	for (fn = 0; fn < NW_FNS; fn++)
		for (node = 0; node < self->nodes; node++) {
			if (!nw_has_memory(node))
				continue;
			affinity(nw_pid(nw_fn[fn], node), &got);
			EXPECT_LT(0, CPU_COUNT(&got));
			for (cpu = 0; cpu < 1024; cpu++)
				EXPECT_FALSE(CPU_ISSET(cpu, &got) &&
					     nw_isolated(cpu));
		}
}

/* The boot log says which CPUs are left out, and why. */
TEST_F(workers, log_names_cause)
{
	static char log[1 << 20];
	const char *line;
	char cpu[32];
	int n;

	if (nw_first_cpu(true) < 0)
		SKIP(return, "no CPU of this guest is isolated");
	n = klogctl(3, log, sizeof(log) - 1);
	ASSERT_LT(0, n);
	line = strstr(log, "node_worker: on nodes ");
	ASSERT_NE(NULL, line);
	*strchrnul(line, '\n') = 0;
	for (n = 0; n < 64; n++) {
		snprintf(cpu, sizeof(cpu), " %d (", n);
		EXPECT_EQ(nw_isolated(n), !!strstr(line, cpu));
	}
	EXPECT_TRUE(strstr(line, "(isolcpus)") || strstr(line, "(nohz_full)"));
}

TEST_F(workers, cpulist)
{
	char path[128], text[64], cpu[16];

	if (nw_cpu(1, 1) < 0)
		SKIP(return, "needs two CPUs a node");
	snprintf(cpu, sizeof(cpu), "%d", nw_cpu(1, 1));
	nw_file(path, sizeof(path), "scan", 1, "cpulist");
	ASSERT_EQ(0, nw_write(path, cpu));
	EXPECT_TRUE(runs_on("scan", 1, 2));
	ASSERT_EQ(0, nw_read(path, text, sizeof(text)));
	EXPECT_STREQ(cpu, text);
	/* Bad ones change nothing. */
	EXPECT_EQ(-EINVAL, nw_write(path, "wrong"));
	EXPECT_EQ(-EINVAL, nw_write(path, "\n"));
	EXPECT_GT(0, nw_write(path, "4096"));
	EXPECT_TRUE(runs_on("scan", 1, 2));
	/* Another node's CPUs do not count: as if none were named. */
	snprintf(cpu, sizeof(cpu), "%d", nw_cpu(0, 0));
	ASSERT_EQ(0, nw_write(path, nw_possible_cpus()));
	EXPECT_TRUE(runs_on("scan", 1, 3));
}

/* A taskset is kept when CPUs come and go, and ends with a new cpulist. */
TEST_F_TIMEOUT(workers, taskset_kept, 300)
{
	char path[128], online[96];
	int pid = nw_pid("scan", 1);
	cpu_set_t set;

	if (nw_cpu(1, 1) < 0)
		SKIP(return, "needs two CPUs a node");
	CPU_ZERO(&set);
	CPU_SET(nw_cpu(1, 0), &set);
	ASSERT_EQ(0, sched_setaffinity(pid, sizeof(set), &set));
	snprintf(online, sizeof(online), "/sys/devices/system/cpu/cpu%d/online",
		 nw_cpu(1, 1));
	ASSERT_EQ(0, nw_write(online, "0"));
	ASSERT_EQ(0, nw_write(online, "1"));
	nw_spin_ms(200);
	EXPECT_TRUE(runs_on("scan", 1, 1));
	nw_file(path, sizeof(path), "scan", 1, "cpulist");
	ASSERT_EQ(0, nw_write(path, nw_possible_cpus()));
	EXPECT_TRUE(runs_on("scan", 1, 3));
}

/* All CPUs of a node go away and come back: the worker is back as well. */
TEST_F_TIMEOUT(workers, cpu_hotplug, 300)
{
	char online[96];
	int nth, cpu;
	cpu_set_t got;

	for (nth = 0; (cpu = nw_cpu(1, nth)) >= 0; nth++) {
		snprintf(online, sizeof(online),
			 "/sys/devices/system/cpu/cpu%d/online", cpu);
		ASSERT_EQ(0, nw_write(online, "0"));
	}
	EXPECT_TRUE(nw_until((affinity(nw_pid("migrate", 1), &got),
			      CPU_COUNT(&got))));
	all_online();
	EXPECT_TRUE(nw_until(runs_on("migrate", 1, (1U << nth) - 1)));
}

/* Stock's kthreads that are bound to a node leave it for good after this. */
TEST_F_TIMEOUT(workers, cpuset_partition, 300)
{
	const char *part = "/sys/fs/cgroup/part/cpuset.cpus.partition";
	char cpu[16];

	if (nw_cpu(1, 1) < 0)
		SKIP(return, "needs two CPUs a node");
	nw_write("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset");
	mkdir("/sys/fs/cgroup/part", 0755);
	snprintf(cpu, sizeof(cpu), "%d", nw_cpu(1, 0));
	ASSERT_EQ(0, nw_write("/sys/fs/cgroup/part/cpuset.cpus", cpu));
	ASSERT_EQ(0, nw_write(part, "isolated"));
	EXPECT_TRUE(nw_until(runs_on("scan", 1, 2)));
	EXPECT_TRUE(nw_until(runs_on("migrate", 1, 2)));
	/* Not isolated any more, though still a partition; and back. */
	ASSERT_EQ(0, nw_write(part, "root"));
	EXPECT_TRUE(nw_until(runs_on("scan", 1, 3)));
	ASSERT_EQ(0, nw_write(part, "isolated"));
	EXPECT_TRUE(nw_until(runs_on("scan", 1, 2)));
	ASSERT_EQ(0, nw_write(part, "member"));
	EXPECT_TRUE(nw_until(runs_on("scan", 1, 3)));
	EXPECT_TRUE(nw_until(runs_on("migrate", 1, 3)));
}

/* A paused worker scans nothing, and holds nothing that would wait for it. */
TEST_F_TIMEOUT(workers, pause, 300)
{
	long passes, holds, mms;
	pid_t pid;
	int i;

	ASSERT_EQ(0, nw_run_on(nw_cpu(0, 0)));
	ASSERT_TRUE(nw_wait_passes(1));
	nw_pause_scan(true);
	passes = nw_passes();
	holds = nw_stat("scan", 0, "holds");
	/* Many a request would have come due. */
	nw_spin_ms(1500);
	EXPECT_EQ(passes, nw_passes());
	EXPECT_EQ(holds, nw_stat("scan", 0, "holds"));
	EXPECT_EQ(0, nw_stat("scan", 0, "backlog"));
	/* Nor are those kept that asked and are gone. */
	mms = nw_mm_structs();
	for (i = 0; i < 100; i++) {
		pid = fork();
		if (!pid) {
			nw_spin_ms(150);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	EXPECT_GE(mms + 64, nw_mm_structs());
	nw_pause_scan(false);
	EXPECT_TRUE(nw_wait_passes(1));
}

/* Neither does one without a budget. */
TEST_F_TIMEOUT(workers, no_budget, 300)
{
	long passes;

	ASSERT_EQ(0, nw_run_on(nw_cpu(0, 0)));
	ASSERT_TRUE(nw_wait_passes(1));
	nw_set_all("scan", "budget_permille", 0);
	passes = nw_passes();
	nw_spin_ms(1500);
	EXPECT_EQ(passes, nw_passes());
	EXPECT_EQ(0, nw_stat("scan", 0, "backlog"));
	nw_set_all("scan", "budget_permille", 30);
	EXPECT_TRUE(nw_wait_passes(1));
}

/* Where every CPU of the node is busy for good, scans go on all the same. */
TEST_F_TIMEOUT(workers, saturated_node, 300)
{
	pid_t pid[16];
	int i, n, cpu;

	for (n = 0; n < 16 && (cpu = nw_cpu(0, n / 2)) >= 0; n++) {
		pid[n] = fork();
		if (pid[n])
			continue;
		nw_run_on(cpu);
		for (;;)
			nw_relax();
	}
	ASSERT_EQ(0, nw_run_on(nw_cpu(0, 0)));
	EXPECT_TRUE(nw_wait_passes(4));
	for (i = 0; i < n; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
}

/*
 * What waits for a worker that gets no CPU, and for how long, is told. The hints
 * are there before scans are held up, for the migrations to have something.
 */
static void waits(struct __test_metadata *_metadata, const char *fn)
{
	char *mem = nw_alloc_on(1, 1 << 20);
	struct nw_hog hog;
	long age;

	ASSERT_NE(NULL, mem);
	nw_pause_scan(true);
	ASSERT_TRUE(nw_arm(1, nw_node_vmstat(1, "node_worker_armed"), 1));
	nw_pause_scan(strcmp(fn, "scan"));
	ASSERT_TRUE(nw_starve(&hog, fn, 0));
	EXPECT_TRUE(nw_until((nw_touch(mem, 1 << 20),
			      nw_stat(fn, 0, "backlog") > 0)));
	age = nw_stat(fn, 0, "oldest_ms_ago");
	nw_spin_ms(600);
	EXPECT_LE(age + 500, nw_stat(fn, 0, "oldest_ms_ago"));
	EXPECT_LE(500, nw_stat(fn, 0, "last_run_ms_ago"));
	nw_feed(&hog);
	nw_pause_scan(true);
	EXPECT_TRUE(nw_until(!nw_stat(fn, 0, "backlog")));
	EXPECT_EQ(0, nw_stat(fn, 0, "oldest_ms_ago"));
	nw_pause_scan(false);
	munmap(mem, 1 << 20);
}

TEST_F_TIMEOUT(workers, stat_tells_what_waits, 300)
{
	if (nw_cpu(0, 1) < 0 || nw_first_cpu(true) >= 0)
		SKIP(return, "needs two CPUs a node, none isolated");
	ASSERT_EQ(0, nw_run_on(nw_cpu(0, 0)));
	ASSERT_TRUE(nw_wait_passes(1));
	waits(_metadata, "scan");
	waits(_metadata, "migrate");
}

TEST_F(workers, nice)
{
	char path[128];

	nw_file(path, sizeof(path), "scan", 1, "nice");
	EXPECT_EQ(0, nw_read_long(path));
	ASSERT_EQ(0, nw_write(path, "19"));
	EXPECT_EQ(1, syscall(SYS_getpriority, 0, nw_pid("scan", 1)));
	EXPECT_EQ(-EINVAL, nw_write(path, "20"));
	EXPECT_EQ(-EINVAL, nw_write(path, "-21"));
	EXPECT_GT(0, nw_write(path, "x"));
	EXPECT_EQ(19, nw_read_long(path));
	ASSERT_EQ(0, nw_write(path, "0"));
}

/* What a file takes and what it refuses; a refusal changes nothing. */
struct range {
	const char *path;
	const char *good[3];
	const char *bad[4];
	const char *rest;
};

static const struct range ranges[] = {
	{ NW_MODE, { "0", "7", "5" }, { "4", "8", "-1", "x" }, "5" },
	{ NW_SYSFS "scan/granularity", { "page", "block" },
	  { "none", "\n", "0" }, "block" },
	{ NW_SYSFS "scan/block_pages", { "1", "32" },
	  { "0", "3", "64", "x" }, "8" },
	{ NW_SYSFS "scan/node1/budget_permille", { "0", "1000" },
	  { "1001", "-1", "x" }, "30" },
	{ NW_SYSFS "scan/node1/paused", { "1", "0" },
	  { "2", "-1", "x" }, "0" },
	{ NW_SYSFS "migrate/node1/batch", { "1", "32" },
	  { "0", "33", "-1", "x" }, "32" },
	{ NW_SYSFS "migrate/node1/rate_limit_mbps", { "1", "4294967295" },
	  { "-1", "4294967296", "x" }, "0" },
	{ "/proc/self/numa_balancing", { "0", "1" },
	  { "2", "-1", "x" }, "1" },
};

TEST_F(workers, files_check_what_they_take)
{
	char before[64], after[64];
	const struct range *r;
	unsigned int i, k;

	for (i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		r = &ranges[i];
		for (k = 0; k < 3 && r->good[k]; k++) {
			EXPECT_EQ(0, nw_write(r->path, r->good[k])) {
				TH_LOG("%s: %s", r->path, r->good[k]);
			}
			nw_read(r->path, after, sizeof(after));
			EXPECT_STREQ(r->good[k], after);
		}
		nw_read(r->path, before, sizeof(before));
		for (k = 0; k < 4 && r->bad[k]; k++) {
			EXPECT_GT(0, nw_write(r->path, r->bad[k])) {
				TH_LOG("%s: %s", r->path, r->bad[k]);
			}
			nw_read(r->path, after, sizeof(after));
			EXPECT_STREQ(before, after);
		}
		EXPECT_EQ(0, nw_write(r->path, r->rest));
	}
}

/* Writers of every file at once, under load, do no harm. */
TEST_F_TIMEOUT(workers, files_written_at_once, 600)
{
	pid_t pid[4];
	unsigned int i, n, k;
	char *mem;

	for (i = 0; i < 4; i++) {
		pid[i] = fork();
		if (pid[i])
			continue;
		for (n = 0; n < 25; n++)
			for (k = 0; k < sizeof(ranges) / sizeof(ranges[0]); k++)
				nw_write(ranges[k].path,
					 ranges[k].good[(n + i) & 1]);
		_exit(0);
	}
	mem = nw_alloc_on(1, 1 << 20);
	for (n = 0; n < 50; n++) {
		memset(mem, n, 1 << 20);
		nw_spin_ms(5);
	}
	for (i = 0; i < 4; i++)
		waitpid(pid[i], NULL, 0);
	for (k = 0; k < sizeof(ranges) / sizeof(ranges[0]); k++)
		EXPECT_EQ(0, nw_write(ranges[k].path, ranges[k].rest));
}

TEST_HARNESS_MAIN
