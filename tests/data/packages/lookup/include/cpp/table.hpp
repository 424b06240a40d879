#pragma once
#define TABLE "{{table}}"
#include <fstream>
#include <map>
#include <string>
static inline std::map<std::string, double> read_table() { std::ifstream in(TABLE); std::map<std::string, double> t; std::string k; double v; while (in >> k >> v) t[k] = v; return t; }
