// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers' selftest: memory tiering, modes 6 and 7, beside mainline's 2.
 *
 * Needs a guest with slow memory, on nodes without CPUs: tools/guest
 * --memory-only-nodes. Planted faults: selftests/planted/tiering-*.patch.
 */
#define _GNU_SOURCE
#include <dirent.h>

#include "../kselftest_harness.h"
#include "nw.h"

#define PAGES	2048
#define LEN	(PAGES * NW_PAGE)

#define TIERS	"/sys/devices/virtual/memory_tiering"
#define RATE	"/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps"

FIXTURE(tiering) {
	int slow;
	long rate;
};

FIXTURE_VARIANT(tiering) {
	const char *mode;
	bool workers;
};

FIXTURE_VARIANT_ADD(tiering, mode_2) {
	.mode = "2",
};

FIXTURE_VARIANT_ADD(tiering, mode_6) {
	.mode = "6",
	.workers = true,
};

FIXTURE_VARIANT_ADD(tiering, mode_7) {
	.mode = "7",
	.workers = true,
};

static int tiers(void)
{
	DIR *dir = opendir(TIERS);
	struct dirent *entry;
	int n = 0;

	while (dir && (entry = readdir(dir)))
		n += !strncmp(entry->d_name, "memory_tier", 11);
	if (dir)
		closedir(dir);
	return n;
}

FIXTURE_SETUP(tiering)
{
	if (tiers() < 2)
		SKIP(return, "needs slow memory");
	ASSERT_TRUE(nw_setup("page"));
	ASSERT_EQ(0, nw_run_on(nw_cpu(0, 0)));
	for (self->slow = 0; nw_cpu(self->slow, 0) >= 0; self->slow++)
		;
	self->rate = nw_read_long(RATE);
	ASSERT_EQ(0, nw_write(NW_MODE, variant->mode));
}

FIXTURE_TEARDOWN(tiering)
{
	nw_write_long(RATE, self->rate);
	nw_write("/sys/kernel/mm/numa/demotion_enabled", "0");
	nw_write(NW_MODE, "5");
}

/* What is used comes up to the node of its user, and is counted as promoted. */
TEST_F_TIMEOUT(tiering, promoted, 300)
{
	long promoted = nw_node_vmstat(0, "pgpromote_success");
	long ours = nw_node_vmstat(0, "node_worker_migrated");
	char *mem = nw_alloc_on(self->slow, LEN);

	ASSERT_NE(NULL, mem);
	EXPECT_TRUE(nw_arrives(mem, LEN, 0, PAGES - NW_UNLISTED));
	nw_pause_scan(true);
	EXPECT_TRUE(nw_until(!nw_in_flight()));
	promoted = nw_node_vmstat(0, "pgpromote_success") - promoted;
	ours = nw_node_vmstat(0, "node_worker_migrated") - ours;
	EXPECT_LE(PAGES - NW_UNLISTED, promoted);
	EXPECT_EQ(variant->workers ? promoted : 0, ours);
}

TEST_F_TIMEOUT(tiering, huge_page_promoted_whole, 300)
{
	char *mem = nw_alloc_thp_on(self->slow, 2 * NW_THP);
	long splits = nw_splits();

	ASSERT_NE(NULL, mem);
	ASSERT_EQ(1024, nw_pages_on(mem, 2 * NW_THP, self->slow));
	EXPECT_TRUE(nw_arrives(mem, 2 * NW_THP, 0, 1024));
	EXPECT_EQ(splits, nw_splits());
}

/* Where fast memory is on another node, only bit 1 is interested. */
TEST_F_TIMEOUT(tiering, fast_memory_not_armed, 300)
{
	char *mem = nw_alloc_on(1, LEN);
	long armed = nw_node_vmstat(1, "node_worker_armed");

	ASSERT_NE(NULL, mem);
	if (!strcmp(variant->mode, "7")) {
		EXPECT_TRUE(nw_arrives(mem, LEN, 0, PAGES - NW_UNLISTED));
		return;
	}
	EXPECT_TRUE(nw_touch_passes(mem, LEN, 4));
	EXPECT_EQ(armed, nw_node_vmstat(1, "node_worker_armed"));
	EXPECT_EQ(PAGES, nw_pages_on(mem, LEN, 1));
}

/* Tiering's own limit on promotion holds: a second's worth each second. */
TEST_F_TIMEOUT(tiering, rate_limit_kept, 300)
{
	char *mem = nw_alloc_on(self->slow, LEN);
	double since = nw_now();
	long promoted;

	ASSERT_NE(NULL, mem);
	ASSERT_EQ(0, nw_write(RATE, "1"));
	while (nw_now() < since + 3) {
		nw_touch(mem, LEN);
		nw_spin_ms(10);
	}
	promoted = PAGES - nw_pages_on(mem, LEN, self->slow);
	/* A window begun before, and one not yet ended. */
	EXPECT_GE((nw_now() - since + 2) * 256, promoted);
	ASSERT_EQ(0, nw_write_long(RATE, self->rate));
	EXPECT_TRUE(nw_arrives(mem, LEN, 0, PAGES - NW_UNLISTED));
}

/* A fast node that is full has its cold pages demoted to make room. */
TEST_F_TIMEOUT(tiering, demotion_makes_room, 300)
{
	long factor = nw_read_long(NW_VM "watermark_scale_factor");
	long demoted = nw_node_vmstat(0, "pgdemote_kswapd");
	char *mem, *filler;
	size_t room;

	ASSERT_EQ(0, nw_write("/sys/kernel/mm/numa/demotion_enabled", "1"));
	mem = nw_alloc_on(self->slow, LEN);
	ASSERT_NE(NULL, mem);
	ASSERT_EQ(0, nw_write_long(NW_VM "watermark_scale_factor", 1000));
	filler = nw_fill(0, &room);
	ASSERT_NE(NULL, filler);
	EXPECT_TRUE(nw_arrives(mem, LEN, 0, PAGES - NW_UNLISTED));
	EXPECT_LT(demoted, nw_node_vmstat(0, "pgdemote_kswapd"));
	munmap(filler, room);
	EXPECT_EQ(0, nw_write_long(NW_VM "watermark_scale_factor", factor));
}

TEST_HARNESS_MAIN
