// Which addresses have been proven to work before the first pod gets them, and what to do next to
// prove the others. Pure: no I/O, no clock.
//
// The server lists an address once the cloud's API shows it on the NIC; that the host's network
// delivers its packets is another matter, some seconds later as a rule. There are two proofs:
//
//   - the host lists the address for our NIC;
//   - a probe that is sent from the address through the fabric is answered.
//
// Which of them are wanted is a setting. With both, the probe follows the listing, for the fabric
// drops what it does not know yet, and an answer is all it takes: it says more than any list. So a
// list that cannot be read, or that does not have the address for kListingPatience, is not waited
// for: how it shows a block of addresses is written down nowhere. Without an answerer there is only
// the list, and without the list no proof.
//
// An address that has not been proven for `deadline` is overdue, said once, and goes on being
// tried.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lib/ip/address.h"

namespace spoke::netagent {

struct ReadinessSettings {
  bool want_listing = true;
  bool want_answer = true;  // At least one of the two is set.
  absl::Duration deadline = absl::Minutes(2);
};

// The times of Azure's own agents: 4 s while something is missing, then ever less often.
inline constexpr absl::Duration kListingShortest = absl::Seconds(1);  // The least between readings.
inline constexpr absl::Duration kListingFirstPause = absl::Seconds(4);
inline constexpr absl::Duration kListingLongestPause = absl::Seconds(64);
inline constexpr absl::Duration kListingPatience = absl::Seconds(15);
inline constexpr absl::Duration kAnswerWithin = absl::Seconds(1);
inline constexpr absl::Duration kProbeFirstPause = absl::Seconds(1);
inline constexpr absl::Duration kProbeLongestPause = absl::Seconds(30);
// The most probes under way at a time: a job's start must not make every node of a cluster send
// hundreds to one answerer in one moment.
inline constexpr size_t kMaxProbes = 16;

enum class Missing {
  kListing,  // The host does not list it.
  kReading,  // The host's list cannot be read.
  kAnswer,   // No probe was answered.
};

struct OverdueAddress {
  ip::Address address;
  Missing missing = Missing::kListing;
  absl::Duration waited;

  bool operator==(const OverdueAddress&) const = default;
};

// Not thread-safe.
class Readiness {
 public:
  explicit Readiness(const ReadinessSettings& settings) : settings_(settings) {}

  // Sets the addresses to be proven, all others forgotten. A new one resets the pause of readings.
  void SetWanted(const std::vector<ip::Address>& addresses, absl::Time now);

  // Whether to read the host's list now. True counts as begun: there is no other until OnListing()
  // or OnListingFailed().
  bool TakeReading(absl::Time now);
  // The addresses from which to send a probe now; they count as sent.
  std::vector<ip::Address> TakeProbes(absl::Time now);

  void OnListing(const std::set<ip::Address>& listed, absl::Time now);
  void OnListingFailed(absl::Time now);
  // Takes an answer; passes over one that nobody waits for.
  void OnAnswer(const ip::Address& address);

  // Returns the addresses that have all their proofs, and forgets them.
  std::vector<ip::Address> TakeProven();
  // Returns the addresses that have waited for too long, each once.
  std::vector<OverdueAddress> TakeOverdue(absl::Time now);

  // When one of the Take functions has something to do next; nullopt: nothing is wanted.
  std::optional<absl::Time> NextWake() const;
  // Whether a probe waits for its answer.
  bool HasProbes() const { return probes_ > 0; }
  size_t waiting() const { return entries_.size(); }
  // Returns "3 not listed by the host, 2 without an answer through the network"; "": none waits.
  std::string Explain() const;

 private:
  struct Entry {
    absl::Time since;
    bool listed = false;
    bool answered = false;
    bool overdue = false;  // Whether it has been said.
    bool probing = false;  // Sent, and to be answered before next_probe.
    absl::Time next_probe = absl::InfinitePast();
    absl::Duration pause = kProbeFirstPause;
  };

  // The time from which a probe may be sent; InfiniteFuture: none is needed.
  absl::Time ProbeFrom(const Entry& entry) const;
  bool IsProven(const Entry& entry) const;
  Missing MissingOf(const Entry& entry) const;
  void EndReading(absl::Time now);

  const ReadinessSettings settings_;
  std::map<ip::Address, Entry> entries_;
  size_t probes_ = 0;      // Entries that are probing.
  bool reading_ = false;   // A reading has begun and not ended.
  bool readable_ = true;   // Whether the last reading gave a list.
  bool expected_ = false;  // Something new has come since the last reading began.
  absl::Time last_reading_ = absl::InfinitePast();  // The beginning of the last one.
  absl::Time next_reading_ = absl::InfinitePast();
  absl::Duration pause_ = kListingFirstPause;
};

}  // namespace spoke::netagent
