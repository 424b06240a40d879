/* store_resource.c - see store_resource.h. */
#include "store_resource.h"

#include <errno.h>
#include <fcntl.h>

#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"
#include "store_file.h"
#include "store_record_internal.h"

#define ROW struct store_owner_file
static const struct column file_columns[] = {STORE_OWNER_FILE_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW
#define ROW struct store_listed_file
static const struct column listed_columns[] = {STORE_LISTED_FILE_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW
#define ROW struct store_owner_output
static const struct column output_columns[] = {STORE_OUTPUT_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

int store_owner_files(struct store *store, const struct store_page *page,
		      int (*each)(void *arg, const struct store_owner_file *file), void *arg, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_OWNER_FILES, err);
	int found;

	query_bind_text(&q, ":owner", page->owner);
	query_bind_text(&q, ":conversation", page->conversation);
	query_bind_bytes(&q, ":name", page->name_length > 0 ? page->name : "", page->name_length);
	query_bind_int(&q, ":limit", page->limit);
	while ((found = query_next(&q, err)) > 0) {
		struct store_owner_file file;

		store_file_read(&q, &file.file);
		query_read(&q, file_columns, ARRAY_SIZE(file_columns), &file);
		if (each(arg, &file) != 0)
			return 0;
	}
	return found;
}

int store_files_list(struct store *store, const char *owner, const char *conversation,
		     int (*each)(void *arg, const struct store_listed_file *file), void *arg, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_FILE_LIST, err);
	int found;

	query_bind_text(&q, ":owner", owner);
	query_bind_text(&q, ":conversation", conversation);
	while ((found = query_next(&q, err)) > 0) {
		struct store_listed_file file;

		store_file_read(&q, &file.file);
		query_read(&q, listed_columns, ARRAY_SIZE(listed_columns), &file);
		if (each(arg, &file) != 0)
			return 0;
	}
	return found;
}

int store_conversation_files(struct store *store, int64_t conversation, const struct store_page *page,
			     int (*each)(void *arg, const struct store_file *file), void *arg, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_CONVERSATION_FILES, err);
	int found;

	query_bind_int(&q, ":conversation", conversation);
	query_bind_bytes(&q, ":name", page->name_length > 0 ? page->name : "", page->name_length);
	query_bind_int(&q, ":limit", page->limit);
	while ((found = query_next(&q, err)) > 0) {
		struct store_file file;

		store_file_read(&q, &file);
		if (each(arg, &file) != 0)
			return 0;
	}
	return found;
}

int store_owner_outputs(struct store *store, const struct store_page *page,
			int (*each)(void *arg, const struct store_owner_output *output), void *arg, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_OWNER_OUTPUTS, err);
	int found;

	query_bind_text(&q, ":owner", page->owner);
	query_bind_text(&q, ":before", page->before);
	query_bind_int(&q, ":limit", page->limit);
	while ((found = query_next(&q, err)) > 0) {
		struct store_owner_output output;

		query_read(&q, output_columns, ARRAY_SIZE(output_columns), &output);
		if (each(arg, &output) != 0)
			return 0;
	}
	return found;
}

/* The names in the only column of a query that knows its owner and conversation. */
static int complete(struct query *q, const struct store_page *page, int (*each)(void *arg, const char *name), void *arg,
		    struct err *err)
{
	int found;

	query_bind_text(q, ":owner", page->owner);
	query_bind_text(q, ":prefix", page->prefix);
	query_bind_int(q, ":limit", page->limit);
	while ((found = query_next(q, err)) > 0) {
		if (each(arg, query_text(q, 0)) != 0)
			return 0;
	}
	return found;
}

int store_complete_conversation(struct store *store, const struct store_page *page,
				int (*each)(void *arg, const char *name), void *arg, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_COMPLETE_CONVERSATION, err);

	return complete(&q, page, each, arg, err);
}

int store_complete_file(struct store *store, const struct store_page *page, int (*each)(void *arg, const char *name),
			void *arg, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_COMPLETE_FILE, err);

	query_bind_text(&q, ":conversation", page->conversation);
	return complete(&q, page, each, arg, err);
}

int store_running_read(struct store *store, const char *id, const char *suffix, int *ret_fd, struct err *err)
{
	char name[ID_SIZE + 4];

	if (!id_valid(id) || (!streq(suffix, "out") && !streq(suffix, "err")))
		return err_set(err, ERR_NOT_FOUND, "no such run");
	snprintf(name, sizeof(name), "%s.%s", id, suffix);
	int fd = openat(store->running_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "no such run is under way");
	if (fd < 0)
		return err_errno(err, "opening %s/running/%s", store->path, name);
	*ret_fd = fd;
	return 0;
}
