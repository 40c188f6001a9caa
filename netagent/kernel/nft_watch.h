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

// Whether the messages of a datagram speak of kSpokeTable or kNamesTable: of anything in it, or of
// itself. True as well for what cannot be read. Pure, safe on any input.
bool SpeaksOfOurTables(std::span<const uint8_t> datagram);

// Of the network namespace it was opened in. Not thread-safe.
class NftWatch {
 public:
  // Errors: as socket(2) and bind(2).
  static absl::StatusOr<std::unique_ptr<NftWatch>> Open();

  // Readable when something has changed in any table.
  int fd() const { return fd_.get(); }
  // Takes all that has been said. Whether our tables may have changed: also when so much was said
  // that some of it was lost.
  bool Drain();

 private:
  explicit NftWatch(os::UniqueFd fd) : fd_(std::move(fd)) {}

  os::UniqueFd fd_;
};

}  // namespace spoke::netagent
