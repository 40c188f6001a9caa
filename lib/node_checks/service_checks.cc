// Checks the services that a node and its pods depend on: resolvers, the cloud's metadata service,
// and the clock.
#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/node_checks/checks.h"

namespace spoke::node_checks {
namespace {

// A look asks a service again before it gives up, and what lasts for one look may be a restart.
constexpr int kFailedLooks = 2;
// The difference at which etcd complains of its peers' clocks. Clocks that are kept differ by
// milliseconds; with a second, logs and traces of two nodes can no longer be put in order.
constexpr absl::Duration kMostDifference = absl::Seconds(1);

bool IsDown(const ServiceAnswer& answer) { return answer.failed_looks >= kFailedLooks; }

std::string WhatOf(const ServiceAnswer& answer) {
  return fmt::format("is asked for {} and {}, at {} looks in a row", answer.question,
                     base::MessageOf(answer.status), answer.failed_looks);
}

}  // namespace

void CheckNodeResolvers(const NodeFacts& facts, Findings& findings) {
  for (const ServiceAnswer& answer : facts.services->node_resolvers) {
    if (!IsDown(answer)) continue;
    findings.Add({.severity = Severity::kWarning,
                  .object = answer.service,
                  .what = WhatOf(answer),
                  .why = "each name that the node looks up waits for this resolver first or last, "
                         "and pods with dnsPolicy Default use it too",
                  .remedy = fmt::format("dig @{} {}; cat /etc/resolv.conf; where other nodes get "
                                        "an answer, look for what drops port 53 on this one",
                                        answer.service, answer.question)});
  }
}

void CheckClusterResolvers(const NodeFacts& facts, Findings& findings) {
  for (const ServiceAnswer& answer : facts.services->cluster_resolvers) {
    if (!IsDown(answer)) continue;
    findings.Add(
        {.severity = Severity::kWarning,
         .object = answer.service,
         .what = WhatOf(answer),
         .why = "pods ask this resolver for every name, those of Services first",
         .remedy = fmt::format("dig @{} {}; kubectl -n kube-system get pods -l k8s-app=kube-dns -o "
                               "wide; where other nodes get an answer, look at kube-proxy here; "
                               "node_checks.cluster_dns in /etc/spoke/netagent.yaml says who is "
                               "asked",
                               answer.service, answer.question)});
  }
}

void CheckMetadata(const NodeFacts& facts, Findings& findings) {
  const ServiceAnswer& answer = *facts.services->metadata;
  if (!IsDown(answer)) return;
  findings.Add(
      {.severity = Severity::kWarning,
       .object = answer.service,
       .what = WhatOf(answer),
       .why =
           "an agent that starts learns there who its node is, and announced maintenance and new "
           "IPv6 addresses are read there",
       .remedy = fmt::format("curl --noproxy '*' -m 5 -H Metadata:true {}{}; look for what drops "
                             "packets to it on this node; restart or redeploy the VM",
                             answer.service, answer.question)});
}

void CheckKeptClock(const NodeFacts& facts, Findings& findings) {
  if (facts.services->clock->failed_looks < kFailedLooks) return;
  findings.Add({.severity = Severity::kWarning,
                .object = "clock",
                .what = "is kept by nobody, as the kernel has it",
                .why =
                    "it drifts by seconds a day: certificates and tokens then are not valid yet, "
                    "or no longer, and logs cannot be put in order",
                .remedy = "timedatectl; systemctl enable --now chrony (or systemd-timesyncd)"});
}

void CheckServerClock(const NodeFacts& facts, Findings& findings) {
  const auto [ahead, uncertainty] = *facts.server_clock;
  if (absl::AbsDuration(ahead) - uncertainty <= kMostDifference) return;
  const bool behind = ahead < absl::ZeroDuration();
  findings.Add({.severity = Severity::kWarning,
                .object = "clock",
                .what = fmt::format("is {:.1f} s {} the server's",
                                    absl::ToDoubleSeconds(absl::AbsDuration(ahead)),
                                    behind ? "behind" : "ahead of"),
                .why = "certificates and tokens that are new are not valid yet, or end early, and "
                       "logs of this node and others cannot be put in order",
                .remedy = "timedatectl; chronyc tracking, or timedatectl timesync-status; where "
                          "most nodes have this finding, look at the server's clock"});
}

}  // namespace spoke::node_checks
