/*
 * store_task.c - see store_task.h.
 *
 * Three ways out of `working`, each one UPDATE that asks for that state, so that the first counts: store_task_end by
 * the process that works on it or cancels it, and the two statements of store_txn_task_abandon for an instance that is
 * gone. Those run in the transaction that ends the instance (store_instance.c), after its runs were marked. Readers
 * leave out what has expired; the rows go when the owner's next task is added, which counts them, and with
 * store_expire.
 */
#include "store_task.h"

#include "lib/base/util.h"
#include "lib/store/audit/store_refused.h"
#include "lib/store/db/store_txn.h"
#include "store_record_internal.h"

static const char *const states[] = {
	[STORE_TASK_WORKING] = "working",
	[STORE_TASK_COMPLETED] = "completed",
	[STORE_TASK_FAILED] = "failed",
	[STORE_TASK_CANCELLED] = "cancelled",
};

void store_task_clear(struct store_task *task)
{
	free(task->result);
	task->result = NULL;
}

/* -------- writing ------------------------------------------------------------------------------------- */

struct task_add {
	struct store_task *task;
	int64_t most;
};

int store_txn_task_expire(struct store_txn *txn, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_TASK_EXPIRE);

	store_uptime_bind(txn->store, &q);
	query_bind_int(&q, ":rows", STORE_SLICE_ROWS);
	return query_run(&q, NULL, err);
}

/* What has expired goes first: it must not stand in the way. */
static int check_room(struct store_txn *txn, const struct task_add *add, struct err *err)
{
	int failed = store_txn_task_expire(txn, err);

	if (failed < 0)
		return failed;
	auto_query struct query q = query_begin(txn->conn, SQL_TASK_COUNT);

	query_bind_text(&q, ":owner", add->task->owner);
	failed = query_next(&q, err);
	if (failed < 0)
		return failed;
	if (query_int(&q, 0) < add->most)
		return 0;
	store_refused(txn->store, STORE_AUDIT_LIMIT, "tasks",
	              &(struct store_refused_who){.owner = add->task->owner});
	return err_set(err, ERR_BUSY,
		       "%lld tasks of yours are kept already, which is the most: wait until one has expired, or ask "
		       "for a shorter ttl the next time",
		       (long long)add->most);
}

static int add_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct task_add *add = arg;
	struct store_task *task = add->task;

	task->created_us = task->updated_us = store_txn_now(txn);
	int failed = check_room(txn, add, err);

	if (failed < 0)
		return failed;
	auto_query struct query q = query_begin(txn->conn, SQL_TASK_ADD);

	query_bind_text(&q, ":id", task->id);
	query_bind_text(&q, ":owner", task->owner);
	query_bind_some(&q, ":token", task->token_id);
	query_bind_some(&q, ":session", task->session_id);
	query_bind_text(&q, ":instance", txn->store->instance);
	query_bind_text(&q, ":tool", task->tool);
	query_bind_some(&q, ":execution", task->execution);
	query_bind_text(&q, ":message", task->message);
	query_bind_int(&q, ":now", task->created_us);
	query_bind_int(&q, ":ttl", task->ttl_ms * 1000);
	store_uptime_bind(txn->store, &q);
	return query_run(&q, NULL, err);
}

int store_task_add(struct store *store, struct store_task *task, int64_t most, struct err *err)
{
	struct store_task made = *task;

	id_new(made.id);
	made.state = STORE_TASK_WORKING;
	int failed = store_commit(store, add_work, &(struct task_add){&made, most}, err);

	if (failed == 0)
		*task = made;
	return failed;
}

static int end_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct store_task *task = arg;
	auto_query struct query q = query_begin(txn->conn, SQL_TASK_END);
	int64_t changed = 0;

	query_bind_text(&q, ":id", task->id);
	query_bind_text(&q, ":state", states[task->state]);
	query_bind_int(&q, ":is_error", task->is_error);
	query_bind_text(&q, ":message", task->message);
	query_bind_some(&q, ":execution", task->execution);
	query_bind_text(&q, ":result", task->result);
	query_bind_int(&q, ":now", store_txn_now(txn));
	int failed = query_run(&q, &changed, err);

	if (failed == 0 && changed == 0)
		failed = err_set(err, ERR_CONFLICT, "the task has ended already");
	return failed;
}

int store_task_end(struct store *store, const struct store_task *task, struct err *err)
{
	return store_commit(store, end_work, unconst(task), err);
}

static int drop_work(struct store_txn *txn, void *arg, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_TASK_DROP);

	query_bind_text(&q, ":id", arg);
	return query_run(&q, NULL, err);
}

int store_task_drop(struct store *store, const char *id, struct err *err)
{
	return store_commit(store, drop_work, unconst(id), err);
}

int store_txn_task_abandon(struct store_txn *txn, const char *instance, struct err *err)
{
	static const enum store_sql steps[] = {SQL_TASK_RECOVER, SQL_TASK_INTERRUPT};
	int failed = 0;

	for (size_t i = 0; failed == 0 && i < ARRAY_SIZE(steps); i++) {
		auto_query struct query q = query_begin(txn->conn, steps[i]);

		query_bind_text(&q, ":instance", instance);
		query_bind_int(&q, ":now", store_txn_now(txn));
		failed = query_run(&q, NULL, err);
	}
	return failed;
}

/* -------- reading ------------------------------------------------------------------------------------- */

#define ROW struct store_task
static const struct column columns[] = {STORE_TASK_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

/* The result stays the query's. */
static void read_task(struct query *q, struct store_task *ret)
{
	const char *state = query_text(q, TASK_STATE);

	*ret = (struct store_task){0};
	query_read(q, columns, ARRAY_SIZE(columns), ret);
	ret->ttl_ms = (query_int(q, TASK_EXPIRES_US) - ret->created_us) / 1000;
	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		if (streq(states[i], state))
			ret->state = (enum store_task_state)i;
	}
}

int store_task_find(struct store *store, const char *id, const char *owner, struct store_task *ret, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_TASK_FIND, err);

	query_bind_text(&q, ":id", id);
	query_bind_text(&q, ":owner", owner);
	store_uptime_bind(store, &q);
	int found = query_next(&q, err);

	if (found <= 0)
		return found < 0 ? found : err_set(err, ERR_NOT_FOUND, "there is no such task");
	read_task(&q, ret);
	if (!query_is_null(&q, TASK_RESULT))
		ret->result = xstrdup(query_text(&q, TASK_RESULT));
	return 0;
}

int store_task_list(struct store *store, const struct store_task_page *page,
		    int (*each)(void *arg, const struct store_task *task), void *arg, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_TASK_LIST, err);
	int found;

	query_bind_text(&q, ":owner", page->owner);
	query_bind_text(&q, ":before", page->before);
	store_uptime_bind(store, &q);
	query_bind_int(&q, ":limit", page->limit);
	while ((found = query_next(&q, err)) > 0) {
		struct store_task task;

		read_task(&q, &task);
		if (each(arg, &task) != 0)
			return 0;
	}
	return found;
}
