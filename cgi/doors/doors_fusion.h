/*
 * doors_fusion.h - a request of SandboxFusion's run_code, taken apart. Unknown members are passed over.
 */
#pragma once

#include "doors.h"

struct fusion_body {
	struct json_object *document;
	struct json_object *code, *input, *files, *fetch;
	const char *language; /* our name of it */
	double compile_seconds, run_seconds;
	int64_t memory_bytes;
};

/* Negative: the reply says what is wrong. The document is the caller's in either case. */
int doors_fusion_body(struct doors_call *call, struct fusion_body *ret);
/* 422 with {"detail":[{"type","loc":["body",MEMBER],"msg"}]}, as its clients know it; member NULL: none. Negative. */
int doors_fusion_refuse(struct reply *reply, const char *member, const char *type, const char *text);
struct json_object *doors_fusion_languages(void); /* by their names; the caller's */
