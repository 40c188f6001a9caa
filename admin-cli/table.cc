#include "admin-cli/table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fmt/core.h"

namespace spoke::ctl {
namespace {

using Json = nlohmann::ordered_json;

std::string Printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return text;
}

std::string Scalar(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void AppendYaml(const Json& value, int indent, std::string& out);

// As deep as our own messages, which are a few levels.
// NOLINTNEXTLINE(misc-no-recursion)
void AppendMember(const Json& value, int indent, std::string& out) {
  if (value.is_structured() && !value.empty()) {
    out += '\n';
    AppendYaml(value, indent, out);
  } else {
    out += ' ' + Scalar(value) + '\n';
  }
}

// NOLINTNEXTLINE(misc-no-recursion)
void AppendYaml(const Json& value, int indent, std::string& out) {
  const std::string margin(static_cast<size_t>(indent), ' ');
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, member] : value.items()) {
      out += margin + key + ":";
      AppendMember(member, indent + 2, out);
    }
  } else if (value.is_array() && !value.empty()) {
    for (const Json& item : value) {
      if (!item.is_structured() || item.empty()) {
        out += margin + "- " + Scalar(item) + '\n';
        continue;
      }
      std::string nested;
      AppendYaml(item, indent + 2, nested);
      // The first line of the item goes behind its dash.
      out += margin + "- " + nested.substr(static_cast<size_t>(indent) + 2);
    }
  } else {
    out += margin + Scalar(value) + '\n';
  }
}

}  // namespace

std::string FormatTable(const std::vector<std::string>& header,
                        const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  widths.reserve(header.size());
  for (const std::string& title : header) widths.push_back(title.size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths.at(i) = std::max(widths.at(i), row[i].size());
  }
  std::string out;
  const auto append = [&](const std::vector<std::string>& row) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += Printable(row[i]);
      line.append(widths[i] - row[i].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  };
  append(header);
  for (const auto& row : rows) append(row);
  return out;
}

std::string FormatYaml(const Json& value) {
  std::string out;
  AppendYaml(value, 0, out);
  return out;
}

std::string FormatJson(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string FormatAge(int64_t seconds) {
  constexpr int64_t kMinute = 60;
  constexpr int64_t kHour = 60 * kMinute;
  constexpr int64_t kDay = 24 * kHour;
  const int64_t age = std::max<int64_t>(seconds, 0);
  if (age < 2 * kMinute) return fmt::format("{}s", age);
  if (age < 2 * kHour) return fmt::format("{}m", age / kMinute);
  if (age < 2 * kDay) return fmt::format("{}h", age / kHour);
  return fmt::format("{}d", age / kDay);
}

}  // namespace spoke::ctl
