#include "ipam-server/cloud/azure/resources/throttle_headers.h"

#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace spoke::ipam::azure {
namespace {

constexpr absl::string_view kRemaining = "x-ms-ratelimit-remaining-";
constexpr absl::string_view kPolicies = "resource";
constexpr size_t kMaxNameLength = 128;

std::optional<int64_t> ParseCount(absl::string_view text) {
  int64_t count = 0;
  if (!absl::SimpleAtoi(text, &count) || count < 0) return std::nullopt;
  return count;
}

void Keep(absl::string_view name, absl::string_view count, ThrottleState& state) {
  const auto remaining = ParseCount(count);
  if (!remaining || name.empty() || name.size() > kMaxNameLength) return;
  if (state.remaining.size() < kMaxQuotas)
    state.remaining.push_back({std::string(name), *remaining});
}

// "Microsoft.Compute/A3Min;239,Microsoft.Compute/A30Min;1191"
void ReadPolicies(absl::string_view value, ThrottleState& state) {
  for (const auto item : absl::StrSplit(value, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits(';', 1));
    Keep(absl::StripAsciiWhitespace(parts.first), parts.second, state);
  }
}

}  // namespace

ThrottleState DecodeThrottleHeaders(const http::Headers& headers) {
  ThrottleState state;
  for (const http::Header& header : headers) {
    const std::string lower = absl::AsciiStrToLower(header.name);
    absl::string_view name = lower;
    if (name == "x-ms-request-charge") state.charge = ParseCount(header.value);
    if (!absl::ConsumePrefix(&name, kRemaining)) continue;
    if (name == kPolicies) {
      ReadPolicies(header.value, state);
    } else {
      Keep(name, header.value, state);
    }
  }
  return state;
}

}  // namespace spoke::ipam::azure
