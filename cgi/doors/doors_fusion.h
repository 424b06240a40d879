/*
 * doors_fusion.h - a request of SandboxFusion's run_code, taken apart, and what it shares with ScaleBox' gradings.
 * Unknown members are passed over.
 */
#pragma once

#include "doors.h"

#define DOORS_FUSION_SECONDS 10.0 /* of each step, where the request says nothing */

struct fusion_body {
	struct json_object *document;
	struct json_object *code, *input, *files, *fetch, *args;
	const char *language; /* our name of it */
	double compile_seconds, run_seconds;
	int64_t memory_bytes;
};

/* Negative: the reply says what is wrong. The document is the caller's in either case. */
int doors_fusion_body(struct doors_call *call, struct fusion_body *ret);
/* 422 with {"detail":[{"type","loc":["body",MEMBER],"msg"}]}, as its clients know it; member NULL: none. Negative. */
int doors_fusion_refuse(struct reply *reply, const char *member, const char *type, const char *text);
struct json_object *doors_fusion_languages(void); /* by their names; the caller's */
/* Our name of it; NULL: the reply says which there are. */
const char *doors_fusion_language(struct reply *reply, const char *theirs);
/* A number of seconds above 0, or what holds where the member is missing; negative: the reply says what is wrong. */
int doors_fusion_seconds(struct reply *reply, struct json_object *document, const char *name, double standard,
			 double *ret);
/* A limit of memory in MiB; 0: none was named. Negative: the reply says what is wrong. */
int doors_fusion_memory(struct reply *reply, struct json_object *document, const char *name, int64_t *ret_bytes);
int64_t doors_fusion_patience(double compile_seconds, double run_seconds); /* of its client, in us */
void doors_fusion_late(struct reply *reply);
/* A step's result; the streams are taken over. */
struct json_object *doors_fusion_step(int64_t wall_us, bool timed_out, int code, struct json_object *out,
				      struct json_object *error);
int doors_fusion_code(enum jail_verdict verdict, int exit_code, int signal);
/* Files that are sent, and the names of those that are asked for; NULL: none. Negative: the reply says what is wrong.
 */
int doors_fusion_files(struct reply *reply, struct json_object *document, struct json_object **ret_files,
		       struct json_object **ret_fetch);
int doors_fusion_decode(struct json_object *files, struct doors_inputs *ret, struct err *err);
/* A file in base64, where it has no more than the bytes that are left; else NULL. */
struct json_object *doors_fusion_base64(struct doors_call *call, const struct store_file *file, size_t *left);
/* Those of `names` that are in the conversation ("": none), in base64. */
struct json_object *doors_fusion_fetched(struct doors_call *call, struct json_object *names, const char *conversation);
extern const struct door doors_jupyter; /* run_jupyter (doors_jupyter.c) */
extern const struct door doors_grade; /* common_evaluate, common_evaluate_batch (doors_grade.c) */
