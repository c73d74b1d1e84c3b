// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers' selftest: on a machine with one node there is nothing to do.
 *
 * The mode can be set, so that one configuration serves all machines, but it
 * starts no thread and arms nothing. Planted faults: selftests/planted/onenode-*.
 */
#define _GNU_SOURCE

#include "../kselftest_harness.h"
#include "nw.h"

#define LEN	(8UL << 20)

FIXTURE(onenode) {
};

FIXTURE_SETUP(onenode)
{
	if (nw_nodes() != 1)
		SKIP(return, "needs a machine with one node");
	ASSERT_FALSE(nw_setup("page"));
	ASSERT_EQ(5, nw_read_long(NW_MODE));
}

FIXTURE_TEARDOWN(onenode)
{
	EXPECT_EQ(0, nw_write(NW_MODE, "1"));
}

TEST_F(onenode, no_workers)
{
	char path[128];

	EXPECT_EQ(0, nw_threads());
	EXPECT_NE(0, access(nw_file(path, sizeof(path), "scan", 0, "pid"),
			    F_OK));
}

TEST_F_TIMEOUT(onenode, no_hints, 120)
{
	long armed = nw_vmstat("numa_pte_updates");
	double end = nw_now() + 3;
	char *mem = malloc(LEN);

	ASSERT_NE(NULL, mem);
	while (nw_now() < end) {
		memset(mem, 1, LEN);
		nw_spin_ms(10);
	}
	EXPECT_EQ(armed, nw_vmstat("numa_pte_updates"));
	free(mem);
}

TEST_HARNESS_MAIN
