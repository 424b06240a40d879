#pragma once
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
// In the manner of the helper that many contests copy: judge's streams, feedback by printf, 42 and 43.
static std::ifstream judge_in, judge_ans;
static std::string feedback;
static void report(const char *format, ...)
{
	FILE *file = fopen((feedback + "judgemessage.txt").c_str(), "a");
	va_list args;
	va_start(args, format);
	vfprintf(file, format, args);
	va_end(args);
	fclose(file);
}
[[noreturn]] static void accept() { exit(42); }
#define reject(...) (report(__VA_ARGS__), exit(43))
static void start(int argc, char **argv)
{
	if (argc < 4)
		exit(1);
	judge_in.open(argv[1]);
	judge_ans.open(argv[2]);
	feedback = argv[3];
}
