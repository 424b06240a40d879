/* store_media.c - what a file is, for Content-Type: the four image types by their bytes, everything else by its name.
 */
#include <strings.h>

#include "lib/base/util.h"
#include "lib/store/record/store_file.h"

static const struct {
	const char *magic;
	size_t offset, length;
	const char *type;
} magics[] = {
	{"\x89PNG\r\n\x1a\n", 0, 8, "image/png"},
	{"\xff\xd8\xff", 0, 3, "image/jpeg"},
	{"GIF87a", 0, 6, "image/gif"},
	{"GIF89a", 0, 6, "image/gif"},
	{"WEBP", 8, 4, "image/webp"},
};

/* An image type by name alone is not believed: what does not begin like one is a file of bytes. */
static const struct {
	const char *extension, *type;
} extensions[] = {
	{"bash", "text/x-shellscript"},
	{"bmp", "image/bmp"},
	{"c", "text/x-c"},
	{"cc", "text/x-c++"},
	{"cpp", "text/x-c++"},
	{"css", "text/css"},
	{"csv", "text/csv"},
	{"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
	{"go", "text/x-go"},
	{"gz", "application/gzip"},
	{"h", "text/x-c"},
	{"htm", "text/html"},
	{"html", "text/html"},
	{"ipynb", "application/x-ipynb+json"},
	{"js", "text/javascript"},
	{"json", "application/json"},
	{"jsonl", "application/x-ndjson"},
	{"log", "text/plain"},
	{"md", "text/markdown"},
	{"mjs", "text/javascript"},
	{"mp3", "audio/mpeg"},
	{"mp4", "video/mp4"},
	{"parquet", "application/vnd.apache.parquet"},
	{"pdf", "application/pdf"},
	{"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
	{"py", "text/x-python"},
	{"rs", "text/x-rust"},
	{"sh", "text/x-shellscript"},
	{"sql", "application/sql"},
	{"sqlite", "application/vnd.sqlite3"},
	{"svg", "image/svg+xml"},
	{"tar", "application/x-tar"},
	{"toml", "application/toml"},
	{"ts", "text/x-typescript"},
	{"tsv", "text/tab-separated-values"},
	{"txt", "text/plain"},
	{"wav", "audio/wav"},
	{"webm", "video/webm"},
	{"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
	{"xml", "application/xml"},
	{"yaml", "application/yaml"},
	{"yml", "application/yaml"},
	{"zip", "application/zip"},
};

static const char *by_name(const char *name, size_t length)
{
	size_t dot = length;

	while (dot > 0 && name[dot - 1] != '.' && name[dot - 1] != '/')
		dot--;
	if (dot < 2 || name[dot - 1] != '.' || name[dot - 2] == '/') /* no dot, or ".profile" */
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(extensions); i++)
		if (strlen(extensions[i].extension) == length - dot &&
		    strncasecmp(extensions[i].extension, name + dot, length - dot) == 0)
			return extensions[i].type;
	return NULL;
}

void store_media_type(const char *name, size_t length, const unsigned char *head, size_t head_length,
		      char ret[STORE_MEDIA_TYPE_SIZE])
{
	const char *type = NULL;

	for (size_t i = 0; type == NULL && i < ARRAY_SIZE(magics); i++)
		if (head_length >= magics[i].offset + magics[i].length &&
		    memcmp(head + magics[i].offset, magics[i].magic, magics[i].length) == 0 &&
		    (magics[i].offset == 0 || memcmp(head, "RIFF", 4) == 0))
			type = magics[i].type;
	if (type == NULL)
		type = by_name(name, length);
	snprintf(ret, STORE_MEDIA_TYPE_SIZE, "%s", type != NULL ? type : "application/octet-stream");
}
