// A failure in CNI's terms: a code, what happened to which object, and what to do about it.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace spoke::netagent {

// Codes of the CNI spec 1.1.0, section 5 "Error". 8 is the reference library's ("invalid network
// namespace"); those from 100 are ours and stable.
inline constexpr uint32_t kCniInvalidEnvironment = 4;
inline constexpr uint32_t kCniDecodingFailure = 6;
inline constexpr uint32_t kCniInvalidConfiguration = 7;
inline constexpr uint32_t kCniInvalidNetns = 8;
inline constexpr uint32_t kCniTryAgainLater = 11;
inline constexpr uint32_t kCniNotAvailable = 50;
inline constexpr uint32_t kCniLimitedConnectivity = 51;
inline constexpr uint32_t kCniInternal = 100;
inline constexpr uint32_t kCniAlreadyExists = 101;
inline constexpr uint32_t kCniCheckFailed = 102;
inline constexpr uint32_t kCniVersionSkew = 103;

enum class CniVerb { kAdd, kDel, kCheck, kGc, kStatus };

struct CniFailure {
  uint32_t code = kCniInternal;
  std::string message;
  std::string details;  // The remedy. Runtimes show "message; details" and nothing else.

  bool operator==(const CniFailure&) const = default;
};

// Returns the failure for `status`, which is not OK. STATUS has 51 for kDataLoss and 50 for all
// else. The other verbs have 11 for kResourceExhausted, kPermissionDenied, kUnavailable,
// kDeadlineExceeded and kAborted; 7 for kInvalidArgument; 8 for kFailedPrecondition (the namespace
// is none, or the node's own); 101 for kAlreadyExists; 102 for kDataLoss; 100 for the rest.
CniFailure FailureOf(const absl::Status& status, CniVerb verb);

// Returns why a request of a plugin of this version is not carried out: an ADD, when its major
// version is not the agent's. Within one major version, what they say to each other only grows, and
// a pod that is to go or to be looked at is never kept waiting for an upgrade. nullopt: it is
// carried out, as is one that says no version that can be read.
std::optional<CniFailure> RefusalOfPlugin(std::string_view plugin_version,
                                          std::string_view agent_version, CniVerb verb);

}  // namespace spoke::netagent
