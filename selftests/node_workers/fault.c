// SPDX-License-Identifier: GPL-2.0-only
/*
 * Node workers' selftest: the hinting fault restores what it found.
 *
 * Memory is put on node 1 and armed, the scan workers are paused, and the
 * pages are touched from node 0, so that each touch is a hinting fault on a
 * misplaced page. Planted faults: selftests/planted/fault-*.patch.
 */
#define _GNU_SOURCE
#include <linux/types.h>
#include <pthread.h>
#include <sys/ioctl.h>
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
 * first has made a dirty page writable again, @faults if not. Workers stay
 * paused, as a migration may cost a fault of its own.
 */
static void touch_twice(struct __test_metadata *_metadata, volatile char *mem,
			int faults)
{
	long minor, major = major_faults(), hints, i, sum = 0;

	nw_set_all("migrate", "paused", 1);
	hints = nw_vmstat("numa_hint_faults");
	minor = minor_faults();
	for (i = 0; i < PAGES; i++)
		sum += mem[i * NW_PAGE];
	for (i = 0; i < PAGES; i++)
		mem[i * NW_PAGE] = 2;
	minor = minor_faults() - minor;
	hints = nw_vmstat("numa_hint_faults") - hints;
	nw_set_all("migrate", "paused", 0);
	EXPECT_EQ(PAGES, sum);
	EXPECT_EQ(PAGES, hints);
	/* A few for whatever else the calls in between touched first. */
	EXPECT_LE(faults * PAGES, minor);
	EXPECT_GE(faults * PAGES + 8, minor);
	EXPECT_EQ(major, major_faults());
}

TEST_F_TIMEOUT(fault, anon_writable_again, 300)
{
	char *mem = nw_alloc_on(1, LEN);

	ASSERT_NE(NULL, mem);
	ASSERT_TRUE(nw_arm(1, self->armed, PAGES));
	touch_twice(_metadata, mem, 1);
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
	ASSERT_TRUE(nw_arm(1, self->armed, PAGES));
	touch_twice(_metadata, mem, 1);
}

/*
 * A clean page of a file is not made writable, or the filesystem would not hear of
 * the write: that takes its own fault. What is written reaches the disk.
 */
TEST_F_TIMEOUT(fault, file_write_noticed, 300)
{
	char *mem;
	int fd;

	if (!nw_mount_files())
		SKIP(return, "needs a RAM disk and a filesystem");
	mem = nw_file_on(1, &fd, LEN);
	ASSERT_NE(NULL, mem);
	ASSERT_EQ(PAGES, nw_pages_on(mem, LEN, 1));
	ASSERT_TRUE(nw_arm(1, self->armed, PAGES));
	touch_twice(_metadata, mem, 2);
	munmap(mem, LEN);
	close(fd);
	ASSERT_EQ(0, umount(NW_FILES));
	ASSERT_EQ(0, mount("/dev/ram0", NW_FILES, "ext2", 0, NULL));
	fd = open(NW_FILES "/data", O_RDONLY | O_CLOEXEC);
	mem = mmap(NULL, LEN, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_EQ(2, mem[0]);
	EXPECT_EQ(2, mem[LEN - NW_PAGE]);
	munmap(mem, LEN);
	close(fd);
	EXPECT_EQ(0, umount(NW_FILES));
}

/* kB of a field of /proc/self/smaps, of the mapping that begins at @mem. */
static long smaps_kb(const char *mem, const char *field)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[256], name[64];
	unsigned long start;
	bool here = false;
	long kb = -1, val;

	while (f && kb < 0 && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-", &start) == 1 && strchr(line, '-'))
			here = start == (uintptr_t)mem;
		if (here && sscanf(line, "%63[^:]: %ld kB", name, &val) == 2 &&
		    !strcmp(name, field))
			kb = val;
	}
	if (f)
		fclose(f);
	return kb;
}

/* What has been written to is still known to be, after a hint was only read. */
TEST_F_TIMEOUT(fault, dirty_stays_dirty, 300)
{
	char *mem = nw_alloc_on(1, LEN);
	long i, sum = 0;

	ASSERT_NE(NULL, mem);
	ASSERT_EQ(0, mprotect(mem + LEN / 2, LEN / 2, PROT_READ));
	ASSERT_TRUE(nw_arm(1, self->armed, PAGES));
	nw_set_all("migrate", "paused", 1);
	for (i = 0; i < PAGES; i++)
		sum += ((volatile char *)mem)[i * NW_PAGE];
	EXPECT_EQ(PAGES, sum);
	EXPECT_EQ((long)LEN / 2048, smaps_kb(mem, "Private_Dirty"));
	EXPECT_EQ((long)LEN / 2048, smaps_kb(mem + LEN / 2, "Private_Dirty"));
	nw_set_all("migrate", "paused", 0);
}

/* A read-only mapping stays one. */
TEST_F_TIMEOUT(fault, read_only_stays, 300)
{
	volatile char *mem = nw_alloc_on(1, LEN);
	long i, sum = 0;
	int pipefd[2];

	ASSERT_NE(NULL, mem);
	ASSERT_EQ(0, mprotect((void *)mem, LEN, PROT_READ));
	ASSERT_TRUE(nw_arm(1, self->armed, PAGES));
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
	ASSERT_TRUE(nw_arm(1, self->armed, 4 * 512));
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
 * An access through /proc/PID/mem, say by a debugger, is nobody's use of the
 * page: it takes no hint, nor is it held up by one.
 */
TEST_F_TIMEOUT(fault, debugger_reads, 300)
{
	char *mem = nw_alloc_on(1, LEN);
	char buf[NW_PAGE];
	long i, hints;
	int fd;

	ASSERT_NE(NULL, mem);
	ASSERT_TRUE(nw_arm(1, self->armed, PAGES));
	hints = nw_vmstat("numa_hint_faults");
	fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, fd);
	for (i = 0; i < PAGES; i++) {
		ASSERT_EQ((ssize_t)NW_PAGE,
			  pread(fd, buf, NW_PAGE, (off_t)(mem + i * NW_PAGE)));
		ASSERT_EQ(1, buf[0]);
	}
	close(fd);
	EXPECT_EQ(hints, nw_vmstat("numa_hint_faults"));
}

/* As in mm/gup_test.h and linux/mm_types.h. */
struct gup_test {
	__u64 get_delta_usec;
	__u64 put_delta_usec;
	__u64 addr;
	__u64 size;
	__u32 nr_pages_per_call;
	__u32 gup_flags;
	__u32 test_flags;
	__u32 which_pages[8];
};

#define GUP_BASIC_TEST		_IOWR('g', 4, struct gup_test)
#define HONOR_NUMA_FAULT	(1 << 12)

/* KVM's accesses are its guest's: they ask for hints to be taken. */
TEST_F_TIMEOUT(fault, hypervisor_takes_hints, 300)
{
	char *mem = nw_alloc_on(1, LEN);
	struct gup_test gup = {
		.addr = (uintptr_t)mem,
		.size = LEN,
		.nr_pages_per_call = 1,
		.gup_flags = HONOR_NUMA_FAULT,
	};
	int fd = open("/sys/kernel/debug/gup_test", O_RDWR | O_CLOEXEC);
	long hints;

	ASSERT_NE(NULL, mem);
	if (fd < 0)
		SKIP(return, "needs CONFIG_GUP_TEST");
	ASSERT_TRUE(nw_arm(1, self->armed, PAGES));
	hints = nw_vmstat("numa_hint_faults");
	ASSERT_EQ(0, ioctl(fd, GUP_BASIC_TEST, &gup));
	EXPECT_EQ(LEN, gup.size);
	EXPECT_EQ(hints + PAGES, nw_vmstat("numa_hint_faults"));
	close(fd);
}

#define THP_SYSFS	"/sys/kernel/mm/transparent_hugepage/"
#define MTHP		(64UL << 10)

static long mthp_stat(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), THP_SYSFS "hugepages-64kB/stats/%s", name);
	return nw_read_long(path);
}

/* A smaller large folio has one fault for all of its hints, and moves whole. */
TEST_F_TIMEOUT(fault, mthp_stays_whole, 300)
{
	long hints, splits, folios, i;
	char *mem;

	if (nw_write(THP_SYSFS "hugepages-64kB/enabled", "always"))
		SKIP(return, "needs huge pages of several sizes");
	mem = mmap(NULL, LEN + MTHP, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, mem);
	mem = (char *)(((uintptr_t)mem + MTHP - 1) & ~(MTHP - 1));
	folios = mthp_stat("anon_fault_alloc");
	nw_policy(MPOL_BIND, 1);
	memset(mem, 1, LEN);
	nw_policy(MPOL_DEFAULT, -1);
	nw_write(THP_SYSFS "hugepages-64kB/enabled", "never");
	folios = mthp_stat("anon_fault_alloc") - folios;
	ASSERT_LE((long)(LEN / MTHP), folios);
	splits = mthp_stat("split");
	ASSERT_TRUE(nw_arm(1, self->armed, PAGES));
	hints = nw_vmstat("numa_hint_faults");
	for (i = 0; i < PAGES; i++)
		mem[i * NW_PAGE]++;
	hints = nw_vmstat("numa_hint_faults") - hints;
	EXPECT_LE((long)(LEN / MTHP), hints);
	EXPECT_GE((long)(LEN / MTHP) + 1, hints);
	EXPECT_TRUE(nw_until(nw_pages_on(mem, LEN, 0) == PAGES));
	EXPECT_EQ(splits, mthp_stat("split"));
	for (i = 0; i < PAGES; i++)
		ASSERT_EQ(2, mem[i * NW_PAGE]);
}

/*
 * The tail pages of a large folio just above address 0, where its head would
 * be below: the restore of the neighbours' entries stays in the VMA.
 */
TEST_F_TIMEOUT(fault, folio_near_zero, 300)
{
	int fd = memfd_create("low", MFD_CLOEXEC);
	char *whole, *low;
	long i, hints;

	nw_write("/proc/sys/vm/mmap_min_addr", "0");
	ASSERT_EQ(0, nw_write(THP_SYSFS "shmem_enabled", "force"));
	whole = nw_shared_on(1, fd, NW_THP);
	ASSERT_NE(NULL, whole);
	nw_write(THP_SYSFS "shmem_enabled", "never");
	/* Only the low mapping is to have hints, and be the only one. */
	munmap(whole, NW_THP);
	low = mmap((void *)NW_PAGE, LEN, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_FIXED_NOREPLACE, fd, NW_THP / 2);
	if (low == MAP_FAILED)
		SKIP(return, "may not map so low");
	for (i = 0; i < PAGES; i++)
		ASSERT_EQ(1, *(volatile char *)(low + i * NW_PAGE));
	ASSERT_EQ(PAGES, nw_pages_on(low, LEN, 1));
	ASSERT_TRUE(nw_arm(1, self->armed, PAGES));
	hints = nw_vmstat("numa_hint_faults");
	for (i = 0; i < PAGES; i++)
		ASSERT_EQ(1, *(volatile char *)(low + i * NW_PAGE));
	/* As many as there are page tables to stay within, give or take. */
	hints = nw_vmstat("numa_hint_faults") - hints;
	EXPECT_LT(0, hints);
	munmap(low, LEN);
	close(fd);
}

TEST_HARNESS_MAIN
