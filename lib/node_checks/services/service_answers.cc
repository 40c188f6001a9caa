#include "lib/node_checks/services/service_answers.h"

#include <algorithm>

#include "lib/node_checks/services/dns_query.h"

namespace spoke::node_checks {
namespace {

// The name that is asked for where none is known: every resolver answers something (RFC 6761,
// section 6.3).
constexpr std::string_view kAnyName = "localhost";

// Returns the server's name; empty: it has an address, a path, or nothing that DNS could know.
std::string HostNameOf(std::string_view server) {
  const size_t colon = server.rfind(':');
  if (colon == std::string_view::npos || server.substr(0, 5) == "unix:") return "";
  const std::string_view host = server.substr(0, colon);
  if (ip::Address::Parse(host).ok() || !DnsQuery(0, host).ok()) return "";
  return std::string(host);
}

// Link-local addresses mean nothing without a device, which resolv.conf has and is not read.
bool IsLinkLocal(const ip::Address& address) {
  return !address.is_v4() && (address.high() >> 54U) == 0x3FA;
}

void CountFailures(const std::vector<ServiceAnswer>& before, std::vector<ServiceAnswer>& now) {
  for (ServiceAnswer& answer : now) {
    const auto same = std::find_if(before.begin(), before.end(), [&](const ServiceAnswer& other) {
      return other.service == answer.service;
    });
    const int failed = same == before.end() ? 0 : same->failed_looks;
    answer.failed_looks = answer.status.ok() ? 0 : failed + 1;
  }
}

}  // namespace

std::vector<ResolverQuestion> NodeQuestions(const ServiceSettings& settings,
                                            const std::vector<ip::Address>& nameservers,
                                            const std::vector<std::string>& servers) {
  std::string name = settings.node_name;
  for (const std::string& server : servers) {
    if (name.empty()) name = HostNameOf(server);
  }
  if (name.empty()) name = kAnyName;
  std::vector<ResolverQuestion> questions;
  for (const ip::Address& nameserver : nameservers) {
    if (questions.size() == kMaxAskedResolvers) break;
    if (IsLinkLocal(nameserver)) continue;
    questions.push_back({nameserver, name, !settings.node_name.empty()});
  }
  return questions;
}

std::vector<ResolverQuestion> ClusterQuestions(const ServiceSettings& settings) {
  std::vector<ResolverQuestion> questions;
  for (const ip::Address& resolver : settings.cluster_resolvers) {
    if (questions.size() == kMaxAskedResolvers) break;
    questions.push_back({resolver, settings.cluster_name, true});
  }
  return questions;
}

bool IsKept(const KeptClock& clock) {
  return clock.synchronized || clock.max_error < kClockGivenUp;
}

ClockDifference CompareClocks(absl::Time asked, absl::Time answered, absl::Time server) {
  const absl::Duration half = (answered - asked) / 2;
  return {.ahead = asked + half - server, .uncertainty = half};
}

void CountFailures(const ServiceAnswers& before, ServiceAnswers& now) {
  CountFailures(before.node_resolvers, now.node_resolvers);
  CountFailures(before.cluster_resolvers, now.cluster_resolvers);
  if (now.metadata) {
    const int failed = before.metadata ? before.metadata->failed_looks : 0;
    now.metadata->failed_looks = now.metadata->status.ok() ? 0 : failed + 1;
  }
  if (now.clock) {
    const int failed = before.clock ? before.clock->failed_looks : 0;
    now.clock->failed_looks = IsKept(*now.clock) ? 0 : failed + 1;
  }
}

bool AnyFailed(const ServiceAnswers& answers) {
  const auto failed = [](const ServiceAnswer& answer) { return !answer.status.ok(); };
  return std::any_of(answers.node_resolvers.begin(), answers.node_resolvers.end(), failed) ||
         std::any_of(answers.cluster_resolvers.begin(), answers.cluster_resolvers.end(), failed) ||
         (answers.metadata && failed(*answers.metadata)) ||
         (answers.clock && !IsKept(*answers.clock));
}

}  // namespace spoke::node_checks
