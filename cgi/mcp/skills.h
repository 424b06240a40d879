/*
 * skills.h - what this server teaches a model, as the extension io.modelcontextprotocol/skills has it.
 *
 * A skill is a folder of the tree with a SKILL.md, whose frontmatter holds its name and description; the files are
 * embedded, and cgi/tool/skill_table.c lists them. Each is a resource, skill://NAME/PATH; skills/list and skills/get
 * give the digests of all of them, and resources/directory/read what is in a folder. Clients that know nothing of the
 * extension find each SKILL.md in resources/list.
 */
#pragma once

#include "resources.h"

struct skill_file {
	const char *path;        /* below the skill's folder */
	const char *begin, *end; /* UTF-8; a NUL stands at the end */
};
#define SKILL_MANIFEST "SKILL.md"
struct skill {
	/* The folder's, which is that of the frontmatter. NULL: the table ends. */
	const char *name;
	/* SKILL_MANIFEST first, then by path; ended by {0}. */
	const struct skill_file *files;
	bool (*enabled)(const struct config *config); /* NULL: always */
};

/* Says that the server has the extension. */
void mcp_skill_capabilities(struct json_object *capabilities);
/* The methods of both eras. */
int mcp_skills_list(struct mcp_call *call);
int mcp_skills_get(struct mcp_call *call);
int mcp_directory_read(struct mcp_call *call);
extern const struct resource_provider resource_skills;
