// alone.cpp - main of a C++ program of code and tests. See alone.py; a translation unit of its own, so that the code cannot name what is
// in it. A failed assertion of <assert.h> arrives here and says so with the nonce.
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <initializer_list>

void sallyport_tests_run();

static char nonce[32];
static int out = -1;

__attribute__((constructor(101))) static void begin()
{
	unsigned char byte[2] = {0, 0};

	if (read(0, nonce, sizeof(nonce)) != (ssize_t)sizeof(nonce) || getrandom(byte, sizeof(byte), 0) < 0)
		_exit(2);
	out = fcntl(1, F_DUPFD_CLOEXEC, 100 + (byte[0] * 256 + byte[1]) % 900);
	int null = open("/dev/null", O_RDONLY);
	dup2(null, 0);
	dup2(2, 1);
}

static void end(const char *word, const char *why)
{
	char text[400];
	size_t length = sizeof(nonce);

	memcpy(text, nonce, length);
	for (const char *part : {word, why})
		for (; *part && length < sizeof(text); part++)
			text[length++] = *part;
	if (write(out, text, length) < 0)
		_exit(2);
}

extern "C" void __assert_fail(const char *expression, const char *, unsigned, const char *) noexcept
{
	end("wrong\n", expression);
	_exit(1);
}

int main()
{
	sallyport_tests_run();
	end("passed\n", "");
	return 0;
}
