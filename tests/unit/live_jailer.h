/* live_jailer.h - for test programs about live jails that share one private jailer, and skip where it cannot freeze. */
#pragma once

#include "live_try.h"

/* The test program's own jailer, and whether it can freeze. */
static struct jail_client *client;
static bool possible;

static inline int start(void **state)
{
	(void)state;
	client = try_client(getenv("TEST_CONFIG"));
	possible = live_possible(client);
	return 0;
}

static inline int stop(void **state)
{
	(void)state;
	jail_client_free(client);
	return 0;
}
