/* census.h - how many jails a jailer has, and what they do: for figures. */
#pragma once

#include <stdint.h>

struct jail_client;

/* Those of all clients. Parked: made ahead, nobody's. Frozen: a live one between two runs. */
#define JAIL_STATES_EACH(STATE)                                                                                        \
	STATE(PARKED, "parked")                                                                                        \
	STATE(BUILDING, "building")                                                                                    \
	STATE(READY, "ready")                                                                                          \
	STATE(FROZEN, "frozen")                                                                                        \
	STATE(RUNNING, "running")                                                                                      \
	STATE(COLLECTING, "collecting")                                                                                \
	STATE(ENDING, "ending")
#define JAIL_STATE_CONSTANT(constant, name) JAIL_STATE_##constant,
enum jail_state { JAIL_STATES_EACH(JAIL_STATE_CONSTANT) JAIL_STATES };
const char *jail_state_text(enum jail_state state);
struct jail_census {
	int64_t count[JAIL_STATES];
};

/* What the last sign of life said (jail_client_ping); zeros before it. */
const struct jail_census *jail_client_census(const struct jail_client *client);
