/*
 * run_missing.c - see run_missing.h.
 *
 * What a program's last words say is looked for, not understood: the words are those of the interpreters. A missing
 * library has a neighbour where one of its row is installed, else the name that is nearest to it.
 */
#include "run_missing.h"

#include <ctype.h>
#include <string.h>

#include "lib/base/util.h"

#define NAME_MAX_ 64

/* -------- packages ------------------------------------------------------------------------------------ */

/* What does the same, the best first, by the names of Debian's distributions; modules between blanks. */
static const struct {
	const char *modules, *instead[4];
} neighbours[] = {
	{" cv2 skimage imageio wand ", {"pillow"}},
	{" fitz pymupdf pdfplumber PyPDF2 pikepdf pdfminer camelot tabula pypdfium2 ",
	 {"pypdf", "pdfminer-six", "pypdf2"}},
	{" pptx docx2txt docxtpl odf ", {"python-docx"}},
	{" polars pyarrow fastparquet dask modin duckdb vaex ", {"pandas"}},
	{" xgboost lightgbm catboost torch tensorflow keras jax transformers ", {"scikit-learn", "numpy"}},
	{" bokeh altair pygal plotnine holoviews ", {"plotly", "matplotlib"}},
	{" httpx aiohttp urllib3 treq ", {"requests"}},
	{" nltk spacy gensim textblob ", {"scikit-learn", "regex"}},
	{" xlwt pyxlsb xlwings pyexcel ", {"openpyxl", "xlsxwriter"}},
	{" fpdf fpdf2 weasyprint pdfkit ", {"reportlab"}},
	{" requests_mock httpretty vcr pytest_httpserver ", {"responses"}},
	{" prettytable texttable rich ", {"tabulate"}},
	{" alive_progress progressbar progress ", {"tqdm"}},
	{" fastapi django bottle starlette ", {"flask"}},
	{" cvxpy pulp ortools ", {"scipy"}},
	{" psycopg asyncpg pg8000 ", {"psycopg2"}},
	{" ruamel ", {"pyyaml"}},
	{" mako chevron ", {"jinja2"}},
};

static struct json_object *libraries_of(struct json_object *runners, const char *language)
{
	for (size_t i = 0; runners && i < json_object_array_length(runners); i++) {
		struct json_object *runner = json_object_array_get_idx(runners, i);
		const char *name = json_get_string(runner, "name");

		if (name && streq(name, language))
			return json_get(runner, "libraries", json_type_array);
	}
	return NULL;
}

/* The installed library that is called so, or nearly so. */
static const char *installed(struct json_object *libraries, const char *name, bool nearly)
{
	for (size_t i = 0; libraries && i < json_object_array_length(libraries); i++) {
		const char *one = json_get_string(json_object_array_get_idx(libraries, i), "name");

		if (one && (nearly ? str_near(one, name) : streq(one, name)))
			return one;
	}
	return NULL;
}

static const char *neighbour_of(struct json_object *libraries, const char *module)
{
	auto_free char *word = xasprintf(" %s ", module);
	const char *found = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(neighbours) && !found; i++)
		for (size_t k = 0;
		     strstr(neighbours[i].modules, word) && !found && k < ARRAY_SIZE(neighbours[i].instead); k++)
			found = neighbours[i].instead[k] ? installed(libraries, neighbours[i].instead[k], false) : NULL;
	return found ? found : installed(libraries, module, true);
}

/* The name behind "No module named '" and its like; "": there is none. */
static void missing_module(const struct run_shown *error, char ret[NAME_MAX_])
{
	static const char *const words[] = {"No module named '", "Cannot find module '", "Cannot find package '"};
	const struct job_stream *const parts[] = {&error->head, &error->tail};

	ret[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(words) * ARRAY_SIZE(parts); i++) {
		const struct job_stream *part = parts[i % ARRAY_SIZE(parts)];
		const char *word = words[i / ARRAY_SIZE(parts)];
		const char *found = part->length > 0 ? memmem(part->data, part->length, word, strlen(word)) : NULL;
		size_t length = 0;

		while (found && length < NAME_MAX_ - 1 &&
		       (isalnum((unsigned char)found[strlen(word) + length]) || found[strlen(word) + length] == '_' ||
			found[strlen(word) + length] == '-'))
			length++;
		if (length > 0)
			snprintf(ret, NAME_MAX_, "%.*s", (int)length, found + strlen(word));
	}
}

/* One of these, ended by NULL? */
static bool says(const struct run_shown *error, const char *const *words)
{
	while (*words && !run_shown_has(error, *words))
		words++;
	return *words;
}

/* Does the program's last word say that it misses a package? pip itself advises things that are not to be had here. */
static bool misses_package(const struct run_shown *error)
{
	static const char *const words[] = {"No module named '",       "Cannot find module '",
					    "Cannot find package '",   "externally-managed-environment",
					    "npm error code EROFS",    "pip: command not found",
					    "pip3: command not found", "npm: command not found",
					    NULL};

	return says(error, words);
}

static void add_packages(struct server *server, const struct job_result *result, const struct run_shown *error,
			 struct buf *text)
{
	const char *list = tool_find(server, "list_runners") ? "; list_runners names those that are there" : "";
	auto_json struct json_object *runners = tool_runners(server);
	struct json_object *libraries = libraries_of(runners, result->jail.runner);
	char module[NAME_MAX_];

	missing_module(error, module);
	const char *neighbour = *module ? neighbour_of(libraries, module) : NULL;

	if (neighbour)
		buf_printf(text, "packages: %s is not installed, %s is\n", module, neighbour);
	if (server->config->network.allow.count > 0)
		buf_printf(text, "packages: in bash with network, pip install NAME or npm install NAME adds one%s\n",
			   list);
	else
		buf_printf(text, "packages: nothing can be installed here%s\n", list);
}

/* -------- network ------------------------------------------------------------------------------------- */

/* What libraries say where there is no network: names are not resolved, nothing is reached. */
static bool misses_network(const struct run_shown *error)
{
	static const char *const words[] = {"Name or service not known", "Temporary failure in name resolution",
					    "Failed to resolve",         "Could not resolve host",
					    "getaddrinfo ENOTFOUND",     "getaddrinfo EAI_AGAIN",
					    "Network is unreachable",    "ENETUNREACH",
					    "unable to resolve host",    "dial tcp: lookup ",
					    NULL};

	return says(error, words);
}

static void add_network(struct server *server, const struct job_result *result, struct buf *text)
{
	if (result->jail.network) /* it had one: what was refused is named already */
		return;
	if (server->config->network.allow.count > 0)
		buf_puts(text, "network: this program had none; with network: true programs reach the hosts that "
			       "the operator lists\n");
	else
		buf_puts(text, "network: programs have no network here; use what is in /data or in the code\n");
}

/* -------- limits -------------------------------------------------------------------------------------- */

/* A limit that was met, with the argument that asks for more and its maximum, or what else helps. */
static void add_limits(struct server *server, const struct job_result *result, const struct run_shown *error,
		       struct buf *text)
{
	static const char *const memory[] = {"MemoryError",    "OutOfMemoryError",       "heap out of memory",
					     "std::bad_alloc", "Cannot allocate memory", NULL};
	static const char *const space[] = {"No space left on device", "ENOSPC", NULL};
	const struct config_limits *limits = &server->config->limits;
	const enum jail_verdict verdict = result->jail.verdict;

	if (verdict == JAIL_TO)
		buf_printf(text, "time: timeout_seconds asks for more, up to %lld\n",
			   (long long)limits->wall_seconds_max);
	if (verdict == JAIL_ML || says(error, memory))
		buf_printf(text, "memory: memory_mb asks for more, up to %lld\n", (long long)limits->memory_mb_max);
	if (verdict == JAIL_OL)
		buf_printf(text, "output: at most %lld MiB; write more into a file in /data\n",
			   (long long)limits->output_mb);
	if (result->jail.run.pids_hits > 0)
		buf_printf(text, "processes: at most %lld processes and threads at once\n", (long long)limits->pids);
	if (says(error, space))
		buf_printf(text,
			   "space: /data holds %lld MiB and %lld files and folders, /tmp %lld MiB; delete_files makes "
			   "room\n",
			   (long long)limits->data_mb, (long long)limits->data_inodes, (long long)limits->tmp_mb);
}

/* A program that calls tools and was given none: the names are not there. */
static void add_servers(struct server *server, const struct job_result *result, const struct run_shown *error,
			struct buf *text)
{
	static const char *const words[] = {"name 'tools' is not defined", "tools is not defined",
					    "No module named 'tools'", "this program may call no tools", NULL};

	const char *file = server->config->upstream.file;

	if (file && *file && result->tools.n_servers == 0 && says(error, words))
		buf_puts(text, "servers: a program calls the tools of the servers that the argument servers names\n");
}

void run_missing_add(struct server *server, const struct job_result *result, const struct run_shown *error,
		     struct buf *text)
{
	const bool failed = result->jail.verdict == JAIL_RE;

	if (failed && misses_package(error))
		add_packages(server, result, error, text);
	if (failed)
		add_servers(server, result, error, text);
	if (failed && misses_network(error))
		add_network(server, result, text);
	add_limits(server, result, error, text);
}
