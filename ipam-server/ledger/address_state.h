// The life of one address between the pool and a NIC, as a table. Every change of state goes
// through Next(). Pure.
//
// What happens within kAttached is the agent's to decide: see node_api::Use.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/node_api/assignments.h"

namespace spoke::ipam {

enum class AddressState : uint8_t { kFree, kAttaching, kAttached, kDetaching };

enum class AddressEvent : uint8_t {
  kAssign,         // The allocator gives it to a node.
  kCloudAttached,  // The cloud has put it on the NIC.
  kCloudRefused,   // The cloud will not, and has not.
  kAgentAgreed,    // The agent gives it up: it is not assigned and will not be.
  kAgentAssigns,   // The agent assigns it all the same: a pod has it.
  kCloudDetached,  // The cloud has taken it off the NIC.
  kNodeGone,       // The cloud says the VM is no more, and its NIC with it.
};

// The state after `event`, or nullopt where the event does not apply: the caller then changes
// nothing. A repeated event lands in the state it asked for.
constexpr std::optional<AddressState> Next(AddressState from, AddressEvent event) {
  using enum AddressState;
  using enum AddressEvent;
  switch (from) {  // No default: a new state does not compile until it is placed here.
    case kFree:
      if (event == kAssign) return kAttaching;
      if (event == kCloudDetached || event == kNodeGone) return kFree;
      break;
    case kAttaching:
      if (event == kAssign) return kAttaching;
      if (event == kCloudAttached) return kAttached;
      if (event == kAgentAssigns) return kAttaching;
      if (event == kCloudRefused || event == kNodeGone) return kFree;
      break;
    case kAttached:
      if (event == kCloudAttached || event == kAgentAssigns) return kAttached;
      if (event == kAgentAgreed) return kDetaching;
      if (event == kNodeGone) return kFree;
      break;
    case kDetaching:
      if (event == kAgentAgreed) return kDetaching;
      // The agent agreed before the server forgot, or before it did: the cloud is asked to keep it.
      if (event == kAgentAssigns) return kAttaching;
      if (event == kCloudDetached || event == kNodeGone) return kFree;
      break;
  }
  return std::nullopt;
}

static_assert(!Next(AddressState::kAttached, AddressEvent::kCloudDetached),
              "no address leaves a NIC before its agent has agreed: a pod may be using it");
static_assert(!Next(AddressState::kAttached, AddressEvent::kAssign) &&
                  !Next(AddressState::kDetaching, AddressEvent::kAssign),
              "no address goes to a second NIC while the first still holds it");
static_assert(!Next(AddressState::kFree, AddressEvent::kCloudAttached),
              "nothing is attached that was not written down as attaching first");

using node_api::Use;

constexpr std::string_view NameOf(AddressState state, Use use) {
  switch (state) {
    case AddressState::kFree:
      return "free";
    case AddressState::kAttaching:
      return "attaching";
    case AddressState::kDetaching:
      return "detaching";
    case AddressState::kAttached:
      break;
  }
  switch (use) {
    case Use::kAvailable:
      return "available";
    case Use::kInUse:
      return "in_use";
    case Use::kCooldown:
      return "cooldown";
  }
  return "available";
}

}  // namespace spoke::ipam
