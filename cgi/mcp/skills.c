/*
 * skills.c - see skills.h.
 *
 * Everything is made from the table of files that the server's tables hold: a file's URI is the skill's name and its
 * path, its digest the SHA-256 of the bytes that resources/read gives, and the entry's frontmatter the head of its
 * SKILL.md. So an entry cannot say something else than its file, which clients compare: they refuse a skill whose
 * digest, size or frontmatter differs.
 *
 * The files are ours: the frontmatter is a line "name: value" a member, and values are plain text. No general reader of
 * YAML stands in the gateway for it; tests/e2e/skills.bats reads the same heads with one.
 *
 * What a token may read it may list: all methods here take the scope of resources/read.
 */
#include "skills.h"

#include <string.h>

#include "lib/base/util.h"
#include "lib/store/db/crypto.h"

#define EXTENSION   "io.modelcontextprotocol/skills"
#define SCHEME      "skill://"
#define FOLDER_TYPE "inode/directory"
#define FENCE       "---\n" /* around the frontmatter */

static bool enabled(const struct skill *skill, const struct server *server)
{
	return !skill->enabled || skill->enabled(server->config);
}

static const struct skill *skills_of(const struct server *server)
{
	return server->tables.skills;
}

static char *uri_of(const struct skill *skill, const char *path)
{
	return xasprintf(SCHEME "%s/%s", skill->name, path);
}

static size_t size_of(const struct skill_file *file)
{
	return (size_t)(file->end - file->begin);
}

static const char *type_of(const char *path)
{
	return str_ends(path, ".md") ? "text/markdown" : "text/plain";
}

/* The frontmatter as an object: a line "name: value" a member, whose value is plain text. */
static struct json_object *frontmatter(const struct skill *skill)
{
	struct json_object *object = json_object_new_object();
	const char *line = skill->files[0].begin + strlen(FENCE);

	while (!str_starts(line, FENCE)) {
		const char *colon = strstr(line, ": "), *end = strchr(line, '\n');
		auto_free char *name = xasprintf("%.*s", (int)(colon - line), line);

		json_add(object, name, json_object_new_string_len(colon + 2, (int)(end - colon - 2)));
		line = end + 1;
	}
	return object;
}

/* The file with this URI; NULL: there is none. */
static const struct skill_file *find(const struct server *server, const char *uri, const struct skill **ret)
{
	for (const struct skill *skill = skills_of(server); skill && skill->name; skill++) {
		for (const struct skill_file *file = skill->files; enabled(skill, server) && file->path; file++) {
			auto_free char *its = uri_of(skill, file->path);

			if (streq(its, uri)) {
				*ret = skill;
				return file;
			}
		}
	}
	return NULL;
}

/* A skill as skills/list and skills/get give it. */
static struct json_object *describe(const struct skill *skill)
{
	struct json_object *entry = json_object_new_object(), *files = json_object_new_array();
	auto_free char *uri = uri_of(skill, SKILL_MANIFEST);

	json_add_string(entry, "uri", uri);
	json_add(entry, "frontmatter", frontmatter(skill));
	for (const struct skill_file *file = skill->files; file->path; file++) {
		struct json_object *one = json_object_new_object();
		auto_free char *its = uri_of(skill, file->path);
		char sum[SHA256_HEX_SIZE];

		sha256_hex(file->begin, size_of(file), sum);
		auto_free char *digest = xasprintf("sha256:%s", sum);

		json_add_string(one, "uri", its);
		json_add_string(one, "digest", digest);
		json_add_int(one, "size", (int64_t)size_of(file));
		json_object_array_add(files, one);
	}
	json_add(entry, "resources", files);
	return entry;
}

/* A file as a resource: SKILL.md has the skill's name and description, others are named by their last segment. */
static struct json_object *resource_of(const struct skill *skill, const struct skill_file *file)
{
	struct json_object *resource = json_object_new_object();
	auto_free char *uri = uri_of(skill, file->path);
	const char *slash = strrchr(file->path, '/');

	json_add_string(resource, "uri", uri);
	if (file == skill->files) {
		auto_json struct json_object *front = frontmatter(skill);

		json_add_string(resource, "name", json_get_string(front, "name"));
		json_add_string(resource, "description", json_get_string(front, "description"));
	} else {
		json_add_string(resource, "name", slash ? slash + 1 : file->path);
	}
	json_add_string(resource, "mimeType", type_of(file->path));
	json_add_int(resource, "size", (int64_t)size_of(file));
	return resource;
}

void mcp_skill_capabilities(struct json_object *capabilities)
{
	struct json_object *extensions = json_get(capabilities, "extensions", json_type_object);
	struct json_object *settings = json_object_new_object();

	if (!extensions) {
		extensions = json_object_new_object();
		json_add(capabilities, "extensions", extensions);
	}
	json_add_bool(settings, "directoryRead", true);
	json_add(extensions, EXTENSION, settings);
}

int mcp_skills_list(struct mcp_call *call)
{
	const struct server *server = call->exchange->server;

	if (mcp_cursor(call))
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: cursor: unknown (the list has one page)");
	struct json_object *skills = json_object_new_array();

	for (const struct skill *skill = skills_of(server); skill && skill->name; skill++) {
		if (enabled(skill, server))
			json_object_array_add(skills, describe(skill));
	}
	call->result = json_object_new_object();
	json_add(call->result, "skills", skills);
	return 0;
}

int mcp_skills_get(struct mcp_call *call)
{
	const char *uri = json_get_string(call->message->params, "uri");
	const struct skill *skill = NULL;

	if (!uri)
		return mcp_fail(call, RPC_INVALID_PARAMS,
				"Invalid params: uri: must be a string, the URI of a skill's " SKILL_MANIFEST);
	const struct skill_file *file = find(call->exchange->server, uri, &skill);

	if (!file || file != skill->files)
		return mcp_fail_name(call, RPC_INVALID_PARAMS, "No skill is here (skills/list lists them)", uri);
	call->result = json_object_new_object();
	json_add(call->result, "skill", describe(skill));
	return 0;
}

/* Appends what is directly in the folder: a file, or once each folder in which there is one. Files are by path. */
static void add_children(const struct skill *skill, const char *folder, struct json_object *resources)
{
	auto_free char *begin = xasprintf("%s/", folder), *last = NULL;

	for (const struct skill_file *file = skill->files; file->path; file++) {
		auto_free char *uri = uri_of(skill, file->path);

		if (!str_starts(uri, begin))
			continue;
		char *slash = strchr(uri + strlen(begin), '/');

		if (!slash) {
			json_object_array_add(resources, resource_of(skill, file));
			continue;
		}
		*slash = '\0';
		if (last && streq(last, uri))
			continue;
		struct json_object *below = json_object_new_object();

		json_add_string(below, "uri", uri);
		json_add_string(below, "name", uri + strlen(begin));
		json_add_string(below, "mimeType", FOLDER_TYPE);
		json_object_array_add(resources, below);
		free(last);
		last = xstrdup(uri);
	}
}

int mcp_directory_read(struct mcp_call *call)
{
	const struct server *server = call->exchange->server;
	const char *uri = json_get_string(call->message->params, "uri");

	if (!uri)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: uri: must be a string, the URI of a folder");
	if (mcp_cursor(call))
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: cursor: unknown (the list has one page)");
	auto_json struct json_object *resources = json_object_new_array();

	for (const struct skill *skill = skills_of(server); skill && skill->name; skill++) {
		if (enabled(skill, server) && str_starts(uri, SCHEME) && uri[strlen(SCHEME)] != '\0' &&
		    uri[strlen(SCHEME)] != '/')
			add_children(skill, uri, resources);
	}
	if (json_object_array_length(resources) == 0)
		return mcp_fail_name(call, RPC_INVALID_PARAMS, "This is no folder of a skill", uri);
	call->result = json_object_new_object();
	json_add(call->result, "resources", steal(&resources));
	return 0;
}

/* Of each skill its SKILL.md: the rest is found from there. */
static int list(struct mcp_call *call, const char *position, struct json_object *resources, struct buf *next,
		struct err *err)
{
	const struct server *server = call->exchange->server;

	(void)position;
	(void)next;
	(void)err;
	for (const struct skill *skill = skills_of(server); skill && skill->name; skill++) {
		if (enabled(skill, server))
			json_object_array_add(resources, resource_of(skill, skill->files));
	}
	return 0;
}

static int read_file(struct mcp_call *call, const char *uri, struct json_object *contents, struct err *err)
{
	const struct skill *skill = NULL;
	const struct skill_file *file = find(call->exchange->server, uri, &skill);

	if (!file)
		return err_set(err, ERR_NOT_FOUND, "no such resource");
	struct json_object *content = json_object_new_object();

	json_add_string(content, "uri", uri);
	json_add_string(content, "mimeType", type_of(file->path));
	json_add(content, "text", json_object_new_string_len(file->begin, (int)size_of(file)));
	json_object_array_add(contents, content);
	return 0;
}

const struct resource_provider resource_skills = {.scheme = SCHEME, .list = list, .read = read_file};
