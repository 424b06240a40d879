/*
 * embed.h - files of the tree as bytes in a program.
 *
 * EMBED(symbol, path), at file scope: the bytes begin at symbol and end before symbol_end, where a NUL stands. The path
 * is seen from where the compiler is started, the top of the tree.
 */
#pragma once

#define EMBED(symbol, path)                                                                                            \
	__asm__(".section .rodata\n.balign 8\n" #symbol ":\n.incbin \"" path "\"\n" #symbol                            \
		"_end:\n.byte 0\n.previous\n");                                                                        \
	extern const char symbol[], symbol##_end[]
