// The rules across policy objects: what two of them may not both have, what one needs of another,
// and where none may reach. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ipam-server/policy/objects/object.h"
#include "ipam-server/policy/objects/problem.h"
#include "lib/ip/address.h"

namespace spoke::ipam {

struct SourcedObject;

// An object that takes part in the rules, and where it comes from.
struct Selector {
  ObjectKey key;
  const Spec* spec;                       // Borrowed.
  const SourcedObject* source = nullptr;  // Borrowed. nullptr: no file gave it.
  bool configured = false;                // It is in the configuration.
};

// An address that agents or the cluster cannot do without.
struct ProtectedAddress {
  ip::Address address;
  std::string what;  // Its name in messages: "the address at which agents reach this server".
};

// Claims that clash. At most one problem for each claim.
std::vector<Problem> FindClashes(std::span<const Selector> selectors);

// References of objects from files to what is not among `known`, in order.
std::vector<Problem> FindMissing(std::span<const Selector> selectors,
                                 std::span<const ObjectKey> known);

// Blocks that lie where they must not, when a file gave one of the two sides.
std::vector<Problem> FindSwallowed(std::span<const Selector> selectors);

// Claims of objects from files in `space` and `share` that hold one of `protected addresses`, since
// nodes drop what comes from there and goes there.
std::vector<Problem> FindCutProtectedAddresses(
    std::span<const Selector> selectors, std::span<const ProtectedAddress> protected_addresses);

// The space and share of claims on addresses that nodes do not talk to.
inline constexpr std::string_view kNetworkSpace = "networks";
inline constexpr std::string_view kDroppedShare = "peerSpoke";

}  // namespace spoke::ipam
