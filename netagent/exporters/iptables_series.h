// Shows what iptables' rules have counted, under the names that two widely used exporters have
// given it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/telemetry/samples.h"
#include "netagent/iptables/iptables_rules.h"

namespace spoke::netagent {

// The most series of one metric; what is beyond them shares one with the rule "_other".
inline constexpr size_t kMaxRuleSeries = 1000;

// Returns what a comment asks to be counted as: what follows the last "iptables-exporter " in it.
// It is nullopt where it asks for nothing. (github.com/madron/iptables-exporter has this grammar.)
std::optional<std::string> CountedAs(std::string_view comment);

// Returns the series as madron/iptables-exporter names them: iptables_bytes_total and
// iptables_packets_total {ip_version,table,chain,rule}, the rules of one name in one chain added
// up; and iptables_rules {ip_version,table,chain}.
std::vector<telemetry::Samples> CommentSeries(const std::vector<IptablesTable>& v4,
                                              const std::vector<IptablesTable>& v6);

// Returns the series as retailnext/iptables_exporter names them:
// iptables_rule_{bytes,packets}_total{table,chain,rule} of IPv4 rules with a comment, word for word
// with their "!", and iptables_default_{bytes,packets}_total{table,chain,policy} of chains at a
// hook.
std::vector<telemetry::Samples> RuleSeries(const std::vector<IptablesTable>& v4);

}  // namespace spoke::netagent
