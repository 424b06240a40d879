/* test_upstream_reader.c - texts of servers, read where they come and by the reader's thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <semaphore.h>
#include <string.h>

#include "lib/base/util.h"
#include "lib/upstream/upstream_reader.h"

static sem_t woken;

static void wake(void *arg)
{
	(void)arg;
	sem_post(&woken);
}

/* An answer with a string of so many letters, and a secret behind it. */
static char *answer(size_t letters)
{
	auto_free char *filling = xmalloc(letters + 1);

	memset(filling, 'x', letters);
	filling[letters] = '\0';
	return xasprintf("{\"id\":7,\"result\":{\"isError\":false,\"text\":\"%s\",\"of\":\"secret-1\"}}", filling);
}

static struct reading *read_text(struct reader *reader, char *text, struct mask *mask)
{
	const size_t length = strlen(text);

	return reader_read(reader, text, length, length, mask);
}

static void takes_a_text_apart(void **state)
{
	const struct mask_value secret = {"secret-1", strlen("secret-1")};
	struct mask *mask = mask_new(&secret, 1);
	struct reader *reader = reader_open(wake, NULL);

	(void)state;
	for (int large = 0; large < 2; large++) {
		struct reading *reading = read_text(reader, answer(large ? READING_LARGE : 10), mask);

		if (large)
			sem_wait(&woken);
		assert_true(reader_done(reading));
		assert_int_equal(reading->result, 0);
		assert_int_equal(reading->count, 1);
		const struct incoming *message = reading->messages;

		assert_true(raw_is(message->parts[PART_ID], "7"));
		assert_true(raw_is(message->result[RESULT_IS_ERROR], "false"));
		assert_null(message->parts[PART_ERROR].text);
		assert_null(message->result[RESULT_TASK].text);
		if (large)
			assert_non_null(strstr(message->masked.data, "\"of\":\"***\""));
		else
			assert_null(message->masked.data);
		reader_free(reading);
	}
	reader_close(reader);
	mask_free(mask);
	assert_int_equal(sem_trywait(&woken), -1); /* the small one woke nobody */
}

static void says_what_is_wrong(void **state)
{
	struct reader *reader = reader_open(wake, NULL);
	auto_buf struct buf batch = {0};
	char *garbled = answer(READING_LARGE);

	(void)state;
	garbled[strlen(garbled) - 1] = ']';
	struct reading *reading = read_text(reader, garbled, NULL);

	sem_wait(&woken);
	assert_int_equal(reading->result, -ERR_INVALID);
	assert_int_equal(reading->count, 0);
	reader_free(reading);

	buf_init(&batch, 1 << 20);
	buf_puts(&batch, "[1,{}");
	for (int i = 1; i < READING_BATCH; i++)
		buf_puts(&batch, ",{\"id\":1}");
	reading = read_text(reader, xasprintf("%s]", batch.data), NULL);
	assert_int_equal(reading->result, 0);
	assert_int_equal(reading->count, READING_BATCH);
	reader_free(reading);
	reading = read_text(reader, xasprintf("%s,{}]", batch.data), NULL);
	assert_int_equal(reading->result, -ERR_LIMIT);
	assert_non_null(strstr(reading->err.text, "more than 100 messages"));
	reader_free(reading);
	reader_close(reader);
}

/* Nobody waits any more, at every point: in the line, in work, done. Sanitizers see what is left. */
static void lets_go_of_what_nobody_wants(void **state)
{
	struct reader *reader = reader_open(wake, NULL);
	struct reading *kept = read_text(reader, answer(READING_LARGE), NULL);

	(void)state;
	for (int i = 0; i < 50; i++)
		reader_free(read_text(reader, answer(READING_LARGE), NULL));
	struct reading *last = read_text(reader, answer(READING_LARGE), NULL);

	while (!reader_done(last))
		sem_wait(&woken);
	assert_true(reader_done(kept)); /* in their order */
	reader_free(kept);
	reader_free(last);
	reader_free(read_text(reader, answer(READING_LARGE), NULL));
	reader_free(NULL);
	reader_close(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_a_text_apart),
		cmocka_unit_test(says_what_is_wrong),
		cmocka_unit_test(lets_go_of_what_nobody_wants),
	};

	sem_init(&woken, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
