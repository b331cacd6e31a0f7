// What every compiled program of a proof has in common: it reads its arguments, a JSON object of numbers and texts, from
// the file that its first argument names, and prints a JSON object a line. hostwright/prove/model.py is the other side.
#pragma once
#include <chrono>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

// A text as JSON: whatever a device calls itself, the line stays one line of ASCII.
inline std::string quoted(const std::string &text) {
  std::string line = "\"";
  for (unsigned char each : text) {
    if (each == '"' || each == '\\') line += '\\';
    line += each >= 0x20 && each < 0x7f ? static_cast<char>(each) : '?';
  }
  return line + "\"";
}

inline std::string format(const char *pattern, ...) __attribute__((format(printf, 1, 2)));
inline std::string format(const char *pattern, ...) {
  char text[512];
  va_list values;
  va_start(values, pattern);
  vsnprintf(text, sizeof text, pattern, values);
  va_end(values);
  return text;
}

inline void row(const char *name, const std::string &value, const char *unit, const std::string &device,
                const char *better) {
  printf("{\"measure\": %s, \"value\": %s, \"unit\": %s, \"device\": %s, \"better\": %s}\n", quoted(name).c_str(),
         value.c_str(), quoted(unit).c_str(), quoted(device).c_str(), quoted(better).c_str());
  fflush(stdout);
}

// better: "more", "less", or "" for what is not compared with other hosts
inline void measure(const char *name, double value, const char *unit, const std::string &device,
                    const char *better = "") {
  row(name, std::isfinite(value) ? format("%.10g", value) : "null", unit, device, better);
}

inline void measure(const char *name, const std::string &text, const std::string &device) {
  row(name, quoted(text), "", device, "");
}

inline void no_gpu(const char *name, const char *unit) { row(name, "null", unit, "no GPU", ""); }

// What makes the proof fail. The program ends with it.
[[noreturn]] inline void fail(const std::string &sentence) {
  printf("{\"error\": %s}\n", quoted(sentence).c_str());
  fflush(stdout);
  std::_Exit(1);  // other threads may still be at work
}

inline int end() {
  printf("{\"end\": true}\n");
  return fflush(stdout) == 0 ? 0 : 1;
}

// Neither a pass nor a failure: what it measures cannot be measured here. The program ends with it.
[[noreturn]] inline void not_run(const std::string &sentence) {
  printf("{\"not run\": %s}\n", quoted(sentence).c_str());
  std::_Exit(end());
}

// The arguments: flat, and written by Hostwright.
class Arguments {
 public:
  Arguments(int count, char **words) {
    if (count < 2) fail("it was started without the file of its arguments");
    std::ifstream file(words[1]);
    if (!file) fail(std::string("the file of its arguments cannot be read: ") + words[1]);
    text_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }

  double number(const std::string &name, double otherwise) const {
    const char *value = find(name);
    return value ? strtod(value, nullptr) : otherwise;
  }

  std::string text(const std::string &name, const std::string &otherwise) const {
    const char *value = find(name);
    if (!value || *value != '"') return otherwise;
    const char *last = strchr(value + 1, '"');
    return last ? std::string(value + 1, last) : otherwise;
  }

 private:
  const char *find(const std::string &name) const {
    const size_t place = text_.find("\"" + name + "\":");
    if (place == std::string::npos) return nullptr;
    const char *value = text_.c_str() + place + name.size() + 3;
    return value + strspn(value, " \t\n");
  }

  std::string text_;
};

inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline std::string first_line(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}
