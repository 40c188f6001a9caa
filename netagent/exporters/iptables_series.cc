#include "netagent/exporters/iptables_series.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "netagent/exporters/label_text.h"

namespace spoke::netagent {
namespace {

using Labels = std::vector<std::string>;

struct Counted {
  uint64_t packets = 0;
  uint64_t bytes = 0;
};

// Adds up counts by labels, the last of which is the rule's.
class Sums {
 public:
  void Add(Labels labels, const IptablesRule& rule) {
    if (sums_.size() >= kMaxRuleSeries && !sums_.contains(labels)) labels.back() = "_other";
    Counted& sum = sums_[std::move(labels)];
    sum.packets += rule.packets;
    sum.bytes += rule.bytes;
  }

  void AppendTo(std::vector<telemetry::Samples>& out, const std::string& bytes,
                const std::string& packets) const {
    telemetry::Samples all_bytes{.metric = bytes};
    telemetry::Samples all_packets{.metric = packets};
    for (const auto& [labels, sum] : sums_) {
      all_bytes.series.push_back({labels, static_cast<double>(sum.bytes)});
      all_packets.series.push_back({labels, static_cast<double>(sum.packets)});
    }
    out.push_back(std::move(all_bytes));
    out.push_back(std::move(all_packets));
  }

 private:
  std::map<Labels, Counted> sums_;
};

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

}  // namespace

std::optional<std::string> CountedAs(std::string_view comment) {
  constexpr std::string_view kKeyword = "iptables-exporter ";
  // Its expression, ^(.*)?iptables-exporter (?P<name>.*)$, knows one line only.
  if (comment.find('\n') != std::string_view::npos) return std::nullopt;
  const size_t at = comment.rfind(kKeyword);
  if (at == std::string_view::npos || at + kKeyword.size() == comment.size()) return std::nullopt;
  return std::string(comment.substr(at + kKeyword.size()));
}

std::vector<telemetry::Samples> CommentSeries(const std::vector<IptablesTable>& v4,
                                              const std::vector<IptablesTable>& v6) {
  Sums sums;
  std::map<Labels, uint64_t> rules;
  const std::pair<const char*, const std::vector<IptablesTable>*> versions[] = {{"4", &v4},
                                                                                {"6", &v6}};
  for (const auto& [version, tables] : versions) {
    for (const IptablesTable& table : *tables) {
      for (const IptablesChain& chain : table.chains) {
        if (rules.size() < kMaxRuleSeries) {
          rules.try_emplace({version, table.name, LabelText(Lower(chain.name))}, 0);
        }
      }
      for (const IptablesRule& rule : table.rules) {
        const std::string chain = LabelText(Lower(rule.chain));
        if (const auto found = rules.find({version, table.name, chain}); found != rules.end()) {
          ++found->second;
        }
        const auto name = CountedAs(rule.comment);
        if (name) sums.Add({version, table.name, chain, LabelText(*name)}, rule);
      }
    }
  }
  std::vector<telemetry::Samples> out;
  sums.AppendTo(out, "iptables_bytes_total", "iptables_packets_total");
  telemetry::Samples counts{.metric = "iptables_rules"};
  for (const auto& [labels, count] : rules) {
    counts.series.push_back({labels, static_cast<double>(count)});
  }
  out.push_back(std::move(counts));
  return out;
}

std::vector<telemetry::Samples> RuleSeries(const std::vector<IptablesTable>& v4) {
  Sums rules;
  Sums policies;
  for (const IptablesTable& table : v4) {
    for (const IptablesChain& chain : table.chains) {
      if (chain.policy == "-") continue;
      policies.Add({table.name, LabelText(chain.name), LabelText(chain.policy)},
                   {.packets = chain.packets, .bytes = chain.bytes});
    }
    for (const IptablesRule& rule : table.rules) {
      if (rule.comment.empty()) continue;
      rules.Add({table.name, LabelText(rule.chain), LabelText(rule.text)}, rule);
    }
  }
  std::vector<telemetry::Samples> out;
  rules.AppendTo(out, "iptables_rule_bytes_total", "iptables_rule_packets_total");
  policies.AppendTo(out, "iptables_default_bytes_total", "iptables_default_packets_total");
  return out;
}

}  // namespace spoke::netagent
