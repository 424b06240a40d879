/* What the scanner takes, json-c takes too; what was parsed prints as JSON that parses and prints the same again. */
#include "fuzz.h"
#include "lib/base/json.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"

#define PRINT_MAX (1 << 22)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	const char *text = (const char *)data;
	struct err err = ERR_INIT;
	auto_json struct json_object *object = NULL, *again = NULL, *commented = NULL;
	auto_buf struct buf printed = {0}, second = {0}, pretty = {0};
	int scanned = json_scan(text, length, &err);

	PROMISE(scanned == 0 ||
		(scanned == -ERR_INVALID && err.text[0] != '\0' && utf8_valid(err.text, strlen(err.text))));
	if (json_parse_commented(text, length, &commented, NULL) < 0)
		PROMISE(commented == NULL && scanned < 0);
	PROMISE(json_parse(text, length, &object, &err) == scanned);
	if (scanned < 0)
		return 0;
	PROMISE(utf8_valid(text, length));

	buf_init(&printed, PRINT_MAX);
	buf_init(&second, PRINT_MAX);
	buf_init(&pretty, PRINT_MAX);
	json_print(&printed, object);
	PROMISE(!printed.overflow);
	PROMISE(json_parse(printed.data, printed.length, &again, NULL) == 0);
	json_print(&second, again);
	PROMISE(streq(printed.data, second.data));
	json_print_pretty(&pretty, object);
	PROMISE(pretty.overflow || json_scan(pretty.data, pretty.length, NULL) == 0);
	return 0;
}
