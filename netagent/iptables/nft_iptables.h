// Reads and adds iptables' rules where iptables-nft keeps them: in nf_tables, in tables of
// iptables' names.
#pragma once

#include <string>
#include <vector>

#include "lib/nft/ruleset.h"
#include "netagent/iptables/iptables.h"

namespace spoke::netagent {

// Thread-safe: each call has a socket of its own. Adds with native expressions, as simple as those
// that iptables-nft makes itself: it takes them for its own.
class NftIptables final : public Iptables {
 public:
  absl::StatusOr<std::vector<IptablesTable>> Read(ip::Family family,
                                                  const std::vector<std::string>& names) override;
  absl::Status Append(const std::vector<PublishedRule>& rules) override;
  absl::StatusOr<size_t> Erase(const std::vector<PublishedRule>& rules) override;
};

// Returns what takes `rules` out of `table`, as Iptables::Erase() says; `handles` are those of its
// rules, in the same order. Pure.
nft::Transaction PlanErase(const std::vector<PublishedRule>& rules, IptablesTable table,
                           std::vector<uint64_t> handles);

// Returns what adds `rules`, given what the table is like now. Pure.
nft::Transaction PlanAppend(const std::vector<PublishedRule>& rules,
                            const std::vector<IptablesTable>& now);

}  // namespace spoke::netagent
