/* store_refused_count.h - the counts of store_refused.c, which the store keeps. */
#pragma once

#include <pthread.h>

#include "store_refused.h"

struct store_refused_count {
	enum store_audit_kind kind;
	char word[24], owner[STORE_OWNER_MAX + 1];
	int64_t waiting, written_us; /* not written yet; when some were */
};
struct store_refused_counts {
	pthread_mutex_t lock;
	struct store_refused_count items[STORE_REFUSED_KEPT];
};
