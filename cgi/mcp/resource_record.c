/*
 * resource_record.c - see resource_record.h.
 *
 * A URI is taken apart once, into a struct target; from there everything is asked of the store with the caller's owner,
 * so what belongs to somebody else is not found rather than refused. A listing is files; outputs, of which there is no
 * end, have a template, whose ids completion knows. Its position is "f", the conversation and the file's name
 * (percent-encoded, a slash between): a key and not a number, so that what changes between two pages shifts nothing.
 * Bytes are read with pread from a blob, or copied out of the row, never more than RESOURCE_READ_MAX: the refusal of a
 * larger one names the URI of its first part.
 */
#include "resource_record.h"

#include <sys/stat.h>
#include <unistd.h>

#include "cgi/http/uri.h"
#include "lib/base/text.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/store/blob/store_blob.h"
#include "lib/store/record/store_execution.h"
#include "lib/store/record/store_resource.h"

#define FILES_PAGE    100
#define IDS_LOOKED_AT 1000                        /* the newest executions, for completion */
#define VALUES_MAX    (COMPLETION_VALUES_MAX + 1) /* one more shows that there are more */

struct target {
	bool output, is_stderr;
	char id[ID_SIZE];
	char conversation[STORE_CONVERSATION_MAX + 1];
	struct buf name;
	bool ranged;
	int64_t offset, length; /* length 0: to the end, or as much as one read gives */
};

static void target_clear(struct target *target)
{
	buf_clear(&target->name);
}
#define auto_target __attribute__((cleanup(target_clear)))

/* -------- a URI, taken apart -------------------------------------------------------------------------- */

static int unknown(struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "Resource not found");
}

static int take_range(const char *query, struct target *ret, struct err *err)
{
	static const char *const names[] = {"offset=", "length="};

	for (const char *p = query; *p; p += *p == '&') {
		size_t length = strcspn(p, "&");
		auto_free char *part = xstrndup(p, length);
		uint64_t value = 0;
		size_t which = 0;

		while (which < ARRAY_SIZE(names) && !str_starts(part, names[which]))
			which++;
		if (which == ARRAY_SIZE(names) || parse_u64(part + strlen(names[which]), which, INT64_MAX, &value) < 0)
			return err_set(err, ERR_INVALID, "uri: only offset=BYTES and length=BYTES may follow the '?'");
		*(which == 0 ? &ret->offset : &ret->length) = (int64_t)value;
		p += length;
	}
	ret->ranged = true;
	return 0;
}

/* "ID/stdout" */
static int take_output(const char *rest, struct target *ret, struct err *err)
{
	const char *slash = strchr(rest, '/');

	if (!slash || slash - rest != ID_SIZE - 1 || (!streq(slash, "/stdout") && !streq(slash, "/stderr")))
		return unknown(err);
	memcpy(ret->id, rest, ID_SIZE - 1);
	ret->output = true;
	ret->is_stderr = streq(slash, "/stderr");
	return id_valid(ret->id) ? 0 : unknown(err);
}

/* "NAME/PATH", both encoded */
static int take_file(const char *rest, struct target *ret, struct err *err)
{
	const char *slash = strchr(rest, '/');
	auto_free char *encoded = xstrndup(rest, slash ? (size_t)(slash - rest) : 0);
	auto_buf struct buf name = {0};

	buf_init(&name, STORE_CONVERSATION_MAX);
	if (!slash || uri_decode(encoded, &name, err) < 0 || name.overflow || name.length == 0)
		return unknown(err);
	memcpy(ret->conversation, name.data, name.length + 1);
	if (uri_decode(slash + 1, &ret->name, err) < 0 || ret->name.overflow || ret->name.length == 0)
		return unknown(err);
	return 0;
}

static int take_uri(const char *uri, struct target *ret, struct err *err)
{
	size_t length = strcspn(uri, "?#");
	auto_free char *path = xstrndup(uri, length);
	int result = 0;

	*ret = (struct target){0};
	buf_init(&ret->name, JAIL_NAME_MAX);
	if (uri[length] == '#' || length > URI_MAX)
		return unknown(err);
	if (uri[length] == '?')
		result = take_range(uri + length + 1, ret, err);
	if (result < 0)
		return result;
	if (str_starts(path, URI_EXECUTION))
		return take_output(path + strlen(URI_EXECUTION), ret, err);
	if (str_starts(path, URI_CONVERSATION))
		return take_file(path + strlen(URI_CONVERSATION), ret, err);
	return unknown(err);
}

/* -------- reading ------------------------------------------------------------------------------------- */

/* Where the bytes are: a blob, or memory. */
struct source {
	int fd;
	char *data;
	int64_t size;
	char media_type[STORE_MEDIA_TYPE_SIZE];
};

static void source_clear(struct source *source)
{
	close_pointer(&source->fd);
	free(source->data);
}
#define auto_source __attribute__((cleanup(source_clear)))

static int open_file(struct store *store, const char *owner, const struct target *target, struct source *ret,
		     struct err *err)
{
	struct store_conversation conversation;
	struct store_file file;
	int result = store_conversation_find(store, owner, target->conversation, &conversation, err);

	if (result == 0)
		result = store_file_find(store, conversation.row, target->name.data, target->name.length, &file, err);
	if (result == 0)
		result = store_blob_open(store, file.blob, &ret->fd, &ret->size, err);
	if (result == 0)
		snprintf(ret->media_type, sizeof(ret->media_type), "%s", file.media_type);
	return result;
}

/* The file of a run under way is opened before the row is read: where the row says `running` after that, it is the one,
 * or, if it was not there, nothing has been printed. */
static int open_output(struct store *store, const char *owner, const struct target *target, struct source *ret,
		       struct err *err)
{
	struct store_execution execution;
	auto_close int running_fd = -1;
	struct stat status;
	int result = store_running_read(store, target->id, target->is_stderr ? "err" : "out", &running_fd, err);

	if (result == 0 || result == -ERR_NOT_FOUND)
		result = store_execution_find(store, target->id, &execution, err);
	if (result < 0)
		return result;
	struct store_text *text = target->is_stderr ? &execution.stderr_text : &execution.stdout_text;

	if (!streq(execution.owner, owner)) {
		result = unknown(err);
	} else if (execution.state == STORE_RUNNING) {
		ret->size = running_fd >= 0 && fstat(running_fd, &status) == 0 ? status.st_size : 0;
		ret->fd = steal_fd(&running_fd);
	} else if (*execution.erased) {
		result = store_execution_whole(&execution, err);
	} else if (text->blob[0]) {
		result = store_blob_open(store, text->blob, &ret->fd, &ret->size, err);
	} else {
		ret->data = steal(&text->data);
		ret->size = ret->data ? (int64_t)text->length : 0;
	}
	store_execution_clear(&execution);
	snprintf(ret->media_type, sizeof(ret->media_type), "text/plain");
	return result;
}

/* What part is meant: sets offset and length within the source. */
static int choose(const struct source *source, const char *uri, const struct target *target, int64_t *ret_length,
		  struct err *err)
{
	int64_t rest = source->size - target->offset;

	if (rest < 0)
		return err_set(err, ERR_INVALID, "uri: offset is beyond the end, which is at byte %lld",
			       (long long)source->size);
	if (!target->ranged && rest > RESOURCE_READ_MAX)
		return err_set(err, ERR_INVALID,
			       "uri: %lld bytes are too many for one read; begin with the part %.200s?length=%d",
			       (long long)rest, uri, RESOURCE_READ_MAX);
	if (target->length > RESOURCE_READ_MAX)
		return err_set(err, ERR_INVALID, "uri: length: at most %d bytes in one read", RESOURCE_READ_MAX);
	*ret_length = MIN(rest, target->length ? target->length : RESOURCE_READ_MAX);
	return 0;
}

static int load(const struct source *source, int64_t offset, int64_t length, char *ret, struct err *err)
{
	if (source->fd < 0) {
		if (length > 0)
			memcpy(ret, source->data + offset, (size_t)length);
		return 0;
	}
	for (int64_t at = 0; at < length;) {
		ssize_t got = pread(source->fd, ret + at, (size_t)(length - at), offset + at);

		if (got <= 0)
			return got < 0 ? err_errno(err, "reading a blob")
				       : err_set(err, ERR_CORRUPT, "a blob is shorter than it was");
		at += got;
	}
	return 0;
}

/* The bytes as `text` if they are text, else as `blob`; returns how many of them it took. */
static int64_t add_bytes(struct json_object *content, const char *data, int64_t length, bool to_the_end)
{
	auto_buf struct buf encoded = {0};

	for (int64_t cut = 0; cut < 4 && cut <= length && !(cut > 0 && to_the_end); cut++) {
		if (length > 0 && cut == length)
			break;
		if (utf8_valid(data, (size_t)(length - cut)) && !memchr(data, '\0', (size_t)(length - cut))) {
			json_add(content, "text", json_object_new_string_len(data, (int)(length - cut)));
			return length - cut;
		}
	}
	buf_init(&encoded, 2 * RESOURCE_READ_MAX);
	base64_encode(&encoded, data, (size_t)length);
	json_add_string(content, "blob", encoded.data);
	return length;
}

static void add_range(struct json_object *content, const char *uri, int64_t offset, int64_t length, int64_t size)
{
	struct json_object *meta = json_object_new_object();

	json_add_int(meta, "sallyport/offset", offset);
	json_add_int(meta, "sallyport/length", length);
	json_add_int(meta, "sallyport/size", size);
	if (offset + length < size) {
		auto_free char *next =
			xasprintf("%.*s?offset=%lld", (int)strcspn(uri, "?"), uri, (long long)(offset + length));

		json_add_string(meta, "sallyport/next", next);
	}
	json_add(content, "_meta", meta);
}

static int read_uri(struct mcp_call *call, const char *uri, struct json_object *contents, struct err *err)
{
	auto_target struct target target = {0};
	auto_source struct source source = {.fd = -1};
	const char *owner = call->exchange->token.owner;
	struct store *store = call->exchange->server->store;
	int64_t length = 0;
	int result = take_uri(uri, &target, err);

	if (result == 0 && target.output)
		result = open_output(store, owner, &target, &source, err);
	else if (result == 0)
		result = open_file(store, owner, &target, &source, err);
	if (result == 0)
		result = choose(&source, uri, &target, &length, err);
	if (result < 0)
		return result;
	auto_free char *data = xmalloc((size_t)length + 1);

	result = load(&source, target.offset, length, data, err);
	if (result < 0)
		return result;
	struct json_object *content = json_object_new_object();

	json_add_string(content, "uri", uri);
	json_add_string(content, "mimeType", source.media_type);
	length = add_bytes(content, data, length, target.offset + length == source.size);
	if (target.ranged)
		add_range(content, uri, target.offset, length, source.size);
	json_object_array_add(contents, content);
	return 0;
}

/* -------- listing ------------------------------------------------------------------------------------- */

struct listing {
	struct json_object *resources;
	int64_t count;
	struct buf *next; /* position of the last one */
};

static struct json_object *describe(struct buf *uri, const char *mime_type, int64_t size, int64_t changed_us)
{
	struct json_object *resource = json_object_new_object(), *annotations = json_object_new_object();
	char time[CLOCK_TEXT_SIZE];

	clock_text(changed_us, time);
	json_add_string(resource, "uri", uri->data);
	json_add_string(resource, "mimeType", mime_type);
	json_add_int(resource, "size", size);
	json_add_string(annotations, "lastModified", time);
	json_add(resource, "annotations", annotations);
	return resource;
}

static int add_file(void *arg, const struct store_owner_file *entry)
{
	struct listing *listing = arg;
	const struct store_file *file = &entry->file;
	auto_buf struct buf uri = {0};
	auto_free char *description = xasprintf("File of the conversation \"%s\"", entry->conversation);

	buf_init(&uri, URI_MAX);
	uri_file(&uri, entry->conversation, file->name, file->name_length);
	struct json_object *resource = describe(&uri, file->media_type, file->size, file->mtime_us);

	json_add_bytes(resource, "name", file->name, file->name_length);
	json_add_string(resource, "description", description);
	json_object_array_add(listing->resources, resource);
	buf_reset(listing->next);
	buf_printf(listing->next, "f%s", uri.data + strlen(URI_CONVERSATION));
	listing->count++;
	return 0;
}

static int list(struct mcp_call *call, const char *position, struct json_object *resources, struct buf *next,
		struct err *err)
{
	struct store *store = call->exchange->server->store;
	auto_target struct target target = {0};
	struct listing listing = {.resources = resources, .next = next};
	struct store_page page = {
		.owner = call->exchange->token.owner, .limit = FILES_PAGE, .conversation = "", .name = ""};
	int result = 0;

	buf_init(&target.name, JAIL_NAME_MAX);
	if (position && position[0] == 'f' && position[1]) {
		result = take_file(position + 1, &target, err);
		page.conversation = target.conversation;
		page.name = target.name.data;
		page.name_length = target.name.length;
	}
	if (result == 0)
		result = store_owner_files(store, &page, add_file, &listing, err);
	if (listing.count < FILES_PAGE)
		buf_reset(next);
	return result;
}

static void add_template(struct json_object *templates, const char *uri, const char *name, const char *title,
			 const char *description)
{
	struct json_object *item = json_object_new_object();

	json_add_string(item, "uriTemplate", uri);
	json_add_string(item, "name", name);
	json_add_string(item, "title", title);
	json_add_string(item, "description", description);
	json_object_array_add(templates, item);
}

static void list_templates(struct mcp_call *call, struct json_object *templates)
{
	(void)call;
	add_template(templates, URI_CONVERSATION "{conversation}/{+path}{?offset,length}", "conversation-file",
		     "File of a conversation",
		     "A file that was uploaded or that a program left in /data. offset and length (bytes) read a part "
		     "of it.");
	add_template(templates, URI_EXECUTION "{id}/{stream}{?offset,length}", "execution-output",
		     "Output of a program",
		     "Everything that a program printed to stdout or stderr (stream), where the answer to run_code "
		     "shows the beginning; "
		     "id is the execution_id. offset and length (bytes) read a part of it.");
}

/* -------- following ----------------------------------------------------------------------------------- */

/* A file need not be there yet, it may be what is waited for. Changes are announced under the URI that lists and links
 * have, so another spelling of it is refused: its follower would wait in vain. */
static int subscribe(struct mcp_call *call, const char *uri, struct err *err)
{
	auto_target struct target target = {0};
	auto_source struct source source = {.fd = -1};
	auto_buf struct buf spelling = {0};
	int result = take_uri(uri, &target, err);

	if (result == 0 && target.output)
		result = open_output(call->exchange->server->store, call->exchange->token.owner, &target, &source, err);
	if (result < 0)
		return result;
	buf_init(&spelling, URI_MAX);
	if (target.output)
		uri_output(&spelling, target.id, target.is_stderr);
	else
		uri_file(&spelling, target.conversation, target.name.data, target.name.length);
	if (!streq(spelling.data, uri))
		return err_set(err, ERR_INVALID, "uri: changes are published under %.200s: subscribe to that",
			       spelling.data);
	return 0;
}

/* -------- completion ---------------------------------------------------------------------------------- */

struct ids {
	struct json_object *values;
	const char *prefix;
};

static int add_id(void *arg, const struct store_owner_output *output)
{
	struct ids *ids = arg;

	if (str_starts(output->id, ids->prefix))
		json_object_array_add(ids->values, json_object_new_string(output->id));
	return json_object_array_length(ids->values) == VALUES_MAX;
}

static int add_value(void *arg, const char *value)
{
	json_object_array_add(arg, json_object_new_string(value));
	return 0;
}

static int complete(struct mcp_call *call, const char *uri_template, const struct mcp_completion *ask,
		    struct json_object *values, struct err *err)
{
	struct store *store = call->exchange->server->store;
	const char *conversation = json_get_string(ask->context, "conversation");
	const struct store_page page = {.owner = call->exchange->token.owner,
					.limit = VALUES_MAX,
					.prefix = ask->value,
					.conversation = conversation};

	if (streq(ask->argument, "conversation"))
		return store_complete_conversation(store, &page, add_value, values, err);
	if (streq(ask->argument, "path") && conversation)
		return store_complete_file(store, &page, add_value, values, err);
	if (streq(ask->argument, "id")) {
		const struct store_page newest = {
			.owner = call->exchange->token.owner, .before = STORE_ID_ABOVE, .limit = IDS_LOOKED_AT};

		return store_owner_outputs(store, &newest, add_id, &(struct ids){values, ask->value}, err);
	}
	if (!streq(ask->argument, "stream") || !str_starts(uri_template, URI_EXECUTION))
		return 0;
	if (str_starts("stdout", ask->value))
		add_value(values, "stdout");
	if (str_starts("stderr", ask->value))
		add_value(values, "stderr");
	return 0;
}

const struct resource_provider resource_record = {
	.scheme = URI_SCHEME,
	.list = list,
	.templates = list_templates,
	.read = read_uri,
	.subscribe = subscribe,
	.complete = complete,
};
