#include "lib/netlink/message.h"

#include <linux/netlink.h>

#include <algorithm>
#include <limits>

#include "fmt/core.h"

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

}  // namespace spoke::netlink
