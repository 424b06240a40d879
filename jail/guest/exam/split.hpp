// split.hpp - C++ code and its tests in two processes: calls cross as lines of text, values as words in them.
//
// The tests' program has a `remote` in the place of the function. It sends "Q" and the arguments, and gets "=", the result and what the
// function made of arguments that it took by reference, or "!" and an exception. The other program serves such calls with the function. What
// cannot be put into words does not compile; then nothing is split (grade_compose.c). Neither program can do more to the other than that.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <any>
#include <array>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace sallyport {

struct bad_answer : std::runtime_error {
	bad_answer() : std::runtime_error("the answer is not a value") {}
};

// Standard input and output, before any code of the program has them: what that prints is not for us.
struct link {
	int in = fcntl(0, F_DUPFD_CLOEXEC, 3), out = fcntl(1, F_DUPFD_CLOEXEC, 3);
	std::string rest;

	link()
	{
		int null = open("/dev/null", O_RDONLY);
		dup2(null, 0);
		close(null);
		dup2(2, 1);
	}
	void say(const std::string &line)
	{
		for (size_t at = 0; at < line.size();) {
			ssize_t n = write(out, line.data() + at, line.size() - at);
			if (n < 0)
				_exit(2);
			at += (size_t)n;
		}
	}
	bool hear(std::string &line)
	{
		char block[65536];
		size_t end;
		while ((end = rest.find('\n')) == std::string::npos) {
			ssize_t n = read(in, block, sizeof(block));
			if (n <= 0)
				return false;
			rest.append(block, (size_t)n);
		}
		line = rest.substr(0, end);
		rest.erase(0, end + 1);
		return true;
	}
};
static link the_link;

// -------- values as words -----------------------------------------------------------------------------

template <class T> concept sequence = requires(T t) {
	typename T::value_type;
	t.begin();
	t.end();
	t.size();
	t.clear();
	t.insert(t.end(), std::declval<typename T::value_type>());
};
template <class T> struct plain { using type = T; };
template <class K, class V> struct plain<std::pair<const K, V>> { using type = std::pair<K, V>; };

struct words {
	std::string text;
	size_t at = 0;

	void word(const std::string &w) { text += w, text += ' '; }
	std::string word()
	{
		size_t end = text.find(' ', at);
		if (end == std::string::npos)
			throw bad_answer();
		std::string w = text.substr(at, end - at);
		at = end + 1;
		return w;
	}
	size_t count(size_t least = 1) // of things that are at least so many bytes
	{
		size_t n = std::strtoull(word().c_str(), nullptr, 10);
		if (n > (text.size() - at) / least)
			throw bad_answer();
		return n;
	}
};

template <class T> void put(words &to, const T &v);
template <class T> void get(words &from, T &v);

// What std::any holds, by its place in this list.
using any_types = std::tuple<int, double, std::string, char, bool, float, long, long long, unsigned, unsigned long, const char *,
	std::vector<int>, std::vector<double>, std::vector<std::string>, std::vector<std::any>, std::map<std::string, std::any>>;

template <size_t I = 0> void put_any(words &to, const std::any &v)
{
	if constexpr (I == std::tuple_size_v<any_types>) {
		throw std::runtime_error("a std::any of this type cannot cross");
	} else {
		using T = std::tuple_element_t<I, any_types>;
		if (const T *held = std::any_cast<T>(&v)) {
			to.word(std::to_string(I));
			put(to, *held);
		} else {
			put_any<I + 1>(to, v);
		}
	}
}
template <size_t I = 0> void get_any(words &from, std::any &v, size_t kind)
{
	if constexpr (I == std::tuple_size_v<any_types>) {
		throw bad_answer();
	} else if (kind == I) {
		std::tuple_element_t<I, any_types> held{};
		get(from, held);
		v = held;
	} else {
		get_any<I + 1>(from, v, kind);
	}
}
template <class V, size_t I = 0> void get_variant(words &from, V &v, size_t kind)
{
	if constexpr (I == std::variant_size_v<V>) {
		throw bad_answer();
	} else if (kind == I) {
		std::variant_alternative_t<I, V> held{};
		get(from, held);
		v = std::move(held);
	} else {
		get_variant<V, I + 1>(from, v, kind);
	}
}

template <class T> struct is_optional : std::false_type {};
template <class T> struct is_optional<std::optional<T>> : std::true_type {};
template <class T> struct is_variant : std::false_type {};
template <class... T> struct is_variant<std::variant<T...>> : std::true_type {};
template <class T> struct is_complex : std::false_type {};
template <class T> struct is_complex<std::complex<T>> : std::true_type {};
template <class T> struct is_tuple : std::false_type {};
template <class... T> struct is_tuple<std::tuple<T...>> : std::true_type {};
template <class A, class B> struct is_tuple<std::pair<A, B>> : std::true_type {};
template <class T, size_t N> struct is_tuple<std::array<T, N>> : std::true_type {};
template <class T> constexpr bool never = false;

inline void put_text(words &to, const char *data, size_t length)
{
	static const char digits[] = "0123456789abcdef";
	to.word(std::to_string(length));
	for (size_t i = 0; i < length; i++)
		to.text += digits[(unsigned char)data[i] >> 4], to.text += digits[data[i] & 15];
	to.text += ' ';
}
inline std::string get_text(words &from)
{
	size_t length = from.count(2);
	std::string digits = from.word(), text;
	if (digits.size() != 2 * length)
		throw bad_answer();
	for (size_t i = 0; i < length; i++)
		text += (char)std::strtol(digits.substr(2 * i, 2).c_str(), nullptr, 16);
	return text;
}

template <class T> void put(words &to, const T &v)
{
	char text[64];

	if constexpr (std::is_same_v<T, std::string>) {
		put_text(to, v.data(), v.size());
	} else if constexpr (std::is_same_v<T, const char *>) {
		put_text(to, v, std::strlen(v));
	} else if constexpr (std::is_same_v<T, std::any>) {
		if (v.has_value())
			put_any(to, v);
		else
			to.word("none");
	} else if constexpr (std::is_floating_point_v<T>) {
		std::snprintf(text, sizeof(text), "%La", (long double)v);
		to.word(text);
	} else if constexpr (std::is_enum_v<T>) {
		put(to, (std::underlying_type_t<T>)v);
	} else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
		to.word(std::to_string((long long)v));
	} else if constexpr (std::is_integral_v<T>) {
		to.word(std::to_string((unsigned long long)v));
	} else if constexpr (is_optional<T>::value) {
		to.word(v ? "1" : "0");
		if (v)
			put(to, *v);
	} else if constexpr (is_variant<T>::value) {
		to.word(std::to_string(v.index()));
		std::visit([&](const auto &held) { put(to, held); }, v);
	} else if constexpr (std::is_same_v<T, std::monostate>) {
	} else if constexpr (is_complex<T>::value) {
		put(to, v.real());
		put(to, v.imag());
	} else if constexpr (is_tuple<T>::value) {
		std::apply([&](const auto &...part) { (put(to, part), ...); }, v);
	} else if constexpr (sequence<T>) {
		to.word(std::to_string(v.size()));
		for (auto &&part : v)
			put(to, (const typename plain<typename T::value_type>::type &)typename plain<typename T::value_type>::type(part));
	} else {
		static_assert(never<T>, "a value of this type cannot cross");
	}
}

template <class T> void get(words &from, T &v)
{
	if constexpr (std::is_same_v<T, std::string>) {
		v = get_text(from);
	} else if constexpr (std::is_same_v<T, const char *>) {
		v = strdup(get_text(from).c_str());
	} else if constexpr (std::is_same_v<T, std::any>) {
		std::string kind = from.word();
		if (kind == "none")
			v.reset();
		else
			get_any(from, v, std::strtoul(kind.c_str(), nullptr, 10));
	} else if constexpr (std::is_floating_point_v<T>) {
		v = (T)std::strtold(from.word().c_str(), nullptr);
	} else if constexpr (std::is_enum_v<T>) {
		std::underlying_type_t<T> number{};
		get(from, number);
		v = (T)number;
	} else if constexpr (std::is_same_v<T, bool>) {
		v = from.word() != "0";
	} else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
		v = (T)std::strtoll(from.word().c_str(), nullptr, 10);
	} else if constexpr (std::is_integral_v<T>) {
		v = (T)std::strtoull(from.word().c_str(), nullptr, 10);
	} else if constexpr (is_optional<T>::value) {
		v.reset();
		if (from.word() == "1")
			get(from, v.emplace());
	} else if constexpr (is_variant<T>::value) {
		get_variant(from, v, std::strtoul(from.word().c_str(), nullptr, 10));
	} else if constexpr (std::is_same_v<T, std::monostate>) {
	} else if constexpr (is_complex<T>::value) {
		typename T::value_type real, imag;
		get(from, real);
		get(from, imag);
		v = T(real, imag);
	} else if constexpr (is_tuple<T>::value) {
		std::apply([&](auto &...part) { (get(from, part), ...); }, v);
	} else if constexpr (sequence<T>) {
		size_t n = from.count();
		v.clear();
		while (n-- > 0) {
			typename plain<typename T::value_type>::type part{};
			get(from, part);
			v.insert(v.end(), std::move(part));
		}
	} else {
		static_assert(never<T>, "a value of this type cannot cross");
	}
}

// -------- exceptions ----------------------------------------------------------------------------------

template <class E> bool put_exception(words &to, const std::exception &e, const char *name)
{
	if (!dynamic_cast<const E *>(&e))
		return false;
	to.word(name);
	put(to, std::string(e.what()));
	return true;
}
#define SALLYPORT_EXCEPTIONS(X) X(invalid_argument) X(out_of_range) X(domain_error) X(length_error) X(logic_error) X(overflow_error) \
	X(underflow_error) X(range_error) X(runtime_error)
inline void put_exception(words &to, const std::exception &e)
{
#define X(name) put_exception<std::name>(to, e, #name) ||
	SALLYPORT_EXCEPTIONS(X) put_exception<std::bad_alloc>(to, e, "bad_alloc") || put_exception<std::exception>(to, e, "exception");
#undef X
}
[[noreturn]] inline void throw_exception(words &from)
{
	std::string name = from.word(), what;
	get(from, what);
#define X(known) if (name == #known) throw std::known(what);
	SALLYPORT_EXCEPTIONS(X)
#undef X
	if (name == "bad_alloc")
		throw std::bad_alloc();
	throw std::runtime_error(name + ": " + what);
}

// -------- calls ---------------------------------------------------------------------------------------

struct ended {};

template <class T> using held = std::remove_cv_t<std::remove_reference_t<T>>;
template <class T> constexpr bool comes_back = std::is_lvalue_reference_v<T> && !std::is_const_v<std::remove_reference_t<T>>;

template <class T> void put_back(words &to, const held<T> &v)
{
	if constexpr (comes_back<T>)
		put(to, v);
}
template <class T> void get_back(words &from, std::remove_reference_t<T> &v)
{
	if constexpr (comes_back<T>)
		get(from, v);
}

template <class F> struct remote;
template <class R, class... A> struct remote<R(A...)> {
	R operator()(A... args) const
	{
		words question, answer;
		question.text = "Q";
		(put<held<A>>(question, args), ...);
		the_link.say(question.text + "\n");
		if (!the_link.hear(answer.text) || answer.text.empty() || answer.text == "E")
			throw ended();
		answer.at = 1;
		if (answer.text[0] == '!')
			throw_exception(answer);
		if constexpr (std::is_void_v<R>) {
			(get_back<A>(answer, args), ...);
		} else {
			static std::vector<std::unique_ptr<held<R>>> results; // for those that are references
			results.push_back(std::make_unique<held<R>>());
			get(answer, *results.back());
			(get_back<A>(answer, args), ...);
			if constexpr (std::is_reference_v<R>)
				return static_cast<R>(*results.back());
			else
				return std::move(*results.back());
		}
	}
};

template <class F> struct server;
template <class R, class... A> struct server<R(A...)> {
	template <class G> static int serve(G f)
	{
		words question;
		while (the_link.hear(question.text)) {
			std::tuple<held<A>...> args;
			words answer;
			question.at = 0;
			std::apply([&](auto &...arg) { (get(question, arg), ...); }, args);
			try {
				answer.text = "=";
				std::apply([&](auto &...arg) {
					if constexpr (std::is_void_v<R>)
						f(static_cast<std::conditional_t<std::is_reference_v<A>, A, A &&>>(arg)...);
					else
						put<held<R>>(answer, f(static_cast<std::conditional_t<std::is_reference_v<A>, A, A &&>>(arg)...));
					(put_back<A>(answer, arg), ...);
				}, args);
			} catch (const std::exception &e) {
				answer.text = "!";
				put_exception(answer, e);
			} catch (...) {
				answer.text = "!exception 0  ";
			}
			the_link.say(answer.text + "\n");
		}
		return 0;
	}
};

} // namespace sallyport
