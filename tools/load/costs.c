// SPDX-License-Identifier: GPL-2.0-only
/*
 * costs - what the kernel's most frequent ways through our hooks cost: the load of
 * `tools/bench stock`. Built by tools/meter/Makefile, static; run by costs.sh in
 * a guest under icount, where time counts instructions.
 *
 *   costs            fork_exec_ps and anon_fault_ps, picoseconds each
 *   costs -h SECONDS use 32 MiB of local memory for so long, as one of two threads
 *                    (a process's only thread is given no hints for local memory)
 */
#define _GNU_SOURCE
#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FORKS 400
#define ROUNDS 40
#define PAGE 4096UL
#define FAULT_BYTES (4UL << 20)
#define HINT_BYTES (32UL << 20)

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e12 + ts.tv_nsec * 1e3;
}

static void fork_exec(const char *self)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		execl(self, self, "-n", NULL);
		_exit(1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		errx(1, "fork and exec failed");
}

static char *map(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		err(1, "mmap");
	madvise(p, size, MADV_NOHUGEPAGE);
	return p;
}

static void touch(char *p, size_t size)
{
	for (size_t i = 0; i < size; i += PAGE)
		((volatile char *)p)[i]++;
}

/* The time of the first touches only, not of getting and freeing the pages. */
static double fault_round(void)
{
	char *p = map(FAULT_BYTES);
	double start = now();

	touch(p, FAULT_BYTES);
	start = now() - start;
	munmap(p, FAULT_BYTES);
	return start / (FAULT_BYTES / PAGE);
}

static void *idle(void *unused)
{
	pause();
	return unused;
}

static void take_hints(double seconds)
{
	double end = now() + seconds * 1e12;
	pthread_t thread;
	char *p = map(HINT_BYTES);

	if (pthread_create(&thread, NULL, idle, NULL))
		errx(1, "no thread");
	while (now() < end)
		touch(p, HINT_BYTES);
}

int main(int argc, char **argv)
{
	cpu_set_t set;
	double start, sum = 0;
	int i;

	if (argc == 2 && !strcmp(argv[1], "-n"))
		return 0;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
	if (argc == 3 && !strcmp(argv[1], "-h")) {
		take_hints(atof(argv[2]));
		return 0;
	}
	fork_exec(argv[0]);
	start = now();
	for (i = 0; i < FORKS; i++)
		fork_exec(argv[0]);
	printf("fork_exec_ps %.0f\n", (now() - start) / FORKS);
	fault_round();
	for (i = 0; i < ROUNDS; i++)
		sum += fault_round();
	printf("anon_fault_ps %.0f\n", sum / ROUNDS);
	return 0;
}
