#include "ipam-server/authority/roots.h"

#include <algorithm>

#include "fmt/format.h"

namespace spoke::ipam {
namespace {

std::string TextOf(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", time, absl::UTCTimeZone());
}

Root& SigningOf(Roots& roots) {
  return *std::find_if(roots.begin(), roots.end(),
                       [](const Root& root) { return root.state == RootState::kSigning; });
}

}  // namespace

absl::Status CheckRoots(const Roots& roots) {
  int signing = 0;
  int next = 0;
  for (const Root& root : roots) {
    if (root.state == RootState::kSigning) ++signing;
    if (root.state == RootState::kNext) ++next;
    if (root.certificate.empty()) return absl::InvalidArgumentError("a root has no certificate");
    if (root.key.empty() != (root.state == RootState::kRetired)) {
      return absl::InvalidArgumentError(
          fmt::format("a root that is {} has {}", NameOf(root.state),
                      root.key.empty() ? "no key" : "a key that it must not have any more"));
    }
    if (root.longest_life < absl::ZeroDuration()) {
      return absl::InvalidArgumentError("a root's certificates end before they begin");
    }
  }
  if (signing == 1 && next <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "{} roots sign and {} are next; one has to sign, and one may be next", signing, next));
}

const Root& SigningRoot(const Roots& roots) {
  return *std::find_if(roots.begin(), roots.end(),
                       [](const Root& root) { return root.state == RootState::kSigning; });
}

std::string TrustedPem(const Roots& roots) {
  std::string signing;
  std::string others;
  for (const Root& root : roots) {
    std::string& pem = root.state == RootState::kSigning ? signing : others;
    pem += root.certificate;
    if (!pem.ends_with('\n')) pem += '\n';
  }
  return signing + others;
}

// An agent that got its certificate just before the state began may be away until that can no
// longer be renewed. It knows what was trusted when it got it.
absl::Time EndOfState(const Root& root, const Root& signing) {
  switch (root.state) {
    case RootState::kNext:
      return root.since + signing.longest_life + kRenewalGrace + kClockSkew;
    case RootState::kSigning:
      return absl::InfiniteFuture();
    case RootState::kRetired:
      return root.since + root.longest_life + kRenewalGrace + kClockSkew;
  }
  return absl::InfiniteFuture();
}

absl::StatusOr<Roots> BeginRotation(Roots roots, std::string_view certificate, std::string_view key,
                                    absl::Time now) {
  const Root& signing = SigningRoot(roots);
  for (const Root& root : roots) {
    if (root.state == RootState::kSigning) continue;
    return absl::FailedPreconditionError(fmt::format(
        "a rotation is under way: one root is {} until {}; see `spokectl authority list`",
        NameOf(root.state), TextOf(EndOfState(root, signing))));
  }
  const absl::Duration life = signing.longest_life;
  roots.push_back({.certificate = std::string(certificate),
                   .key = std::string(key),
                   .state = RootState::kNext,
                   .since = now,
                   .longest_life = life});
  return roots;
}

Roots PlanRotation(Roots roots, absl::Time now) {
  Root& signing = SigningOf(roots);
  for (auto root = roots.begin(); root != roots.end(); ++root) {
    if (now < EndOfState(*root, signing)) continue;
    if (root->state == RootState::kRetired) {
      roots.erase(root);
      return roots;
    }
    signing.state = RootState::kRetired;
    signing.since = now;
    signing.key.clear();
    root->state = RootState::kSigning;
    root->since = now;
    return roots;
  }
  return roots;
}

Roots WithLife(Roots roots, absl::Duration life) {
  Root& signing = SigningOf(roots);
  signing.longest_life = std::max(signing.longest_life, life);
  for (Root& root : roots) {
    if (root.state == RootState::kNext) root.longest_life = std::max(root.longest_life, life);
  }
  return roots;
}

}  // namespace spoke::ipam
