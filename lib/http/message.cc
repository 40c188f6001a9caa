#include "lib/http/message.h"

#include <utility>

#include "absl/strings/match.h"

namespace spoke::http {
namespace {

bool SameName(std::string_view a, std::string_view b) {
  return absl::EqualsIgnoreCase({a.data(), a.size()}, {b.data(), b.size()});
}

}  // namespace

void Headers::Add(std::string name, std::string value) {
  headers_.push_back({std::move(name), std::move(value)});
}

std::optional<std::string_view> Headers::Find(std::string_view name) const {
  for (const Header& header : headers_) {
    if (SameName(header.name, name)) return header.value;
  }
  return std::nullopt;
}

std::vector<std::string_view> Headers::FindAll(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const Header& header : headers_) {
    if (SameName(header.name, name)) values.push_back(header.value);
  }
  return values;
}

}  // namespace spoke::http
