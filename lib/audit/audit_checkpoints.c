/* audit_checkpoints.c - see audit_checkpoints.h. */
#include "audit_checkpoints.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit_signer.h"
#include "lib/base/util.h"

#define FILE_MAX (1024 * 1024 * 1024)

void audit_checkpoints_clear(struct audit_checkpoints *all)
{
	for (size_t i = 0; i < all->n_wrong; i++)
		free(all->wrong[i]);
	free(all->wrong);
	free(all->items);
	*all = (struct audit_checkpoints){0};
}

int audit_checkpoints_key(struct audit_checkpoints *all, const char *text, struct err *err)
{
	if (all->n_keys == ARRAY_SIZE(all->keys))
		return err_set(err, ERR_LIMIT, "at most %zu public keys may be given", ARRAY_SIZE(all->keys));
	int result = audit_key_parse(text, &all->keys[all->n_keys], err);

	all->n_keys += result == 0;
	return result;
}

static void wrong(struct audit_checkpoints *all, const char *from, const char *text)
{
	all->wrong = xrealloc(all->wrong, all->n_wrong + 1, sizeof(*all->wrong));
	all->wrong[all->n_wrong++] = xasprintf("%s: %s", from, text);
}

void audit_checkpoints_add(struct audit_checkpoints *all, const struct audit_seen *seen)
{
	all->items = xrealloc(all->items, all->count + 1, sizeof(*all->items));
	all->items[all->count++] = *seen;
}

struct reading {
	struct audit_checkpoints *all;
	const char *from;
	bool outside;
};

/* A note counts by the signature of a key that is known; where no key is, it is compared all the same. */
static int add(void *arg, const char *text, size_t length, const struct audit_note *note, struct err *err)
{
	const struct reading *reading = arg;
	struct audit_checkpoints *all = reading->all;
	struct audit_seen seen = {
		.size = note->checkpoint.size, .root = note->checkpoint.root, .outside = reading->outside};
	struct err cause = ERR_INIT;
	int by_log = 0;

	(void)length, (void)err;
	snprintf(seen.from, sizeof(seen.from), "%s", reading->from);
	for (size_t i = 0; i < all->n_keys; i++) {
		int result = audit_note_check(text, note, &all->keys[i], NULL, &cause);

		if (result < 0)
			wrong(all, reading->from, cause.text);
		else if (!all->keys[i].witness)
			by_log += result;
		all->signed_by[i] += result > 0;
	}
	if (all->n_keys > 0 && by_log == 0 && cause.code == ERR_NONE) {
		auto_free char *said = xasprintf("the checkpoint of %llu entries is not signed by the log's key",
						 (unsigned long long)seen.size);

		wrong(all, reading->from, said);
	}
	audit_checkpoints_add(all, &seen);
	return 0;
}

int audit_checkpoints_text(struct audit_checkpoints *all, const char *text, size_t length, const char *from,
			   bool outside, struct err *err)
{
	struct reading reading = {all, from, outside};
	int result = audit_notes_each(text, length, add, &reading, err);

	return result < 0 ? err_wrap(err, "%s", from) : 0;
}

int audit_checkpoints_file(struct audit_checkpoints *all, const char *path, bool outside, struct err *err)
{
	auto_free char *text = NULL;
	size_t length;
	int result = read_file_at(AT_FDCWD, path, FILE_MAX, &text, &length, err);

	if (result < 0)
		return err_wrap(err, "%s", path);
	return audit_checkpoints_text(all, text, length, path, outside, err);
}

int audit_checkpoints_signer(struct audit_checkpoints *all, const char *folder, struct audit_hash **ret_leaves,
			     int64_t *ret_count, struct err *err)
{
	auto_free char *log = xasprintf("%s/" AUDIT_SIGNER_LOG, folder);
	auto_free char *vkey = NULL, *leaves = NULL;
	size_t length;
	auto_close int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(err, "opening the signer's folder %s", folder);
	if (read_file_at(fd, AUDIT_SIGNER_VKEY, 1024, &vkey, &length, err) < 0)
		return err_wrap(err, "%s", folder);
	vkey[strcspn(vkey, "\n")] = '\0';
	int result = audit_checkpoints_key(all, vkey, err);

	if (result == 0 && faccessat(fd, AUDIT_SIGNER_LOG, F_OK, 0) == 0)
		result = audit_checkpoints_file(all, log, false, err);
	if (result == 0 && faccessat(fd, AUDIT_SIGNER_LEAVES, F_OK, 0) == 0)
		result = read_file_at(fd, AUDIT_SIGNER_LEAVES, FILE_MAX, &leaves, &length, err);
	if (result < 0 || leaves == NULL)
		return result;
	*ret_count = (int64_t)(length / sizeof(**ret_leaves));
	*ret_leaves = (struct audit_hash *)(void *)steal(&leaves);
	return 0;
}

static int by_size(const void *a, const void *b)
{
	const struct audit_seen *x = a, *y = b;

	return x->size < y->size ? -1 : x->size > y->size;
}

void audit_checkpoints_sort(struct audit_checkpoints *all)
{
	if (all->count > 0)
		qsort(all->items, all->count, sizeof(*all->items), by_size);
}
