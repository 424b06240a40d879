/* shim.c - see shim.h. The library is made of jail/guest/shim; the jailer holds it. */
#include "shim.h"

#include <sys/mman.h>
#include <unistd.h>

#include "jail/init/init.h"
#include "lib/base/embed.h"
#include "lib/base/util.h"

#ifndef SHIM_LIBRARY /* the Makefile says it */
#define SHIM_LIBRARY "build/shim.so"
#endif
EMBED(shim_library, SHIM_LIBRARY);

#define NAME ".shim.so" /* jail/guest/shim/shim_clock.c knows it, too */

/* OPENSSL_ia32cap (OPENSSL_ia32cap(3); BoringSSL, which is in bun, reads it, too) without the bit of RDRAND: on Intel's
 * processors BoringSSL mixes its values into all others. */
const char *const shim_env[] = {"LD_PRELOAD=" JAIL_CODE "/" NAME, "PYTHONHASHSEED=0", "TZ=UTC",
				"OPENSSL_ia32cap=~0x4000000000000000", NULL};

int shim_put(int code_root, int64_t clock_us)
{
	auto_close int library =
		memfd_with(NAME, shim_library, (size_t)((uintptr_t)shim_library_end - (uintptr_t)shim_library));

	return library < 0 ? -1 : init_put_file(code_root, NAME, 0644, clock_us, library);
}
