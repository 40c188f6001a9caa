// How many may enroll at once, and how often one of them: a flood of requests must not become one
// of calls to the cluster's API server, nor of certificates. Pure: time is an argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/base/rate_book.h"

namespace spoke::ipam {

// Not thread-safe.
class EnrollGate {
 public:
  struct Settings {
    size_t at_once = 16;
    // Of these, of one address: it must not take the places of all others.
    size_t at_once_of_peer = 4;
    // The calls of one address, before a token is looked at: an agent backs off more than this.
    base::Rate per_peer{.burst = 10, .refill = absl::Seconds(2)};
    // The certificates of one node.
    base::Rate per_node{.burst = 6, .refill = absl::Minutes(1)};
    size_t max_keys = 16'384;
  };

  explicit EnrollGate(const Settings& settings)
      : settings_(settings),
        peers_(settings.per_peer, settings.max_keys),
        nodes_(settings.per_node, settings.max_keys) {}

  // Lets one in, who must Leave() as the same peer. Errors: kResourceExhausted (not let in; says
  // when to come back).
  absl::Status Enter(std::string_view peer, absl::Time now);
  void Leave(std::string_view peer);
  // Counts a certificate for a node whose agent has proved itself. Errors: kResourceExhausted.
  absl::Status Sign(std::string_view node_name, absl::Time now);

 private:
  const Settings settings_;
  size_t inside_ = 0;
  absl::flat_hash_map<std::string, size_t> inside_by_peer_;  // None has 0.
  base::RateBook peers_;
  base::RateBook nodes_;
};

}  // namespace spoke::ipam
