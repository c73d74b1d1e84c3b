// SPDX-License-Identifier: GPL-2.0-only
/*
 * numameter - QEMU TCG plugin: where do memory accesses go?
 *
 * Classifies every guest memory access that misses a small per-vCPU cache
 * model by (vCPU's node, memory's node, mode) and prints the matrix for each
 * phase that the guest marks. Deterministic under -icount, independent of how
 * noisy the host is. Loaded by `tools/guest --meter`, which knows the maps.
 *
 * args: cpus=0-1:0+2-3:1          vCPU range : node
 *       mem=0-1024:0+2048-3072:1  MiB range : node, in the plugin API's address
 *                                 space (below)
 *       lines=32768               direct-mapped cache lines per vCPU (0: none)
 *       range=NAME:LO-HI          count instructions in [LO, HI) (hex) as mode
 *                                 NAME, too; the same NAME may come again
 *       every=N                   a sample each N executed instructions, roughly
 *
 * Output, a line for each mark and mode (user, kern, and every range's name;
 * kern includes the ranges), from the start of QEMU or the previous mark on:
 *
 *   meter mark=ID mode=MODE local=N remote=N share=P insns=N nodes=A,B/C,D
 *
 * ID is the number in the mark, `exit` for the last phase, or `tick` for a
 * sample; samples and marks do not disturb each other. P is local of all, in
 * per cent, or `-`. insns is the total since the start. nodes has a row a node
 * of vCPUs and in it a column a node of memory.
 *
 * The mark is the 7-byte no-op of numamark.h.
 *
 * QEMU 7.2 reports RAM as (RAM block offset + offset of the region in its
 * container), so with one memory-backend of S MiB a node, node k lies at
 * [2kS, 2kS + S), not at its guest-physical address. Hotplugged memory is not
 * in the map and not counted.
 *
 * The prototypes below restate QEMU 7.2's plugin API (version 1), whose
 * header Debian 12 does not package.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_hwaddr;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef struct qemu_info qemu_info_t;

extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
extern struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t, uint64_t);
extern uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *);
extern bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *);
extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t,
		void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *,
		void (*)(unsigned int, qemu_plugin_meminfo_t, uint64_t, void *),
		int flags, int rw, void *);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *,
		void (*)(unsigned int, void *), int flags, void *);
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *,
		int op, void *ptr, uint64_t imm);
extern void qemu_plugin_register_atexit_cb(qemu_plugin_id_t,
		void (*)(qemu_plugin_id_t, void *), void *);
extern void qemu_plugin_outs(const char *);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

#define QEMU_PLUGIN_INLINE_ADD_U64 0
#define QEMU_PLUGIN_CB_NO_REGS 0
#define QEMU_PLUGIN_MEM_RW 3

#define MAX_VCPUS 256
#define MAX_NODES 16
#define MAX_MODES 18
#define MAX_SPANS 64
#define MAX_MIB (1 << 20)
#define LINE_SHIFT 6
#define MIB_SHIFT 20
#define NO_NODE 0xff

enum { MODE_USER, MODE_KERN, MODE_RANGE };

struct matrix { uint64_t n[MAX_NODES][MAX_NODES]; };

/* Counts only grow, each written by its vCPU alone: readers keep a snapshot. */
static uint64_t count[MAX_VCPUS][MAX_MODES][MAX_NODES];
static uint64_t *cache[MAX_VCPUS];
static uint64_t insns, next_tick = UINT64_MAX, every;
static uint64_t cache_lines = 32768;
static uint8_t node_of_mib[MAX_MIB];
static int vcpu_node[MAX_VCPUS];
static int nr_nodes;

static const char *mode_name[MAX_MODES] = { "user", "kern" };
static int nr_modes = MODE_RANGE;
static struct { uint64_t lo, hi; int mode; } span[MAX_SPANS];
static int nr_spans;

/* What the previous line of the same kind had counted. */
static struct matrix marked[MAX_MODES], ticked[MAX_MODES];
static pthread_mutex_t report_lock = PTHREAD_MUTEX_INITIALIZER;

static void sum_mode(int mode, struct matrix *sum)
{
	for (int c = 0; c < MAX_VCPUS; c++)
		for (int n = 0; n < nr_nodes; n++)
			sum->n[vcpu_node[c]][n] += count[c][mode][n];
}

static void print_line(const char *id, int mode, const struct matrix *m)
{
	char nodes[MAX_NODES * MAX_NODES * 21 + 1], line[sizeof(nodes) + 256];
	char share[16] = "-";
	uint64_t local = 0, all = 0;
	int o = 0;

	for (int a = 0; a < nr_nodes; a++)
		for (int b = 0; b < nr_nodes; b++) {
			all += m->n[a][b];
			local += a == b ? m->n[a][b] : 0;
			o += snprintf(nodes + o, sizeof(nodes) - o, "%s%" PRIu64,
				      b ? "," : a ? "/" : "", m->n[a][b]);
		}
	if (all)
		snprintf(share, sizeof(share), "%.3f", 100.0 * local / all);
	snprintf(line, sizeof(line), "meter mark=%s mode=%s local=%" PRIu64 " remote=%" PRIu64
		 " share=%s insns=%" PRIu64 " nodes=%s\n", id, mode_name[mode], local,
		 all - local, share, insns, nodes);
	qemu_plugin_outs(line);
}

static void report(const char *id, struct matrix *before)
{
	for (int mode = 0; mode < nr_modes; mode++) {
		struct matrix now = {}, delta;

		sum_mode(mode, &now);
		if (mode == MODE_KERN)
			for (int r = MODE_RANGE; r < nr_modes; r++)
				sum_mode(r, &now);
		for (int a = 0; a < nr_nodes; a++)
			for (int b = 0; b < nr_nodes; b++)
				delta.n[a][b] = now.n[a][b] - before[mode].n[a][b];
		before[mode] = now;
		print_line(id, mode, &delta);
	}
}

static void on_mark(unsigned int vcpu, void *data)
{
	char id[16];

	snprintf(id, sizeof(id), "%u", (unsigned int)(uintptr_t)data);
	pthread_mutex_lock(&report_lock);
	report(id, marked);
	pthread_mutex_unlock(&report_lock);
}

static void tick(void)
{
	pthread_mutex_lock(&report_lock);
	if (insns >= next_tick) {
		report("tick", ticked);
		next_tick = insns - insns % every + every;
	}
	pthread_mutex_unlock(&report_lock);
}

/* The hot path: some 10^8 calls a run. */
static void on_mem(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t va, void *mode)
{
	struct qemu_plugin_hwaddr *hw;
	uint64_t pa, line, *slot;
	uint8_t node;

	if (__builtin_expect(insns >= next_tick, 0))
		tick();
	hw = qemu_plugin_get_hwaddr(info, va);
	if (!hw || qemu_plugin_hwaddr_is_io(hw) || vcpu >= MAX_VCPUS)
		return;
	pa = qemu_plugin_hwaddr_phys_addr(hw);
	if (cache_lines) {
		line = pa >> LINE_SHIFT;
		slot = &cache[vcpu][line & (cache_lines - 1)];
		if (*slot == line + 1)
			return;
		*slot = line + 1;
	}
	if (pa >> MIB_SHIFT >= MAX_MIB)
		return;
	node = node_of_mib[pa >> MIB_SHIFT];
	if (node != NO_NODE)
		count[vcpu][(uintptr_t)mode][node]++;
}

/* The mode is a matter of the instruction's address: decided once, here. */
static uintptr_t mode_of(uint64_t va)
{
	if (!(va >> 63))
		return MODE_USER;
	for (int i = 0; i < nr_spans; i++)
		if (va >= span[i].lo && va < span[i].hi)
			return span[i].mode;
	return MODE_KERN;
}

static bool is_mark(const uint8_t *op, size_t size)
{
	return size == 7 && op[0] == 0x0f && op[1] == 0x1f && op[2] == 0x80 &&
	       op[5] == 0x4d && op[6] == 0x4e;
}

static void on_tb(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);

	/* Lossy between threads; exact under -icount, which has only one. */
	qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &insns, n);
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		const uint8_t *op = qemu_plugin_insn_data(insn);

		if (is_mark(op, qemu_plugin_insn_size(insn)))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, QEMU_PLUGIN_CB_NO_REGS,
					(void *)(uintptr_t)(op[3] | op[4] << 8));
		qemu_plugin_register_vcpu_mem_cb(insn, on_mem, QEMU_PLUGIN_CB_NO_REGS,
				QEMU_PLUGIN_MEM_RW,
				(void *)mode_of(qemu_plugin_insn_vaddr(insn)));
	}
}

static void at_exit(qemu_plugin_id_t id, void *unused)
{
	pthread_mutex_lock(&report_lock);
	report("exit", marked);
	pthread_mutex_unlock(&report_lock);
}

/* "LO-HI:NODE" joined by '+'; calls @set for each. */
static bool parse_map(const char *s, bool (*set)(uint64_t lo, uint64_t hi, int node))
{
	uint64_t lo, hi;
	int node, used;

	while (sscanf(s, "%" SCNu64 "-%" SCNu64 ":%d%n", &lo, &hi, &node, &used) == 3) {
		if (lo > hi || node < 0 || node >= MAX_NODES || !set(lo, hi, node))
			return false;
		if (node >= nr_nodes)
			nr_nodes = node + 1;
		s += used;
		if (!*s)
			return true;
		s++;
	}
	return false;
}

static bool set_cpus(uint64_t lo, uint64_t hi, int node)
{
	if (hi >= MAX_VCPUS)
		return false;
	for (uint64_t c = lo; c <= hi; c++)
		vcpu_node[c] = node;
	return true;
}

static bool set_mem(uint64_t lo, uint64_t hi, int node)
{
	if (hi > MAX_MIB)
		return false;
	memset(node_of_mib + lo, node, hi - lo);
	return true;
}

static int mode_by_name(const char *name, size_t len)
{
	for (int m = MODE_RANGE; m < nr_modes; m++)
		if (!strncmp(mode_name[m], name, len) && !mode_name[m][len])
			return m;
	if (nr_modes == MAX_MODES)
		return -1;
	mode_name[nr_modes] = strndup(name, len);
	return nr_modes++;
}

static bool parse_range(const char *s)
{
	const char *colon = strrchr(s, ':');
	int mode;

	if (!colon || nr_spans == MAX_SPANS ||
	    sscanf(colon, ":%" SCNx64 "-%" SCNx64, &span[nr_spans].lo, &span[nr_spans].hi) != 2)
		return false;
	mode = mode_by_name(s, colon - s);
	span[nr_spans++].mode = mode;
	return mode >= 0;
}

static bool parse_arg(const char *arg)
{
	if (!strncmp(arg, "mem=", 4))
		return parse_map(arg + 4, set_mem);
	if (!strncmp(arg, "cpus=", 5))
		return parse_map(arg + 5, set_cpus);
	if (!strncmp(arg, "range=", 6))
		return parse_range(arg + 6);
	if (!strncmp(arg, "lines=", 6)) {
		cache_lines = strtoull(arg + 6, NULL, 0);
		return !(cache_lines & (cache_lines - 1));
	}
	if (!strncmp(arg, "every=", 6)) {
		next_tick = every = strtoull(arg + 6, NULL, 0);
		return every > 0;
	}
	return false;
}

__attribute__((visibility("default")))
int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	memset(node_of_mib, NO_NODE, sizeof(node_of_mib));
	for (int i = 0; i < argc; i++)
		if (!parse_arg(argv[i])) {
			fprintf(stderr, "numameter: bad argument %s\n", argv[i]);
			return -1;
		}
	for (int c = 0; cache_lines && c < MAX_VCPUS; c++)
		cache[c] = calloc(cache_lines, sizeof(uint64_t));
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_tb);
	qemu_plugin_register_atexit_cb(id, at_exit, NULL);
	return 0;
}
