#include "ipam-server/enroll/enroll_gate.h"

#include "fmt/format.h"
#include "lib/base/check.h"

namespace spoke::ipam {
namespace {

int64_t WholeSeconds(absl::Duration wait) {
  return absl::ToInt64Seconds(absl::Ceil(wait, absl::Seconds(1)));
}

}  // namespace

absl::Status EnrollGate::Enter(std::string_view peer, absl::Time now) {
  if (inside_ >= settings_.at_once) {
    return absl::ResourceExhaustedError(
        fmt::format("{} agents enroll at the moment, which is the most; try again", inside_));
  }
  const auto of_peer = inside_by_peer_.find(std::string(peer));
  if (of_peer != inside_by_peer_.end() && of_peer->second >= settings_.at_once_of_peer) {
    return absl::ResourceExhaustedError(fmt::format(
        "{} has {} calls under way, which is the most; try again", peer, of_peer->second));
  }
  if (const absl::Duration wait = peers_.Take(peer, now); wait > absl::ZeroDuration()) {
    return absl::ResourceExhaustedError(
        fmt::format("{} asks too often; try again in {} s", peer, WholeSeconds(wait)));
  }
  ++inside_;
  ++inside_by_peer_[std::string(peer)];
  return absl::OkStatus();
}

void EnrollGate::Leave(std::string_view peer) {
  const auto of_peer = inside_by_peer_.find(std::string(peer));
  CHECK(of_peer != inside_by_peer_.end(), "only who was let in leaves");
  if (--of_peer->second == 0) inside_by_peer_.erase(of_peer);
  --inside_;
}

absl::Status EnrollGate::Sign(std::string_view node_name, absl::Time now) {
  const absl::Duration wait = nodes_.Take(node_name, now);
  if (wait <= absl::ZeroDuration()) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      fmt::format("node {} has had too many certificates lately; the next one in {} s", node_name,
                  WholeSeconds(wait)));
}

}  // namespace spoke::ipam
