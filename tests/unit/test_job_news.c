/* News between processes (lib/job/job_news.h): whole messages, nobody there, several listeners, sockets of dead ones,
 * rubbish, the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "jail/client/jail.h"
#include "lib/base/util.h"
#include "lib/job/job_news.h"

static struct job_news_sender sender;
static char folder[32], name[ID_SIZE]; /* name: of the socket that listen_here made last */

static int begin(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/sp-news-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
	auto_free char *path = xasprintf("%s/" JOB_NEWS_FOLDER, folder);

	(void)state;
	job_news_leave(folder, name);
	return rmdir(path) || rmdir(folder); /* nothing else is left in it */
}

static int listen_here(void)
{
	struct err err = ERR_INIT;
	int fd = -1;

	if (job_news_listen(folder, name, &fd, &err) < 0)
		fail_msg("%s", err.text);
	return fd;
}

static void messages_arrive_whole(void **state)
{
	auto_free char *longest = xmalloc(JAIL_NAME_MAX);
	const struct job_news sent[] = {
		{.owner = "alice", .conversation = "c", .name = "a \xff\n", .name_length = 4},
		{.owner = "alice", .conversation = "", .execution = "01a1fe94-e307-78ae-94ea-045bddbdeef6"},
		{.cancel = true, .owner = "", .conversation = "", .execution = "01a1fe94-e307-78ae-94ea-045bddbdeef6"},
		{.owner = "bob", .conversation = "c", .name = longest, .name_length = JAIL_NAME_MAX},
	};
	static struct job_news_room room;
	struct job_news news;

	(void)state;
	memset(longest, 'x', JAIL_NAME_MAX);
	job_news_send(&sender, folder, NULL, &sent[0]); /* nobody is there: nothing happens */
	auto_close int first = listen_here();

	close_pointer(&first);
	job_news_send(&sender, folder, NULL, &sent[0]); /* nobody is there any more */
	auto_close int fd = listen_here();
	struct stat st;
	auto_free char *path = xasprintf("%s/" JOB_NEWS_FOLDER "/%s", folder, name);

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	for (size_t i = 0; i < ARRAY_SIZE(sent); i++) {
		job_news_send(&sender, folder, NULL, &sent[i]);
		assert_true(job_news_receive(fd, &room, &news));
		assert_int_equal(news.cancel, sent[i].cancel);
		assert_string_equal(news.owner, sent[i].owner);
		assert_string_equal(news.conversation, sent[i].conversation);
		assert_true(!news.execution == !sent[i].execution && !news.name == !sent[i].name);
		assert_int_equal(news.name_length, sent[i].name_length);
		if (news.name)
			assert_memory_equal(news.name, sent[i].name, news.name_length);
		if (news.execution)
			assert_string_equal(news.execution, sent[i].execution);
	}
}

/* All hear it but who says it; the socket of a process that died without a word goes with the next news, another's file
 * stays. */
static void all_but_the_sender_hear_news(void **state)
{
	const struct job_news news = {.owner = "alice", .conversation = "c"};
	static struct job_news_room room;
	auto_close int one = listen_here();
	char first[ID_SIZE], dead[ID_SIZE];

	(void)state;
	memcpy(first, name, ID_SIZE);
	auto_close int died = listen_here();

	memcpy(dead, name, ID_SIZE);
	close_pointer(&died);
	auto_close int two = listen_here();
	auto_free char *left = xasprintf("%s/" JOB_NEWS_FOLDER "/%s", folder, dead);
	auto_free char *other = xasprintf("%s/" JOB_NEWS_FOLDER "/README", folder);
	auto_close int file = open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(access(left, F_OK), 0);
	job_news_send(&sender, folder, NULL, &news);
	assert_int_equal(access(left, F_OK), -1);
	assert_int_equal(access(other, F_OK), 0);
	assert_true(recv(one, room.bytes, sizeof(room.bytes), MSG_DONTWAIT) > 0);
	assert_true(recv(two, room.bytes, sizeof(room.bytes), MSG_DONTWAIT) > 0);
	job_news_send(&sender, folder, first, &news);
	assert_true(recv(one, room.bytes, sizeof(room.bytes), MSG_DONTWAIT) < 0);
	assert_true(recv(two, room.bytes, sizeof(room.bytes), MSG_DONTWAIT) > 0);
	job_news_leave(folder, first);
	assert_int_equal(unlink(other), 0);
}

static void what_is_no_message_is_passed_over(void **state)
{
	/* too few, too many, no end, none of our words */
	static const char bad[][17] = {
		"record", "record\0b", "record\0b\0c\0d", "record\0\0\0\0\0e", "remove\0a\0c\0\0"};
	static const size_t lengths[] = {7, 9, 13, 13, 12};
	const struct job_news good = {.owner = "alice", .conversation = "c"};
	static struct job_news_room room;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	auto_close int fd = listen_here(), out = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct job_news news;

	(void)state;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/" JOB_NEWS_FOLDER "/%s", folder, name);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_true(sendto(out, bad[i], lengths[i], 0, (const struct sockaddr *)&address, sizeof(address)) > 0);
	memset(room.bytes, 'x', sizeof(room.bytes)); /* one that is as long as can be, without an end */
	assert_true(sendto(out, room.bytes, sizeof(room.bytes), 0, (const struct sockaddr *)&address, sizeof(address)) >
		    0);
	assert_true(sendto(out, "", 0, 0, (const struct sockaddr *)&address, sizeof(address)) == 0);
	job_news_send(&sender, folder, NULL, &good);
	assert_true(job_news_receive(fd, &room, &news));
	assert_string_equal(news.owner, "alice");
	assert_null(news.name);
}

/* Many news for somebody who does not listen cost a second, not one each; who listens again is told again. */
static void a_deaf_listener_costs_a_second_once(void **state)
{
	const struct job_news news = {.owner = "alice", .conversation = "c"};
	static struct job_news_room room;
	auto_close int fd = listen_here();
	int64_t begun_us = clock_monotonic_us();

	(void)state;
	for (int i = 0; i < 2000; i++) /* more than a socket holds (net.unix.max_dgram_qlen) */
		job_news_send(&sender, folder, NULL, &news);
	assert_in_range(clock_monotonic_us() - begun_us, 1000000, 60000000);
	assert_true(sender.tired);
	while (recv(fd, room.bytes, sizeof(room.bytes), MSG_DONTWAIT) > 0)
		;
	job_news_send(&sender, folder, NULL, &news);
	assert_false(sender.tired);
	assert_true(recv(fd, room.bytes, sizeof(room.bytes), MSG_DONTWAIT) > 0);
}

static void *wait_for_news(void *arg)
{
	static struct job_news_room room;
	struct job_news news;

	return job_news_receive(*(int *)arg, &room, &news) ? arg : NULL;
}

static void a_shut_down_ends_the_wait_for_news(void **state)
{
	auto_close int fd = listen_here();
	pthread_t thread;
	void *heard;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, wait_for_news, &fd), 0);
	shutdown(fd, SHUT_RDWR);
	assert_int_equal(pthread_join(thread, &heard), 0);
	assert_null(heard);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(messages_arrive_whole, begin, end),
		cmocka_unit_test_setup_teardown(all_but_the_sender_hear_news, begin, end),
		cmocka_unit_test_setup_teardown(what_is_no_message_is_passed_over, begin, end),
		cmocka_unit_test_setup_teardown(a_deaf_listener_costs_a_second_once, begin, end),
		cmocka_unit_test_setup_teardown(a_shut_down_ends_the_wait_for_news, begin, end),
	};

	return cmocka_run_group_tests_name("job_news", tests, NULL, NULL);
}
