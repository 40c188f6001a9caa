// Facts of a node on which nothing is wrong, for tests of the checks; and what they find.
#pragma once

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/node_checks/examine.h"

namespace spoke::node_checks {

inline NodeFacts HealthyNode() {
  NodeFacts facts;
  const FeatureState present{FeatureState::Answer::kPresent, ""};
  for (const KernelFeature feature :
       {KernelFeature::kVeth, KernelFeature::kNftables, KernelFeature::kTokenBucket,
        KernelFeature::kClassifiers, KernelFeature::kIfb, KernelFeature::kHtb}) {
    facts.kernel[feature] = present;
  }
  facts.settings.servers = {"ipam.example:7443"};
  facts.settings.azure = true;
  facts.sysctls = {{"net.ipv4.ip_forward", "1"},
                   {"net.ipv4.conf.eth0.forwarding", "1"},
                   {"net.ipv6.conf.all.forwarding", "1"},
                   {"net.ipv4.conf.all.rp_filter", "0"},
                   {"net.ipv4.conf.eth0.rp_filter", "2"},
                   {"net.ipv4.neigh.default.gc_thresh1", "1024"},
                   {"net.ipv4.neigh.default.gc_thresh2", "4096"},
                   {"net.ipv4.neigh.default.gc_thresh3", "8192"},
                   {"net.netfilter.nf_conntrack_max", "262144"}};
  facts.links = {{"lo", "", true, 65536}, {"eth0", "", true, 1500}, {"spk0", "veth", true, 1500}};
  facts.nic = NicFacts{.link = facts.links[1], .v4_length = 22, .has_v6 = true};
  facts.cni_files = {{"/etc/cni/net.d/10-spoke.conflist",
                      "10-spoke.conflist",
                      R"({"name": "spoke", "plugins": [{"type": "spoke"}]})",
                      {}}};
  facts.bin_dir = {.exists = true,
                   .file_system = "ext4",
                   .free_bytes = uint64_t{1} << 30U,
                   .free_files = 100'000};
  facts.plugin = {.exists = true, .runs = true, .same_as_own = true};
  facts.state_dir = {.exists = true, .file_system = "tmpfs"};
  facts.cloud_init = CloudInitFacts{};
  return facts;
}

// Returns what one check finds.
inline std::vector<Finding> FindingsOf(const NodeFacts& facts, const std::string& id) {
  std::vector<Finding> found;
  for (const Finding& finding : Examine(facts).findings) {
    if (finding.id == id) found.push_back(finding);
  }
  return found;
}

// Matches one finding, with a remedy and a reason.
MATCHER_P2(IsFinding, severity, object, "") {
  return arg.severity == severity && arg.object == object && !arg.what.empty() &&
         !arg.why.empty() && !arg.remedy.empty();
}
inline auto Blocking(const std::string& object) { return IsFinding(Severity::kBlocking, object); }
inline auto Warning(const std::string& object) { return IsFinding(Severity::kWarning, object); }

}  // namespace spoke::node_checks
