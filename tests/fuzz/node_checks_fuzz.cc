// Files and tables of others that the node checks read: never a crash, and whatever they say, the
// same facts give the same findings, each with a remedy. The first byte says what the rest is.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/check.h"
#include "lib/nft/firewall_dump.h"
#include "lib/node_checks/examine.h"
#include "lib/node_checks/facts/foreign_files.h"
#include "lib/node_checks/facts/legacy_filter.h"
#include "lib/node_checks/facts/network_counts.h"
#include "lib/node_checks/facts/server_probe.h"

namespace {

namespace nft = spoke::nft;
namespace node_checks = spoke::node_checks;

void Judge(const node_checks::NodeFacts& facts) {
  const node_checks::Report report = node_checks::Examine(facts);
  for (const auto& finding : report.findings) {
    CHECK(!finding.remedy.empty() && !finding.what.empty(), "a finding says what to do");
  }
  CHECK(report.findings == node_checks::Examine(facts).findings, "judging is pure");
}

void AsFiles(const std::string& text) {
  node_checks::NodeFacts facts;
  facts.networkd_runs = true;
  facts.settings.azure = true;
  for (const char* name : {"00-a.conf", "00-b.conflist", "99-c.json"}) {
    facts.cni_files.push_back({std::string("/etc/cni/net.d/") + name, name, text, {}});
  }
  const node_checks::ForeignFile file = {"/etc/systemd/network/a", "a", text, {}};
  facts.network_files = facts.link_files = facts.networkd_conf = {file};
  facts.sysctls["net.ipv4.ip_forward"] = text;
  facts.sysctls["net.ipv4.neigh.default.gc_thresh3"] = text;
  Judge(facts);
}

void AsRules(std::span<const uint8_t> bytes) {
  node_checks::NodeFacts facts;
  const auto chain = nft::ParseChainGist(bytes);
  if (chain.ok() && chain->has_value()) facts.chains.push_back(**chain);
  const nft::ChainGist forward = {"ip", "filter", "FORWARD", true, true, {}};
  const auto rule = nft::ParseRuleGist(bytes, forward);
  facts.chains.push_back(forward);
  if (rule.ok() && rule->has_value()) facts.chains.back().rules.push_back(**rule);
  if (auto legacy = node_checks::ParseLegacyFilter(bytes, {0, 0}); legacy.ok()) {
    facts.chains = *std::move(legacy);
  }
  Judge(facts);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const uint8_t> rest(data + 1, size - 1);
  const std::string text(rest.begin(), rest.end());
  switch (data[0] % 4) {
    case 0:
      AsFiles(text);
      break;
    case 1:
      AsRules(rest);
      break;
    case 2:
      (void)node_checks::FindMount(text, "/opt/cni/bin");
      (void)node_checks::ParsePackets(text, "spk");
      (void)node_checks::ParseTcpSockets(text);
      {
        node_checks::NetworkCounters counters;
        node_checks::ParseTcpCounters(text, counters);
      }
      break;
    default: {
      node_checks::NodeSettings settings;
      (void)node_checks::TakeAgentSettings(
          text, "a.yaml", [](const std::string& name) { return std::optional(name); }, settings);
      break;
    }
  }
  return 0;
}
