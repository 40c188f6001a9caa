// Hears from the kernel that somebody changes our tables, so that it need not be looked for: the
// multicast group NFNLGRP_NFTABLES of nfnetlink (linux/netfilter/nfnetlink.h), which tells of every
// transaction.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "lib/os/unique_fd.h"

namespace spoke::netagent {

// Returns whether the messages of a datagram tell that somebody else than `own_port`, the requester
// that every message names (netlink(7)), has changed kSpokeTable or kNamesTable: anything in it, or
// itself. It returns true as well for what cannot be read. Pure, safe on any input.
bool OthersChangedOurTables(std::span<const uint8_t> datagram, uint32_t own_port);

// Hears of changes in the network namespace it was opened in. Not thread-safe.
class NftWatch {
 public:
  // Opens a watch; `own_port` is nft::Connection::port_id() of the one who changes our tables.
  // Errors: those of socket(2), setsockopt(2) and bind(2).
  static absl::StatusOr<std::unique_ptr<NftWatch>> Open(uint32_t own_port);

  // Returns the descriptor, readable when something has changed in any table.
  int fd() const { return fd_.get(); }
  // Takes all that has been said. Returns whether others may have changed our tables: also when so
  // much was said that some of it was lost.
  bool Drain();

 private:
  NftWatch(os::UniqueFd fd, uint32_t own_port) : fd_(std::move(fd)), own_port_(own_port) {}

  os::UniqueFd fd_;
  uint32_t own_port_;
};

}  // namespace spoke::netagent
