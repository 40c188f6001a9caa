// Checks of fields that several messages have, for the codecs of this folder. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"

namespace google::protobuf {
template <typename Element>
class RepeatedPtrField;
}  // namespace google::protobuf

namespace spoke::v1 {
class IpConfiguration;
}  // namespace spoke::v1

namespace spoke::node_api {

// The bounds of texts and lists in messages between server and agents. A list has a bounded count
// and a text a bounded length; the size of a whole message is gRPC's to bound. A name or an id
// beyond its bound is an error; a text for people is cut. Bounds of one topic only are in the
// topic's own header. Values.

// The longest name: RFC 1123 host names, and plenty for the rest.
inline constexpr size_t kMaxNameBytes = 253;
inline constexpr size_t kMaxIdBytes = 512;      // The longest id; a cloud's VM id is a path.
inline constexpr size_t kMaxErrorBytes = 4096;  // The longest error of an agent, for an operator.
// The most assignments, far above what one node can hold.
inline constexpr int kMaxAssignments = 8192;
// The most entries of a list of addresses or ranges, and the most addresses of one node, blocks
// taken apart.
inline constexpr uint64_t kMaxAddresses = 8192;
// The longest reason. It goes into every waiting pod's error, or into the agent's log, and has room
// for a refusal of Azure's with all its ids, whose end says which permission is missing.
inline constexpr size_t kMaxReasonBytes = 1024;

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
