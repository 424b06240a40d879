/* job_printed.c - a part of what a program printed, out of the record; see job.h. */
#include <sys/stat.h>
#include <unistd.h>

#include "job.h"
#include "lib/base/util.h"
#include "lib/store/blob/store_blob.h"
#include "lib/store/record/store_resource.h"

/* Where the bytes are: a file, or memory. */
struct place {
	int fd;
	char *data;
	int64_t size;
};

static void place_clear(struct place *place)
{
	close_pointer(&place->fd);
	free(place->data);
}

/* The file of a run under way is opened before the row is read: if the row says `running` after that, it is the right
 * file, or, if there was none, nothing has been printed. */
static int open_place(struct store *store, const struct job_printed *which, struct place *ret, struct err *err)
{
	auto_close int running_fd = -1;
	struct store_execution execution;
	struct stat status;
	int result = store_running_read(store, which->id, which->is_stderr ? "err" : "out", &running_fd, err);

	if (result == 0 || result == -ERR_NOT_FOUND)
		result = store_execution_find(store, which->id, &execution, err);
	if (result < 0)
		return result;
	struct store_text *text = which->is_stderr ? &execution.stderr_text : &execution.stdout_text;

	if (which->owner && !streq(execution.owner, which->owner)) {
		result = err_set(err, ERR_NOT_FOUND, "there is no execution %s", which->id);
	} else if (execution.state == STORE_RUNNING) {
		ret->size = running_fd >= 0 && fstat(running_fd, &status) == 0 ? status.st_size : 0;
		ret->fd = steal_fd(&running_fd);
	} else if (text->blob[0]) {
		result = store_blob_open(store, text->blob, &ret->fd, &ret->size, err);
	} else {
		ret->data = steal(&text->data);
		ret->size = ret->data ? (int64_t)text->length : 0;
	}
	store_execution_clear(&execution);
	return result;
}

int job_printed_load(struct store *store, const struct job_printed *which, struct job_stream *ret, int64_t *ret_size,
		     struct err *err)
{
	__attribute__((cleanup(place_clear))) struct place place = {.fd = -1};
	int result = open_place(store, which, &place, err);

	if (result < 0)
		return result;
	int64_t offset = which->offset < 0 ? MAX(place.size + which->offset, (int64_t)0) : which->offset;

	if (offset > place.size)
		return err_member(err, "offset", "is beyond the end, which is at byte %lld", (long long)place.size);
	size_t length = (size_t)MIN(which->length, place.size - offset);
	auto_free char *data = xmalloc(length + 1);

	if (place.fd < 0 && length > 0)
		memcpy(data, place.data + offset, length);
	for (size_t at = 0; place.fd >= 0 && at < length;) {
		ssize_t got = pread(place.fd, data + at, length - at, offset + (int64_t)at);

		if (got <= 0)
			return got < 0 ? err_errno(err, "reading a program's output")
				       : err_set(err, ERR_CORRUPT, "a program's output is shorter than it was");
		at += (size_t)got;
	}
	data[length] = '\0';
	*ret = (struct job_stream){steal(&data), length};
	*ret_size = place.size;
	return 0;
}
