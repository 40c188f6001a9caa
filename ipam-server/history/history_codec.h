// History chunks to bytes and back (proto/spoke/v1/history.proto). Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ipam-server/history/history.h"

namespace spoke::ipam {

// An assignment costs about 90 bytes, most of them names; an attached address of a large commit 10.
std::string EncodeHistory(std::span<const HistoryEntry> entries);

// Entries of a kind that a later version added are left out. Errors: kDataLoss (not a chunk of
// ours; the message says why).
absl::StatusOr<std::vector<HistoryEntry>> DecodeHistory(std::string_view bytes);

// Returns false when no entry of the encoded chunk is about `address`; true means that one may be.
// A search for a few bytes, hundreds of times faster than decoding.
bool MayMention(std::string_view bytes, const ip::Address& address);

}  // namespace spoke::ipam
