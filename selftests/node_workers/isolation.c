// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers' selftest: isolated CPUs are left in peace.
 *
 * For a guest booted with isolcpus= or nohz_full=. A process has one thread on
 * an isolated CPU and one that keeps house; both use the same memory. In mode 1
 * hints are armed and fault on either, and the flushes interrupt both. Planted
 * faults: selftests/planted/isolation-*.patch.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>

#include "../kselftest_harness.h"
#include "nw.h"

#define PAGES	1024
#define LEN	(PAGES * NW_PAGE)

FIXTURE(isolation) {
	pthread_t thread;
	char *mem;
	int isolated;
	atomic_bool stop;
};

static void touch(char *mem)
{
	long i;

	for (i = 0; i < PAGES; i++)
		((volatile char *)mem)[i * NW_PAGE]++;
}

static void *on_isolated(void *arg)
{
	FIXTURE_DATA(isolation) *self = arg;

	nw_run_on(self->isolated);
	while (!self->stop)
		touch(self->mem);
	return NULL;
}

FIXTURE_SETUP(isolation)
{
	self->isolated = nw_first_cpu(true);
	if (self->isolated < 0)
		SKIP(return, "no CPU of this guest is isolated");
	ASSERT_TRUE(nw_setup("page"));
	ASSERT_EQ(0, nw_run_on(nw_first_cpu(false)));
	self->mem = nw_alloc_on(nw_nodes() - 1, LEN);
	ASSERT_NE(NULL, self->mem);
	self->stop = false;
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, on_isolated, self));
}

FIXTURE_TEARDOWN(isolation)
{
	self->stop = true;
	if (self->mem)
		pthread_join(self->thread, NULL);
	nw_write(NW_MODE, "5");
}

/* TLB shoot-downs that a CPU has been interrupted by. */
static long shootdowns(int cpu)
{
	char line[4096], *word;
	FILE *f = fopen("/proc/interrupts", "re");
	long n = -1;

	while (f && n < 0 && fgets(line, sizeof(line), f)) {
		word = strtok(line, " ");
		if (!word || strcmp(word, "TLB:"))
			continue;
		while (cpu-- >= 0 && word)
			word = strtok(NULL, " ");
		n = word ? atol(word) : -1;
	}
	if (f)
		fclose(f);
	return n;
}

static long skipped(void)
{
	long sum = 0;
	int node;

	for (node = 0; node < nw_nodes(); node++)
		sum += nw_stat("scan", node, "skip_isolated");
	return sum;
}

/* Mode 1 shows that the load would be scanned and interrupted. */
TEST_F_TIMEOUT(isolation, mainline_disturbs, 300)
{
	long armed, flushed;

	ASSERT_EQ(0, nw_write(NW_MODE, "1"));
	armed = nw_vmstat("numa_pte_updates");
	flushed = shootdowns(self->isolated);
	ASSERT_LE(0, flushed);
	EXPECT_TRUE(nw_until((touch(self->mem),
			      nw_vmstat("numa_pte_updates") > armed &&
			      shootdowns(self->isolated) > flushed)));
}

TEST_F_TIMEOUT(isolation, workers_do_not, 300)
{
	long skips, hints, flushed;

	/* What mode 1 may have left armed is found by now. */
	ASSERT_TRUE(nw_until((touch(self->mem), skipped() > 0)));
	nw_spin_ms(200);
	skips = skipped();
	hints = nw_vmstat("numa_hint_faults");
	flushed = shootdowns(self->isolated);
	EXPECT_TRUE(nw_until((touch(self->mem), skipped() >= skips + 5)));
	EXPECT_EQ(flushed, shootdowns(self->isolated));
	EXPECT_EQ(hints, nw_vmstat("numa_hint_faults"));
}

TEST_HARNESS_MAIN
