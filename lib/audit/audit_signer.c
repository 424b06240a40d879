/*
 * audit_signer.c - see audit_signer.h.
 *
 * Each time all entries are read and hashed again and compared with the leaves that were seen: about a second for a
 * million. A gateway that rewrites an old entry is found by the next checkpoint, and so is one that removes the newest.
 */
#include "audit_signer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/text.h"
#include "lib/base/util.h"

#define KEY_PREFIX "PRIVATE+KEY+"
#define PART       "checkpoint.part"

static int write_file(int dir, const char *name, mode_t mode, const void *data, size_t length, struct err *err)
{
	auto_close int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	if (fd < 0 && errno == EEXIST)
		return err_set(err, ERR_CONFLICT, "there is a file %s already", name);
	if (fd < 0 || write_all(fd, data, length) < 0 || fsync(fd) < 0)
		return err_errno(err, "writing %s", name);
	return 0;
}

int audit_signer_init(const char *folder, const char *origin, struct buf *ret_vkey, struct err *err)
{
	uint8_t seed[SIGN_SEED_SIZE];
	auto_buf struct buf private = {0}, public = {0};
	struct audit_key key;

	if (!audit_name_valid(origin))
		return err_set(err, ERR_INVALID,
			       "the name of a log has printable characters without blanks and '+', at most %d: "
			       "sallyport.example.org/audit",
			       AUDIT_NAME_SIZE - 1);
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return err_errno(err, "making %s", folder);
	auto_close int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return err_errno(err, "opening %s", folder);
	random_bytes(seed, sizeof(seed));
	audit_key_from_seed(origin, seed, &key);
	buf_init(&private, 1024);
	buf_init(&public, 1024);
	uint8_t bytes[1 + SIGN_SEED_SIZE] = {1};

	memcpy(bytes + 1, seed, SIGN_SEED_SIZE);
	buf_printf(&private, KEY_PREFIX "%s+%08x+", key.name, key.id);
	base64_encode(&private, bytes, sizeof(bytes));
	buf_putc(&private, '\n');
	explicit_bzero(bytes, sizeof(bytes));
	explicit_bzero(seed, sizeof(seed));
	audit_key_print(&key, &public);
	buf_puts(ret_vkey, public.data);
	buf_putc(&public, '\n');
	int result = write_file(dir, AUDIT_SIGNER_KEY, 0600, private.data, private.length, err);

	explicit_bzero(private.data, private.length);
	if (result == 0)
		result = write_file(dir, AUDIT_SIGNER_VKEY, 0644, public.data, public.length, err);
	if (result == 0 && fsync(dir) < 0)
		result = err_errno(err, "syncing it");
	return result < 0 ? err_wrap(err, "%s", folder) : 0;
}

static int parse_private(char *text, struct audit_signer *signer, struct err *err)
{
	auto_buf struct buf bytes = {0};
	char *name = text + strlen(KEY_PREFIX), *id, *key;

	text[strcspn(text, "\n")] = '\0';
	if (!str_starts(text, KEY_PREFIX) || (id = strchr(name, '+')) == NULL || (key = strchr(id + 1, '+')) == NULL)
		return err_set(err, ERR_INVALID, "this is not a private key of a log");
	*id = '\0';
	buf_init(&bytes, 64);
	if (!audit_name_valid(name) || base64_decode(key + 1, strlen(key + 1), &bytes, NULL) < 0 ||
	    bytes.length != 1 + SIGN_SEED_SIZE || bytes.data[0] != 1)
		return err_set(err, ERR_INVALID, "this is not a private key of type Ed25519");
	memcpy(signer->seed, bytes.data + 1, SIGN_SEED_SIZE);
	explicit_bzero(bytes.data, bytes.length);
	audit_key_from_seed(name, signer->seed, &signer->key);
	return 0;
}

static int load_key(struct audit_signer *signer, const char *key_file, struct err *err)
{
	auto_free char *text = NULL;
	size_t length;
	int result;

	if (key_file == NULL && faccessat(signer->dir_fd, AUDIT_SIGNER_KEY, F_OK, 0) < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND,
			       "%s has no key: sallyport checkpoint --state %s --init NAME makes one", signer->folder,
			       signer->folder);
	result = key_file != NULL ? read_file_at(AT_FDCWD, key_file, 1024, &text, &length, err)
				  : read_file_at(signer->dir_fd, AUDIT_SIGNER_KEY, 1024, &text, &length, err);
	if (result == 0)
		result = parse_private(text, signer, err);
	if (text != NULL)
		explicit_bzero(text, length);
	return result < 0 ? err_wrap(err, "%s", key_file != NULL ? key_file : signer->folder) : 0;
}

/* How many entries the newest checkpoint covers. */
static int load_signed(struct audit_signer *signer, struct err *err)
{
	auto_free char *text = NULL;
	struct audit_note note;
	size_t length;

	if (faccessat(signer->dir_fd, AUDIT_SIGNER_CHECKPOINT, F_OK, 0) < 0)
		return errno == ENOENT ? 0 : err_errno(err, "opening %s/" AUDIT_SIGNER_CHECKPOINT, signer->folder);
	int result = read_file_at(signer->dir_fd, AUDIT_SIGNER_CHECKPOINT, AUDIT_NOTE_MAX, &text, &length, err);

	if (result == 0)
		result = audit_note_parse(text, length, &note, err);
	if (result < 0)
		return err_wrap(err, "%s/" AUDIT_SIGNER_CHECKPOINT, signer->folder);
	signer->n_signed = (int64_t)note.checkpoint.size;
	return 0;
}

int audit_signer_open(const char *folder, const char *key_file, struct audit_signer *ret, struct err *err)
{
	struct stat st;
	int result;

	*ret = (struct audit_signer){.folder = folder, .leaves_fd = -1};
	ret->dir_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret->dir_fd < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND,
			       "there is no signer's folder %s: sallyport checkpoint --init NAME makes it", folder);
	if (ret->dir_fd < 0)
		return err_errno(err, "opening the signer's folder %s", folder);
	result = load_key(ret, key_file, err);
	if (result == 0)
		result = load_signed(ret, err);
	if (result < 0)
		return result;
	ret->leaves_fd = openat(ret->dir_fd, AUDIT_SIGNER_LEAVES, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (ret->leaves_fd < 0 || fstat(ret->leaves_fd, &st) < 0)
		return err_errno(err, "opening %s/" AUDIT_SIGNER_LEAVES, folder);
	if (flock(ret->leaves_fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, ERR_BUSY, "another signer works in %s", folder);
	ret->n_leaves = st.st_size / SHA256_SIZE;
	/* half a leaf of a writer that was killed */
	if (st.st_size % SHA256_SIZE != 0 && ftruncate(ret->leaves_fd, ret->n_leaves * SHA256_SIZE) < 0)
		return err_errno(err, "mending %s/" AUDIT_SIGNER_LEAVES, folder);
	if (ret->n_leaves < ret->n_signed)
		return err_set(err, ERR_CORRUPT, "%s/" AUDIT_SIGNER_LEAVES " is shorter than what was signed", folder);
	return 0;
}

void audit_signer_close(struct audit_signer *signer)
{
	explicit_bzero(signer->seed, sizeof(signer->seed));
	fd_close(&signer->dir_fd);
	fd_close(&signer->leaves_fd);
}

struct looking {
	struct audit_signer *signer;
	struct audit_hash *seen;
	struct buf fresh; /* leaves behind those */
};

static int look(void *arg, const struct store_audit_found *found, struct err *err)
{
	struct looking *looking = arg;
	struct audit_signer *signer = looking->signer;
	const int64_t place = (int64_t)signer->tree.size;
	struct audit_hash leaf;

	if (found->n != place)
		return err_set(err, ERR_CORRUPT, "history was rewritten: entry %lld is missing", (long long)place);
	audit_tree_leaf(found->entry, found->length, &leaf);
	if (place >= signer->n_leaves)
		buf_add(&looking->fresh, &leaf, sizeof(leaf));
	else if (memcmp(&leaf, &looking->seen[place], sizeof(leaf)) != 0)
		return err_set(err, ERR_CORRUPT,
			       "history was rewritten: entry %lld (%.80s) is not the one that was seen before",
			       (long long)place, found->object);
	audit_tree_add(&signer->tree, &leaf);
	return 0;
}

static int read_log(struct audit_signer *signer, const char *database, struct looking *looking, struct err *err)
{
	struct store_audit_reader *reader;
	int result = store_audit_reader_open(database, &reader, err);

	if (result < 0)
		return result;
	result = store_audit_each(reader, INT64_MIN, look, looking, err);
	store_audit_reader_close(reader);
	if (result == 0 && (int64_t)signer->tree.size < signer->n_leaves)
		result = err_set(err, ERR_CORRUPT,
				 "the log went back: it had %lld entries and has %llu; an older copy was put in its "
				 "place, or the newest were removed (after a restore, begin a new log with --init)",
				 (long long)signer->n_leaves, (unsigned long long)signer->tree.size);
	return result;
}

int audit_signer_leaves(const struct audit_signer *signer, struct audit_hash **ret, struct err *err)
{
	const size_t length = (size_t)signer->n_leaves * SHA256_SIZE;
	auto_free uint8_t *leaves = xmalloc(length + 1);

	for (size_t at = 0; at < length;) {
		ssize_t got = pread(signer->leaves_fd, leaves + at, length - at, (off_t)at);

		if (got <= 0)
			return err_errno(err, "reading %s/" AUDIT_SIGNER_LEAVES, signer->folder);
		at += (size_t)got;
	}
	*ret = (struct audit_hash *)(void *)steal(&leaves);
	return 0;
}

static int keep(struct audit_signer *signer, const struct buf *fresh, const struct buf *note, struct err *err)
{
	auto_close int log = openat(signer->dir_fd, AUDIT_SIGNER_LOG, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	auto_buf struct buf line = {0};

	if (fresh->length > 0 &&
	    (write_all(signer->leaves_fd, fresh->data, fresh->length) < 0 || fsync(signer->leaves_fd) < 0))
		return err_errno(err, "writing %s/" AUDIT_SIGNER_LEAVES, signer->folder);
	buf_init(&line, AUDIT_NOTE_MAX);
	buf_printf(&line, "%s\n", note->data);
	if (log < 0 || write_all(log, line.data, line.length) < 0 || fsync(log) < 0)
		return err_errno(err, "writing %s/" AUDIT_SIGNER_LOG, signer->folder);
	if (unlinkat(signer->dir_fd, PART, 0) < 0 && errno != ENOENT)
		return err_errno(err, "removing %s/" PART, signer->folder);
	int result = write_file(signer->dir_fd, PART, 0644, note->data, note->length, err);

	if (result == 0 &&
	    (renameat(signer->dir_fd, PART, signer->dir_fd, AUDIT_SIGNER_CHECKPOINT) < 0 || fsync(signer->dir_fd) < 0))
		result = err_errno(err, "writing %s/" AUDIT_SIGNER_CHECKPOINT, signer->folder);
	return result;
}

int audit_signer_sign(struct audit_signer *signer, const char *database, struct buf *ret_note, struct err *err)
{
	struct looking looking = {.signer = signer};
	struct audit_checkpoint checkpoint = {0};
	int result = audit_signer_leaves(signer, &looking.seen, err);

	signer->tree = (struct audit_tree){0};
	buf_init(&looking.fresh, SIZE_MAX / 2);
	if (result == 0)
		result = read_log(signer, database, &looking, err);
	if (result == 0 && (int64_t)signer->tree.size > signer->n_signed) {
		snprintf(checkpoint.origin, sizeof(checkpoint.origin), "%s", signer->key.name);
		checkpoint.size = signer->tree.size;
		audit_tree_root(&signer->tree, &checkpoint.root);
		audit_note_sign(&checkpoint, &signer->key, signer->seed, ret_note);
		result = keep(signer, &looking.fresh, ret_note, err);
		if (result == 0) {
			signer->n_leaves = signer->n_signed = (int64_t)checkpoint.size;
			result = 1;
		}
	}
	free(looking.seen);
	buf_clear(&looking.fresh);
	return result;
}
