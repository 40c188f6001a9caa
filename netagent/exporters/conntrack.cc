#include "netagent/exporters/conntrack.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "lib/base/status.h"
#include "lib/os/file.h"

namespace spoke::netagent {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20U;

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = 0; (at = line.find_first_not_of(' ', at)) != std::string_view::npos;) {
    const size_t end = std::min(line.find(' ', at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

std::optional<uint64_t> Number(std::string_view text, int base) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

absl::StatusOr<uint64_t> ReadNumber(const std::string& path) {
  ASSIGN_OR_RETURN(std::string text, os::ReadFile(path, kMaxFileBytes));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const auto value = Number(text, 10);
  if (!value) return absl::InvalidArgumentError(path + " holds no number");
  return *value;
}

}  // namespace

absl::StatusOr<ConntrackReading> ParseConntrackStat(std::string_view text) {
  const auto wrong = [] { return absl::InvalidArgumentError("not the conntrack statistics"); };
  std::vector<std::string_view> names;
  ConntrackReading sum;
  bool has_failed = false;
  bool has_drop = false;
  uint64_t too_long = 0;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::vector<std::string_view> words = Words(text.substr(start, end - start));
    start = end + 1;
    if (names.empty()) {
      names = words;
      continue;
    }
    if (words.size() != names.size()) return wrong();
    for (size_t i = 0; i < words.size(); ++i) {
      const auto value = Number(words[i], 16);
      if (!value) return wrong();
      if (names[i] == "insert_failed") {
        sum.insert_failed += *value;
        has_failed = true;
      } else if (names[i] == "drop") {
        sum.dropped += *value;
        has_drop = true;
      } else if (names[i] == "chainlength") {
        too_long += *value;
      }
    }
  }
  if (!has_failed || !has_drop) return wrong();
  // nf_conntrack_core.c counts a connection whose translation is taken as both, and one in a list
  // that is too long as failed alone: what is left found the table full.
  const uint64_t taken = sum.insert_failed - std::min(too_long, sum.insert_failed);
  sum.dropped -= std::min(taken, sum.dropped);
  return sum;
}

absl::StatusOr<ConntrackReading> ReadConntrack(const ConntrackFiles& files) {
  ASSIGN_OR_RETURN(const uint64_t entries, ReadNumber(files.count));
  ASSIGN_OR_RETURN(const uint64_t limit, ReadNumber(files.max));
  ASSIGN_OR_RETURN(const std::string text, os::ReadFile(files.stat, kMaxFileBytes));
  ASSIGN_OR_RETURN(ConntrackReading reading, ParseConntrackStat(text));
  reading.entries = entries;
  reading.limit = limit;
  return reading;
}

bool ConntrackWatch::Look(const ConntrackReading& reading) {
  if (reading.limit == 0) return false;  // Zero says that there is no limit.
  const double share = static_cast<double>(reading.entries) / static_cast<double>(reading.limit);
  if (told_) {
    told_ = share >= kCalm;
    return false;
  }
  told_ = share >= kAlarm;
  return told_;
}

}  // namespace spoke::netagent
