/* attempts.c - see attempts.h. */
#include "attempts.h"

#include "lib/base/util.h"
#include "lib/store/db/crypto.h"

#define ADDRESS_SIZE 64

void attempts_init(struct attempts *attempts, int64_t most, int64_t period_us)
{
	*attempts = (struct attempts){.most = most, .period_us = period_us};
	pthread_mutex_init(&attempts->lock, NULL);
}

void attempts_clear(struct attempts *attempts)
{
	pthread_mutex_destroy(&attempts->lock);
}

static size_t slot_of(const char *address)
{
	uint8_t sum[SHA256_SIZE];
	size_t length = 0, colons = 0;

	for (; length < ADDRESS_SIZE && address[length] && colons < 4; length++)
		colons += address[length] == ':';
	sha256_bytes(address, length, sum);
	return ((size_t)sum[0] << 8 | sum[1]) % ATTEMPTS_SLOTS;
}

int64_t attempts_wait(struct attempts *attempts, const char *address)
{
	const int64_t cost = attempts->period_us / attempts->most, now = clock_monotonic_us();
	const size_t slot = slot_of(address);

	pthread_mutex_lock(&attempts->lock);
	int64_t *credit_us = &attempts->slots[slot].credit_us, *seen_us = &attempts->slots[slot].seen_us;

	*credit_us = *seen_us ? MIN(*credit_us + now - *seen_us, attempts->period_us) : attempts->period_us;
	*seen_us = now;
	const int64_t missing = *credit_us >= cost ? 0 : cost - *credit_us;

	pthread_mutex_unlock(&attempts->lock);
	return (missing + 999999) / 1000000;
}

void attempts_count(struct attempts *attempts, const char *address)
{
	pthread_mutex_lock(&attempts->lock);
	attempts->slots[slot_of(address)].credit_us -= attempts->period_us / attempts->most;
	pthread_mutex_unlock(&attempts->lock);
}
