// Other programs' chains and rules, from what the kernel answers about nf_tables. The two parsers
// are pure functions of a message's payload, safe on any input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/netlink/socket.h"
#include "lib/nft/firewall.h"

namespace spoke::nft {

// The most chains whose rules are read, and the most rules of each: a firewall that has more is
// judged by what comes first.
inline constexpr size_t kMaxFirewallChains = 256;
inline constexpr size_t kMaxRulesOfChain = 4096;

// Reads the payload of a NEWCHAIN message, without rules; nullopt for families that packets routed
// through the node do not meet (arp, bridge, netdev). Errors: kDataLoss (a length or a number is
// not as it must be).
absl::StatusOr<std::optional<ChainGist>> ParseChainGist(std::span<const uint8_t> payload);

// Reads the payload of a NEWRULE message; nullopt when it is of another chain. Errors: kDataLoss.
absl::StatusOr<std::optional<RuleGist>> ParseRuleGist(std::span<const uint8_t> payload,
                                                      const ChainGist& chain);

// Returns every chain at the hook forward in the socket's namespace, and the chains that their
// rules lead to, with their rules. Others are not read: kube-proxy has tens of thousands of rules
// elsewhere. The socket is of Protocol::kNetfilter. Errors: kPermissionDenied, kInvalidArgument or
// kUnimplemented (a kernel without nf_tables); kUnavailable (the rules change all the time);
// kDeadlineExceeded; kDataLoss.
absl::StatusOr<std::vector<ChainGist>> ReadForwardChains(netlink::Socket& socket);

}  // namespace spoke::nft
