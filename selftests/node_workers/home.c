// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers' selftest: whose an address space is.
 *
 * Its home is told by the worker that scans it: the one whose holds of
 * mmap_lock become more. Nothing else in the guest uses CPU time meanwhile.
 * kmigrated/0 is paused, so that pages stay where a test has put them.
 * Planted faults: selftests/planted/home-*.patch.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "nw.h"

#define PAGES	1024
#define LEN	(PAGES * NW_PAGE)

FIXTURE(home) {
	char *mem;
};

FIXTURE_SETUP(home)
{
	ASSERT_TRUE(nw_setup("page"));
	ASSERT_EQ(0, nw_run_on(nw_cpu(0, 0)));
	ASSERT_EQ(0, nw_set("migrate", 0, "paused", 1));
}

FIXTURE_TEARDOWN(home)
{
	nw_set("migrate", 0, "paused", 0);
	nw_pause_scan(false);
}

static long holds(int node)
{
	return nw_stat("scan", node, "holds");
}

/* Is it @node's worker, and not @other's, that makes the next passes? */
static bool scanned_by(int node, int other)
{
	long before = holds(node), others = holds(other);

	return nw_wait_passes(3) && holds(node) > before &&
	       holds(other) == others;
}

/* At first where its first CPU is; then where most of its memory is. */
TEST_F_TIMEOUT(home, follows_the_memory, 300)
{
	long before = holds(0);
	char *mem;

	ASSERT_TRUE(nw_wait_passes(1));
	EXPECT_LT(before, holds(0));
	mem = nw_alloc_on(1, LEN);
	ASSERT_NE(NULL, mem);
	EXPECT_TRUE(nw_until(scanned_by(1, 0)));
}

/* A little more elsewhere is not worth a move, or it would go to and fro. */
TEST_F_TIMEOUT(home, stays_if_in_doubt, 300)
{
	char *mine = nw_alloc_on(0, LEN);
	char *other = nw_alloc_on(1, LEN + LEN / 8);
	long before;

	ASSERT_NE(NULL, mine);
	ASSERT_NE(NULL, other);
	before = holds(1);
	ASSERT_TRUE(nw_wait_passes(8));
	EXPECT_EQ(before, holds(1));
}

static void spin_until_killed(void)
{
	for (;;)
		nw_spin_ms(1000);
}

/*
 * Has a child that only spins its passes made by @node's worker, from the
 * first? The workers have been paused until now, so that nobody's earlier
 * request is left.
 */
static bool child_scanned_by(int node, int other, pid_t child)
{
	long before = holds(node), others = holds(other);
	double end = nw_now() + nw_patience();

	nw_pause_scan(false);
	while (holds(node) < before + 3 && nw_now() < end)
		usleep(20000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return holds(node) >= before + 3 && holds(other) == others;
}

/*
 * A child has its parent's pages, and so its home, from the start. We sleep
 * meanwhile: only it is scanned.
 */
TEST_F_TIMEOUT(home, fork_keeps_it, 300)
{
	char *mem = nw_alloc_on(1, LEN);
	pid_t child;

	ASSERT_NE(NULL, mem);
	ASSERT_TRUE(nw_until(scanned_by(1, 0)));
	nw_pause_scan(true);
	child = fork();
	if (!child)
		spin_until_killed();
	EXPECT_TRUE(child_scanned_by(1, 0, child));
}

/* A new program has nothing of the old one's: it starts where it runs. */
TEST_F_TIMEOUT(home, exec_starts_anew, 300)
{
	char *mem = nw_alloc_on(1, LEN);
	char path[32], comm[32];
	pid_t child;

	ASSERT_NE(NULL, mem);
	ASSERT_TRUE(nw_until(scanned_by(1, 0)));
	nw_pause_scan(true);
	child = fork();
	if (!child) {
		execl("/bin/sh", "sh", "-c", "while :; do :; done", NULL);
		_exit(1);
	}
	snprintf(path, sizeof(path), "/proc/%d/comm", child);
	ASSERT_TRUE(nw_until(!nw_read(path, comm, sizeof(comm)) &&
			     !strcmp(comm, "sh")));
	EXPECT_TRUE(child_scanned_by(0, 1, child));
}

TEST_HARNESS_MAIN
