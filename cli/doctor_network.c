/* doctor_network.c - who may have the network, and whether the names on the list mean anything here. */
#include <netdb.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "doctor.h"
#include "lib/base/util.h"

#define SHOWN_MAX 400 /* bytes of names that do not work */

/* What is wrong with an entry; NULL: nothing. Names below "*." are the program's to choose. */
static const char *look_at(const struct config_host *entry)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *list = NULL;
	bool reachable = entry->is_private;

	if (entry->below)
		return NULL;
	if (getaddrinfo(entry->host, NULL, &hints, &list))
		return "does not resolve";
	for (const struct addrinfo *one = list; one; one = one->ai_next)
		reachable = reachable || host_public(one->ai_addr);
	freeaddrinfo(list);
	return reachable ? NULL : "has no public address";
}

void doctor_network(struct doctor *doctor)
{
	const struct bind_strings *allow = &doctor->config->network.allow;
	struct config_host entry;
	auto_buf struct buf wrong = {0};

	if (!allow->count) {
		doctor_add(doctor, "network", DOCTOR_OK, NULL, "programs have none: network.allow is empty");
		return;
	}
	buf_init(&wrong, SHOWN_MAX);
	setenv("RES_OPTIONS", "timeout:2 attempts:1", 0); /* many names may be wrong for the same reason */
	for (size_t i = 0; i < allow->count; i++) {
		const char *why = config_host_parse(allow->items[i], &entry, NULL) == 0 ? look_at(&entry) : NULL;

		if (why)
			buf_printf(&wrong, "%s%s:%u %s", wrong.length ? ", " : "", entry.host, entry.port, why);
	}
	if (wrong.length)
		doctor_add(doctor, "network", DOCTOR_WEAKER,
			   "correct network.allow; \" private\" behind an entry allows addresses that are not public",
			   "%s", wrong.data);
	else
		doctor_add(doctor, "network", DOCTOR_OK, NULL, "%zu entries in network.allow%s", allow->count,
			   doctor->config->network.proxy[0] ? ", through a proxy" : "");
}
