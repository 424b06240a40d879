/*
 * store_forget.c - what the operator asks to be removed: runs, conversations, all of an owner. See store_erase.h.
 *
 * A conversation that goes loses its files in parts before its row goes: nobody counts on half of them, because its
 * removal was asked for.
 */
#include <string.h>

#include "lib/base/util.h"
#include "lib/store/audit/store_audit.h"
#include "lib/store/blob/store_search.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_file.h"
#include "lib/store/record/store_token.h"
#include "store_erase.h"
#include "store_reserve.h"
#include "store_retention_internal.h"

#define FILE_ROWS 200
#define NAME_ROWS 200

static int number(struct store *store, enum store_sql which, const struct store_erase *erase, int64_t *ret,
		  struct err *err)
{
	struct store_range range = {"", STORE_ID_ABOVE};
	int failed = erase->id != NULL ? store_range(erase->id, &range, err) : 0;

	if (failed < 0)
		return failed;
	auto_read struct query q = store_read(store, which, err);

	store_erase_bind(&q, erase, &range, "");
	failed = query_next(&q, err);
	if (failed < 0)
		return failed;
	*ret = query_int(&q, 0);
	return 0;
}

/* The next conversation behind *row. 1: there is one. */
static int next_conversation(struct store *store, const struct store_erase *erase, int64_t *row, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_FORGET_LIST, err);

	query_bind_text(&q, ":owner", erase->owner);
	query_bind_text(&q, ":conversation", erase->conversation);
	query_bind_int(&q, ":before", erase->before_us);
	query_bind_int(&q, ":after", *row);
	int found = query_next(&q, err);

	if (found > 0)
		*row = query_int(&q, 0);
	return found;
}

struct conversation {
	const struct store_erase *erase;
	int64_t row;
	bool files, gone; /* are some left? did it go? */
};

static int files_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct conversation *conversation = arg;
	auto_query struct query q = query_begin(txn->conn, SQL_FORGET_FILES);
	int64_t gone = 0;

	query_bind_int(&q, ":id", conversation->row);
	query_bind_int(&q, ":limit", FILE_ROWS);
	int failed = query_run(&q, &gone, err);

	conversation->files = gone == FILE_ROWS;
	return failed;
}

static int conversation_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct conversation *conversation = arg;
	char owner[STORE_OWNER_MAX + 1], hash[SHA256_HEX_SIZE], place[SHA256_HEX_SIZE];
	auto_query struct query q = query_begin(txn->conn, SQL_FORGET_CONVERSATION);

	query_bind_int(&q, ":id", conversation->row);
	int found = query_next(&q, err);

	conversation->gone = found > 0;
	if (found <= 0)
		return found;
	query_copy(&q, EXPIRED_OWNER, owner, sizeof(owner));
	query_copy(&q, EXPIRED_HASH, hash, sizeof(hash));
	store_audit_place(hash, place);
	int failed = query_run(&q, NULL, err);

	return failed < 0 ? failed
			  : store_txn_audit_erase(txn,
						  &(struct store_audit_erasure){.type = "conversation",
										.id = place,
										.what = "content",
										.reason = "request",
										.owner = owner,
										.ticket = conversation->erase->ticket},
						  err);
}

static int forget_conversations(struct store *store, const struct store_erase *erase, struct store_erased *ret,
				struct err *err)
{
	struct conversation conversation = {.erase = erase};
	int failed;

	while ((failed = next_conversation(store, erase, &conversation.row, err)) > 0) {
		failed = store_conversation_detach(store, conversation.row, err);
		if (failed < 0)
			return failed;
		do {
			failed = store_commit_gently(store, files_work, &conversation, err);
		} while (failed == 0 && conversation.files);
		if (failed == 0)
			failed = store_commit_gently(store, conversation_work, &conversation, err);
		if (failed < 0)
			return failed;
		ret->conversations += conversation.gone;
	}
	return failed;
}

static int owner_work(struct store_txn *txn, void *arg, struct err *err)
{
	static const enum store_sql statements[] = {SQL_FORGET_EVENTS, SQL_FORGET_TASKS, SQL_SNIPPET_FORGET,
						    SQL_FORGET_TAGS};
	int failed = 0;

	for (size_t i = 0; failed == 0 && i < ARRAY_SIZE(statements); i++) {
		auto_query struct query q = query_begin(txn->conn, statements[i]);

		query_bind_text(&q, ":owner", arg);
		failed = query_run(&q, NULL, err);
	}
	return failed;
}

struct naming {
	const struct store_erase *erase;
	const char *place; /* of the conversation; NULL: all of the owner's */
	int64_t gone;      /* in one transaction */
};

/* Where live sandboxes were. */
static int sandboxes_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct naming *naming = arg;
	auto_query struct query q = query_begin(txn->conn, SQL_FORGET_PLACES);

	query_bind_text(&q, ":owner", naming->erase->owner);
	query_bind_text(&q, ":conversation", naming->erase->conversation);
	return query_run(&q, NULL, err);
}

static int names_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct naming *naming = arg;
	auto_query struct query q = query_begin(txn->conn, SQL_FORGET_NAMES);

	query_bind_text(&q, ":owner", naming->erase->owner);
	query_bind_text(&q, ":conversation", naming->erase->conversation);
	query_bind_int(&q, ":limit", NAME_ROWS);
	return query_run(&q, &naming->gone, err);
}

/* The log has the names of conversations in details, also of those that expired. */
static int places_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct naming *naming = arg;
	char place[SHA256_HEX_SIZE];
	auto_query struct query q = query_begin(txn->conn, SQL_FORGET_PLACE_NEXT);

	query_bind_text(&q, ":owner", naming->erase->owner);
	query_bind_text(&q, ":place", naming->place);
	int found = query_next(&q, err);

	naming->gone = found > 0;
	if (found <= 0)
		return found;
	query_copy(&q, 0, place, sizeof(place));
	return store_txn_audit_erase(txn,
				     &(struct store_audit_erasure){.type = "conversation",
								   .id = place,
								   .what = "content",
								   .reason = "request",
								   .owner = naming->erase->owner,
								   .ticket = naming->erase->ticket},
				     err);
}

static int forget_names(struct store *store, const struct store_erase *erase, struct err *err)
{
	static const store_work works[] = {names_work, places_work};
	struct naming naming = {.erase = erase};
	char hash[SHA256_HEX_SIZE], place[SHA256_HEX_SIZE];

	if (erase->conversation != NULL) {
		store_conversation_hash(store, erase->owner, erase->conversation, hash);
		store_audit_place(hash, place);
		naming.place = place;
	}
	int failed = store_commit(store, sandboxes_work, &naming, err);

	for (size_t i = 0; failed == 0 && i < ARRAY_SIZE(works); i++)
		do
			failed = store_commit_gently(store, works[i], &naming, err);
		while (failed == 0 && naming.gone > 0);
	return failed;
}

struct tokens {
	const char *owner;
	char (*ids)[ID_SIZE];
	size_t count;
};

static int add_token(void *arg, const struct store_token *token)
{
	struct tokens *tokens = arg;

	if (!streq(token->owner, tokens->owner) || token->revoked_us > 0)
		return 0;
	tokens->ids = xrealloc(tokens->ids, tokens->count + 1, sizeof(*tokens->ids));
	memcpy(tokens->ids[tokens->count++], token->id, ID_SIZE);
	return 0;
}

static int revoke_tokens(struct store *store, const char *owner, int64_t *ret_revoked, struct err *err)
{
	struct tokens tokens = {.owner = owner};
	int failed = store_token_list(store, add_token, &tokens, err);

	for (size_t i = 0; failed == 0 && i < tokens.count; i++)
		failed = store_token_revoke(store, tokens.ids[i], NULL, err);
	*ret_revoked = failed == 0 ? (int64_t)tokens.count : 0;
	free(tokens.ids);
	return failed;
}

/* Output belongs to runs: its erasure leaves conversations, with what was uploaded to them. */
static bool with_conversations(const struct store_erase *erase)
{
	return erase->what == STORE_ERASE_CONTENT && erase->owner != NULL && erase->id == NULL;
}

static int check(const struct store_erase *erase, struct err *err)
{
	if (erase->conversation != NULL && erase->owner == NULL)
		return err_set(err, ERR_INVALID, "a conversation is an owner's: name the owner, too");
	return 0;
}

/* What an owner has besides runs and conversations. The tokens first: nothing new begins. */
static int forget_owner(struct store *store, const struct store_erase *erase, struct store_erased *ret, struct err *err)
{
	int failed = revoke_tokens(store, erase->owner, &ret->tokens, err);

	if (failed == 0)
		failed = store_commit(store, owner_work, unconst(erase->owner), err);
	return failed;
}

int store_forget(struct store *store, const struct store_erase *erase, struct store_erased *ret, struct err *err)
{
	int failed = check(erase, err);

	store_reserve_release(store->path);
	if (failed == 0)
		failed = number(store, SQL_ERASE_RUNNING, erase, &ret->running, err);
	if (failed == 0)
		failed = store_erase_runs(store, erase, ret, err);
	if (failed == 0 && with_conversations(erase))
		failed = forget_conversations(store, erase, ret, err);
	const bool whole = with_conversations(erase) && erase->before_us == INT64_MAX;

	if (failed == 0 && whole && erase->conversation == NULL)
		failed = forget_owner(store, erase, ret, err);
	/* a conversation in which a run is in progress stays, and keeps its name */
	if (failed == 0 && whole && (erase->conversation == NULL || ret->running == 0))
		failed = forget_names(store, erase, err);
	if (failed == 0)
		failed = store_search_purge(store, err);
	return failed < 0 ? err_wrap(err, "forgetting") : 0;
}

int store_forget_count(struct store *store, const struct store_erase *erase, struct store_erased *ret, struct err *err)
{
	int64_t row = 0;
	int failed = check(erase, err);

	if (failed == 0)
		failed = number(store, SQL_ERASE_RUNNING, erase, &ret->running, err);
	if (failed == 0)
		failed = number(store, SQL_ERASE_COUNT, erase, &ret->executions, err);
	if (failed < 0 || !with_conversations(erase))
		return failed;
	while ((failed = next_conversation(store, erase, &row, err)) > 0)
		ret->conversations++;
	return failed;
}
