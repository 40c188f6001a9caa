// How the services answer that a node and its pods depend on: resolvers, the cloud's metadata
// service, the clock; and who is asked what. Values. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"

namespace spoke::node_checks {

// The section `node_checks` of the agent's configuration.
struct ServiceSettings {
  std::vector<ip::Address> cluster_resolvers;  // The cluster's own; empty: they are not asked.
  // The name that they are asked for, which has to exist.
  std::string cluster_name = "kubernetes.default.svc.cluster.local";
  // The name that the node's resolvers are asked for, and that has to exist. Empty: the server's
  // name, or "localhost" where the server is an address, and any answer will do.
  std::string node_name;

  bool operator==(const ServiceSettings&) const = default;
};

// The most resolvers of each kind that are asked. Of the node's, the C library asks no more
// (resolv.conf(5)).
inline constexpr size_t kMaxAskedResolvers = 3;

struct ResolverQuestion {
  ip::Address resolver;
  std::string name;
  bool must_exist = false;  // The answer that there is no such name is a failure.

  bool operator==(const ResolverQuestion&) const = default;
};

// Returns what the node's resolvers are asked; `nameservers` are those of its /etc/resolv.conf, of
// which link-local ones are left out, and `servers` the agent's, HOST:PORT each.
std::vector<ResolverQuestion> NodeQuestions(const ServiceSettings& settings,
                                            const std::vector<ip::Address>& nameservers,
                                            const std::vector<std::string>& servers);

// Returns what the cluster's resolvers are asked.
std::vector<ResolverQuestion> ClusterQuestions(const ServiceSettings& settings);

// What one look at a service found.
struct ServiceAnswer {
  std::string service;   // The one that was asked: "10.96.0.10".
  std::string question;  // The name, or the path of a URL.
  absl::Status status;   // How the look ended; OK: the service works.
  int failed_looks = 0;  // How many looks in a row have failed, this one among them.

  bool operator==(const ServiceAnswer&) const = default;
};

// The node's clock, as the kernel is told by whoever keeps it (adjtimex(2)).
struct KeptClock {
  bool synchronized = false;  // Whether somebody keeps it.
  absl::Duration max_error;   // What it may be wrong by, as he says.
  int failed_looks = 0;       // How many looks in a row, this one among them, nobody kept it.

  bool operator==(const KeptClock&) const = default;
};

// From this error on the kernel itself gives up on the clock (NTP_PHASE_LIMIT). A program that
// keeps the clock without claiming so, as chrony without rtcsync, still says a smaller one.
inline constexpr absl::Duration kClockGivenUp = absl::Seconds(16);

// Returns whether somebody keeps the clock.
bool IsKept(const KeptClock& clock);

// How far the node's clock is ahead of the server's; less than zero: behind. The truth lies within
// `uncertainty` of it, which is half of the time that the question took.
struct ClockDifference {
  absl::Duration ahead;
  absl::Duration uncertainty;

  bool operator==(const ClockDifference&) const = default;
};

// Returns the difference, by when the question was asked and when the answer came on the node's
// clock, and what the server's said in between.
ClockDifference CompareClocks(absl::Time asked, absl::Time answered, absl::Time server);

// All that one look found.
struct ServiceAnswers {
  std::vector<ServiceAnswer> node_resolvers;
  std::vector<ServiceAnswer> cluster_resolvers;
  std::optional<ServiceAnswer> metadata;  // nullopt: it is not asked.
  std::optional<KeptClock> clock;         // nullopt: the kernel does not tell.

  bool operator==(const ServiceAnswers&) const = default;
};

// Puts into `now` how many looks in a row have failed, by the look before.
void CountFailures(const ServiceAnswers& before, ServiceAnswers& now);

// Returns whether a service failed in this look.
bool AnyFailed(const ServiceAnswers& answers);

}  // namespace spoke::node_checks
