/*
 * page_owners.c - owners with what they use, and tokens.
 */
#include <string.h>

#include "lib/base/util.h"
#include "lib/store/record/store_grant.h"
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
		admin_page_table(owners->page, "",
				 "Owner|Runs, 7 days=n|CPU, 7 days=n|Conversations=n wide|Tokens=n wide|Stored=n|"
				 "Of the cap=wide");
	html_put(html,
		 "<tr><td class=\"name\"><a href=\"/admin/runs?owner={}\">{}</a></td><td class=\"n\">{}</td>"
		 "<td class=\"n\">{}</td><td class=\"n wide\">{}</td>"
		 "<td class=\"n wide\"><a href=\"/admin/tokens?owner={}\">{}</a></td>"
		 "<td class=\"n\">{}</td>",
		 html_part(owner->owner), html_text(owner->owner), html_number(owner->runs),
		 html_duration(owner->cpu_us), html_number(owner->conversations), html_part(owner->owner),
		 html_number(owner->tokens), html_size(owner->bytes));
	admin_page_bar(owners->page, "bar wide", BAR_WIDTH, width, width * 10 >= BAR_WIDTH * 9);
	html_put(html, "</tr>\n");
}

static void put_shared(void *arg, const struct store_view_shared *shared)
{
	struct owners *owners = arg;
	const char *code = shared->code + strspn(shared->code, " \t\r\n");

	if (!owners->rows++) {
		html_put(&owners->page->html, "<section><h2>Code of several owners <small>7 days</small></h2>\n");
		admin_page_table(owners->page, "", "Program|Runs=n|Owners");
	}
	html_put(&owners->page->html,
		 "<tr><td class=\"program name\"><a href=\"/admin/runs?same={}\"><code>{}</code></a></td>"
		 "<td class=\"n\">{}</td><td class=\"name\">{}</td></tr>\n",
		 html_part(shared->id), html_bytes(code, strcspn(code, "\r\n")), html_number(shared->runs),
		 html_text(shared->owners));
}

int page_owners(struct admin_page *page, const char *rest, struct err *err)
{
	struct server *server = page->exchange->server;
	struct owners owners = {.page = page, .cap = server->config->retention.owner_mb << 20};

	if (*rest)
		return err_set(err, ERR_NOT_FOUND, "There is no such page");
	html_put(&page->html,
		 "<h1>Owners</h1>\n<p class=\"note\">Those who store most first. "
		 "The cap of each is {} (retention.owner_mb).</p>\n",
		 html_size(owners.cap));
	int result = store_view_owners(server->store, page->now_us - WEEK_US, put_owner, &owners, err);

	admin_page_table_end(page, owners.rows, result == 0 ? "None yet: a token makes an owner." : NULL);
	if (result == -ERR_LIMIT) {
		html_put(&page->html, "<p class=\"error\">To add up the others takes longer than a second: "
				      "sallyport stats --by owner has all.</p>\n");
		result = 0;
	}
	owners.rows = 0;
	if (result == 0 && store_view_shared(server->store, page->now_us - WEEK_US, put_shared, &owners, err) < 0 &&
	    err->code != ERR_LIMIT)
		result = -(int)err->code;
	if (owners.rows)
		html_put(&page->html, "</tbody></table></section>\n");
	return result;
}

/* -------- tokens -------------------------------------------------------------------------------------- */

struct tokens {
	struct admin_page *page;
	char owner[STORE_OWNER_MAX + 1];
	int64_t rows;
};

/* Of a grant: which client it is for, and where that one's answers go. */
static void put_grant(struct tokens *tokens, const char *id)
{
	struct html *html = &tokens->page->html;
	struct store_grant_shown grant;

	if (store_grant_show(tokens->page->exchange->server->store, id, &grant, NULL) < 0)
		html_put(html, "<td class=\"wide\"></td>");
	else if (grant.issuer[0])
		html_put(html, "<td class=\"wide name\">{}<br><small>of {}</small></td>", html_text(grant.client),
			 html_text(grant.issuer));
	else
		html_put(html, "<td class=\"wide name\">{}<br><small>{}</small></td>", html_text(grant.host),
			 html_text(grant.client));
}

static int put_token(void *arg, const struct store_token *token)
{
	struct tokens *tokens = arg;
	struct html *html = &tokens->page->html;
	const char *state = token->used_us ? "good" : "never used";
	char scopes[STORE_SCOPES_TEXT];

	if (tokens->owner[0] && !streq(tokens->owner, token->owner))
		return 0;
	if (token->revoked_us)
		state = "revoked";
	else if (token->expires_us && token->expires_us <= tokens->page->now_us)
		state = "expired";
	if (!tokens->rows++)
		admin_page_table(tokens->page, "",
				 "Token|Client=wide|Owner|Scopes=mid|Servers=wide|State|Created=mid|Expires=wide|Last "
				 "used=mid|Act");
	store_scopes_print(token->scopes, scopes);
	html_put(html, "<tr><td class=\"name\"><a href=\"/admin/runs?token={}\">{}</a></td>", html_part(token->id),
		 html_text(token->name[0] ? token->name : STORE_ID_SHORT(token->id)));
	put_grant(tokens, token->id);
	html_put(html,
		 "<td><a href=\"/admin/runs?owner={}\">{}</a></td><td class=\"mid\">{}</td>"
		 "<td class=\"wide name\">{}</td><td>{}</td><td class=\"mid\">",
		 html_part(token->owner), html_text(token->owner), html_text(scopes), html_text(token->servers),
		 html_text(state));
	admin_page_time(tokens->page, token->created_us);
	if (token->expires_us)
		html_put(html, "</td><td class=\"wide\">{}</td><td class=\"mid\">", html_date(token->expires_us));
	else
		html_put(html, "</td><td class=\"wide\">never</td><td class=\"mid\">");
	admin_page_time(tokens->page, token->used_us);
	if (token->revoked_us)
		html_put(html, "</td><td></td></tr>\n");
	else
		html_put(html,
			 "</td><td><a href=\"/admin/act/revoke/{}\" aria-label=\"Revoke {} of {}\">Revoke</a>"
			 "</td></tr>\n",
			 html_part(token->id), html_text(token->name[0] ? token->name : token->id),
			 html_text(token->owner));
	return 0;
}

int page_tokens(struct admin_page *page, const char *rest, struct err *err)
{
	struct tokens tokens = {.page = page};

	if (*rest)
		return err_set(err, ERR_NOT_FOUND, "There is no such page");
	admin_page_query(page, "owner", tokens.owner, sizeof(tokens.owner));
	html_put(&page->html, "<h1>Tokens</h1>\n<p class=\"acts\">"
			      "<a class=\"button\" href=\"/admin/act/token/\">Make a token</a></p>\n");
	int result = store_token_list(page->exchange->server->store, put_token, &tokens, err);

	admin_page_table_end(page, tokens.rows, result == 0 ? "No tokens here." : NULL);
	return result;
}
