// The identities that the server takes no more: nodes by name, certificates by serial number, and
// machines by the cloud's id. Pure. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace spoke::ipam {

enum class DeniedKind : uint8_t { kNode, kSerial, kMachine };

constexpr std::string_view NameOf(DeniedKind kind) {
  switch (kind) {
    case DeniedKind::kNode:
      return "node";
    case DeniedKind::kSerial:
      return "serial";
    case DeniedKind::kMachine:
      return "machine";
  }
  return "node";
}

// A node's name, a serial number in hexadecimal digits, or a VM's id or the name that the cloud has
// for it; all in lower case, so that it is one text however it was written.
struct DeniedName {
  DeniedKind kind = DeniedKind::kNode;
  std::string value;

  // Errors: kInvalidArgument (another kind, or what no such thing can be called).
  static absl::StatusOr<DeniedName> From(std::string_view kind, std::string_view value);

  auto operator<=>(const DeniedName&) const = default;
};

struct Denial {
  std::string reason;
  std::string by;  // Who has denied it.
  absl::Time since;
  absl::Time until = absl::InfiniteFuture();

  bool operator==(const Denial&) const = default;
};

// Who is at the other end, as far as that is known.
struct PeerIdentity {
  std::string node;                               // Empty: unknown, as is the next.
  std::string serial;                             // Of its certificate.
  std::vector<std::string> machines;              // What it and its certificate call its machine.
  absl::Time not_after = absl::InfiniteFuture();  // The end of its certificate.
};

// A list that is longer is no list of machines that were lost.
inline constexpr size_t kMostDenied = 10'000;
inline constexpr size_t kMaxReasonBytes = 512;

class DenyList {
 public:
  // Errors: kResourceExhausted (as many as there may be).
  absl::Status Put(const DeniedName& name, Denial denial);
  // Returns whether it was there.
  bool Remove(const DeniedName& name) { return all_.erase(name) > 0; }

  // Errors: kPermissionDenied (by what and why, in words for the agent's log).
  absl::Status Check(const PeerIdentity& peer, absl::Time now) const;

  const std::map<DeniedName, Denial>& all() const { return all_; }

 private:
  std::map<DeniedName, Denial> all_;
};

}  // namespace spoke::ipam
