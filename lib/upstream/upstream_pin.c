/* upstream_pin.c - see upstream_pin.h. */
#include "upstream_pin.h"

#include <string.h>

#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/store/record/store_pin.h"

struct compare {
	const struct upstream_list *list;
	enum upstream_pin *states;
	bool *known;
};

static void compare(void *arg, const struct store_pin *pin)
{
	const struct compare *compare = arg;

	for (size_t i = 0; i < compare->list->count; i++) {
		const struct upstream_tool *tool = &compare->list->tools[i];

		if (!streq(tool->name, pin->tool))
			continue;
		compare->known[i] = true;
		if (streq(tool->hash, pin->hash))
			continue;
		compare->states[i] = UPSTREAM_PIN_CHANGED;
		log_event(LOG_WARN, "definition of an upstream tool changed", "server", compare->list->server->name,
			  "tool", tool->name, "hash", tool->hash, "known", pin->hash, NULL);
	}
}

static void identify(const struct upstream_list *list, char ret[SHA256_HEX_SIZE])
{
	sha256_hex(list->server->identity, strlen(list->server->identity), ret);
}

int upstream_pin_states(struct store *store, const struct upstream_list *list, bool note, enum upstream_pin **ret,
			struct err *err)
{
	char server[SHA256_HEX_SIZE];
	auto_free enum upstream_pin *states = xcalloc(list->count + 1, sizeof(*states));
	auto_free bool *known = xcalloc(list->count + 1, sizeof(*known));
	auto_free struct store_pin *added = xcalloc(list->count + 1, sizeof(*added));
	struct compare all = {list, states, known};
	size_t count = 0;

	identify(list, server);
	int result = store_pin_list(store, server, compare, &all, err);

	for (size_t i = 0; i < list->count; i++)
		if (!known[i])
			added[count++] = (struct store_pin){list->tools[i].name, list->tools[i].hash};
	if (result == 0 && count > 0 && note)
		result = store_pin_put(store, server, added, count, false, err);
	if (result < 0)
		return result;
	*ret = steal(&states);
	return 0;
}

int upstream_pin_accept(struct store *store, const struct upstream_list *list, const char *tool, struct err *err)
{
	char server[SHA256_HEX_SIZE];
	auto_free struct store_pin *pins = xcalloc(list->count + 1, sizeof(*pins));
	size_t count = 0;

	identify(list, server);
	for (size_t i = 0; i < list->count; i++)
		if (tool == NULL || streq(list->tools[i].name, tool))
			pins[count++] = (struct store_pin){list->tools[i].name, list->tools[i].hash};
	return store_pin_put(store, server, pins, count, true, err);
}
