#include "lib/netlink/neighbour.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>

#include "fmt/core.h"
#include "lib/netlink/exchange.h"
#include "lib/netlink/message.h"

namespace spoke::netlink {
namespace {

absl::Status Malformed() { return absl::DataLossError("malformed netlink neighbour message"); }

ndmsg Fixed(int32_t link, const ip::Address& address) {
  ndmsg fixed{};
  fixed.ndm_family = FamilyNumber(address.family());
  fixed.ndm_ifindex = link;
  return fixed;
}

}  // namespace

absl::StatusOr<Neighbour> ParseNeighbour(std::span<const uint8_t> payload) {
  const auto fixed = ReadStruct<ndmsg>(payload);
  if (!fixed || (fixed->ndm_family != AF_INET && fixed->ndm_family != AF_INET6)) {
    return Malformed();
  }
  const ip::Family family = fixed->ndm_family == AF_INET ? ip::Family::kV4 : ip::Family::kV6;
  Neighbour neighbour;
  neighbour.link = fixed->ndm_ifindex;
  neighbour.state = fixed->ndm_state;
  const AttributeTable<NDA_LLADDR> table(AttributeReader(payload, sizeof(ndmsg)));
  const std::optional<ip::Address> address = table[NDA_DST].Address(family);
  if (table.malformed() || !address) return Malformed();
  neighbour.mac = table[NDA_LLADDR].Mac();
  neighbour.address = *address;
  return neighbour;
}

Request SetPermanentNeighbour(int32_t link, const ip::Address& address, const ip::MacAddress& mac) {
  ndmsg fixed = Fixed(link, address);
  fixed.ndm_state = NUD_PERMANENT;
  Request request(fmt::format("set neighbour {}", address.ToString()), RTM_NEWNEIGH,
                  NLM_F_CREATE | NLM_F_REPLACE, fixed);
  request.PutAddress(NDA_DST, address).PutMac(NDA_LLADDR, mac);
  return request;
}

Request DeleteNeighbour(int32_t link, const ip::Address& address) {
  Request request(fmt::format("delete neighbour {}", address.ToString()), RTM_DELNEIGH, 0,
                  Fixed(link, address));
  request.PutAddress(NDA_DST, address).Tolerate(ENOENT);
  return request;
}

absl::StatusOr<std::vector<Neighbour>> DumpNeighbours(Socket& socket, ip::Family family,
                                                      int32_t link) {
  ndmsg fixed{};
  fixed.ndm_family = FamilyNumber(family);
  Request request("list neighbours", RTM_GETNEIGH, 0, fixed);
  if (link != 0) request.PutU32(NDA_IFINDEX, static_cast<uint32_t>(link));
  return DumpAs<Neighbour>(
      socket, request, RTM_NEWNEIGH,
      [=](std::span<const uint8_t> payload) -> absl::StatusOr<std::optional<Neighbour>> {
        const auto head = ReadStruct<ndmsg>(payload);
        // A kernel without the family answers for all the others instead (AF_BRIDGE among them).
        if (head && head->ndm_family != FamilyNumber(family)) return std::nullopt;
        absl::StatusOr<Neighbour> neighbour = ParseNeighbour(payload);
        if (!neighbour.ok()) return neighbour.status();
        if (link != 0 && neighbour->link != link) return std::nullopt;
        return *neighbour;
      });
}

}  // namespace spoke::netlink
