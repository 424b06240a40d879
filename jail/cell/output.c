/* output.c - see output.h. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/util.h"

#define CHUNK         65536
#define CHUNKS_A_TURN 8 /* then others have their turn */
#define OUTPUT_MODE 0622 /* the guest is another user: this lets it open /dev/stdout and /dev/stderr, as scripts do */

void output_init(struct output *output, int64_t limit, int stdout_fd, int stderr_fd)
{
	*output = (struct output){
		.pipe = {-1, -1}, .sink = {stdout_fd, stderr_fd}, .direct = {-1, -1}, .limit = limit};
	for (int i = 0; i < 2; i++) {
		struct stat st;

		if (output->sink[i] >= 0 && fstat(output->sink[i], &st) == 0 && S_ISFIFO(st.st_mode))
			output->direct[i] = steal_fd(&output->sink[i]);
	}
}

int output_pipe(int ret[2], struct err *err)
{
	if (pipe2(ret, O_CLOEXEC) || fcntl(ret[0], F_SETFL, O_NONBLOCK) || fchmod(ret[1], OUTPUT_MODE))
		return err_errno(err, "making a pipe for the program's output");
	return 0;
}

int output_pipes(struct output *output, int ret_write[2], struct err *err)
{
	for (int i = 0; i < 2; i++) {
		int ends[2] = {-1, -1}, result;

		if (output->direct[i] >= 0) {
			ret_write[i] = steal_fd(&output->direct[i]);
			continue;
		}
		result = output_pipe(ends, err);
		output->pipe[i] = ends[0];
		ret_write[i] = ends[1];
		if (result < 0)
			return result;
	}
	return 0;
}

static void keep(struct output *output, int stream, const char *data, int64_t n)
{
	int64_t room = output->limit - output->written[0] - output->written[1];
	int64_t kept = MIN(n, room);

	if (kept > 0 && output->sink[stream] >= 0 && write_all(output->sink[stream], data, (size_t)kept)) {
		output->error = errno;
		return;
	}
	output->written[stream] += kept;
	if (kept < n) {
		output->over = true;
		output->truncated[stream] = true;
	}
}

/* 1: read something, 0: nothing there now, -1: ended. */
static int pump_chunk(struct output *output, int stream)
{
	static char chunk[CHUNK];
	ssize_t n = read(output->pipe[stream], chunk, sizeof(chunk));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (n == 0)
		return -1;
	if (!output->error)
		keep(output, stream, chunk, n);
	return 1;
}

bool output_pump(struct output *output, int stream)
{
	int got = 1;

	for (int i = 0; i < CHUNKS_A_TURN && got > 0 && !output->over; i++)
		got = pump_chunk(output, stream);
	return got >= 0;
}

void output_drain(struct output *output)
{
	for (int stream = 0; stream < 2; stream++) {
		while (output->pipe[stream] >= 0 && pump_chunk(output, stream) > 0)
			;
		fd_close(&output->pipe[stream]);
	}
}

int output_copy(const struct output *from, struct output *to)
{
	static char chunk[CHUNK];

	for (int stream = 0; stream < 2; stream++) {
		off_t offset = 0;
		ssize_t n;

		while (from->sink[stream] >= 0 && (n = pread(from->sink[stream], chunk, sizeof(chunk), offset)) > 0) {
			keep(to, stream, chunk, n);
			offset += n;
		}
		to->truncated[stream] = to->truncated[stream] || from->truncated[stream];
	}
	to->over = to->over || from->over;
	return to->error ? -1 : 0;
}

void output_clear(struct output *output)
{
	for (int i = 0; i < 2; i++) {
		fd_close(&output->pipe[i]);
		fd_close(&output->sink[i]);
		fd_close(&output->direct[i]);
	}
	output_init(output, 0, -1, -1);
}
