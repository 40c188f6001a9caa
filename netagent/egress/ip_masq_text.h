// The files of ip-masq-agent, unchanged (github.com/kubernetes-sigs/ip-masq-agent, and of the
// second version github.com/Azure/ip-masq-agent-v2): YAML or JSON. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "netagent/egress/ip_masq.h"

namespace spoke::netagent {

inline constexpr size_t kMaxIpMasqBytes = 1UL << 20;
// The most blocks of one file, as ip-masq-agent has it.
inline constexpr size_t kMaxNonMasquerade = 64;

struct IpMasqFiles {
  IpMasqConfig config;
  absl::Duration resync = absl::Seconds(60);  // The shortest interval that a file asks for.
  std::vector<std::string> unknown_keys;      // Keys as "FILE: KEY", which say nothing to us.

  bool operator==(const IpMasqFiles&) const = default;
};

// Reads `files`, which are the name and the text of each; several are merged as the second version
// does it: blocks add up, and one file that masquerades link-local addresses is enough. Without any
// file, or with none that names blocks, the blocks are 10.0.0.0/8, 172.16.0.0/12 and
// 192.168.0.0/16. Errors: kInvalidArgument, naming the file and what is wrong with it.
absl::StatusOr<IpMasqFiles> ParseIpMasq(
    const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace spoke::netagent
