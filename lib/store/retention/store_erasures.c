/* store_erasures.c - see store_erasures.h. A conversation stands in the log by a hash of its address, so all are looked
 * through. */
#include "store_erasures.h"

#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_file.h"

#define TICKET "repeated after a restore"

#define ROW struct store_erasure
static const struct column columns[] = {STORE_ERASURE_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

int store_erasures_list(struct store *store, int (*each)(void *arg, const struct store_erasure *erasure), void *arg,
			struct err *err)
{
	auto_read struct query q = store_read(store, SQL_ERASURE_LIST, err);
	int found;

	while ((found = query_next(&q, err)) > 0) {
		struct store_erasure erasure = {0};

		query_read(&q, columns, ARRAY_SIZE(columns), &erasure);
		if (each(arg, &erasure) != 0)
			return 0;
	}
	return found;
}

/* Owner and name of the conversation with this place. 1: there is one. */
static int find_place(struct store *store, const char *place, char owner[STORE_OWNER_MAX + 1],
		      char name[STORE_CONVERSATION_MAX + 1], struct err *err)
{
	auto_read struct query q = store_read(store, SQL_AUDIT_CONVERSATIONS, err);
	int found;

	while ((found = query_next(&q, err)) > 0) {
		char is[SHA256_HEX_SIZE];

		store_audit_place(query_text(&q, AUDIT_CONVERSATION_HASH), is);
		if (!streq(is, place))
			continue;
		query_copy(&q, AUDIT_CONVERSATION_OWNER, owner, STORE_OWNER_MAX + 1);
		query_copy(&q, AUDIT_CONVERSATION_NAME, name, STORE_CONVERSATION_MAX + 1);
		return 1;
	}
	return found;
}

int store_erasures_repeat(struct store *store, const struct store_erasure *erasure, struct store_erased *ret,
			  struct err *err)
{
	struct store_erase erase = {.before_us = INT64_MAX, .why = "request", .ticket = TICKET};
	const char *id = strchr(erasure->object, ':');

	erase.what = streq(erasure->what, "output") ? STORE_ERASE_OUTPUT : STORE_ERASE_CONTENT;
	if (id != NULL && str_starts(erasure->object, "conversation:")) {
		char owner[STORE_OWNER_MAX + 1], name[STORE_CONVERSATION_MAX + 1];
		const int found = find_place(store, id + 1, owner, name, err);

		erase.owner = owner;
		erase.conversation = name;
		return found <= 0 ? found : store_forget(store, &erase, ret, err);
	}
	if (id == NULL || !str_starts(erasure->object, "execution:") || !id_valid(id + 1))
		return err_set(err, ERR_INVALID, "'%s' is nothing that was erased", erasure->object);
	erase.id = id + 1;
	return store_forget(store, &erase, ret, err);
}
