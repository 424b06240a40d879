/*
 * test_audit.c - tree, notes and signer against values from elsewhere: roots computed apart, the example of the
 * signed-note specification, notes of Go's sumdb.
 */
#include <fcntl.h>

#include "store_fixture.h"

#include "lib/audit/audit_signer.h"
#include "lib/audit/audit_verify.h"
#include "lib/base/text.h"
#include "lib/store/audit/store_audit.h"

#define FOO_KEY   "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
#define PETER_KEY "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"

static void roots(void **state)
{
	static const struct {
		uint64_t size;
		const char *root;
	} known[] = {{0, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="},
		     {1, "dziFphNIniTOLPdhmdakI/BC5LvxLX7s7pEu8nbGVwE="},
		     {3, "lPvQ3YNvUDAWkubQ6t5yjuGexSv/8WBu2AfIV11aqhk="},
		     {7, "mMl/C6MXXNCLAx3QhLncTmSbZNGijm6mlGRlAxc6tYc="}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		struct audit_tree tree = {0};
		struct audit_hash leaf, root;
		auto_buf struct buf text = {0};

		for (uint64_t n = 0; n < known[i].size; n++) {
			auto_free char *entry = xasprintf("entry %llu", (unsigned long long)n);

			audit_tree_leaf(entry, strlen(entry), &leaf);
			audit_tree_add(&tree, &leaf);
		}
		audit_tree_root(&tree, &root);
		buf_init(&text, 64);
		base64_encode(&text, root.bytes, sizeof(root.bytes));
		assert_string_equal(text.data, known[i].root);
	}
}

/* RFC 9162, 2.1.3.2: how a stranger checks an inclusion proof. */
static void climb(const struct audit_hash *proof, size_t n_proof, uint64_t index, uint64_t size, struct audit_hash *ret)
{
	uint64_t fn = index, sn = size - 1;

	for (size_t i = 0; i < n_proof; i++) {
		if (fn % 2 == 1 || fn == sn) {
			audit_tree_node(&proof[i], ret, ret);
			while (fn % 2 == 0 && fn != 0) {
				fn /= 2;
				sn /= 2;
			}
		} else {
			audit_tree_node(ret, &proof[i], ret);
		}
		fn /= 2;
		sn /= 2;
	}
	assert_int_equal(sn, 0);
}

/* RFC 9162, 2.1.4.2, for a consistency proof. */
static void compare_trees(const struct audit_hash *proof, size_t n_proof, uint64_t first, uint64_t second,
			  const struct audit_hash *old_root, struct audit_hash *ret)
{
	uint64_t fn = first - 1, sn = second - 1;
	size_t at = 0;
	struct audit_hash fr, sr;

	while (fn % 2 == 1) {
		fn /= 2;
		sn /= 2;
	}
	fr = sr = (first & (first - 1)) == 0 ? *old_root : proof[at++];
	for (; at < n_proof; at++) {
		if (fn % 2 == 1 || fn == sn) {
			audit_tree_node(&proof[at], &fr, &fr);
			audit_tree_node(&proof[at], &sr, &sr);
			while (fn % 2 == 0 && fn != 0) {
				fn /= 2;
				sn /= 2;
			}
		} else {
			audit_tree_node(&sr, &proof[at], &sr);
		}
		fn /= 2;
		sn /= 2;
	}
	assert_int_equal(sn, 0);
	assert_memory_equal(&fr, old_root, sizeof(fr));
	*ret = sr;
}

static void proofs(void **state)
{
	enum { MOST = 40 };
	struct audit_hash leaves[MOST], proof[AUDIT_TREE_DEPTH], root, old, reached;

	(void)state;
	for (int i = 0; i < MOST; i++)
		audit_tree_leaf(&i, sizeof(i), &leaves[i]);
	for (uint64_t size = 1; size <= MOST; size++) {
		audit_tree_root_of(leaves, size, &root);
		for (uint64_t index = 0; index < size; index++) {
			size_t count = audit_tree_inclusion(leaves, size, index, proof);

			reached = leaves[index];
			climb(proof, count, index, size, &reached);
			assert_memory_equal(&reached, &root, sizeof(root));
			audit_tree_root_of(leaves, index + 1, &old);
			count = audit_tree_consistency(leaves, size, index + 1, proof);
			reached = old;
			if (index + 1 < size)
				compare_trees(proof, count, index + 1, size, &old, &reached);
			else
				assert_int_equal(count, 0);
			assert_memory_equal(&reached, &root, sizeof(root));
		}
	}
}

static void foreign_signatures(void **state)
{
	static const char foo_text[] = "This is an example message.\n";
	static const char foo_signature[] =
		"Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=";
	struct err err = ERR_INIT;
	struct audit_key key;
	auto_buf struct buf bytes = {0}, printed = {0};

	(void)state;
	ok(audit_key_parse(FOO_KEY, &key, &err));
	buf_init(&printed, 256);
	audit_key_print(&key, &printed);
	assert_string_equal(printed.data, FOO_KEY);
	buf_init(&bytes, 256);
	ok(base64_decode(foo_signature, strlen(foo_signature), &bytes, &err));
	assert_int_equal(bytes.length, 4 + SIGN_SIZE);
	assert_int_equal(sign_check(key.key, foo_text, strlen(foo_text), (uint8_t *)bytes.data + 4), 0);
	assert_int_equal(sign_check(key.key, foo_text, strlen(foo_text) - 1, (uint8_t *)bytes.data + 4), -1);
	ok(audit_key_parse(PETER_KEY, &key, &err));
	fails(audit_key_parse("PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", &key, &err),
	      ERR_INVALID);
	fails(audit_key_parse("x", &key, &err), ERR_INVALID);
}

/* Each byte of a note matters: none may be altered, removed or added without being noticed. */
static void notes(void **state)
{
	uint8_t seed[SIGN_SEED_SIZE] = {7};
	struct audit_checkpoint checkpoint = {.origin = "sallyport.example.org/audit", .size = 4712};
	struct audit_key key;
	struct audit_note note;
	auto_buf struct buf text = {0};
	struct err err = ERR_INIT;

	(void)state;
	audit_key_from_seed(checkpoint.origin, seed, &key);
	buf_init(&text, AUDIT_NOTE_MAX);
	audit_note_sign(&checkpoint, &key, seed, &text);
	ok(audit_note_parse(text.data, text.length, &note, &err));
	assert_int_equal(note.checkpoint.size, 4712);
	assert_int_equal(audit_note_check(text.data, &note, &key, NULL, &err), 1);
	for (size_t i = 0; i < text.length; i++) {
		struct err ignored = ERR_INIT;

		text.data[i] ^= 1;
		int parsed = audit_note_parse(text.data, text.length, &note, &ignored);

		if (parsed == 0 && audit_note_check(text.data, &note, &key, NULL, &ignored) > 0)
			fail_msg("byte %zu may be altered", i);
		text.data[i] ^= 1;
		if (audit_note_parse(text.data, i, &note, &ignored) == 0 &&
		    audit_note_check(text.data, &note, &key, NULL, &ignored) > 0)
			fail_msg("%zu bytes are enough", i);
	}
	/* Signatures of others are let by. */
	buf_puts(&text,
		 "\xe2\x80\x94 example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH"
		 "3mFXmRKuwHjG1Yu72IneyaQM=\n");
	ok(audit_note_parse(text.data, text.length, &note, &err));
	assert_int_equal(audit_note_check(text.data, &note, &key, NULL, &err), 1);
	ok(audit_key_parse(FOO_KEY, &key, &err));
	fails(audit_note_check(text.data, &note, &key, NULL, &err), ERR_CORRUPT);
}

static int quiet(void *arg, const char *what, int64_t done, int64_t total)
{
	(void)arg, (void)what, (void)done, (void)total;
	return 0;
}

static void signer(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct audit_signer signer;
	struct audit_report report;
	auto_free char *folder = xasprintf("%s/signer", f->base), *key = xasprintf("%s/key", folder);
	auto_buf struct buf vkey = {0}, note = {0};
	struct audit_request request = {.path = f->data, .signer = folder, .progress = quiet};
	struct stat st;

	buf_init(&vkey, 1024);
	buf_init(&note, AUDIT_NOTE_MAX);
	fails(audit_signer_open(folder, NULL, &signer, &err), ERR_NOT_FOUND);
	fails(audit_signer_init(folder, "a name", &vkey, &err), ERR_INVALID);
	ok(audit_signer_init(folder, "test.example/audit", &vkey, &err));
	fails(audit_signer_init(folder, "test.example/audit", &vkey, &err), ERR_CONFLICT);
	assert_int_equal(stat(key, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	ok(audit_signer_open(folder, NULL, &signer, &err));
	assert_int_equal(audit_signer_sign(&signer, f->data, &note, &err), 1);
	assert_int_equal(audit_signer_sign(&signer, f->data, &note, &err), 0);
	struct audit_signer second;

	fails(audit_signer_open(folder, NULL, &second, &err), ERR_BUSY);
	audit_signer_close(&second);
	for (int i = 0; i < 3; i++) {
		struct store_execution run = sample("ann");

		begin(f->store, &run);
		buf_reset(&note);
		assert_int_equal(audit_signer_sign(&signer, f->data, &note, &err), 1);
	}
	audit_signer_close(&signer);
	ok(audit_verify(&request, &report, &err));
	for (int i = 0; i < AUDIT_PARTS; i++)
		assert_int_equal(report.parts[i].findings, 0);
	assert_int_equal(report.parts[AUDIT_PART_TREE].state, AUDIT_HOLDS);
	assert_int_equal(report.parts[AUDIT_SIGNATURES].state, AUDIT_HOLDS);
	assert_int_equal(report.parts[AUDIT_SIGNATURES].checked, 4);
	assert_int_equal(report.parts[AUDIT_ANCHORS].state, AUDIT_UNCHECKED);
	assert_int_equal(report.covered, report.entries);
	/* What a killed writer left of a leaf is taken off. */
	auto_free char *leaves = xasprintf("%s/leaves", folder);
	auto_close int fd = open(leaves, O_WRONLY | O_APPEND);

	assert_int_equal(write(fd, "half", 4), 4);
	ok(audit_signer_open(folder, NULL, &signer, &err));
	assert_int_equal(audit_signer_sign(&signer, f->data, &note, &err), 0);
	audit_signer_close(&signer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(roots),
		cmocka_unit_test(proofs),
		cmocka_unit_test(foreign_signatures),
		cmocka_unit_test(notes),
		cmocka_unit_test_setup_teardown(signer, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
