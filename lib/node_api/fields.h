// Checks of fields that several messages have, for the codecs of this folder. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::node_api {

// Takes printable ASCII without blanks, since these end up in keys, logs and tables. Errors:
// kInvalidArgument, naming `field`.
absl::Status CheckName(std::string_view field, std::string_view text, size_t max_length);

// Errors: kInvalidArgument (more than `most` entries), naming `field`.
absl::Status CheckCount(std::string_view field, int count, uint64_t most);

// Returns the error of one entry of a list, with its place.
absl::Status At(std::string_view field, int index, const absl::Status& status);

// Errors of the lists: kInvalidArgument (more than kMaxAddresses entries, or one that is none),
// naming `field` and the place in it.
absl::StatusOr<std::vector<ip::Address>> AddressesFromWire(
    std::string_view field, const google::protobuf::RepeatedPtrField<std::string>& in);
absl::StatusOr<ip::Prefix> FromWire(const v1::IpConfiguration& in);
absl::StatusOr<std::vector<ip::Prefix>> RangesFromWire(
    std::string_view field, const google::protobuf::RepeatedPtrField<v1::IpConfiguration>& in);
void ToWire(const ip::Prefix& range, v1::IpConfiguration& out);

// Adds the addresses of `range` to `total`. Errors: kInvalidArgument (more than kMaxAddresses).
absl::Status CountAddresses(const ip::Prefix& range, uint64_t& total);

}  // namespace spoke::node_api
