/*
 * store_snippet.h - programs that are kept by name: each save is a new version.
 *
 * They are an owner's; what an operator promotes or imports (tools.snippets_dir) is everybody's, under the owner
 * STORE_SNIPPET_ALL and without the bounds below. An owner's own snippet comes before everybody's of the same name.
 */
#pragma once

#include "lib/store/store.h"
#include "store_file.h"

#define STORE_SNIPPET_ALL             ""
#define STORE_SNIPPET_NAME_MAX        64          /* letters, digits, "_", "-" */
#define STORE_SNIPPET_DESCRIPTION_MAX 1024        /* bytes */
#define STORE_SNIPPET_CODE_MAX        (64 * 1024) /* bytes */
#define STORE_SNIPPET_SCHEMA_MAX      (16 * 1024) /* bytes */
#define STORE_SNIPPETS_MAX            100         /* names of an owner */
#define STORE_SNIPPET_VERSIONS_MAX    10          /* of one name that are kept */

struct store_snippet {
	char owner[STORE_OWNER_MAX + 1];
	char name[STORE_SNIPPET_NAME_MAX + 1];
	char language[32];
	int64_t version, created_us;
	/* owned where the store filled the struct in; borrowed by store_snippet_save */
	char *description, *code;
	char *schema;  /* JSON Schema of its input, an object */
	char *servers; /* JSON array of names */
};
void store_snippet_clear(struct store_snippet *snippet);
#define auto_snippet_row __attribute__((cleanup(store_snippet_clear)))
bool store_snippet_name_valid(const char *name);
/* Keeps the newest STORE_SNIPPET_VERSIONS_MAX. ERR_LIMIT: the owner has STORE_SNIPPETS_MAX names. */
int store_snippet_save(struct store *store, const struct store_snippet *snippet, int64_t *ret_version, struct err *err);
/* Version 0: the newest. ERR_NOT_FOUND. */
int store_snippet_find(struct store *store, const char *owner, const char *name, int64_t version,
		       struct store_snippet *ret, struct err *err);
/* The newest version of each, by owner and name: of the owner and of everybody, or (NULL) of all owners. */
int store_snippet_list(struct store *store, const char *owner,
		       void (*each)(void *arg, const struct store_snippet *snippet), void *arg, struct err *err);
/* A version (0: all). ERR_NOT_FOUND. */
int store_snippet_remove(struct store *store, const char *owner, const char *name, int64_t version, struct err *err);
