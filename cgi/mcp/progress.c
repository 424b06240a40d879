/* progress.c - see progress.h. */
#include "progress.h"

#include "lib/base/utf8.h"
#include "lib/job/job.h"

#define OUTPUT_CHUNK (MCP_PROGRESS_TEXT_MAX / 4) /* a byte that is no UTF-8 becomes four */

void progress_new_output(struct job *job, int64_t offset[2], struct buf *text)
{
	for (int stream = 1; stream <= 2; stream++) {
		char chunk[OUTPUT_CHUNK];
		size_t length = job_output_read(job, stream, offset[stream - 1], chunk, sizeof(chunk));
		size_t whole = utf8_cut(chunk, length, length > 4 ? length - 1 : length);

		if (length == sizeof(chunk))
			length = whole;
		utf8_safe(text, chunk, length);
		offset[stream - 1] += (int64_t)length;
	}
}
