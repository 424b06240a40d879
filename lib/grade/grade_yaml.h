/*
 * grade_yaml.h - YAML files of problem packages as JSON objects, so that one set of accessors reads both (libyaml does
 * the parsing).
 *
 * Plain scalars become what YAML 1.1's core says: null, booleans (true, false, yes, no, on, off), integers, floats,
 * else strings; quoted ones are always strings. Mappings keep their order; keys are strings. An alias is
 * the same object as its anchor, so that aliases of aliases take no memory; "<<" brings the members of one mapping.
 * Of a key that is there twice the last one counts.
 * Refused are documents deeper than GRADE_YAML_DEPTH or larger than GRADE_YAML_MAX bytes.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/json.h"

#define GRADE_YAML_MAX   (1 << 20)
#define GRADE_YAML_DEPTH 32

/* The first document of a text; `null` and an empty text give *ret == NULL. ERR_INVALID names the line. */
int grade_yaml_parse(const char *text, size_t length, struct json_object **ret, struct err *err);
/* The file PATH below directory `at`. A file that is not there: ERR_NOT_FOUND. */
int grade_yaml_read(int at, const char *path, struct json_object **ret, struct err *err);

/* A scalar as text, whatever its type ("5", "1.5", "true"); NULL: the member is absent or no scalar. The object's. */
const char *grade_yaml_text(struct json_object *object, const char *key);
/* A number, also where it was quoted or has a unit of time ("2s"); `fallback` where the member is absent. ERR_INVALID:
 * no number. */
int grade_yaml_number(struct json_object *object, const char *key, double fallback, double *ret, struct err *err);
