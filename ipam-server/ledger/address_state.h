// The life of one address between the pool and a NIC, as a table. Every change of state goes
// through Next(). Pure.
//
// What happens within kAttached (idle, lent, cooling) is the agent's to decide: see Use.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace spoke::ipam {

enum class LeaseState : uint8_t { kFree, kAttaching, kAttached, kDetaching };

enum class LeaseEvent : uint8_t {
  kAssign,         // The allocator gives it to a node.
  kCloudAttached,  // The cloud has put it on the NIC.
  kCloudRefused,   // The cloud will not, and has not.
  kAgentAgreed,    // The agent gives it up: it is not lent and will not be.
  kAgentLends,     // The agent lends it all the same: a pod has it.
  kCloudDetached,  // The cloud has taken it off the NIC.
  kNodeGone,       // The cloud says the VM is no more, and its NIC with it.
};

// The state after `event`, or nullopt where the event does not apply: the caller then changes
// nothing. A repeated event lands in the state it asked for.
constexpr std::optional<LeaseState> Next(LeaseState from, LeaseEvent event) {
  using enum LeaseState;
  using enum LeaseEvent;
  switch (from) {  // No default: a new state does not compile until it is placed here.
    case kFree:
      if (event == kAssign) return kAttaching;
      if (event == kCloudDetached || event == kNodeGone) return kFree;
      break;
    case kAttaching:
      if (event == kAssign) return kAttaching;
      if (event == kCloudAttached) return kAttached;
      if (event == kAgentLends) return kAttaching;
      if (event == kCloudRefused || event == kNodeGone) return kFree;
      break;
    case kAttached:
      if (event == kCloudAttached || event == kAgentLends) return kAttached;
      if (event == kAgentAgreed) return kDetaching;
      if (event == kNodeGone) return kFree;
      break;
    case kDetaching:
      if (event == kAgentAgreed) return kDetaching;
      // It had agreed before the server forgot, or before it did: the cloud is asked to keep it.
      if (event == kAgentLends) return kAttaching;
      if (event == kCloudDetached || event == kNodeGone) return kFree;
      break;
  }
  return std::nullopt;
}

static_assert(!Next(LeaseState::kAttached, LeaseEvent::kCloudDetached),
              "no address leaves a NIC before its agent has agreed: a pod may be using it");
static_assert(!Next(LeaseState::kAttached, LeaseEvent::kAssign) &&
                  !Next(LeaseState::kDetaching, LeaseEvent::kAssign),
              "no address goes to a second NIC while the first still holds it");
static_assert(!Next(LeaseState::kFree, LeaseEvent::kCloudAttached),
              "nothing is attached that was not written down as attaching first");

// What the agent does with an attached address.
enum class Use : uint8_t { kIdle, kLent, kCooling };

constexpr std::string_view NameOf(LeaseState state, Use use) {
  switch (state) {
    case LeaseState::kFree:
      return "free";
    case LeaseState::kAttaching:
      return "attaching";
    case LeaseState::kDetaching:
      return "detaching";
    case LeaseState::kAttached:
      break;
  }
  switch (use) {
    case Use::kIdle:
      return "idle";
    case Use::kLent:
      return "lent";
    case Use::kCooling:
      return "cooling";
  }
  return "idle";
}

}  // namespace spoke::ipam
