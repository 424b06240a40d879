/* files_place.c - see files.h. */
#include "files.h"

#include <string.h>

#include "access.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/store/db/crypto.h"
#include "uri.h"

#define HASH_DIGITS (SHA256_HEX_SIZE - 1)
#define NOT_FOUND   "no such file"

/* Every segment must be a name: no empty ones, no "." and "..". */
static bool name_ok(const char *name, size_t length)
{
	size_t begin = 0;

	if (length == 0 || length > JAIL_NAME_MAX)
		return false;
	for (size_t i = 0; i <= length; i++) {
		if (i < length && name[i] != '/')
			continue;
		size_t segment = i - begin;

		if (segment == 0 || (segment == 1 && name[begin] == '.') ||
		    (segment == 2 && memcmp(name + begin, "..", 2) == 0))
			return false;
		begin = i + 1;
	}
	return true;
}

int files_place_take(struct http_exchange *exchange, const char *rest, struct files_place *ret, struct err *err)
{
	auto_files_place struct files_place place = {0};
	char hash[SHA256_HEX_SIZE];

	if (strspn(rest, "0123456789abcdef") != HASH_DIGITS || rest[HASH_DIGITS] != '/')
		return err_set(err, ERR_NOT_FOUND, NOT_FOUND);
	memcpy(hash, rest, HASH_DIGITS);
	hash[HASH_DIGITS] = '\0';
	buf_init(&place.name, HTTP_PATH_MAX);
	/* An encoded slash is a slash: names may hold folders, and folders have no meaning of their own here. */
	if (uri_decode(rest + HASH_DIGITS + 1, &place.name, err) < 0)
		return err_set(err, ERR_NOT_FOUND, NOT_FOUND);
	place.folder = place.name.length == 0 || place.name.data[place.name.length - 1] == '/';
	if (place.folder && place.name.length > 0)
		place.name.data[--place.name.length] = '\0';
	if (!(place.folder && rest[HASH_DIGITS + 1] == '\0') && !name_ok(place.name.data, place.name.length))
		return err_set(err, ERR_NOT_FOUND, NOT_FOUND);
	int result = store_conversation_by_hash(exchange->server->store, hash, &place.conversation, err);

	if (result < 0)
		return result;
	*ret = place;
	place.name = (struct buf){0};
	return 0;
}

void files_place_clear(struct files_place *place)
{
	buf_clear(&place->name);
}

bool files_place_has(const struct files_place *place, const struct store_file *file)
{
	const size_t length = place->name.length;

	return length == 0 || (file->name_length > length && file->name[length] == '/' &&
			       memcmp(file->name, place->name.data, length) == 0);
}

/* -------- addresses that end -------------------------------------------------------------------------- */

static void sign(struct store *store, const struct store_conversation *conversation,
		 const struct files_target *target, uint64_t expires, char ret[SHA256_HEX_SIZE])
{
	auto_buf struct buf text = {0};

	buf_init(&text, 2 * JAIL_NAME_MAX);
	buf_printf(&text, "address of a file %s %lld %llu %d ", conversation->hash,
		   (long long)conversation->created_us, (unsigned long long)expires, target->folder);
	buf_add(&text, target->name, target->length);
	store_sign(store, text.data, text.length, ret);
}

void files_place_address(const struct config *config, struct store *store,
			 const struct store_conversation *conversation, const struct files_target *target,
			 struct buf *out)
{
	char signature[SHA256_HEX_SIZE];

	buf_printf(out, "%s/files/%s/", config->public_base_url, conversation->hash);
	uri_encode(target->name, target->length, "-._~/", out);
	if (target->folder && target->length > 0)
		buf_putc(out, '/');
	if (config->files.url_seconds == 0)
		return;
	const uint64_t expires = (uint64_t)(clock_now_us() / 1000000 + config->files.url_seconds);

	sign(store, conversation, target, expires, signature);
	buf_printf(out, "?expires=%llu&signature=%s", (unsigned long long)expires, signature);
}

void files_place_download(const struct server *server, const char *conversation, const char *hash,
			  const struct store_file *file, struct buf *out)
{
	const struct config *config = server->config;
	struct store_conversation row = {0};

	if (config->workspace_folder.path && streq(conversation, config->workspace_folder.conversation)) {
		buf_printf(out, "%s/", config->workspace_folder.path);
		utf8_printable(out, file->name, file->name_length);
		return;
	}
	if (!config->public_base_url || !config->public_base_url[0]) {
		uri_file(out, conversation, file->name, file->name_length);
		return;
	}
	memcpy(row.hash, hash, sizeof(row.hash));
	if (config->files.url_seconds > 0) /* one that is not there any more gives an address that is refused */
		store_conversation_by_hash(server->store, hash, &row, NULL);
	const struct files_target target = {file->name, file->name_length, false};

	files_place_address(config, server->store, &row, &target, out);
}

/* 1: it is, 0: it has ended, -1: it has none that is ours. */
static int signed_now(struct http_exchange *exchange, const struct files_place *place)
{
	auto_free char *expires = request_query(exchange->request, "expires");
	auto_free char *given = request_query(exchange->request, "signature");
	char expected[SHA256_HEX_SIZE];
	uint64_t until = 0;

	if (!expires || !given || parse_u64(expires, 0, INT64_MAX / 1000000, &until) < 0)
		return -1;
	const struct files_target target = {place->name.data, place->name.length, place->folder};

	sign(exchange->server->store, &place->conversation, &target, until, expected);
	if (strlen(given) != sizeof(expected) - 1 || !equal_constant_time(given, expected, sizeof(expected) - 1))
		return -1;
	return (int64_t)until > clock_now_us() / 1000000;
}

bool files_place_readable(struct http_exchange *exchange, const struct files_place *place)
{
	if (exchange->server->config->files.url_seconds == 0)
		return true;
	const int state = signed_now(exchange, place);

	if (state > 0)
		return true;
	if (request_param(exchange->request, "HTTP_AUTHORIZATION")) {
		if (access_token(exchange) < 0)
			return false;
		if (!streq(exchange->token.owner, place->conversation.owner)) {
			reply_refuse(exchange->reply, 404, NOT_FOUND);
			return false;
		}
		if (access_allows(access_scopes(&exchange->token), STORE_SCOPE_FILES))
			return true;
		reply_refuse(exchange->reply, 403, "this token lacks the scope \"files\"");
		return false;
	}
	reply_refuse(exchange->reply, 403,
		     state == 0 ? "this address has ended: ask for the file again"
				: "this address lacks its signature: ask for the file again, or send a bearer token");
	return false;
}
