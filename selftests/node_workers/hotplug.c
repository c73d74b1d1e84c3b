// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers' selftest: a node's memory comes and goes, and its workers too.
 *
 * Needs a guest with DIMM slots and a node that starts without memory, the last
 * possible one: tools/guest --hotplug-slots. hostctl asks the host for a DIMM.
 * Planted faults: selftests/planted/hotplug-*.patch.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "nw.h"

#define PAGES	4096
#define LEN	(PAGES * NW_PAGE)
#define DIMM	256

FIXTURE(hotplug) {
	int node;
	char dimm[32];
};

/* Ask the host; its answer is "ok NAME". */
static bool hostctl(const char *request, char *name)
{
	char command[64];
	bool ok;
	FILE *f;

	snprintf(command, sizeof(command), "hostctl %s", request);
	f = popen(command, "re");
	if (!f)
		return false;
	ok = fscanf(f, "ok %31s", name) == 1;
	return !pclose(f) && ok;
}

static bool plug(int node, char *dimm)
{
	char request[32];

	snprintf(request, sizeof(request), "plug %d %d", node, DIMM);
	return hostctl(request, dimm);
}

static bool unplug(const char *dimm)
{
	char request[64], name[32];

	snprintf(request, sizeof(request), "unplug %s", dimm);
	return hostctl(request, name);
}

static int last_possible_node(void)
{
	char list[64], *p;

	nw_read("/sys/devices/system/node/possible", list, sizeof(list));
	p = strrchr(list, '-');
	return atoi(p ? p + 1 : list);
}

FIXTURE_SETUP(hotplug)
{
	ASSERT_TRUE(nw_setup("page"));
	ASSERT_EQ(0, nw_run_on(nw_cpu(0, 0)));
	self->node = last_possible_node();
	if (nw_write("/sys/devices/system/memory/auto_online_blocks",
		     "online_movable") || !plug(self->node, self->dimm))
		SKIP(return, "needs slots for DIMMs");
}

FIXTURE_TEARDOWN(hotplug)
{
	unplug(self->dimm);
}

static bool has_directory(const char *fn, int node)
{
	char path[128];

	return !access(nw_file(path, sizeof(path), fn, node, ""), F_OK);
}

/* Threads of the right name that may run somewhere. */
TEST_F_TIMEOUT(hotplug, workers_come_and_go, 600)
{
	char path[64], comm[32], want[32];
	int fn, pid[NW_FNS], round;
	cpu_set_t cpus;

	for (round = 0; round < 2; round++) {
		for (fn = 0; fn < NW_FNS; fn++) {
			ASSERT_TRUE(nw_until(nw_pid(nw_fn[fn], self->node) > 0));
			pid[fn] = nw_pid(nw_fn[fn], self->node);
			snprintf(path, sizeof(path), "/proc/%d/comm", pid[fn]);
			ASSERT_EQ(0, nw_read(path, comm, sizeof(comm)));
			snprintf(want, sizeof(want), nw_thread[fn], self->node);
			EXPECT_STREQ(want, comm);
			ASSERT_EQ(0, sched_getaffinity(pid[fn], sizeof(cpus),
						       &cpus));
			EXPECT_LT(0, CPU_COUNT(&cpus));
		}
		ASSERT_TRUE(unplug(self->dimm));
		for (fn = 0; fn < NW_FNS; fn++) {
			EXPECT_TRUE(nw_until(!has_directory(nw_fn[fn],
							    self->node)));
			EXPECT_EQ(-1, kill(pid[fn], 0));
		}
		ASSERT_TRUE(plug(self->node, self->dimm));
	}
}

/* Memory on the node, used for good; each page holds @fill. */
static pid_t user_of(int node, char fill)
{
	pid_t pid = fork();
	char *mem;
	long i;

	if (pid)
		return pid;
	mem = nw_alloc_on(node, LEN);
	if (!mem || nw_pages_on(mem, LEN, node) != PAGES)
		_exit(1);
	memset(mem, fill, LEN);
	for (;;)
		for (i = 0; i < PAGES; i++) {
			if (mem[i * NW_PAGE] != fill)
				_exit(2);
			nw_relax();
		}
}

/*
 * The memory goes while it is scanned and posted: it moves elsewhere with its
 * contents, nothing that was posted is lost, and the scans go on, though the
 * worker that made them is gone and had a request. (It is given so small a
 * budget that it has one most of the time.)
 */
TEST_F_TIMEOUT(hotplug, removed_under_load, 600)
{
	long passes;
	int round;
	pid_t pid;

	for (round = 1; round < 4; round++) {
		ASSERT_TRUE(nw_until(nw_pid("scan", self->node) > 0));
		/* Refused for now, or it would not stay there to be removed. */
		ASSERT_EQ(0, nw_set("migrate", 0, "paused", 1));
		pid = user_of(self->node, round);
		/* By now it is at home there. */
		ASSERT_TRUE(nw_until(nw_passes_of(pid) >= 3));
		ASSERT_EQ(0, nw_set("scan", self->node, "budget_permille", 1));
		nw_spin_ms(500);
		ASSERT_EQ(0, nw_set("migrate", 0, "paused", 0));
		ASSERT_TRUE(unplug(self->dimm));
		EXPECT_TRUE(nw_until(!has_directory("scan", self->node)));
		passes = nw_passes_of(pid);
		EXPECT_TRUE(nw_until(nw_passes_of(pid) >= passes + 3));
		nw_pause_scan(true);
		EXPECT_TRUE(nw_until(!nw_in_flight()));
		nw_pause_scan(false);
		/* It was not disappointed in what it read. */
		EXPECT_EQ(0, waitpid(pid, NULL, WNOHANG));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		ASSERT_TRUE(plug(self->node, self->dimm));
	}
}

/* Files of a node that has gone are gone, whoever has them open. */
TEST_F_TIMEOUT(hotplug, file_held_open, 300)
{
	char path[128], text[16];
	int fd;

	ASSERT_TRUE(nw_until(nw_pid("scan", self->node) > 0));
	fd = open(nw_file(path, sizeof(path), "scan", self->node, "nice"),
		  O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_TRUE(unplug(self->dimm));
	ASSERT_TRUE(nw_until(!has_directory("scan", self->node)));
	EXPECT_EQ(-1, pread(fd, text, sizeof(text), 0));
	EXPECT_EQ(ENODEV, errno);
	EXPECT_EQ(-1, pwrite(fd, "5", 1, 0));
	close(fd);
	ASSERT_TRUE(plug(self->node, self->dimm));
}

TEST_HARNESS_MAIN
