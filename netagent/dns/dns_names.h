// Learns from the DNS answers that this node and its pods get which addresses are of destination
// groups that name hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "lib/os/clock.h"
#include "lib/os/event_loop.h"
#include "lib/telemetry/log.h"
#include "netagent/classes/traffic_class.h"
#include "netagent/dns/dns_listener.h"
#include "netagent/dns/learned_names.h"

namespace spoke::netagent {

// The state that metrics and people see. Counters begin with the agent.
struct DnsNamesState {
  size_t addresses = 0;  // The number of addresses of groups, learned by DNS.
  size_t shared = 0;     // The number of shared addresses, as LearnedNames has it.
  uint64_t answers = 0;  // The number of answers that could be read.
  uint64_t refused = 0;  // The number of messages that were no answer without an error.
  // The number, at least, of packets beyond kMaxASecond that found no room to wait.
  uint64_t skipped = 0;
  absl::Status problem;  // The reason why nothing, or not everybody, is heard; OK: all are.
};

// The object is not thread-safe; the agent's one loop owns it. The loop must outlive it.
class DnsNames {
 public:
  // The most packets that are looked at in a second, whoever sends more. What waits longer than
  // the socket has room for is skipped.
  static constexpr size_t kMaxASecond = 1000;
  static constexpr size_t kMaxAtOnce = 256;
  // The time after which it is looked whether this node asks other name servers, and after which it
  // is tried again after an error.
  static constexpr absl::Duration kLook = absl::Minutes(1);
  static constexpr absl::Duration kRetry = absl::Seconds(10);

  struct Settings {
    // The resolvers to believe beside the node's own and Services.
    std::vector<ip::Address> resolvers;
    std::string resolv_conf = "/etc/resolv.conf";
  };
  struct Edges {
    DnsListener& listener;
    os::EventLoop& loop;
    const os::Clock& clock;
    telemetry::Log& log;
    // Takes what DNS says now, which replaces what it said before. Called by Tick() alone.
    std::function<void(std::map<ip::Address, ClassNumber>)> on_learned;
  };
  DnsNames(Settings settings, const Edges& edges);
  DnsNames(const DnsNames&) = delete;
  DnsNames& operator=(const DnsNames&) = delete;
  ~DnsNames();

  // Sets the names of groups, as ShapingRules::host_names() has them, and the blocks of Services,
  // as ClassMap::services() has them: cluster DNS answers from one. It listens only while there are
  // names. An error of the kernel is logged, and tried again.
  void SetNames(const std::vector<std::pair<std::string, ClassNumber>>& names,
                std::vector<ip::Prefix> services);

  // Does what is due, and tells what was learned. Call after each round of the loop, and at
  // NextWake(). Never blocks.
  void Tick();
  absl::Time NextWake() const;

  DnsNamesState state() const;

 private:
  // Listens to whom it should, or to nobody.
  void Listen(absl::Time now);
  std::vector<ip::Prefix> Resolvers() const;
  void BeginReading(absl::Time now);
  void StopReading();
  void OnReadable();
  void Fail(absl::Time now, const absl::Status& problem);
  void NoteProblem(const absl::Status& problem);

  const Settings settings_;
  const Edges edges_;
  LearnedNames names_;
  std::vector<ip::Prefix> services_;
  std::vector<ip::Prefix> heard_;  // The resolvers that the listener listens to.
  int watched_ = -1;               // The descriptor that the loop watches.
  absl::Time next_look_ = absl::InfiniteFuture();
  absl::Time second_ = absl::InfinitePast();  // The time when the second began that `used_` is of.
  size_t used_ = 0;
  bool pausing_ = false;  // Whether it pauses until the second is over.
  bool changed_ = false;  // Whether something has changed since on_learned() was called.
  uint64_t answers_ = 0;
  uint64_t refused_ = 0;
  uint64_t skipped_ = 0;
  absl::Status problem_;
};

}  // namespace spoke::netagent
