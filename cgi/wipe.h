/*
 * wipe.h - linked into the gateway alone: what it frees is wiped before (wipe.c).
 */
#pragma once

/* First thing of main: what is so large has mappings of its own, which go to the kernel as they are when they are
 * freed.
 */
void wipe_begin(void);
