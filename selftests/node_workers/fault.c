// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers' selftest: the hinting fault restores what it found.
 *
 * Memory is put on node 1 and armed, the scan workers are paused, and the
 * pages are touched from node 0, so that each touch is a hinting fault on a
 * misplaced page. Planted faults: selftests/planted/fault-*.patch.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/resource.h>

#include "../kselftest_harness.h"
#include "nw.h"

#define PAGES	256
#define LEN	(PAGES * NW_PAGE)

FIXTURE(fault) {
	long armed;
};

FIXTURE_SETUP(fault)
{
	ASSERT_TRUE(nw_setup("page"));
	ASSERT_EQ(0, nw_run_on(nw_cpu(0, 0)));
	nw_pause_scan(true);
	self->armed = nw_node_vmstat(1, "node_worker_armed");
}

FIXTURE_TEARDOWN(fault)
{
	nw_pause_scan(false);
}

static bool arm(long before, long pages)
{
	bool ok;

	nw_pause_scan(false);
	ok = nw_until(nw_node_vmstat(1, "node_worker_armed") - before >= pages);
	nw_pause_scan(true);
	return ok;
}

static long minor_faults(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return ru.ru_minflt;
}

static long major_faults(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return ru.ru_majflt;
}

/*
 * Touch each page for reading, then for writing: one fault a page if the
 * first has made a dirty page writable again. Workers stay paused, as a
 * migration may cost a fault of its own.
 */
static void touch_twice(struct __test_metadata *_metadata, volatile char *mem)
{
	long minor, hints, i, sum = 0;
	int node;

	for (node = 0; node < nw_nodes(); node++)
		nw_set("migrate", node, "paused", 1);
	hints = nw_vmstat("numa_hint_faults");
	minor = minor_faults();
	for (i = 0; i < PAGES; i++)
		sum += mem[i * NW_PAGE];
	for (i = 0; i < PAGES; i++)
		mem[i * NW_PAGE] = 2;
	minor = minor_faults() - minor;
	hints = nw_vmstat("numa_hint_faults") - hints;
	for (node = 0; node < nw_nodes(); node++)
		nw_set("migrate", node, "paused", 0);
	EXPECT_EQ(PAGES, sum);
	EXPECT_EQ(PAGES, hints);
	/* A few for whatever else the calls in between touched first. */
	EXPECT_LE(PAGES, minor);
	EXPECT_GE(PAGES + 8, minor);
	EXPECT_EQ(0, major_faults());
}

TEST_F_TIMEOUT(fault, anon_writable_again, 300)
{
	char *mem = nw_alloc_on(1, LEN);

	ASSERT_NE(NULL, mem);
	ASSERT_TRUE(arm(self->armed, PAGES));
	touch_twice(_metadata, mem);
}

TEST_F_TIMEOUT(fault, shmem_writable_again, 300)
{
	char *mem;

	mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, mem);
	madvise(mem, LEN, MADV_NOHUGEPAGE);
	nw_policy(MPOL_BIND, 1);
	memset(mem, 1, LEN);
	nw_policy(MPOL_DEFAULT, -1);
	ASSERT_EQ(PAGES, nw_pages_on(mem, LEN, 1));
	ASSERT_TRUE(arm(self->armed, PAGES));
	touch_twice(_metadata, mem);
}

/* A read-only mapping stays one. */
TEST_F_TIMEOUT(fault, read_only_stays, 300)
{
	volatile char *mem = nw_alloc_on(1, LEN);
	long i, sum = 0;
	int pipefd[2];

	ASSERT_NE(NULL, mem);
	ASSERT_EQ(0, mprotect((void *)mem, LEN, PROT_READ));
	ASSERT_TRUE(arm(self->armed, PAGES));
	for (i = 0; i < PAGES; i++)
		sum += mem[i * NW_PAGE];
	EXPECT_EQ(PAGES, sum);
	/* read(2) into it fails where a store would be a signal. */
	ASSERT_EQ(0, pipe(pipefd));
	ASSERT_EQ(1, write(pipefd[1], "x", 1));
	EXPECT_EQ(-1, read(pipefd[0], (void *)mem, 1));
	EXPECT_EQ(EFAULT, errno);
}

/* A huge page gives one fault, is mapped huge again, and moves whole. */
TEST_F_TIMEOUT(fault, huge_stays_huge, 300)
{
	long splits, pmds, hints, i;
	char *mem;

	mem = nw_alloc_thp_on(1, 4 * NW_THP);
	ASSERT_NE(NULL, mem);
	ASSERT_EQ(4 * 512, nw_pages_on(mem, 4 * NW_THP, 1));
	splits = nw_vmstat("thp_split_page");
	pmds = nw_vmstat("thp_split_pmd");
	ASSERT_TRUE(arm(self->armed, 4 * 512));
	hints = nw_vmstat("numa_hint_faults");
	for (i = 0; i < 4 * 512; i++)
		mem[i * NW_PAGE]++;
	EXPECT_EQ(hints + 4, nw_vmstat("numa_hint_faults"));
	EXPECT_TRUE(nw_until(nw_pages_on(mem, 4 * NW_THP, 0) == 4 * 512));
	EXPECT_EQ(splits, nw_vmstat("thp_split_page"));
	EXPECT_EQ(pmds, nw_vmstat("thp_split_pmd"));
	for (i = 0; i < 4 * 512; i++)
		ASSERT_EQ(2, mem[i * NW_PAGE]);
}

#define WRITERS	4
#define ROUNDS	400

struct writer {
	volatile uint32_t *mem;
	int nr, cpu;
	bool ok;
};

/* Each owns every WRITERSth word of each page, and checks it before adding. */
static void *write_rounds(void *arg)
{
	struct writer *w = arg;
	uint32_t r;
	long i;

	nw_run_on(w->cpu);
	w->ok = true;
	for (r = 0; r < ROUNDS; r++)
		for (i = w->nr; i < (long)(LEN / 4); i += WRITERS * 61) {
			if (w->mem[i] != r)
				w->ok = false;
			w->mem[i] = r + 1;
		}
	return NULL;
}

/* Nothing is lost while pages are armed, faulted on and moved under it. */
TEST_F_TIMEOUT(fault, contents_intact, 600)
{
	pthread_t thread[WRITERS];
	struct writer w[WRITERS];
	volatile uint32_t *mem;
	int i;

	mem = (void *)nw_alloc_on(1, LEN);
	ASSERT_NE(NULL, mem);
	memset((void *)mem, 0, LEN);
	nw_pause_scan(false);
	for (i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){
			.mem = mem, .nr = i,
			.cpu = nw_cpu(i % nw_nodes(), 0),
		};
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, write_rounds,
					    &w[i]));
	}
	for (i = 0; i < WRITERS; i++) {
		pthread_join(thread[i], NULL);
		EXPECT_TRUE(w[i].ok);
	}
}

/*
 * Another task's access through GUP (as KVM's) takes the hint too, and does
 * not get stuck on it.
 */
TEST_F_TIMEOUT(fault, read_by_another, 300)
{
	char *mem = nw_alloc_on(1, LEN);
	char buf[NW_PAGE];
	long i;
	int fd;

	ASSERT_NE(NULL, mem);
	ASSERT_TRUE(arm(self->armed, PAGES));
	fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, fd);
	for (i = 0; i < PAGES; i++) {
		ASSERT_EQ((ssize_t)NW_PAGE,
			  pread(fd, buf, NW_PAGE, (off_t)(mem + i * NW_PAGE)));
		ASSERT_EQ(1, buf[0]);
	}
	close(fd);
}

TEST_HARNESS_MAIN
