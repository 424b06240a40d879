/* test_store_resource.c - an owner's files and outputs in pages, and completion: nothing twice, nothing left out,
 * nothing of others. */
#include "store_fixture.h"

#include "lib/store/record/store_resource.h"

#define LIST_SIZE 1024

static int add_file(void *arg, const struct store_owner_file *entry)
{
	char *text = arg;
	size_t length = strlen(text);

	snprintf(text + length, LIST_SIZE - length, "%s/%.*s ", entry->conversation, (int)entry->file.name_length,
		 entry->file.name);
	return 0;
}

static int add_output(void *arg, const struct store_owner_output *output)
{
	char *text = arg;
	size_t length = strlen(text);

	snprintf(text + length, LIST_SIZE - length, "%s:%lld/%lld ", output->id, (long long)output->stdout_bytes,
		 (long long)output->stderr_bytes);
	return 0;
}

static int add_name(void *arg, const char *name)
{
	char *text = arg;
	size_t length = strlen(text);

	snprintf(text + length, LIST_SIZE - length, "%s ", name);
	return 0;
}

static void files_in_pages(void **state)
{
	struct fixture *f = *state;
	char list[LIST_SIZE] = "";
	struct err err = ERR_INIT;
	struct put_file bytes = {.owner = "ann", .conversation = "b", .name = "\xff\x01", .content = "x"};
	struct store_page page = {.owner = "ann", .conversation = "", .name = "", .limit = 2};

	put_file(f->store, "ann", "b", "2.txt", "two");
	put_file(f->store, "ann", "a", "1.txt", "one");
	put_file(f->store, "ann", "a", "2.txt", "two");
	put_file(f->store, "bob", "a", "secret", "bob's");
	ok(try_put_file(f->store, &bytes, &err));
	ok(store_owner_files(f->store, &page, add_file, list, &err));
	assert_string_equal(list, "a/1.txt a/2.txt ");
	list[0] = '\0';
	page.conversation = "a", page.name = "2.txt", page.name_length = 5;
	ok(store_owner_files(f->store, &page, add_file, list, &err));
	assert_string_equal(list, "b/2.txt b/\xff\x01 ");
	list[0] = '\0';
	page.conversation = "b", page.name = "\xff\x01", page.name_length = 2;
	ok(store_owner_files(f->store, &page, add_file, list, &err));
	assert_string_equal(list, "");
}

static void outputs_in_pages(void **state)
{
	struct fixture *f = *state;
	struct store_execution runs[4];
	char list[LIST_SIZE] = "";
	struct err err = ERR_INIT;
	struct store_page page = {.owner = "ann", .before = STORE_ID_ABOVE, .limit = 1};

	for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
		runs[i] = sample(i == 1 ? "bob" : "ann");
		if (i == 2)
			runs[i].stdout_text = (struct store_text){0}; /* printed nothing */
		begin(f->store, &runs[i]);
		if (i != 3)
			finish(f->store, &runs[i], NULL, 0);
	}
	auto_free char *first = xasprintf("%s:2/0 ", runs[0].id);

	page.limit = 5;
	ok(store_owner_outputs(f->store, &page, add_output, list, &err));
	assert_string_equal(list, first); /* not bob's, not the silent one, not the one that runs */
	list[0] = '\0';
	page.before = runs[0].id;
	ok(store_owner_outputs(f->store, &page, add_output, list, &err));
	assert_string_equal(list, "");
}

static void completion(void **state)
{
	struct fixture *f = *state;
	char list[LIST_SIZE] = "";
	struct err err = ERR_INIT;
	struct store_page page = {.owner = "ann", .prefix = "re", .limit = 10, .conversation = "report"};

	put_file(f->store, "ann", "report", "red.csv", "1");
	put_file(f->store, "ann", "report", "blue.csv", "2");
	put_file(f->store, "ann", "other", "rest.csv", "3");
	put_file(f->store, "bob", "report", "reserved", "4");
	put_file(f->store, "bob", "returns", "x", "5");
	ok(store_complete_conversation(f->store, &page, add_name, list, &err));
	assert_string_equal(list, "report ");
	list[0] = '\0';
	ok(store_complete_file(f->store, &page, add_name, list, &err));
	assert_string_equal(list, "red.csv ");
	list[0] = '\0';
	page.prefix = "%"; /* no pattern */
	ok(store_complete_file(f->store, &page, add_name, list, &err));
	assert_string_equal(list, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files_in_pages, setup, teardown),
		cmocka_unit_test_setup_teardown(outputs_in_pages, setup, teardown),
		cmocka_unit_test_setup_teardown(completion, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
