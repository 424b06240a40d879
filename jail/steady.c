/* steady.c - see steady.h. The library is made of jail/steady; the jailer holds it. */
#include "steady.h"

#include <sys/mman.h>
#include <unistd.h>

#include "jail/init/init.h"
#include "lib/base/embed.h"
#include "lib/base/util.h"

#ifndef STEADY_LIBRARY /* the Makefile says it */
#define STEADY_LIBRARY "build/steady.so"
#endif
EMBED(steady_library, STEADY_LIBRARY);

#define NAME ".steady.so" /* jail/guest/steady/steady_clock.c knows it, too */

/* OPENSSL_ia32cap (OPENSSL_ia32cap(3); BoringSSL, which is in bun, reads it, too) without the bit of RDRAND: on Intel's
 * processors BoringSSL mixes its values into all others. */
const char *const steady_env[] = {"LD_PRELOAD=" JAIL_CODE "/" NAME, "PYTHONHASHSEED=0", "TZ=UTC",
				  "OPENSSL_ia32cap=~0x4000000000000000", NULL};

int steady_put(int code_root, int64_t clock_us)
{
	auto_close int library =
		memfd_with(NAME, steady_library, (size_t)((uintptr_t)steady_library_end - (uintptr_t)steady_library));

	return library < 0 ? -1 : init_put_file(code_root, NAME, 0644, clock_us, library);
}
