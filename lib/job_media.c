/* What kind of file is it: the four image types by their bytes (they are shown inline), everything else by its name. */
#include "job_internal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MEDIA_DEFAULT "application/octet-stream"

static const struct {
	const char *extension, *type;
} by_name[] = {
	{"csv", "text/csv"},
	{"css", "text/css"},
	{"gz", "application/gzip"},
	{"htm", "text/html"},
	{"html", "text/html"},
	{"ipynb", "application/json"},
	{"js", "text/javascript"},
	{"json", "application/json"},
	{"log", "text/plain"},
	{"md", "text/markdown"},
	{"mp3", "audio/mpeg"},
	{"mp4", "video/mp4"},
	{"parquet", "application/vnd.apache.parquet"},
	{"pdf", "application/pdf"},
	{"py", "text/x-python"},
	{"svg", "image/svg+xml"},
	{"tar", "application/x-tar"},
	{"tsv", "text/tab-separated-values"},
	{"txt", "text/plain"},
	{"wav", "audio/wav"},
	{"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
	{"xml", "application/xml"},
	{"yaml", "application/yaml"},
	{"yml", "application/yaml"},
	{"zip", "application/zip"},
};

static const char *by_bytes(const unsigned char *data, size_t length)
{
	if (length >= 8 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0)
		return "image/png";
	if (length >= 3 && memcmp(data, "\xff\xd8\xff", 3) == 0)
		return "image/jpeg";
	if (length >= 6 && (memcmp(data, "GIF87a", 6) == 0 || memcmp(data, "GIF89a", 6) == 0))
		return "image/gif";
	if (length >= 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0)
		return "image/webp";
	return NULL;
}

void job_media_type(const char *name, const void *head, size_t length, char *ret, size_t size)
{
	const char *type = by_bytes(head, length), *dot = strrchr(name, '.');

	for (size_t i = 0; !type && dot && i < ARRAY_SIZE(by_name); i++)
		if (strcasecmp(dot + 1, by_name[i].extension) == 0)
			type = by_name[i].type;
	snprintf(ret, size, "%s", type ? type : MEDIA_DEFAULT);
}

void job_media_type_fd(const char *name, int fd, char *ret, size_t size)
{
	char head[JOB_MEDIA_HEAD];
	ssize_t got = pread(fd, head, sizeof(head), 0);

	job_media_type(name, head, got > 0 ? (size_t)got : 0, ret, size);
}
