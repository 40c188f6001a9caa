#include "lib/node_api/fields.h"

#include <algorithm>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::node_api {

absl::Status CheckName(std::string_view field, std::string_view text, size_t max_length) {
  const bool printable =
      std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  if (!text.empty() && text.size() <= max_length && printable) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} must be 1 to {} printable characters without blanks", field, max_length));
}

absl::Status CheckCount(std::string_view field, int count, uint64_t most) {
  if (static_cast<uint64_t>(count) <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} has {} entries, and {} at most are taken", field, count, most));
}

absl::Status At(std::string_view field, int index, const absl::Status& status) {
  return base::Annotate(status, fmt::format("{} {}", field, index));
}

absl::StatusOr<std::vector<ip::Address>> AddressesFromWire(
    std::string_view field, const google::protobuf::RepeatedPtrField<std::string>& in) {
  RETURN_IF_ERROR(CheckCount(field, in.size(), kMaxAddresses));
  std::vector<ip::Address> addresses;
  for (int i = 0; i < in.size(); ++i) {
    const auto address = ip::Address::FromBytes(in[i]);
    if (!address.ok()) return At(field, i, address.status());
    addresses.push_back(*address);
  }
  return addresses;
}

absl::StatusOr<ip::Prefix> FromWire(const v1::IpConfiguration& in) {
  ASSIGN_OR_RETURN(const ip::Address base, ip::Address::FromBytes(in.base()));
  if (in.prefix_length() > static_cast<uint32_t>(base.bits())) {
    return absl::InvalidArgumentError(
        fmt::format("prefix length {} of {}", in.prefix_length(), base.ToString()));
  }
  return ip::Prefix::Of(base, static_cast<int>(in.prefix_length()));
}

absl::StatusOr<std::vector<ip::Prefix>> RangesFromWire(
    std::string_view field, const google::protobuf::RepeatedPtrField<v1::IpConfiguration>& in) {
  RETURN_IF_ERROR(CheckCount(field, in.size(), kMaxAddresses));
  std::vector<ip::Prefix> ranges;
  for (int i = 0; i < in.size(); ++i) {
    const auto range = FromWire(in[i]);
    if (!range.ok()) return At(field, i, range.status());
    ranges.push_back(*range);
  }
  return ranges;
}

void ToWire(const ip::Prefix& range, v1::IpConfiguration& out) {
  out.set_base(range.base().ToBytes());
  out.set_prefix_length(static_cast<uint32_t>(range.length()));
}

absl::Status CountAddresses(const ip::Prefix& range, uint64_t& total) {
  if (range.size() > kMaxAddresses || (total += range.size()) > kMaxAddresses) {
    return absl::InvalidArgumentError(
        fmt::format("more than {} addresses for one node", kMaxAddresses));
  }
  return absl::OkStatus();
}

}  // namespace spoke::node_api
