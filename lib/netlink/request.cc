#include "lib/netlink/request.h"

#include <libmnl/libmnl.h>
#include <sys/socket.h>

#include <cstring>
#include <utility>

#include "lib/base/check.h"

namespace spoke::netlink {

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
