// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory policies and page migration by request, one round: set_mempolicy(),
 * mbind(), migrate_pages(), move_pages() and numactl, each checked by where the
 * pages are. Runs on any kernel; run by run.sh in each mode.
 */
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../kselftest_harness.h"

#define PAGES	512
#define PAGE	4096UL
#define LEN	(PAGES * PAGE)
#define BITS	64

static long mempolicy(int mode, unsigned long nodes)
{
	return syscall(SYS_set_mempolicy, mode, nodes ? &nodes : NULL,
		       nodes ? BITS : 0);
}

static long bind(void *mem, int mode, unsigned long nodes, int flags)
{
	return syscall(SYS_mbind, mem, LEN, mode, &nodes, BITS, flags);
}

static char *map(void)
{
	char *mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(mem, LEN, MADV_NOHUGEPAGE);
	return mem;
}

/* Ask, or move to @to, and count the pages that are on @node. */
static long on_node(char *mem, const int *to, int node)
{
	static int status[PAGES];
	static void *addr[PAGES];
	long i, n = 0;

	for (i = 0; i < PAGES; i++)
		addr[i] = mem + i * PAGE;
	if (syscall(SYS_move_pages, 0, PAGES, addr, to, status,
		    to ? MPOL_MF_MOVE : 0))
		return -1;
	for (i = 0; i < PAGES; i++)
		n += status[i] == node;
	return n;
}

FIXTURE(policies) {
	char *mem;
};

FIXTURE_SETUP(policies)
{
	self->mem = map();
	ASSERT_NE(MAP_FAILED, self->mem);
}

FIXTURE_TEARDOWN(policies)
{
	mempolicy(MPOL_DEFAULT, 0);
	munmap(self->mem, LEN);
}

TEST_F(policies, task_bind)
{
	ASSERT_EQ(0, mempolicy(MPOL_BIND, 2));
	memset(self->mem, 1, LEN);
	EXPECT_EQ(PAGES, on_node(self->mem, NULL, 1));
}

TEST_F(policies, task_interleave)
{
	ASSERT_EQ(0, mempolicy(MPOL_INTERLEAVE, 3));
	memset(self->mem, 1, LEN);
	EXPECT_EQ(PAGES / 2, on_node(self->mem, NULL, 0));
	EXPECT_EQ(PAGES / 2, on_node(self->mem, NULL, 1));
}

TEST_F(policies, vma_bind)
{
	ASSERT_EQ(0, bind(self->mem, MPOL_BIND, 2, 0));
	memset(self->mem, 1, LEN);
	EXPECT_EQ(PAGES, on_node(self->mem, NULL, 1));
}

TEST_F(policies, vma_bind_moves)
{
	ASSERT_EQ(0, mempolicy(MPOL_BIND, 2));
	memset(self->mem, 1, LEN);
	ASSERT_EQ(0, bind(self->mem, MPOL_BIND, 1, MPOL_MF_MOVE));
	EXPECT_LE(PAGES * 95 / 100, on_node(self->mem, NULL, 0));
}

TEST_F(policies, vma_bind_refuses)
{
	ASSERT_EQ(0, mempolicy(MPOL_BIND, 2));
	memset(self->mem, 1, LEN);
	EXPECT_EQ(-1, bind(self->mem, MPOL_BIND, 1, MPOL_MF_STRICT));
	EXPECT_EQ(PAGES, on_node(self->mem, NULL, 1));
}

TEST_F(policies, pages_moved_by_request)
{
	static int to[PAGES];
	long i;

	ASSERT_EQ(0, mempolicy(MPOL_BIND, 2));
	memset(self->mem, 1, LEN);
	ASSERT_EQ(0, mempolicy(MPOL_DEFAULT, 0));
	for (i = 0; i < PAGES; i++)
		to[i] = 0;
	EXPECT_LE(PAGES * 95 / 100, on_node(self->mem, to, 0));
}

TEST_F(policies, process_moved_by_request)
{
	unsigned long from = 2, to = 1;

	ASSERT_EQ(0, mempolicy(MPOL_BIND, 2));
	memset(self->mem, 1, LEN);
	ASSERT_EQ(0, mempolicy(MPOL_DEFAULT, 0));
	ASSERT_LE(0, syscall(SYS_migrate_pages, 0, BITS, &from, &to));
	EXPECT_LE(PAGES * 95 / 100, on_node(self->mem, NULL, 0));
}

TEST_F(policies, numactl)
{
	EXPECT_EQ(0, system("numactl --membind=1 true"));
	EXPECT_EQ(0, system("numactl --preferred=1 true"));
	EXPECT_EQ(0, system("numactl --interleave=all true"));
	EXPECT_EQ(0, system("numactl --cpunodebind=1 --localalloc true"));
	EXPECT_NE(0, system("numactl --membind=63 true 2> /dev/null"));
}

TEST_HARNESS_MAIN
