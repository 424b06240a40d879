/* store_snippet.c - see store_snippet.h. */
#include "store_snippet.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/util.h"
#include "lib/store/audit/store_audit.h"
#include "lib/store/db/store_txn.h"
#include "store_space.h"

#define ROW struct store_snippet
static const struct column columns[] = {STORE_SNIPPET_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

#define NAME_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

bool store_snippet_name_valid(const char *name)
{
	const size_t length = strlen(name);

	return length > 0 && length <= STORE_SNIPPET_NAME_MAX && strspn(name, NAME_BYTES) == length;
}

void store_snippet_clear(struct store_snippet *snippet)
{
	free(snippet->description);
	free(snippet->code);
	free(snippet->schema);
	free(snippet->servers);
	*snippet = (struct store_snippet){0};
}

/* What an operator does with snippets stands in the audit log. */
static int audit(struct store_txn *txn, const char *act, const char *owner, const char *name, struct err *err)
{
	struct store_audit entry;

	store_audit_init(&entry, STORE_AUDIT_ADMIN_ACT, "log", "audit");
	entry.owner = *owner ? owner : NULL;
	store_audit_word(&entry, "act", act);
	store_audit_word(&entry, "snippet", name);
	return store_txn_audit(txn, &entry, err);
}

struct save {
	const struct store_snippet *snippet;
	int64_t version;
};

static int add(struct store_txn *txn, struct save *save, struct err *err)
{
	const struct store_snippet *snippet = save->snippet;
	auto_query struct query q = query_begin(txn->conn, SQL_SNIPPET_ADD);

	query_bind_text(&q, ":owner", snippet->owner);
	query_bind_text(&q, ":name", snippet->name);
	query_bind_text(&q, ":language", snippet->language);
	query_bind_text(&q, ":description", snippet->description);
	query_bind_text(&q, ":schema", snippet->schema);
	query_bind_text(&q, ":servers", snippet->servers);
	query_bind_text(&q, ":code", snippet->code);
	query_bind_int(&q, ":now", store_txn_now(txn));
	int found = query_next(&q, err);

	if (found <= 0)
		return found;
	save->version = query_int(&q, 0);
	return query_run(&q, NULL, err);
}

static int save_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct save *save = arg;
	const struct store_snippet *snippet = save->snippet;
	const bool owned = *snippet->owner; /* everybody's are the operator's: without bounds */
	const size_t texts = strlen(snippet->description) + strlen(snippet->schema) + strlen(snippet->servers) +
			     strlen(snippet->code);
	const struct store_more more = {.owner = snippet->owner, .bytes = STORE_SNIPPET_BYTES + (int64_t)texts};
	auto_query struct query names = query_begin(txn->conn, SQL_SNIPPET_NAMES);

	query_bind_text(&names, ":owner", snippet->owner);
	query_bind_text(&names, ":name", snippet->name);
	int result = MIN(query_next(&names, err), 0);

	if (result == 0 && owned && query_int(&names, 0) >= STORE_SNIPPETS_MAX)
		return err_set(err, ERR_LIMIT, "there are %d snippets already, the limit: save it under one of their "
					       "names, or ask the operator to remove one",
			       STORE_SNIPPETS_MAX);
	if (result == 0 && owned)
		result = store_txn_room(txn, &more, err);
	if (result == 0)
		result = add(txn, save, err);
	if (result < 0)
		return result;
	auto_query struct query q = query_begin(txn->conn, SQL_SNIPPET_TRIM);

	query_bind_text(&q, ":owner", save->snippet->owner);
	query_bind_text(&q, ":name", save->snippet->name);
	query_bind_int(&q, ":version", save->version - STORE_SNIPPET_VERSIONS_MAX);
	result = query_run(&q, NULL, err);
	if (result < 0 || owned)
		return result;
	return audit(txn, "snippet.promote", STORE_SNIPPET_ALL, save->snippet->name, err);
}

int store_snippet_save(struct store *store, const struct store_snippet *snippet, int64_t *ret_version, struct err *err)
{
	struct save save = {.snippet = snippet};
	int result = store_commit(store, save_work, &save, err);

	if (result == 0)
		*ret_version = save.version;
	return result;
}

int store_snippet_find(struct store *store, const char *owner, const char *name, int64_t version,
		       struct store_snippet *ret, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_SNIPPET_FIND, err);

	query_bind_text(&q, ":owner", owner);
	query_bind_text(&q, ":name", name);
	query_bind_int(&q, ":version", version);
	int found = query_next(&q, err);

	if (found < 0)
		return found;
	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, version ? "there is no version %2$lld of the snippet \"%1$.64s\""
							   : "there is no snippet \"%.64s\"",
			       name, (long long)version);
	*ret = (struct store_snippet){0};
	query_read(&q, columns, ARRAY_SIZE(columns), ret);
	return 0;
}

int store_snippet_list(struct store *store, const char *owner,
		       void (*each)(void *arg, const struct store_snippet *snippet), void *arg, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_SNIPPET_LIST, err);
	int found;

	query_bind_text(&q, ":owner", owner);
	while ((found = query_next(&q, err)) > 0) {
		auto_snippet_row struct store_snippet snippet = {0};

		query_read(&q, columns, ARRAY_SIZE(columns), &snippet);
		each(arg, &snippet);
	}
	return found;
}

struct removal {
	const char *owner, *name;
	int64_t version, gone;
};

static int remove_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct removal *removal = arg;
	auto_query struct query q = query_begin(txn->conn, SQL_SNIPPET_REMOVE);

	query_bind_text(&q, ":owner", removal->owner);
	query_bind_text(&q, ":name", removal->name);
	query_bind_int(&q, ":version", removal->version);
	int result = query_run(&q, &removal->gone, err);

	return result < 0 ? result : audit(txn, "snippet.remove", removal->owner, removal->name, err);
}

int store_snippet_remove(struct store *store, const char *owner, const char *name, int64_t version, struct err *err)
{
	struct removal removal = {owner, name, version, 0};
	int result = store_commit(store, remove_work, &removal, err);

	if (result == 0 && removal.gone == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no such snippet");
	return result;
}
