/* page_servers.c - the MCP servers whose tools programs may call; of one its tools, and which definitions changed. */
#include <string.h>

#include "lib/base/util.h"
#include "lib/store/record/store_pin.h"
#include "lib/upstream/upstream.h"
#include "lib/upstream/upstream_policy.h"
#include "pages.h"

#define LIST_US (5 * INT64_C(1000000))

static void put_server(struct html *html, const struct upstream_server *server)
{
	/* Whether it starts and answers is known on its own page, which asks it. */
	const char *state = server->problem ? "unavailable" : server->disabled ? "disabled" : "configured";
	const char *about = server->problem ? server->problem : server->description;

	html_put(html,
		 "<tr><td class=\"name\"><a href=\"/admin/servers/{}\">{}</a></td><td>{}</td>"
		 "<td><span class=\"badge {}\">{}</span></td><td class=\"wide name\">{}</td></tr>\n",
		 html_part(server->alias), html_text(server->name), html_text(server->url    ? "HTTP"
			   : server->jail ? "jailed"
					  : "outside of a jail"),
		 html_text(server->problem ? "bad" : "quiet"),
		 html_text(state), html_text(about));
}

static int put_all(struct admin_page *page)
{
	struct upstream *upstream = page->exchange->server->upstream;
	size_t count = 0;
	const struct upstream_server *servers = upstream ? upstream_servers(upstream, &count) : NULL;

	html_put(&page->html, "<h1>Upstream servers</h1>\n");
	if (!count) {
		admin_page_empty(page, "None: upstream.file names no servers whose tools programs may call.");
		return 0;
	}
	admin_page_table(page, "", "Server|Kind|State|About=wide");
	for (size_t i = 0; i < count; i++)
		put_server(&page->html, &servers[i]);
	html_put(&page->html, "</tbody></table>\n");
	return 0;
}

/* -------- one server ---------------------------------------------------------------------------------- */

enum pin { PIN_NEW, PIN_KNOWN, PIN_CHANGED };

struct pins {
	const struct upstream_list *list;
	enum pin *states;
};

static void compare(void *arg, const struct store_pin *pin)
{
	const struct pins *pins = arg;

	for (size_t i = 0; i < pins->list->count; i++)
		if (streq(pins->list->tools[i].name, pin->tool))
			pins->states[i] = streq(pins->list->tools[i].hash, pin->hash) ? PIN_KNOWN : PIN_CHANGED;
}

static void put_tool(struct html *html, const struct upstream_list *list, size_t at, enum pin pin)
{
	static const char *const names[] = {"new", "known", "changed"}, *const kinds[] = {"live", "good", "bad"};
	const struct upstream_tool *tool = &list->tools[at];
	char rule[UPSTREAM_RULE_SIZE];
	const struct upstream_question question = {"*", list->server, tool->name, tool,
						   pin == PIN_CHANGED ? UPSTREAM_PIN_CHANGED : UPSTREAM_PIN_KNOWN};
	const char *decision = upstream_decision_name(upstream_decide(&question, rule));

	html_put(html,
		 "<tr><td class=\"name\"><strong>{}</strong></td><td><span class=\"badge {}\">{}</span></td>"
		 "<td>{} <small>{}</small></td><td class=\"wide name\">{}</td><td>",
		 html_text(tool->name), html_text(kinds[pin]), html_text(names[pin]), html_text(decision),
		 html_text(rule), html_text(json_get_string(tool->object, "description")));
	if (pin == PIN_CHANGED)
		html_put(html,
			 "<a href=\"/admin/act/accept/{}/{}\" "
			 "aria-label=\"Look at the definition of {}\">Look at it</a>",
			 html_part(list->server->alias), html_part(tool->name), html_text(tool->name));
	html_put(html, "</td></tr>\n");
}

static int put_tools(struct admin_page *page, const struct upstream_list *list, struct err *err)
{
	auto_free enum pin *states = xcalloc(list->count + 1, sizeof(*states));
	struct pins pins = {list, states};
	char identity[SHA256_HEX_SIZE];

	sha256_hex(list->server->identity, strlen(list->server->identity), identity);
	int result = store_pin_list(page->exchange->server->store, identity, compare, &pins, err);

	if (result < 0)
		return result;
	html_put(&page->html, "<p class=\"note\">{}, MCP {}. Read ", html_text(list->version),
		 html_text(list->protocol));
	admin_page_time(page, list->read_us);
	html_put(&page->html, ".</p>\n");
	admin_page_table(page, "", "Tool|Definition|Decision|Description=wide|Act");
	for (size_t i = 0; i < list->count; i++)
		put_tool(&page->html, list, i, states[i]);
	html_put(&page->html, "</tbody></table>\n");
	return 0;
}

int page_servers(struct admin_page *page, const char *rest, struct err *err)
{
	struct upstream *upstream = page->exchange->server->upstream;
	struct upstream_key key = {.owner = page->visitor.token.owner, .run = "admin"};
	auto_upstream_list struct upstream_list *list = NULL;
	struct err why = ERR_INIT;

	if (!*rest)
		return put_all(page);
	if (!upstream || upstream_find(upstream, rest, &key.server, err) < 0)
		return err_set(err, ERR_NOT_FOUND, "There is no such server");
	admin_page_title(page, "Server");
	html_put(&page->html, "<h1>{}</h1>\n", html_text(key.server->name));
	if (key.server->disabled || upstream_list(upstream, &key, clock_monotonic_us() + LIST_US, &list, &why) < 0) {
		html_put(&page->html, "<p class=\"error\">{}</p>\n",
			 html_text(key.server->disabled ? "It is disabled in upstream.file." : why.text));
		return 0;
	}
	return put_tools(page, list, err);
}
