// Puts the kernel's messages about nf_tables rules and chains, in iptables' words. Pure, safe on
// any input.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "netagent/iptables/iptables_rules.h"

namespace spoke::netagent {

struct NftRuleMessage {
  std::string table;
  // The rule in words: these are addresses, devices, the protocol, the comment and the verdict; a
  // rule with anything else is abridged.
  IptablesRule rule;
  uint64_t handle = 0;  // The handle by which it is deleted.
};

struct NftChainMessage {
  std::string table;
  IptablesChain chain;
};

// Reads a rule; `payload` is that of an NFT_MSG_NEWRULE. Errors: kDataLoss (it is none, or cut
// short).
absl::StatusOr<NftRuleMessage> ReadNftRule(std::span<const uint8_t> payload);
// Reads a chain; `payload` is that of an NFT_MSG_NEWCHAIN. Errors: those of ReadNftRule().
absl::StatusOr<NftChainMessage> ReadNftChain(std::span<const uint8_t> payload);

}  // namespace spoke::netagent
