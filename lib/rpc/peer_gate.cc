#include "lib/rpc/peer_gate.h"

#include <algorithm>

#include "lib/ip/socket_address.h"

namespace spoke::rpc {
namespace {

constexpr int kNetworkBits = 64;
constexpr double kShare = kNetworkShare;

std::optional<ip::Prefix> NetworkOf(const ip::Address& peer) {
  if (peer.is_v4()) return std::nullopt;
  return ip::Prefix::Of(peer, kNetworkBits).value();
}

}  // namespace

std::string_view NameOf(Refusal refusal) {
  switch (refusal) {
    case Refusal::kPeerConnections:
      return "peer_connections";
    case Refusal::kPeerRate:
      return "peer_rate";
    case Refusal::kFull:
      return "full";
    case Refusal::kBytes:
      return "bytes";
    case Refusal::kUnauthorized:
      return "unauthorized";
  }
  return "full";
}

// Returns the peer with its tokens as of `now`; a new one has all of them.
PeerGate::Peer& PeerGate::Find(const ip::Prefix& key, double share, absl::Time now) {
  const double most = limits_.burst * share;
  const auto [found, is_new] = peers_.try_emplace(key, Peer{.tokens = most, .counted = now});
  Peer& peer = found->second;
  if (now > peer.counted) {
    const double passed = absl::ToDoubleSeconds(now - peer.counted);
    peer.tokens = std::min(most, peer.tokens + passed * limits_.per_second * share);
    peer.counted = now;
  }
  return peer;
}

std::optional<Refusal> PeerGate::Check(const Peer& peer, size_t share) const {
  if (peer.open >= limits_.connections_per_address * share) return Refusal::kPeerConnections;
  if (peer.tokens < 1) return Refusal::kPeerRate;
  return std::nullopt;
}

bool PeerGate::IsFree(const ip::Address& peer) const {
  return limits_.loopback_is_free && ip::IsLoopback(peer);
}

PeerGate::Verdict PeerGate::Enter(const ip::Address& peer, absl::Time now) {
  if (peers_.size() >= forget_at_) Forget(now);
  if (IsFree(peer)) {
    if (open_ >= limits_.connections) return {Refusal::kFull, std::nullopt};
    ++open_;
    return {};
  }
  Peer& host = Find(ip::Prefix::Host(peer), 1, now);
  const std::optional<ip::Prefix> network = NetworkOf(peer);
  Peer* const all = network ? &Find(*network, kShare, now) : nullptr;
  Verdict verdict{.refused = Check(host, 1), .evict = std::nullopt};
  if (!verdict.refused && all != nullptr) verdict.refused = Check(*all, kNetworkShare);
  if (verdict.refused) return verdict;
  if (open_ >= limits_.connections) {
    const auto greatest =
        std::max_element(peers_.begin(), peers_.end(), [](const auto& left, const auto& right) {
          const auto open = [](const auto& entry) {
            return entry.first.length() == entry.first.base().bits() ? entry.second.open : 0;
          };
          return open(left) < open(right);
        });
    if (greatest == peers_.end() || greatest->second.open <= host.open + 1) {
      return {Refusal::kFull, std::nullopt};
    }
    verdict.evict = greatest->first.base();
  }
  for (Peer* const one : {&host, all}) {
    if (one == nullptr) continue;
    ++one->open;
    one->tokens -= 1;
  }
  ++open_;
  return verdict;
}

void PeerGate::Leave(const ip::Address& peer) {
  const auto leave = [this](const ip::Prefix& key) {
    const auto found = peers_.find(key);
    if (found != peers_.end() && found->second.open > 0) --found->second.open;
  };
  leave(ip::Prefix::Host(peer));
  if (const auto network = NetworkOf(peer)) leave(*network);
  if (open_ > 0) --open_;
}

void PeerGate::Punish(const ip::Address& peer, absl::Time now) {
  if (IsFree(peer)) return;
  const double penalty = absl::ToDoubleSeconds(limits_.penalty) * limits_.per_second;
  Find(ip::Prefix::Host(peer), 1, now).tokens = penalty > 0 ? 1 - penalty : -limits_.burst;
}

// Forgets those that have no connection and all their tokens. Those that remain have used some in
// the last seconds, each at a price for anybody who would fill our memory.
void PeerGate::Forget(absl::Time now) {
  std::erase_if(peers_, [&](const auto& entry) {
    const Peer& peer = entry.second;
    const bool is_host = entry.first.length() == entry.first.base().bits();
    const double share = is_host ? 1 : kShare;
    const double passed = absl::ToDoubleSeconds(now - peer.counted);
    return peer.open == 0 &&
           peer.tokens + passed * limits_.per_second * share >= limits_.burst * share;
  });
  forget_at_ = std::max<size_t>(1024, 2 * peers_.size());
}

}  // namespace spoke::rpc
