// Learns which addresses the hosts of destination groups have, as DNS has said it. Pure.
//
// The object is not thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "netagent/classes/traffic_class.h"
#include "netagent/dns/dns_answer.h"

namespace spoke::netagent {

class LearnedNames {
 public:
  // The bounds of the time for which an address counts, which is what its answer's TTL says within
  // them: clients use addresses for longer than a short TTL, and what nobody asks for any more is
  // not kept.
  static constexpr absl::Duration kLeastLife = absl::Seconds(60);
  static constexpr absl::Duration kMostLife = absl::Hours(1);
  // The most addresses in a group; beyond it those leave that would expire first.
  static constexpr size_t kMaxAddresses = 1000;
  // The most addresses of names of no group that are remembered, to tell what is shared.
  static constexpr size_t kMaxOthers = 4096;

  // Sets the names. Each is a host's name and its group's number; "*.example.org" is all below
  // example.org, and not that itself. Of several that match a name the longest counts. What was
  // learned of names that are not there any more is forgotten, and what has another number now has
  // that. Names are in any case. Returns true when At() says something else than before.
  bool SetNames(const std::vector<std::pair<std::string, ClassNumber>>& names);
  bool has_names() const { return !exact_.empty() || !below_.empty(); }

  // Takes what the answer says of the question's group, or, where that is in none, of the group
  // that the first of its aliases is in. An address that is learned again lives longer, never
  // shorter, and stays in the group that had it first. Returns true when At() says something else
  // than before.
  bool OnAnswer(const DnsAnswer& answer, absl::Time now);

  // Forgets what has expired. Returns true when there was something.
  bool Expire(absl::Time now);
  // Returns when Expire() will find something; infinite future: never.
  absl::Time NextExpiry() const;

  // Returns what was learned and is not expired at `now`.
  std::map<ip::Address, ClassNumber> At(absl::Time now) const;
  size_t size() const { return learned_.size(); }
  // Returns how many addresses of groups are, or were since they were learned, also of another
  // group's name or of a name of none: what goes there by that name counts for the group too.
  size_t shared() const { return shared_; }

 private:
  struct Learned {
    ClassNumber group = 0;
    absl::Time expiry;
    bool shared = false;
    std::string name;  // The name by which it matched.
  };
  using Entry = std::unordered_map<ip::Address, Learned, ip::AddressHash>::iterator;
  struct Other {
    ip::Address address;
    absl::Time expiry;
  };
  struct Match {
    ClassNumber group = 0;
    std::string_view name;
  };

  std::optional<ClassNumber> GroupOf(std::string_view name) const;
  std::optional<Match> MatchOf(const DnsAnswer& answer) const;
  bool Learn(const DnsAddress& address, const Match& match, absl::Time now);
  // Forgets the entry and reads nothing of it afterwards; returns the next one.
  Entry Forget(Entry entry);
  void MakeRoom(ClassNumber group);
  void NoteOther(const DnsAddress& address, absl::Time now);
  bool IsOther(const ip::Address& address, absl::Time now) const;
  void MarkShared(Learned& learned);

  std::map<std::string, ClassNumber, std::less<>> exact_;
  std::map<std::string, ClassNumber, std::less<>> below_;  // The names without the "*.".
  std::unordered_map<ip::Address, Learned, ip::AddressHash> learned_;
  // The addresses of a group and when each expires; no group is empty.
  std::map<ClassNumber, std::set<std::pair<absl::Time, ip::Address>>> by_expiry_;
  size_t shared_ = 0;
  std::list<Other> others_;  // The addresses, the one last heard of last.
  std::unordered_map<ip::Address, std::list<Other>::iterator, ip::AddressHash> other_at_;
};

}  // namespace spoke::netagent
