#include "netagent/nftables/nft_watch.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "lib/base/status.h"
#include "lib/netlink/message.h"
#include "netagent/classes/traffic_pod.h"

namespace spoke::netagent {
namespace {

// The type of the first attribute, which in every message of nf_tables is the table's name
// (linux/netfilter/nf_tables.h: NFTA_TABLE_NAME, NFTA_CHAIN_TABLE, NFTA_RULE_TABLE, NFTA_SET_TABLE,
// NFTA_SET_ELEM_LIST_TABLE, NFTA_OBJ_TABLE), except in those of a generation, which have a number
// there.
constexpr uint16_t kTableName = 1;
constexpr uint16_t kNewGeneration = NFNL_SUBSYS_NFTABLES << 8U | 15U;  // NFT_MSG_NEWGEN
constexpr size_t kDatagramBytes = 32 << 10;
constexpr int kRoomBytes = 4 << 20;

bool IsOfOurs(const netlink::Message& message) {
  if (message.type == kNewGeneration) return false;
  if (message.payload.size() < sizeof(nfgenmsg)) return true;
  netlink::AttributeReader reader(message.payload, sizeof(nfgenmsg));
  while (const auto attribute = reader.Next()) {
    if (attribute->type != kTableName) continue;
    return attribute->Text() == kSpokeTable.name || attribute->Text() == kNamesTable.name;
  }
  return true;
}

}  // namespace

bool OthersChangedOurTables(std::span<const uint8_t> datagram, uint32_t own_port) {
  netlink::MessageReader reader(datagram);
  while (const auto message = reader.Next()) {
    if (message->port_id != own_port && IsOfOurs(*message)) return true;
  }
  return reader.malformed();
}

absl::StatusOr<std::unique_ptr<NftWatch>> NftWatch::Open(uint32_t own_port) {
  os::UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER));
  if (!fd.valid()) return base::ErrnoToStatus(errno, "open a netlink socket for nf_tables");
  // A large policy is some thousand messages; what does not fit would be taken for others'.
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kRoomBytes, sizeof(kRoomBytes)) < 0) {
    return base::ErrnoToStatus(errno, "make room for changes of nf_tables");
  }
  sockaddr_nl self{};
  self.nl_family = AF_NETLINK;
  self.nl_groups = 1U << (NFNLGRP_NFTABLES - 1U);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&self), sizeof(self)) < 0) {
    return base::ErrnoToStatus(errno, "listen to changes of nf_tables");
  }
  return std::unique_ptr<NftWatch>(new NftWatch(std::move(fd), own_port));
}

bool NftWatch::Drain() {
  bool changed = false;
  std::array<uint8_t, kDatagramBytes> buffer{};
  while (true) {
    const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_TRUNC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ENOBUFS) {
      changed = true;
      continue;
    }
    if (got <= 0) return changed;
    const auto size = static_cast<size_t>(got);
    changed = changed || size > buffer.size() ||
              OthersChangedOurTables(std::span(buffer.data(), size), own_port_);
  }
}

}  // namespace spoke::netagent
