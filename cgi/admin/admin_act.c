/*
 * admin_act.c - see admin_page.h.
 *
 * One table of acts. `ask` writes what the person should know before, and fails where the act makes no sense (a run
 * that is over, a token that is revoked). `perform` looks again, because time has passed. The key of the form was
 * checked by the caller: it is made for this address and this session.
 */
#include "admin_page.h"

#include <string.h>

#include "cgi/http/uri.h"
#include "lib/base/util.h"
#include "lib/store/audit/store_audit.h"
#include "lib/store/retention/store_erase.h"
#include "lib/upstream/upstream.h"
#include "lib/upstream/upstream_pin.h"
#include "pages.h"

#define DAY_US (86400 * INT64_C(1000000))
#define LIST_US   (10 * INT64_C(1000000))
#define TITLE_MAX 64
#define TICKET    "admin page"

struct act {
	const char *name, *section, *title, *button;
	bool harmless; /* nothing is lost by it */
	int (*ask)(struct admin_page *page, const char *object, struct err *err);
	int (*perform)(struct admin_page *page, const char *object, const char *form, char ret_to[ADMIN_VALUE_MAX],
		       struct err *err);
};

/* The entry that says who did it. `owner` NULL: nobody's. */
static int log_act(struct admin_page *page, const char *act, const char *type, const char *id, const char *owner,
		   struct err *err)
{
	char actor[ADMIN_ACTOR_SIZE];
	struct store_audit entry;

	admin_session_actor(&page->visitor, actor);
	store_audit_init(&entry, STORE_AUDIT_ADMIN_ACT, type, id);
	entry.actor = actor;
	entry.owner = owner;
	store_audit_word(&entry, "act", act);
	store_audit_client(&entry, &page->exchange->client);
	return store_audit_add(page->exchange->server->store, &entry, err);
}

/* -------- runs ---------------------------------------------------------------------------------------- */

static int find_run(struct admin_page *page, const char *id, struct store_execution *ret, struct err *err)
{
	if (!id_valid(id))
		return err_set(err, ERR_NOT_FOUND, "There is no such run");
	return store_execution_find(page->exchange->server->store, id, ret, err);
}

/* What is asked before an act on a run; `possible` fails where the act makes no sense. */
static int ask_about_run(struct admin_page *page, const char *object,
			 int (*possible)(struct admin_page *page, const struct store_execution *run, struct err *err),
			 const char *what, struct err *err)
{
	struct store_execution run = {0};
	int result = find_run(page, object, &run, err);

	if (result == 0)
		result = possible(page, &run, err);
	if (result == 0) {
		html_put(&page->html, "<p>Run <a class=\"id\" href=\"/admin/run/{}\">{}</a> of {}, {}, started ",
			 html_part(run.id), html_text(run.id), html_text(run.owner), html_text(run.language));
		admin_page_time(page, run.created_us);
		html_put(&page->html, ".</p>\n<p>{}</p>\n", html_text(what));
	}
	store_execution_clear(&run);
	return result;
}

static int cancel_possible(struct admin_page *page, const struct store_execution *run, struct err *err)
{
	(void)page;
	return run->state == STORE_RUNNING ? 0
					   : err_set(err, ERR_CONFLICT, "This run is over already (%s)", run->verdict);
}

static int ask_cancel(struct admin_page *page, const char *object, struct err *err)
{
	return ask_about_run(page, object, cancel_possible,
			     "It ends with the verdict CX. Its output and files up to then are recorded.",
			     err);
}

static int do_cancel(struct admin_page *page, const char *object, const char *form, char ret_to[ADMIN_VALUE_MAX],
		     struct err *err)
{
	struct store_execution run = {0};
	int result = find_run(page, object, &run, err);

	(void)form;
	if (result == 0)
		result = log_act(page, "cancel", "execution", run.id, run.owner, err);
	if (result == 0 && !server_cancel(page->exchange->server, run.id))
		result = err_set(err, ERR_CONFLICT,
				 "This run is over already, or another process runs it (sallyport ps)");
	if (result == 0)
		snprintf(ret_to, ADMIN_VALUE_MAX, "run/%s", run.id);
	store_execution_clear(&run);
	return result;
}

static int ask_replay(struct admin_page *page, const char *object, struct err *err)
{
	return ask_about_run(page, object, page_replay_possible,
			     "It runs once more on its recorded inputs, and the results are compared with the record. "
			     "Nothing of it is kept; it may take as long as the first run.",
			     err);
}

static int do_replay(struct admin_page *page, const char *object, const char *form, char ret_to[ADMIN_VALUE_MAX],
		     struct err *err)
{
	struct store_execution run = {0};
	int result = find_run(page, object, &run, err);

	(void)form, (void)ret_to;
	page->section = "runs";
	if (result == 0)
		result = page_replay_possible(page, &run, err);
	if (result == 0)
		result = log_act(page, "replay", "execution", run.id, run.owner, err);
	if (result == 0)
		result = page_replay(page, &run, err);
	store_execution_clear(&run);
	return result;
}

static int forget_possible(struct admin_page *page, const struct store_execution *run, struct err *err)
{
	(void)page;
	return run->state != STORE_RUNNING
		       ? 0
		       : err_set(err, ERR_CONFLICT, "This run is in progress: cancel it first");
}

static int ask_forget(struct admin_page *page, const char *object, struct err *err)
{
	return ask_about_run(page, object, forget_possible,
			     "Program, input, output and files of this run are removed for good. "
			     "The record still says that it ran, when, for whom and how it ended; "
			     "the audit log still verifies.",
			     err);
}

static int do_forget(struct admin_page *page, const char *object, const char *form, char ret_to[ADMIN_VALUE_MAX],
		     struct err *err)
{
	struct store_execution run = {0};
	struct store_erased erased = {0};
	int result = find_run(page, object, &run, err);
	const struct store_erase erase = {
		.what = STORE_ERASE_CONTENT, .id = run.id, .before_us = INT64_MAX, .why = "request", .ticket = TICKET};

	(void)form;
	if (result == 0)
		result = log_act(page, "forget", "execution", run.id, run.owner, err);
	if (result == 0)
		result = store_forget(page->exchange->server->store, &erase, &erased, err);
	if (result == 0 && erased.running)
		result = err_set(err, ERR_CONFLICT, "This run is in progress: cancel it first");
	if (result == 0 && erased.executions == 0)
		result = err_set(err, ERR_CONFLICT, "The content of this run is gone already");
	if (result == 0)
		snprintf(ret_to, ADMIN_VALUE_MAX, "run/%s", run.id);
	store_execution_clear(&run);
	return result;
}

/* -------- tokens -------------------------------------------------------------------------------------- */

static int find_good_token(struct admin_page *page, const char *id, struct store_token *ret, struct err *err)
{
	if (!id_valid(id))
		return err_set(err, ERR_NOT_FOUND, "There is no such token");
	int result = store_token_find(page->exchange->server->store, id, ret, err);

	if (result == 0 && ret->revoked_us)
		result = err_set(err, ERR_CONFLICT, "This token is revoked already");
	return result;
}

static int ask_revoke(struct admin_page *page, const char *object, struct err *err)
{
	struct store_token token;
	int result = find_good_token(page, object, &token, err);

	if (result < 0)
		return result;
	html_put(&page->html, "<p>Token <span class=\"id\">{}</span> of {}, “{}”, last used ", html_text(token.id),
		 html_text(token.owner), html_text(token.name));
	admin_page_time(page, token.used_us);
	html_put(&page->html,
		 ".</p>\n<p>It is refused from then on; this cannot be undone. Runs under way continue.</p>\n");
	if (streq(token.id, page->visitor.token.id))
		html_put(&page->html,
			 "<p class=\"error\">You are signed in with this token: your session ends with it.</p>\n");
	return 0;
}

static int do_revoke(struct admin_page *page, const char *object, const char *form, char ret_to[ADMIN_VALUE_MAX],
		     struct err *err)
{
	struct store_token token;
	int result = find_good_token(page, object, &token, err);

	(void)form;
	if (result == 0)
		result = log_act(page, "revoke", "token", token.id, token.owner, err);
	if (result == 0)
		result = store_token_revoke(page->exchange->server->store, token.id, NULL, err);
	snprintf(ret_to, ADMIN_VALUE_MAX, "tokens");
	return result;
}

static const char *const scope_names[] = {"run", "files", "network", "admin"};

static const char *const lives[][2] = {
	{"", "never"}, {"1", "in a day"}, {"30", "in 30 days"}, {"90", "in 90 days"}, {"365", "in a year"}};

static int ask_token(struct admin_page *page, const char *object, struct err *err)
{
	if (*object)
		return err_set(err, ERR_NOT_FOUND, "There is no such page");
	html_put(&page->html,
		 "<p>Its text is shown once, on the next page.</p>\n<div class=\"filters\">"
		 "<label>Owner <input name=\"owner\" required maxlength=\"32\" pattern=\"[a-z0-9][a-z0-9\\-]*\" "
		 "title=\"small letters, digits, -\"></label>"
		 "<label>Name, for you <input name=\"name\" maxlength=\"60\"></label>"
		 "<label>Expires <select name=\"days\">");
	for (size_t i = 0; i < ARRAY_SIZE(lives); i++)
		admin_page_option(page, lives[i][0], lives[i][1], "");
	html_put(&page->html,
		 "</select></label></div>\n"
		 "<fieldset><legend>Scopes</legend>");
	for (size_t i = 0; i < ARRAY_SIZE(scope_names); i++) {
		html_put(&page->html, "<label><input type=\"checkbox\" name=\"{}\" value=\"yes\"",
			 html_text(scope_names[i]));
		if (i < 2)
			html_put(&page->html, " checked");
		html_put(&page->html, "> {}</label> ", html_text(scope_names[i]));
	}
	html_put(&page->html, "</fieldset>\n");
	return 0;
}

static int read_token(const char *form, struct store_token *ret, struct err *err)
{
	char value[8], days[8] = "";
	uint64_t number = 0;

	*ret = (struct store_token){0};
	admin_page_value(form, "days", days, sizeof(days));
	if (*days && parse_u64(days, 1, 3650, &number) < 0)
		return err_set(err, ERR_INVALID, "Expires: must be a number of days");
	if (number)
		ret->expires_us = clock_now_us() + (int64_t)number * DAY_US;
	if (!admin_page_value(form, "owner", ret->owner, sizeof(ret->owner)))
		return err_set(err, ERR_INVALID, "An owner has 1 to %d characters", STORE_OWNER_MAX);
	admin_page_value(form, "name", ret->name, sizeof(ret->name));
	for (size_t i = 0; i < ARRAY_SIZE(scope_names); i++) {
		unsigned scope = 0;

		if (admin_page_value(form, scope_names[i], value, sizeof(value)) &&
		    store_scopes_parse(scope_names[i], &scope, err) == 0)
			ret->scopes |= scope;
	}
	return ret->scopes ? 0 : err_set(err, ERR_INVALID, "A token needs a scope");
}

static int do_token(struct admin_page *page, const char *object, const char *form, char ret_to[ADMIN_VALUE_MAX],
		    struct err *err)
{
	char text[STORE_TOKEN_TEXT];
	struct store_token token;
	int result = read_token(form, &token, err);

	(void)object;
	(void)ret_to; /* the text must be seen */
	if (result == 0)
		result = store_token_add_scoped(page->exchange->server->store, &token, text, err);
	if (result == 0)
		result = log_act(page, "token", "token", token.id, token.owner, err);
	if (result < 0)
		return result;
	admin_page_title(page, "A new token");
	html_put(&page->html,
		 "<h1>A new token of {}</h1>\n"
		 "<p>Keep it now: only its hash is stored, and this page is not shown again.</p>\n"
		 "<pre tabindex=\"0\"><code>{}</code></pre>\n<p><a href=\"/admin/tokens\">All tokens</a></p>\n",
		 html_text(token.owner), html_text(text));
	explicit_bzero(text, sizeof(text));
	return 0;
}

/* -------- tools of other servers ---------------------------------------------------------------------- */

/* "SERVER/TOOL", each percent-encoded. */
static int read_tool(const char *object, char ret_server[ADMIN_VALUE_MAX], char ret_tool[ADMIN_VALUE_MAX],
		     struct err *err)
{
	const char *slash = strchr(object, '/');
	auto_free char *query = slash ? xasprintf("s=%.*s&t=%s", (int)(slash - object), object, slash + 1) : NULL;

	if (!query || !admin_page_value(query, "s", ret_server, ADMIN_VALUE_MAX) ||
	    !admin_page_value(query, "t", ret_tool, ADMIN_VALUE_MAX))
		return err_set(err, ERR_NOT_FOUND, "There is no such tool");
	return 0;
}

static int read_list(struct admin_page *page, const char *server, struct upstream_list **ret, struct err *err)
{
	struct upstream *upstream = page->exchange->server->upstream;
	struct upstream_key key = {.owner = page->visitor.token.owner, .run = "admin"};

	if (!upstream)
		return err_set(err, ERR_NOT_FOUND, "There are no upstream servers: upstream.file is not set");
	int result = upstream_find(upstream, server, &key.server, err);

	return result < 0 ? result : upstream_list(upstream, &key, clock_monotonic_us() + LIST_US, ret, err);
}

static int ask_accept(struct admin_page *page, const char *object, struct err *err)
{
	auto_upstream_list struct upstream_list *list = NULL;
	char server[ADMIN_VALUE_MAX], name[ADMIN_VALUE_MAX];
	const struct upstream_tool *tool;
	int result = read_tool(object, server, name, err);

	if (result == 0)
		result = read_list(page, server, &list, err);
	if (result == 0)
		result = upstream_list_find(list, name, &tool, err);
	if (result < 0 || !list)
		return result;
	html_put(&page->html,
		 "<p>Tool <strong>{}</strong> of {}. From then on this definition is the known one; "
		 "another change is reported again.</p>\n",
		 html_text(tool->name), html_text(list->server->name));
	admin_page_text(page, tool->definition, tool->length, NULL);
	html_put(&page->html, "<input type=\"hidden\" name=\"hash\" value=\"{}\">", html_text(tool->hash));
	return 0;
}

/* What is accepted is what was shown. */
static int do_accept(struct admin_page *page, const char *object, const char *form, char ret_to[ADMIN_VALUE_MAX],
		     struct err *err)
{
	auto_upstream_list struct upstream_list *list = NULL;
	char server[ADMIN_VALUE_MAX], name[ADMIN_VALUE_MAX], hash[SHA256_HEX_SIZE] = "";
	const struct upstream_tool *tool;
	int result = read_tool(object, server, name, err);

	if (result == 0)
		result = read_list(page, server, &list, err);
	if (result == 0)
		result = upstream_list_find(list, name, &tool, err);
	if (result < 0 || !list)
		return result;
	admin_page_value(form, "hash", hash, sizeof(hash));
	if (!streq(hash, tool->hash))
		return err_set(err, ERR_CONFLICT, "The definition has changed since it was shown: look at it again");
	char actor[ADMIN_ACTOR_SIZE];
	struct store_audit entry;

	/* Names of servers and tools are chosen by the servers, so they are details of the entry. */
	admin_session_actor(&page->visitor, actor);
	store_audit_init(&entry, STORE_AUDIT_ADMIN_ACT, "log", "upstream");
	entry.actor = actor;
	store_audit_word(&entry, "act", "accept");
	store_audit_text(&entry, "tool", object, strlen(object));
	store_audit_text(&entry, "hash", hash, strlen(hash));
	result = store_audit_add(page->exchange->server->store, &entry, err);
	if (result == 0)
		result = upstream_pin_accept(page->exchange->server->store, list, name, err);
	snprintf(ret_to, ADMIN_VALUE_MAX, "servers/%s", list->server->alias);
	return result;
}

/* -------- the frame ----------------------------------------------------------------------------------- */

static const struct act acts[] = {
	{"cancel", "runs", "Cancel this run?", "Cancel the run", false, ask_cancel, do_cancel},
	{"replay", "runs", "Replay this run?", "Run it again", true, ask_replay, do_replay},
	{"forget", "runs", "Forget the content of this run?", "Forget it", false, ask_forget, do_forget},
	{"revoke", "tokens", "Revoke this token?", "Revoke it", false, ask_revoke, do_revoke},
	{"token", "tokens", "Make a token", "Make it", true, ask_token, do_token},
	{"accept", "servers", "Accept this definition?", "Accept it", true, ask_accept, do_accept},
};

static const struct act *find_act(const char *rest, const char **ret_object)
{
	const size_t length = strcspn(rest, "/");

	for (size_t i = 0; i < ARRAY_SIZE(acts); i++)
		if (strlen(acts[i].name) == length && strncmp(acts[i].name, rest, length) == 0) {
			*ret_object = rest + length + (rest[length] == '/');
			return &acts[i];
		}
	return NULL;
}

int admin_act_ask(struct admin_page *page, const char *rest, struct err *err)
{
	auto_free char *address = xasprintf("act/%s", rest);
	char key[ADMIN_KEY_SIZE];
	const char *object = "";
	const struct act *act = find_act(rest, &object);

	if (!act)
		return err_set(err, ERR_NOT_FOUND, "There is no such act");
	page->section = act->section;
	admin_page_title(page, "%s", act->title);
	admin_session_key(&page->visitor, address, key);
	/* The form is sent to the address of this page, which its key is made for. */
	html_put(&page->html,
		 "<h1>{}</h1>\n<form class=\"act\" method=\"post\"><input type=\"hidden\" name=\"key\" value=\"{}\">\n",
		 html_text(act->title), html_text(key));
	int result = act->ask(page, object, err);

	if (result < 0)
		return result;
	html_put(&page->html,
		 "<p class=\"acts\"><button class=\"{}\">{}</button> "
		 "<a class=\"button\" href=\"/admin/{}\">No, back</a></p></form>\n",
		 html_text(act->harmless ? "main" : "danger"), html_text(act->button), html_text(page->section));
	return 0;
}

int admin_act_do(struct admin_page *page, const char *rest, const char *form, char ret_to[ADMIN_VALUE_MAX],
		 struct err *err)
{
	const char *object = "";
	const struct act *act = find_act(rest, &object);

	ret_to[0] = '\0';
	return act ? act->perform(page, object, form, ret_to, err)
		   : err_set(err, ERR_NOT_FOUND, "There is no such act");
}
