#include "admin-cli/output/sort_order.h"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "absl/strings/ascii.h"
#include "fmt/core.h"
#include "fmt/ranges.h"

namespace spoke::ctl {
namespace {

using Json = nlohmann::ordered_json;

bool IsDigit(char character) { return std::isdigit(static_cast<unsigned char>(character)) != 0; }

// Takes the digits at the beginning of `text`, without zeros in front.
std::string_view TakeNumber(std::string_view& text) {
  size_t end = 0;
  while (end < text.size() && IsDigit(text[end])) ++end;
  std::string_view number = text.substr(0, end);
  text.remove_prefix(end);
  while (number.size() > 1 && number.front() == '0') number.remove_prefix(1);
  return number;
}

// Returns whether `a` comes before `b` as people count: runs of digits are numbers.
bool TextBefore(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (IsDigit(a.front()) && IsDigit(b.front())) {
      const std::string_view left = TakeNumber(a);
      const std::string_view right = TakeNumber(b);
      if (left.size() != right.size()) return left.size() < right.size();
      if (left != right) return left < right;
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.empty() && !b.empty();
}

bool Before(const Json& a, const Json& b) {
  if (a.is_string() && b.is_string()) {
    return TextBefore(a.get_ref<const std::string&>(), b.get_ref<const std::string&>());
  }
  return a < b;
}

}  // namespace

absl::StatusOr<SortOrder> ParseSortOrder(std::string_view text) {
  SortOrder order;
  const size_t colon = text.find(':');
  std::string_view key = text.substr(0, colon);
  if (key.starts_with('.')) key.remove_prefix(1);
  order.key = std::string(key);
  const std::string_view way = colon == std::string_view::npos ? "asc" : text.substr(colon + 1);
  order.descending = way == "desc";
  if (order.key.empty() || (way != "asc" && way != "desc")) {
    return absl::InvalidArgumentError(
        fmt::format("--sort-by: \"{}\" is not KEY, KEY:asc or KEY:desc", text));
  }
  return order;
}

absl::StatusOr<Json> SortValueOf(const Json& item, const SortOrder& order) {
  std::string as_key = order.key;  // A column is called IN-USE where the key is in_use.
  for (char& c : as_key) c = c == '-' ? '_' : absl::ascii_tolower(static_cast<unsigned char>(c));
  for (const std::string& one : {order.key, as_key}) {
    if (const auto found = item.find(one); found != item.end()) return *found;
  }
  std::vector<std::string> keys;
  for (const auto& [key, value] : item.items()) keys.push_back(key);
  return absl::InvalidArgumentError(
      fmt::format("--sort-by: there is no key \"{}\", but: {}", order.key, fmt::join(keys, ", ")));
}

std::vector<size_t> PlacesInOrder(const std::vector<Json>& values, bool descending) {
  std::vector<size_t> places(values.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) {
    return descending ? Before(values[b], values[a]) : Before(values[a], values[b]);
  });
  return places;
}

}  // namespace spoke::ctl
