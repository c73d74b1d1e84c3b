// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers' selftest: on a kernel without NUMA balancing by workers there is
 * nothing of it.
 *
 * For kernels with other configurations than the other tests want. Red on any
 * kernel that has it: that is its planted fault.
 */
#define _GNU_SOURCE

#include "../kselftest_harness.h"
#include "nw.h"

TEST(mode)
{
	long before = nw_read_long(NW_MODE);

	/* No file: no NUMA balancing at all. */
	if (before < 0)
		SKIP(return, "has no NUMA balancing");
	EXPECT_EQ(-EINVAL, nw_write(NW_MODE, "5"));
	EXPECT_EQ(before, nw_read_long(NW_MODE));
}

TEST(files)
{
	EXPECT_NE(0, access("/proc/self/numa_balancing", F_OK));
	EXPECT_NE(0, access(NW_SYSFS "scan", F_OK));
	EXPECT_NE(0, access(NW_SYSFS "migrate", F_OK));
}

TEST(counters)
{
	char *line = NULL;
	size_t size = 0;
	FILE *f = fopen("/proc/vmstat", "r");
	int ours = 0;

	ASSERT_NE(NULL, f);
	while (getline(&line, &size, f) >= 0)
		ours += !strncmp(line, "node_worker", 11);
	fclose(f);
	free(line);
	EXPECT_EQ(0, ours);
}

TEST(threads)
{
	EXPECT_EQ(0, nw_threads());
}

TEST_HARNESS_MAIN
