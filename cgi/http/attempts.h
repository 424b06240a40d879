/*
 * attempts.h - how often an address has tried something that strangers may try: guesses of tokens, registrations.
 *
 * Counted in slots of a fixed table that a hash of the address chooses: a stranger with many addresses costs others
 * some of their attempts, and no memory. Addresses that share a slot share its attempts. Time gives attempts back. An
 * address of IPv6 counts as its /64, which is what one customer has at least. Thread-safe; a restart forgets it.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

#define ATTEMPTS_SLOTS 1024

struct attempts {
	pthread_mutex_t lock;
	int64_t most, period_us; /* so many in this time */
	struct {
		int64_t credit_us, seen_us;
	} slots[ATTEMPTS_SLOTS];
};
void attempts_init(struct attempts *attempts, int64_t most, int64_t period_us);
void attempts_clear(struct attempts *attempts);
/* Seconds until this address may try again; 0: now. */
int64_t attempts_wait(struct attempts *attempts, const char *address);
/* One attempt more. */
void attempts_count(struct attempts *attempts, const char *address);
