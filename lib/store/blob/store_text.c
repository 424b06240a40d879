/* store_text.c - see store_text.h. */
#include "store_text.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"
#include "store_blob.h"
#include "store_blob_internal.h"

int store_text_read(struct store *store, const struct store_text *text, char **ret, size_t *ret_length, struct err *err)
{
	char sha256[SHA256_HEX_SIZE];
	auto_free char *data = NULL;
	auto_close int fd = -1;
	int64_t size;
	size_t length = 0;

	if (text->blob[0] == '\0') {
		*ret = xmemdup(text->data != NULL ? text->data : "", text->data != NULL ? text->length : 0);
		*ret_length = text->data != NULL ? text->length : 0;
		return 0;
	}
	int failed = store_blob_open(store, text->blob, &fd, &size, err);

	if (failed == 0)
		failed = read_fd(fd, (size_t)size, &data, &length, err);
	if (failed < 0)
		return failed;
	sha256_hex(data, length, sha256);
	if (!streq(sha256, text->blob))
		return err_set(err, ERR_CORRUPT,
			       "blob %s was altered: its bytes have the sum %s; restore it from a backup", text->blob,
			       sha256);
	*ret = steal(&data);
	*ret_length = length;
	return 0;
}

int store_text_keep(struct store *store, int fd, struct store_text *ret, struct err *err)
{
	struct store_text text = {0};
	struct stat st;
	int64_t size;

	if (fstat(fd, &st) < 0)
		return err_errno(err, "reading output");
	if (st.st_size <= STORE_INLINE_MAX) {
		int failed = lseek(fd, 0, SEEK_SET) < 0 ? err_errno(err, "reading output")
							: read_fd(fd, STORE_INLINE_MAX, &text.data, &text.length, err);
		if (failed < 0)
			return failed;
	} else {
		int failed = store_blob_put_output(store, fd, text.blob, &size, err);

		if (failed < 0)
			return failed;
		text.length = (size_t)size;
	}
	*ret = text;
	return 0;
}

/* The parameters' names are looked up at once, so they may go. */
void store_text_bind(struct query *query, const char *column, const struct store_text *text)
{
	char blob[32], bytes[32];

	snprintf(blob, sizeof(blob), "%s_blob", column);
	snprintf(bytes, sizeof(bytes), "%s_bytes", column);
	query_bind_bytes(query, column, text->blob[0] == '\0' ? text->data : NULL, text->length);
	query_bind_some(query, blob, text->blob);
	query_bind_int(query, bytes, (int64_t)text->length);
}

int store_txn_text(struct store_txn *txn, const struct store_text *text, const char *what, struct err *err)
{
	if (text->blob[0] != '\0')
		return store_txn_blob(txn, text->blob, (int64_t)text->length, err);
	if (text->length > STORE_INLINE_MAX || (text->data == NULL && text->length > 0))
		return err_set(err, ERR_INTERNAL, "%s of %zu bytes belongs into a blob", what, text->length);
	return 0;
}
