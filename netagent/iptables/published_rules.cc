#include "netagent/iptables/published_rules.h"

#include <algorithm>

#include "fmt/core.h"

namespace spoke::netagent {
namespace {

bool Has(const IptablesTable& table, const PublishedRule& wanted, const std::string& text) {
  return std::any_of(table.rules.begin(), table.rules.end(), [&](const IptablesRule& rule) {
    return !rule.abridged && rule.chain == wanted.chain && rule.text == text;
  });
}

}  // namespace

std::string PublishedRule::Text() const {
  return fmt::format("! {} {} -m comment --comment {}", by_source ? "-s" : "-d", cluster.ToString(),
                     QuoteForIptables(comment));
}

std::vector<std::string> PublishedRule::Arguments() const {
  return {"!", by_source ? "-s" : "-d", cluster.ToString(), "-m", "comment", "--comment", comment};
}

std::vector<PublishedRule> PublishedRules(const ip::Prefix& cluster) {
  const std::string in = "iptables-exporter openai traffic=internet-in";
  const std::string out = "iptables-exporter openai traffic=internet-out";
  return {{.chain = "INPUT", .by_source = true, .cluster = cluster, .comment = in},
          {.chain = "FORWARD", .by_source = true, .cluster = cluster, .comment = in},
          {.chain = "OUTPUT", .by_source = false, .cluster = cluster, .comment = out},
          {.chain = "FORWARD", .by_source = false, .cluster = cluster, .comment = out}};
}

std::vector<PublishedRule> MissingRules(const std::vector<PublishedRule>& wanted,
                                        const std::vector<IptablesTable>& tables) {
  const IptablesTable* table = FindTable(tables, kPublishedTable);
  std::vector<PublishedRule> missing;
  for (const PublishedRule& rule : wanted) {
    if (table == nullptr || !Has(*table, rule, rule.Text())) missing.push_back(rule);
  }
  return missing;
}

size_t CountForeignRules(const std::vector<PublishedRule>& wanted,
                         const std::vector<IptablesTable>& tables) {
  size_t foreign = 0;
  for (const IptablesTable& table : tables) {
    for (const IptablesRule& rule : table.rules) {
      const bool ours = table.name == kPublishedTable && !rule.abridged &&
                        std::any_of(wanted.begin(), wanted.end(), [&](const PublishedRule& w) {
                          return w.chain == rule.chain && w.Text() == rule.text;
                        });
      if (!ours) ++foreign;
    }
  }
  return foreign;
}

IptablesBackend ChooseBackend(const BackendUse& use) {
  if (!use.legacy_command) return IptablesBackend::kNft;
  const bool nft = use.nft_foreign > 0;
  const bool legacy = use.legacy_foreign > 0;
  if (nft != legacy) return legacy ? IptablesBackend::kLegacy : IptablesBackend::kNft;
  return use.legacy_is_default ? IptablesBackend::kLegacy : IptablesBackend::kNft;
}

}  // namespace spoke::netagent
