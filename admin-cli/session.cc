#include "admin-cli/session.h"

#include <nlohmann/json.hpp>

#include "fmt/core.h"

namespace spoke::ctl {

void Session::Note(std::string_view text) const {
  world.console.Err(fmt::format("spokectl: {}\n", PrintableLines(text)));
}

absl::Status Session::PrintValue(const nlohmann::ordered_json& value) const {
  if (format == Format::kName) {
    return absl::InvalidArgumentError(
        "-o name: this answer has no names; leave it out, or use json");
  }
  Out(format == Format::kYaml ? FormatYaml(value) : FormatJson(value));
  return absl::OkStatus();
}

absl::Status Session::PrintOne(std::string_view name, const nlohmann::ordered_json& value,
                               std::string_view text) const {
  if (format != Format::kName && !is_table()) return PrintValue(value);
  Out(format == Format::kName ? Printable(name) + "\n" : text);
  return absl::OkStatus();
}

std::string Session::Table(const std::vector<std::string>& titles, std::vector<Row> rows,
                           const std::vector<std::string>& names) const {
  if (marks != nullptr) {
    // Two tables of one answer may have rows of one name.
    const std::string table = titles.front() + "/";
    for (size_t i = 0; i < rows.size(); ++i) marks->Mark(table + names.at(i), rows[i]);
  }
  return FormatTable(titles, rows, {.colours = colours, .header = header});
}

std::string Session::Fields(std::vector<std::pair<std::string, Cell>> fields) const {
  for (size_t i = 0; marks != nullptr && i < fields.size(); ++i) {
    Row row = {fields[i].second};
    marks->Mark("field/" + fields[i].first, row);
    fields[i].second = std::move(row.front());
  }
  return FormatFields(fields, colours);
}

std::string Session::AgeOf(int64_t unix_ms) const {
  if (unix_ms == 0) return "";
  return FormatAge(absl::ToUnixSeconds(now()) - unix_ms / 1000);
}

std::string Session::AgoOf(int64_t unix_ms) const {
  return unix_ms == 0 ? "never" : AgeOf(unix_ms) + " ago";
}

std::string Session::UntilOf(int64_t unix_ms) const {
  if (unix_ms == 0) return "";
  const int64_t seconds = unix_ms / 1000 - absl::ToUnixSeconds(now());
  return seconds <= 0 ? "now" : FormatAge(seconds);
}

std::string TimeOf(int64_t unix_ms) {
  if (unix_ms == 0) return "";
  const char* form = unix_ms % 1000 == 0 ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m-%dT%H:%M:%E3SZ";
  return absl::FormatTime(form, absl::FromUnixMillis(unix_ms), absl::UTCTimeZone());
}

}  // namespace spoke::ctl
