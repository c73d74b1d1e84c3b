/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * numa_mark(id): tell numameter that a phase ends here. A no-op of seven
 * bytes, free where no meter listens. For test programs and memwalk.
 *
 * @id is a constant expression in 0..65535: it is part of the instruction.
 */
#ifndef NUMAMARK_H
#define NUMAMARK_H

#define NUMA_MARK_MAGIC 0x4e4d0000

#define numa_mark(id)							\
	asm volatile(".byte 0x0f, 0x1f, 0x80\n\t.long %c0"		\
		     : : "i" (NUMA_MARK_MAGIC | (id)) : "memory")

#endif
