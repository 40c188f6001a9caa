// The rules that OpenAI has published for counting what comes from and goes to the Internet
// ("Scaling Kubernetes to 7,500 nodes", 2021), laid down word for word: dashboards, exporters and
// people at a terminal find them where they look. What they count too much (loopback, the
// platform's addresses) they count too much everywhere; the agent's own classes are exact.
//
// Pure. A rule that is there stays, with its counters; one that is missing is appended.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/ip/prefix.h"
#include "netagent/iptables/iptables_rules.h"

namespace spoke::netagent {

// A rule of the mangle table, which matches every packet whose source (else destination) is outside
// `cluster`, and only counts.
struct PublishedRule {
  std::string chain;
  bool by_source = false;
  ip::Prefix cluster;  // IPv4, not /0.
  std::string comment;

  // Returns the text that IptablesRule::text has.
  std::string Text() const;
  // Returns the rule as arguments of iptables, behind "-A CHAIN".
  std::vector<std::string> Arguments() const;

  bool operator==(const PublishedRule&) const = default;
};

inline constexpr std::string_view kPublishedTable = "mangle";

// Returns the four rules, in the order in which they were published.
std::vector<PublishedRule> PublishedRules(const ip::Prefix& cluster);

// Returns those of `wanted` that `tables` lacks, in order.
std::vector<PublishedRule> MissingRules(const std::vector<PublishedRule>& wanted,
                                        const std::vector<IptablesTable>& tables);

// Returns how many rules, in all tables, are somebody else's: not word for word one of `wanted`.
size_t CountForeignRules(const std::vector<PublishedRule>& wanted,
                         const std::vector<IptablesTable>& tables);

// The facts that are known of the two back ends of a host.
struct BackendUse {
  size_t nft_foreign = 0;  // The number of rules of others there.
  size_t legacy_foreign = 0;
  bool legacy_command = false;     // Whether there is a program to lay rules down there with.
  bool legacy_is_default = false;  // Whether the host's `iptables` is that one.

  // Returns whether both have rules of others: then each packet passes both, and whoever looks at
  // one does not see the other.
  bool both() const { return nft_foreign > 0 && legacy_foreign > 0; }
};

// Returns where the published rules belong: where the host's other rules are; where both or neither
// have some, what the host's `iptables` uses. Returns kNft where rules cannot be laid down in the
// other.
IptablesBackend ChooseBackend(const BackendUse& use);

}  // namespace spoke::netagent
