// The filter table of legacy iptables, which is in no nf_tables dump (linux/netfilter_ipv4/
// ip_tables.h): its chain FORWARD and what it leads to, in the same words as nf_tables' chains.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/nft/firewall.h"

namespace spoke::node_checks {

// The place where the chain FORWARD begins and ends in the entries, as IPT_SO_GET_INFO has it: the
// offset of its first entry, and that of the one that is its policy.
struct LegacyHook {
  uint32_t begin = 0;
  uint32_t policy = 0;
};

// Reads the entries of IPT_SO_GET_ENTRIES. Pure, safe on any input. Returns chains of table "filter
// (legacy)", the hook's first. Errors: kDataLoss (an offset or a size that cannot be).
absl::StatusOr<std::vector<nft::ChainGist>> ParseLegacyFilter(std::span<const uint8_t> entries,
                                                              const LegacyHook& forward);

// Reads the table of the calling thread's network namespace, IPv4; nothing where no program has
// made the table: only looking would not make it either. Errors: kPermissionDenied; kDataLoss; as
// errno says.
absl::StatusOr<std::vector<nft::ChainGist>> ReadLegacyFilter(const std::string& proc);

}  // namespace spoke::node_checks
