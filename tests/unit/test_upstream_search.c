/*
 * test_upstream_search.c - is the tool that is meant found? Queries over the 36 tools of three servers from npm
 * (tests/data/upstream-tools.json, as they list them), with a floor under how often the right one is first and among
 * the first five.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <string.h>

#include "lib/base/util.h"
#include "lib/upstream/upstream_list.h"
#include "lib/upstream/upstream_search.h"

static const char *const queries[][2] = {
	{"read a text file", "read_text_file"},
	{"read several files at once", "read_multiple_files"},
	{"open an image", "read_media_file"},
	{"save text to a file", "write_file"},
	{"change lines in a file", "edit_file"},
	{"make a new folder", "create_directory"},
	{"what files are in this folder", "list_directory"},
	{"files of a directory with their sizes", "list_directory_with_sizes"},
	{"tree of all directories", "directory_tree"},
	{"rename a file", "move_file"},
	{"find files by name", "search_files"},
	{"when was this file modified", "get_file_info"},
	{"which directories are allowed", "list_allowed_directories"},
	{"remember a person", "create_entities"},
	{"link two entities", "create_relations"},
	{"add an observation", "add_observations"},
	{"forget an entity: delete it", "delete_entities"},
	{"remove relations", "delete_relations"},
	{"show the whole knowledge graph", "read_graph"},
	{"search the graph", "search_nodes"},
	{"open nodes by name", "open_nodes"},
	{"add two numbers", "get-sum"},
	{"sum", "get-sum"},
	{"environment variables", "get-env"},
	{"weather in a city", "get-structured-content"},
	{"compress a file", "gzip-file-as-resource"},
	{"zip", "gzip-file-as-resource"},
	{"a long operation with progress", "trigger-long-running-operation"},
	{"repeat what I say", "echo"},
	{"tiny picture", "get-tiny-image"},
	{"links to resources", "get-resource-links"},
	{"research a topic", "simulate-research-query"},
	{"annotations of a message", "get-annotated-message"},
};
#define FIRST_LEAST 26
#define FIVE_LEAST  32

static struct upstream_server servers[8];
static struct upstream_list *lists[8];
static size_t n_lists;
static char *text;
static struct json_object *document;

static int set_up(void **state)
{
	size_t length;

	(void)state;
	if (read_file_at(AT_FDCWD, "tests/data/upstream-tools.json", 1 << 20, &text, &length, NULL) < 0 ||
	    json_parse(text, length, &document, NULL) < 0)
		return -1;
	json_object_object_foreach(document, name, tools)
	{
		servers[n_lists].name = name;
		lists[n_lists] = upstream_list_new(&servers[n_lists]);
		for (size_t i = 0; i < json_object_array_length(tools); i++) {
			auto_buf struct buf one;

			buf_init(&one, 1 << 20);
			json_print(&one, json_object_array_get_idx(tools, i));
			if (upstream_list_add(lists[n_lists], raw_value(one.data, one.length), NULL) < 0)
				return -1;
		}
		n_lists++;
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_lists; i++)
		upstream_list_free(lists[i]);
	json_object_put(document);
	free(text);
	return 0;
}

static void finds_what_is_meant(void **state)
{
	struct upstream_found found[UPSTREAM_SEARCH_MAX];
	int first = 0, five = 0;
	size_t matched;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
		size_t count = upstream_search(lists, n_lists, queries[i][0], 5, found, &matched), at = 0;

		while (at < count && !streq(found[at].tool->name, queries[i][1]))
			at++;
		first += at == 0 && count > 0;
		five += at < count;
		if (at > 0)
			print_message("%s: %s is %zu, first is %s\n", queries[i][0], queries[i][1], at + 1,
				      count > 0 ? found[0].tool->name : "nothing");
	}
	print_message("first %d, in five %d, of %zu\n", first, five, ARRAY_SIZE(queries));
	assert_true(first >= FIRST_LEAST);
	assert_true(five >= FIVE_LEAST);
}

static void a_search_finds_at_most_what_fits(void **state)
{
	struct upstream_found found[UPSTREAM_SEARCH_MAX];
	auto_free char *longest = xcalloc(1, 100000);
	size_t matched;

	(void)state;
	assert_int_equal(upstream_search(lists, n_lists, "xyzzy", 10, found, &matched), 0);
	assert_int_equal(matched, 0);
	assert_int_equal(upstream_search(lists, n_lists, "", 10, found, &matched), 0);
	assert_int_equal(upstream_search(lists, 0, "file", 10, found, &matched), 0);
	assert_int_equal(upstream_search(lists, n_lists, "file", 3, found, &matched), 3);
	assert_true(matched > 3);
	for (size_t i = 0; i + 1 < 100000; i++)
		longest[i] = (i % 7) != 0 ? (char)('a' + i % 26) : ' ';
	assert_true(upstream_search(lists, n_lists, longest, 1000, found, &matched) <= UPSTREAM_SEARCH_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_is_meant),
		cmocka_unit_test(a_search_finds_at_most_what_fits),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
