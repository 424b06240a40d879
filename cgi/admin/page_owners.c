/*
 * page_owners.c - owners with what they use, and tokens.
 */
#include <string.h>

#include "lib/base/util.h"
#include "lib/store/record/store_view.h"
#include "pages.h"

#define WEEK_US   (7 * 86400 * INT64_C(1000000))
#define BAR_WIDTH 120

struct owners {
	struct admin_page *page;
	int64_t rows, cap;
};

static void put_owner(void *arg, const struct store_view_owner *owner)
{
	struct owners *owners = arg;
	struct html *html = &owners->page->html;
	const int64_t width = owners->cap > 0 ? MIN(owner->bytes * BAR_WIDTH / owners->cap, BAR_WIDTH) : 0;

	if (!owners->rows++)
		html_put(html,
			 "<table><thead><tr><th scope=\"col\">Owner</th><th scope=\"col\" class=\"n\">Runs, 7 days</th>"
			 "<th scope=\"col\" class=\"n wide\">Conversations</th><th scope=\"col\" class=\"n "
			 "wide\">Tokens</th>"
			 "<th scope=\"col\" class=\"n\">Stored</th><th scope=\"col\" class=\"wide\">Of the "
			 "cap</th></tr></thead><tbody>\n");
	html_put(html,
		 "<tr><td class=\"name\"><a href=\"/admin/runs?owner={}\">{}</a></td><td class=\"n\">{}</td>"
		 "<td class=\"n wide\">{}</td><td class=\"n wide\"><a href=\"/admin/tokens?owner={}\">{}</a></td><td "
		 "class=\"n\">{}</td>",
		 html_part(owner->owner), html_text(owner->owner), html_number(owner->runs),
		 html_number(owner->conversations), html_part(owner->owner), html_number(owner->tokens),
		 html_size(owner->bytes));
	html_put(html,
		 "<td class=\"bar wide\"><svg width=\"120\" height=\"8\" aria-hidden=\"true\"><rect class=\"track\" "
		 "width=\"120\" "
		 "height=\"8\" rx=\"4\"/><rect class=\"{}\" width=\"{}\" height=\"8\" rx=\"4\"/></svg></td></tr>\n",
		 html_text(width * 10 >= BAR_WIDTH * 9 ? "full" : "used"), html_plain(width));
}

int page_owners(struct admin_page *page, const char *rest, struct err *err)
{
	struct server *server = page->exchange->server;
	struct owners owners = {.page = page, .cap = server->config->retention.owner_mb << 20};

	if (*rest)
		return err_set(err, ERR_NOT_FOUND, "There is no such page");
	html_put(&page->html,
		 "<h1>Owners</h1>\n<p class=\"note\">Those who store most first. The cap of each is {} "
		 "(retention.owner_mb).</p>\n",
		 html_size(owners.cap));
	int result = store_view_owners(server->store, page->now_us - WEEK_US, put_owner, &owners, err);

	if (owners.rows)
		html_put(&page->html, "</tbody></table>\n");
	else if (result == 0)
		admin_page_empty(page, "Nobody yet: a token makes an owner.");
	return result;
}

/* -------- tokens -------------------------------------------------------------------------------------- */

struct tokens {
	struct admin_page *page;
	char owner[STORE_OWNER_MAX + 1];
	int64_t rows;
};

static const char *state_of(const struct tokens *tokens, const struct store_token *token)
{
	if (token->revoked_us)
		return "revoked";
	if (token->expires_us && token->expires_us <= tokens->page->now_us)
		return "expired";
	return token->used_us ? "good" : "never used";
}

static int put_token(void *arg, const struct store_token *token)
{
	struct tokens *tokens = arg;
	struct html *html = &tokens->page->html;
	char scopes[STORE_SCOPES_TEXT];

	if (tokens->owner[0] && !streq(tokens->owner, token->owner))
		return 0;
	if (!tokens->rows++)
		html_put(html, "<table><thead><tr><th scope=\"col\">Owner</th><th scope=\"col\">Name</th><th "
			       "scope=\"col\" class=\"wide\">"
			       "Id</th><th scope=\"col\" class=\"mid\">Scopes</th><th scope=\"col\">State</th><th "
			       "scope=\"col\" class=\"n mid\">"
			       "Last used</th><th scope=\"col\">Act</th></tr></thead><tbody>\n");
	store_scopes_print(token->scopes, scopes);
	html_put(html,
		 "<tr><td><a href=\"/admin/runs?owner={}\">{}</a></td><td class=\"name\">{}</td><td class=\"wide\"><a "
		 "class=\"id\" "
		 "href=\"/admin/runs?token={}\">{}</a></td><td class=\"mid\">{}</td><td>{}</td><td class=\"n mid\">",
		 html_part(token->owner), html_text(token->owner), html_text(token->name), html_part(token->id),
		 html_text(token->id), html_text(scopes), html_text(state_of(tokens, token)));
	admin_page_time(tokens->page, token->used_us);
	if (token->revoked_us)
		html_put(html, "</td><td></td></tr>\n");
	else
		html_put(html,
			 "</td><td><a href=\"/admin/act/revoke/{}\" aria-label=\"Revoke {} of "
			 "{}\">Revoke</a></td></tr>\n",
			 html_part(token->id), html_text(token->id), html_text(token->owner));
	return 0;
}

int page_tokens(struct admin_page *page, const char *rest, struct err *err)
{
	struct tokens tokens = {.page = page};

	if (*rest)
		return err_set(err, ERR_NOT_FOUND, "There is no such page");
	admin_page_query(page, "owner", tokens.owner, sizeof(tokens.owner));
	html_put(&page->html, "<h1>Tokens</h1>\n<p class=\"acts\"><a class=\"button\" href=\"/admin/act/token/\">Make "
			      "a token</a></p>\n");
	int result = store_token_list(page->exchange->server->store, put_token, &tokens, err);

	if (tokens.rows)
		html_put(&page->html, "</tbody></table>\n");
	else if (result == 0)
		admin_page_empty(page, "No tokens here.");
	return result;
}
