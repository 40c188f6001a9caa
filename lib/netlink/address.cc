#include "lib/netlink/address.h"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <optional>

#include "fmt/core.h"
#include "lib/netlink/exchange.h"
#include "lib/netlink/message.h"

namespace spoke::netlink {
namespace {

absl::Status Malformed() { return absl::DataLossError("malformed netlink address message"); }

}  // namespace

absl::StatusOr<LinkAddress> ParseAddress(std::span<const uint8_t> payload) {
  const auto fixed = ReadStruct<ifaddrmsg>(payload);
  if (!fixed || (fixed->ifa_family != AF_INET && fixed->ifa_family != AF_INET6)) {
    return Malformed();
  }
  const ip::Family family = fixed->ifa_family == AF_INET ? ip::Family::kV4 : ip::Family::kV6;
  LinkAddress result;
  result.link = static_cast<int32_t>(fixed->ifa_index);
  result.prefix_length = fixed->ifa_prefixlen;
  result.scope = fixed->ifa_scope;
  result.flags = fixed->ifa_flags;

  AttributeTable<IFA_FLAGS> table(AttributeReader(payload, sizeof(ifaddrmsg)));
  // IFA_LOCAL is the device's own; IFA_ADDRESS is too unless the link is point-to-point, where it
  // is the far end's. IPv6 leaves IFA_LOCAL out when there is no far end.
  const std::optional<ip::Address> local = table[IFA_LOCAL].Address(family);
  const std::optional<ip::Address> address = local ? local : table[IFA_ADDRESS].Address(family);
  // The fixed part has room for the first eight flags alone.
  table.Read(IFA_FLAGS, result.flags);
  if (table.malformed() || !address) return Malformed();
  result.address = *address;
  return result;
}

Request AddAddress(int32_t link, const ip::Address& address, uint8_t scope) {
  ifaddrmsg fixed{};
  fixed.ifa_family = FamilyNumber(address.family());
  fixed.ifa_prefixlen = static_cast<uint8_t>(address.bits());
  fixed.ifa_flags = address.is_v4() ? 0 : IFA_F_NODAD;
  fixed.ifa_scope = scope;
  fixed.ifa_index = static_cast<uint32_t>(link);
  Request request(fmt::format("add address {}", address.ToString()), RTM_NEWADDR,
                  NLM_F_CREATE | NLM_F_EXCL, fixed);
  request.PutAddress(IFA_LOCAL, address).PutAddress(IFA_ADDRESS, address);
  return request;
}

absl::StatusOr<std::vector<LinkAddress>> DumpAddresses(Socket& socket, ip::Family family,
                                                       int32_t link) {
  ifaddrmsg fixed{};
  fixed.ifa_family = FamilyNumber(family);
  fixed.ifa_index = static_cast<uint32_t>(link);
  const Request request("list addresses", RTM_GETADDR, 0, fixed);
  return DumpAs<LinkAddress>(
      socket, request, RTM_NEWADDR,
      [=](std::span<const uint8_t> payload) -> absl::StatusOr<std::optional<LinkAddress>> {
        const auto head = ReadStruct<ifaddrmsg>(payload);
        // A kernel without the family answers for all the others instead.
        if (head && head->ifa_family != FamilyNumber(family)) return std::nullopt;
        absl::StatusOr<LinkAddress> address = ParseAddress(payload);
        if (!address.ok()) return address.status();
        if (link != 0 && address->link != link) return std::nullopt;
        return *address;
      });
}

}  // namespace spoke::netlink
