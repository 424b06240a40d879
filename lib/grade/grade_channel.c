/* grade_channel.c - see grade_channel.h. */
#include "grade_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/util.h"

void grade_channel_clear(struct grade_channel *channel)
{
	close_pointer(&channel->in);
	close_pointer(&channel->out);
	buf_clear(&channel->to);
	buf_clear(&channel->from);
	*channel = (struct grade_channel)GRADE_CHANNEL_INIT;
}

int grade_channel_open(struct grade_channel *channel, struct jail_program *program, struct err *err)
{
	int in[2], out[2];

	*channel = (struct grade_channel)GRADE_CHANNEL_INIT;
	buf_init(&channel->to, GRADE_LINE_MAX);
	buf_init(&channel->from, GRADE_LINE_MAX);
	if (pipe2(in, O_CLOEXEC))
		return err_errno(err, "making a pipe");
	program->stdin_fd = in[0];
	channel->in = in[1];
	if (pipe2(out, O_CLOEXEC))
		return err_errno(err, "making a pipe");
	program->stdout_fd = out[1];
	channel->out = out[0];
	if (fcntl(channel->in, F_SETFL, O_NONBLOCK) || fcntl(channel->out, F_SETFL, O_NONBLOCK))
		return err_errno(err, "setting up a pipe");
	return 0;
}

void grade_channel_send(struct grade_channel *channel)
{
	ssize_t n;

	while (channel->in >= 0 && channel->sent < channel->to.length) {
		n = write(channel->in, channel->to.data + channel->sent, channel->to.length - channel->sent);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			fd_close(&channel->in);
			break;
		}
		channel->sent += (size_t)n;
	}
	if (channel->sent == channel->to.length) {
		buf_reset(&channel->to);
		channel->sent = 0;
	}
}

void grade_channel_receive(struct grade_channel *channel)
{
	char block[65536];
	ssize_t n;

	while (channel->out >= 0 && !channel->from.overflow) {
		n = read(channel->out, block, sizeof(block));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0)
			fd_close(&channel->out);
		else
			buf_add(&channel->from, block, (size_t)n);
	}
}

const char *grade_channel_line(struct grade_channel *channel, size_t *ret_length)
{
	const char *start = channel->from.data + channel->taken;
	const char *end = memchr(start, '\n', channel->from.length - channel->taken);

	if (!end) {
		memmove(channel->from.data, start, channel->from.length - channel->taken);
		channel->from.length -= channel->taken;
		channel->taken = 0;
		return NULL;
	}
	*ret_length = (size_t)(end - start) + 1;
	channel->taken += *ret_length;
	return start;
}
