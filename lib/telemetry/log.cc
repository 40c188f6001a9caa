#include "lib/telemetry/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace spoke::telemetry {
namespace {

bool NeedsQuotes(std::string_view value) {
  return value.empty() || std::any_of(value.begin(), value.end(), [](char c) {
           return c == ' ' || c == '"' || c == '=' || c == '\\' ||
                  static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
         });
}

void AppendQuoted(std::string& line, std::string_view value) {
  line += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      line += '\\';
      line += c;
    } else if (c == '\n') {
      line += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      line += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      line += c;
    }
  }
  line += '"';
}

spdlog::level::level_enum LevelOf(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

class StderrLog final : public Log {
 public:
  explicit StderrLog(Level least)
      : logger_("spoke", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger_.set_level(LevelOf(least));
    logger_.set_formatter(std::make_unique<spdlog::pattern_formatter>(
        "%Y-%m-%dT%H:%M:%S.%eZ level=%l event=%v", spdlog::pattern_time_type::utc));
    logger_.flush_on(spdlog::level::debug);
  }

  void Write(Level level, std::string_view event, std::initializer_list<Field> fields) override {
    const auto target = LevelOf(level);
    if (logger_.should_log(target)) logger_.log(target, FormatEvent(event, fields));
  }

 private:
  spdlog::logger logger_;
};

}  // namespace

std::string FormatEvent(std::string_view event, std::initializer_list<Field> fields) {
  std::string line(event);
  for (const Field& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    if (NeedsQuotes(field.value)) {
      AppendQuoted(line, field.value);
    } else {
      line += field.value;
    }
  }
  return line;
}

std::unique_ptr<Log> NewStderrLog(Level least) { return std::make_unique<StderrLog>(least); }

}  // namespace spoke::telemetry
