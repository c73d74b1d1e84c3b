// SPDX-License-Identifier: GPL-2.0-only
/*
 * numamark ID - end a phase of numameter from a shell script (ID 0..1023).
 * /bin/numamark in the guest; tools/build/initramfs.sh builds it.
 *
 * The id is part of the instruction, so there is a function for each one:
 * the 7-byte no-op and a ret.
 */
#include <stdio.h>
#include <stdlib.h>

#include "numamark.h"

#define NR_MARKS 1024
#define MARK_BYTES 8
#define STRING(x) #x
#define EXPAND(x) STRING(x)

extern char marks[];

asm(".text\n"
    "marks:\n"
    ".set id, 0\n"
    ".rept " EXPAND(NR_MARKS) "\n"
    "	.byte 0x0f, 0x1f, 0x80\n"
    "	.long " EXPAND(NUMA_MARK_MAGIC) " + id\n"
    "	ret\n"
    "	.set id, id + 1\n"
    ".endr\n");

int main(int argc, char **argv)
{
	char *end;
	unsigned long id;

	if (argc != 2 || (id = strtoul(argv[1], &end, 0), *end) || id >= NR_MARKS) {
		fprintf(stderr, "usage: numamark ID (0..%d)\n", NR_MARKS - 1);
		return 2;
	}
	((void (*)(void))(marks + id * MARK_BYTES))();
	return 0;
}
