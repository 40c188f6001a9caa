#include "lib/netlink/message.h"

#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "fmt/core.h"
#include "lib/base/check.h"

namespace spoke::netlink {
namespace {

// Messages and attributes both start at multiples of 4 (NLMSG_ALIGNTO, NLA_ALIGNTO).
constexpr size_t Aligned(size_t size) { return (size + 3U) & ~size_t{3}; }

// Returns `bytes` without its first `count`; empty when there are no more. The padding behind the
// last element may be missing.
std::span<const uint8_t> Skip(std::span<const uint8_t> bytes, size_t count) {
  return bytes.subspan(std::min(count, bytes.size()));
}

}  // namespace

std::string_view Attribute::Text() const {
  const auto end = std::find(payload.begin(), payload.end(), uint8_t{0});
  return {reinterpret_cast<const char*>(payload.data()),
          static_cast<size_t>(end - payload.begin())};
}

std::optional<ip::Address> Attribute::Address(ip::Family family) const {
  const size_t wanted = family == ip::Family::kV4 ? 4 : 16;
  if (payload.size() != wanted) return std::nullopt;
  const auto address = ip::Address::FromBytes(payload);
  if (!address.ok()) return std::nullopt;
  return *address;
}

std::optional<ip::MacAddress> Attribute::Mac() const {
  ip::MacAddress mac;
  if (payload.size() != mac.octets.size()) return std::nullopt;
  std::copy(payload.begin(), payload.end(), mac.octets.begin());
  return mac;
}

AttributeReader::AttributeReader(std::span<const uint8_t> message, size_t header_size)
    : rest_(Skip(message, Aligned(header_size))) {}

std::optional<Attribute> AttributeReader::Next() {
  if (rest_.empty() || malformed_) return std::nullopt;
  const auto header = ReadStruct<nlattr>(rest_);
  if (!header || header->nla_len < sizeof(nlattr) || header->nla_len > rest_.size()) {
    malformed_ = true;
    return std::nullopt;
  }
  Attribute attribute{.type = static_cast<uint16_t>(header->nla_type & NLA_TYPE_MASK),
                      .payload = rest_.first(header->nla_len).subspan(sizeof(nlattr))};
  rest_ = Skip(rest_, Aligned(header->nla_len));
  return attribute;
}

std::optional<Message> MessageReader::Next() {
  if (rest_.empty() || malformed_) return std::nullopt;
  const auto header = ReadStruct<nlmsghdr>(rest_);
  if (!header || header->nlmsg_len < sizeof(nlmsghdr) || header->nlmsg_len > rest_.size()) {
    malformed_ = true;
    return std::nullopt;
  }
  Message message{.type = header->nlmsg_type,
                  .flags = header->nlmsg_flags,
                  .sequence = header->nlmsg_seq,
                  .port_id = header->nlmsg_pid,
                  .payload = rest_.first(header->nlmsg_len).subspan(sizeof(nlmsghdr))};
  rest_ = Skip(rest_, Aligned(header->nlmsg_len));
  return message;
}

absl::StatusOr<Acknowledgement> ParseAcknowledgement(const Message& message) {
  const auto error = ReadStruct<int32_t>(message.payload);
  // The kernel sends errno negated; a positive number or the one that cannot be negated is not one.
  if (message.type != NLMSG_ERROR || !error || *error > 0 ||
      *error == std::numeric_limits<int32_t>::min()) {
    return absl::DataLossError(
        fmt::format("netlink message of type {} is no acknowledgement", message.type));
  }
  Acknowledgement ack{.error = -*error, .text = {}};
  if ((message.flags & NLM_F_ACK_TLVS) == 0) return ack;

  // The request follows: its header alone when it was done or when NETLINK_CAP_ACK is set, which
  // NLM_F_CAPPED says; else all of it. Behind it, the attributes.
  std::span<const uint8_t> rest = Skip(message.payload, sizeof(int32_t));
  const auto request = ReadStruct<nlmsghdr>(rest);
  if (!request) return absl::DataLossError("netlink acknowledgement is cut short");
  const bool whole = (message.flags & NLM_F_CAPPED) == 0 && ack.error != 0;
  AttributeReader reader(Skip(rest, whole ? Aligned(request->nlmsg_len) : sizeof(nlmsghdr)));
  while (const auto attribute = reader.Next()) {
    if (attribute->type == NLMSGERR_ATTR_MSG) ack.text = attribute->Text();
  }
  // The words are a courtesy: without them the error still counts.
  return ack;
}

Request::Request(std::string what, uint16_t type, uint16_t flags) : what_(std::move(what)) {
  nlmsghdr* const message = mnl_nlmsg_put_header(buffer_.data());
  message->nlmsg_type = type;
  message->nlmsg_flags = static_cast<uint16_t>(flags | NLM_F_REQUEST);
}

nlmsghdr* Request::header() { return reinterpret_cast<nlmsghdr*>(buffer_.data()); }

void Request::PutFixed(std::span<const uint8_t> fixed) {
  CHECK(header()->nlmsg_len + MNL_ALIGN(fixed.size()) <= kMaxBytes, "a netlink request fits");
  std::memcpy(mnl_nlmsg_put_extra_header(header(), fixed.size()), fixed.data(), fixed.size());
}

Request& Request::PutBytes(uint16_t type, std::span<const uint8_t> bytes) {
  CHECK(mnl_attr_put_check(header(), kMaxBytes, type, bytes.size(), bytes.data()),
        "a netlink request fits");
  return *this;
}

Request& Request::PutU8(uint16_t type, uint8_t value) { return PutBytes(type, {&value, 1}); }

Request& Request::PutU32(uint16_t type, uint32_t value) {
  return PutBytes(type, {reinterpret_cast<const uint8_t*>(&value), sizeof(value)});
}

Request& Request::PutText(uint16_t type, std::string_view text) {
  const std::string terminated(text);
  return PutBytes(type,
                  {reinterpret_cast<const uint8_t*>(terminated.c_str()), terminated.size() + 1});
}

Request& Request::PutAddress(uint16_t type, const ip::Address& address) {
  const std::string bytes = address.ToBytes();
  return PutBytes(type, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

Request& Request::PutMac(uint16_t type, const ip::MacAddress& mac) {
  return PutBytes(type, mac.octets);
}

Request& Request::BeginNest(uint16_t type) {
  nlattr* const nest = mnl_attr_nest_start_check(header(), kMaxBytes, type);
  CHECK(nest != nullptr, "a netlink request fits");
  nests_.push_back(static_cast<size_t>(reinterpret_cast<uint8_t*>(nest) - buffer_.data()));
  return *this;
}

Request& Request::EndNest() {
  CHECK(!nests_.empty(), "each nest is ended once");
  mnl_attr_nest_end(header(), reinterpret_cast<nlattr*>(buffer_.data() + nests_.back()));
  nests_.pop_back();
  return *this;
}

std::span<const uint8_t> Request::bytes() const {
  CHECK(nests_.empty(), "each nest is ended");
  const auto* const message = reinterpret_cast<const nlmsghdr*>(buffer_.data());
  return std::span(buffer_).first(MNL_ALIGN(message->nlmsg_len));
}

uint8_t FamilyNumber(ip::Family family) { return family == ip::Family::kV4 ? AF_INET : AF_INET6; }

}  // namespace spoke::netlink
