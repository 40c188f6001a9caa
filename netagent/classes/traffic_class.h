// Says which traffic is of which class: by the address at the far end. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "lib/nft/ruleset.h"
#include "netagent/policy/policy_bundle.h"

namespace spoke::netagent {

// The number of a class; in the kernel, a mark of 32 bits. Numbers never change their meaning:
// counters bear them.
using ClassNumber = uint32_t;
inline constexpr ClassNumber kLoopback = 1;
inline constexpr ClassNumber kPlatform = 2;
inline constexpr ClassNumber kCluster = 3;
inline constexpr ClassNumber kHub = 4;
inline constexpr ClassNumber kPeerSpoke = 5;
inline constexpr ClassNumber kStorage = 6;
inline constexpr ClassNumber kInternet = 7;
// The class of no address: what pods sent to the platform's services without being allowed to.
inline constexpr ClassNumber kPlatformDenied = 8;
inline constexpr std::string_view kPlatformDeniedName = "platform-denied";
// The number of the first destination group, in the order in which they were first seen.
inline constexpr ClassNumber kFirstGroup = 16;
inline constexpr size_t kMaxGroups = 48;

// The addresses `first` to `last`, all of one class.
struct ClassRange {
  ip::Address first;
  ip::Address last;
  ClassNumber number = kInternet;

  bool operator==(const ClassRange&) const = default;
};

// A map of the whole of both address spaces, with each address in exactly one class.
class ClassMap {
 public:
  // Compiles the map. Loopback (127/8, ::1) and platform (link-local, multicast, broadcast) are
  // always there; a CIDR of the policy wins over one that holds it, and a destination group only
  // over the Internet. The numbers of groups that `known` has stay; the others get new ones.
  // Errors: kInvalidArgument (one block in two classes, naming both; too many groups).
  static absl::StatusOr<ClassMap> Compile(const Policy& policy,
                                          const std::map<std::string, ClassNumber>& known);

  ClassNumber ClassOf(const ip::Address& address) const;
  // Returns the ranges, sorted and without gaps; neighbours differ.
  const std::vector<ClassRange>& ranges(ip::Family family) const;
  // Returns the groups' numbers, by name.
  const std::map<std::string, ClassNumber>& groups() const { return groups_; }
  // Returns the blocks of Services, which the fast path leaves to whoever translates them.
  const std::vector<ip::Prefix>& services() const { return services_; }
  // Returns "cluster", "peer-spoke", "group:NAME"; for a number that is not in use, "other".
  std::string NameOf(ClassNumber number) const;
  // Returns whether any address of `block` is of the class.
  bool Touches(const ip::Prefix& block, ClassNumber number) const;

  bool operator==(const ClassMap&) const = default;

 private:
  std::vector<ClassRange> v4_;
  std::vector<ClassRange> v6_;
  std::map<std::string, ClassNumber> groups_;
  std::vector<ip::Prefix> services_;
};

}  // namespace spoke::netagent
