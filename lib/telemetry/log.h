// A log of one line for each event: a name and key=value pairs, on standard error. The event names
// are catalogued in docs/OPERATIONS.md with what to do about each.
//
// This header knows nothing of the logging library, whose own is costly to compile.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::telemetry {

enum class Level { kDebug, kInfo, kWarn, kError };

// One key=value pair; whatever fmt can print, and absl::Status.
struct Field {
  template <typename T>
  Field(std::string_view field_key, const T& field_value)
      : key(field_key), value(fmt::format("{}", field_value)) {}
  Field(std::string_view field_key, const absl::Status& status)
      : key(field_key),
        value(fmt::format("{}: {}", absl::StatusCodeToString(status.code()),
                          base::MessageOf(status))) {}

  std::string_view key;
  std::string value;
};

// Returns "event key=value key2=\"two words\"". Values with blanks, quotes, control characters or
// '=' are quoted and escaped, so that a line stays a line and stays parsable. Pure.
std::string FormatEvent(std::string_view event, std::initializer_list<Field> fields);

// The log. Thread-safe. It is handed by reference to everybody who logs; there is no global one.
class Log {
 public:
  virtual ~Log() = default;

  virtual void Write(Level level, std::string_view event, std::initializer_list<Field> fields) = 0;

  void Debug(std::string_view event, std::initializer_list<Field> fields = {}) {
    Write(Level::kDebug, event, fields);
  }
  void Info(std::string_view event, std::initializer_list<Field> fields = {}) {
    Write(Level::kInfo, event, fields);
  }
  void Warn(std::string_view event, std::initializer_list<Field> fields = {}) {
    Write(Level::kWarn, event, fields);
  }
  void Error(std::string_view event, std::initializer_list<Field> fields = {}) {
    Write(Level::kError, event, fields);
  }
};

// Writes lines of `least` and above to standard error, with time and level.
std::unique_ptr<Log> NewStderrLog(Level least);

}  // namespace spoke::telemetry
