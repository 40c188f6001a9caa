// The roots of the cluster's authority and how one replaces another without cutting any agent off.
// Pure, thread-safe.
//
// A rotation has three stages. First the new root is trusted and signs nothing, until every agent
// that may still renew its certificate has heard of it. Then it signs, and the former one is
// trusted, until nothing that it has signed is good for anything. Then the former one goes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace spoke::ipam {

// Certificates begin so long before they are made: other machines' clocks may be behind.
inline constexpr absl::Duration kClockSkew = absl::Minutes(5);
// A certificate that has ended is renewed for so long: its agent may have been cut off.
inline constexpr absl::Duration kRenewalGrace = absl::Hours(24 * 7);

enum class RootState : uint8_t {
  kNext,     // Trusted, and signs nothing yet.
  kSigning,  // Trusted, and signs.
  kRetired,  // Trusted, and signs nothing more.
};

struct Root {
  std::string certificate;  // PEM
  std::string key;          // PEM; empty: it is retired.
  RootState state = RootState::kSigning;
  absl::Time since;             // When it came into this state.
  absl::Duration longest_life;  // Of the certificates that it signs, or may have signed.

  bool operator==(const Root&) const = default;
};

// Exactly one of them signs, and at most one is next.
using Roots = std::vector<Root>;

// Errors: kInvalidArgument (what cannot be: none that signs, or two; a key where none may be, or
// none where one must be; no certificate).
absl::Status CheckRoots(const Roots& roots);

// Returns the root that signs. `roots` are as CheckRoots() takes them.
const Root& SigningRoot(const Roots& roots);

// Returns the certificates of all of them in PEM, the one that signs first.
std::string TrustedPem(const Roots& roots);

// Begins a rotation to a new root. Errors: kFailedPrecondition (one is under way: the text says
// until when).
absl::StatusOr<Roots> BeginRotation(Roots roots, std::string_view certificate, std::string_view key,
                                    absl::Time now);

// Returns what the roots are to be at `now`: at most one step further, so that a clock that was set
// ahead skips none.
Roots PlanRotation(Roots roots, absl::Time now);

// Returns when the root's present state ends by itself; InfiniteFuture: it does not. `signing` is
// the one that signs.
absl::Time EndOfState(const Root& root, const Root& signing);

// Notes that the root which signs may sign certificates of that life from now on.
Roots WithLife(Roots roots, absl::Duration life);

constexpr std::string_view NameOf(RootState state) {
  switch (state) {
    case RootState::kNext:
      return "next";
    case RootState::kSigning:
      return "signing";
    case RootState::kRetired:
      return "retired";
  }
  return "signing";
}

}  // namespace spoke::ipam
