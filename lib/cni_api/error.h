// The error that a CNI plugin answers when it cannot do what it was asked, whether the plugin or
// the agent found it out. Pure. Header-only, and free of every library.
#pragma once

#include <cstdint>
#include <string>

namespace spoke::cni {

// The codes of the CNI spec 1.1.0, section 5 "Error", and 8 as the reference plugins have it; those
// from 100 are ours and stable.
inline constexpr uint32_t kIncompatibleVersion = 1;
inline constexpr uint32_t kInvalidEnvironment = 4;
inline constexpr uint32_t kIoFailure = 5;
inline constexpr uint32_t kDecodingFailure = 6;
inline constexpr uint32_t kInvalidConfig = 7;
inline constexpr uint32_t kInvalidNetns = 8;
inline constexpr uint32_t kTryAgainLater = 11;
inline constexpr uint32_t kNotAvailable = 50;
inline constexpr uint32_t kLimitedConnectivity = 51;
inline constexpr uint32_t kInternal = 100;
inline constexpr uint32_t kAlreadyExists = 101;
inline constexpr uint32_t kCheckFailed = 102;
inline constexpr uint32_t kVersionSkew = 103;

struct Error {
  uint32_t code = kInternal;
  std::string message;  // The message: what happened to which object.
  std::string details;  // The remedy; may be empty. Runtimes show "message; details" and no more.

  bool operator==(const Error&) const = default;
};

}  // namespace spoke::cni
