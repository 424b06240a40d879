// tests.hpp - main of a C++ program of tests whose code is in another process (split.hpp): the verdict, for the judge.
#include <assert.h>

namespace sallyport {

[[noreturn]] static void verdict(const char *end, const std::string &why)
{
	std::string text;

	for (char c : why.substr(0, 300)) {
		char escape[8];
		std::snprintf(escape, sizeof(escape), (unsigned char)c < ' ' || c == '"' || c == '\\' ? "\\u%04x" : "%c", (unsigned char)c);
		text += escape;
	}
	the_link.say(std::string("V{\"end\":\"") + end + "\",\"text\":\"" + text + "\"}\nD0\n");
	_exit(0);
}

} // namespace sallyport

#undef __assert_fail
extern "C" void __assert_fail(const char *expression, const char *, unsigned, const char *) noexcept
{
	sallyport::verdict("wrong", expression);
}

void sallyport_tests_run();

#undef main
int main()
{
	try {
		sallyport_tests_run();
	} catch (const sallyport::ended &) {
		sallyport::verdict("ended", "");
	} catch (const std::exception &e) {
		sallyport::verdict("error", e.what());
	} catch (...) {
		sallyport::verdict("error", "an exception");
	}
	sallyport::verdict("passed", "");
}
