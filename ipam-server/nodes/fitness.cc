#include "ipam-server/nodes/fitness.h"

#include "fmt/core.h"

namespace spoke::ipam {
namespace {

constexpr std::string_view kNotSeen = "AgentNotSeen";
constexpr std::string_view kDraining = "Draining";
constexpr std::string_view kAway = "AgentAway";
constexpr std::string_view kStarting = "AgentStarting";
constexpr std::string_view kNoAddress = "NoAddress";
constexpr std::string_view kExhausted = "AddressesExhausted";
constexpr std::string_view kPolicyRefused = "PolicyRefused";
constexpr std::string_view kBlocked = "NodeCheckFailed";
constexpr std::string_view kWarned = "NodeCheckWarned";
constexpr std::string_view kReady = "AgentReady";

}  // namespace

Fitness Judge(const FitnessFacts* facts) {
  if (facts == nullptr) return {.reason = kNotSeen};
  if (facts->leaving) return {.reason = kDraining};
  Fitness unfit{.no_addresses = !facts->exhausted.empty(), .hurts_pods = !facts->loses.empty()};
  if (!facts->connected || !facts->told || facts->usable == 0) {
    unfit.reason = !facts->connected ? kAway : !facts->told ? kStarting : kNoAddress;
    return unfit;
  }
  const bool no_addresses = unfit.no_addresses;
  if (!facts->blocked.empty() || !facts->loses.empty()) {
    unfit.reason = facts->blocked.empty() ? kPacketsLost : kBlocked;
    unfit.may_join = true;
    unfit.hurts_pods = true;
    return unfit;
  }
  Fitness ready{.ready = true, .reason = kReady, .no_addresses = no_addresses, .may_join = true};
  if (no_addresses) {
    ready.reason = kExhausted;
  } else if (!facts->policy_error.empty()) {
    ready.reason = kPolicyRefused;
  } else if (!facts->warned.empty()) {
    ready.reason = kWarned;
  }
  return ready;
}

std::string MessageOf(const FitnessFacts* facts) {
  const std::string_view reason = Judge(facts).reason;
  if (reason == kNotSeen) return "No agent of this node has spoken to the server.";
  if (reason == kDraining) return "The node gives back all of its addresses.";
  if (reason == kAway) return "The agent has no session with the server.";
  if (reason == kStarting) return "The agent has not yet taken the addresses that it was told.";
  if (reason == kBlocked) return facts->blocked;
  if (reason == kPacketsLost) return facts->loses + ".";
  if (reason == kExhausted) return facts->exhausted;
  if (reason == kPolicyRefused) {
    return fmt::format("The agent keeps its last policy: {}", facts->policy_error);
  }
  if (reason == kWarned) return facts->warned;
  if (reason == kNoAddress) {
    return facts->exhausted.empty() ? "No address is attached to the node yet." : facts->exhausted;
  }
  return "The agent is connected and has addresses for pods.";
}

}  // namespace spoke::ipam
