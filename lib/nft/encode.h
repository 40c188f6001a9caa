// A transaction as the kernel takes it: one batch of netlink messages. Pure; built with libnftnl.
//
// The format is that of linux/netfilter/nfnetlink.h (NFNL_MSG_BATCH_BEGIN to NFNL_MSG_BATCH_END)
// and linux/netfilter/nf_tables.h.
#pragma once

#include <libnftnl/set.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/nft/ruleset.h"

namespace spoke::nft {

// What the kernel and nft(8) are told about a set, for encode.cc and connection.cc.

// Returns the kernel's number (NFPROTO_INET).
uint8_t FamilyNumber(Family family);

// Fills in everything except names.
void Describe(const Set& set, nftnl_set& out);

// The most bytes of elements in a message. They fill several messages, since an attribute has 64
// KiB at most.
inline constexpr size_t kElementBytesPerMessage = 32UL << 10;

struct Batch {
  std::vector<uint8_t> bytes;
  // The batch's own first message; those of the steps follow without gaps, then its end.
  uint32_t first_sequence = 0;
  // The step of each message behind the first one. A step may have several or none.
  std::vector<size_t> steps;
};

// The last message that belongs to a step asks for an acknowledgement, so that there is one answer
// to wait for; the kernel reports errors unasked.
//
// Errors, which name the step: kInvalidArgument (a name that is empty or too long, a key or an
// expression that cannot be, an element that does not fit the set's description in this same
// transaction).
absl::StatusOr<Batch> Encode(const Transaction& transaction, uint32_t first_sequence);

}  // namespace spoke::nft
