#include "tests/bench/swarm/ledger.h"

#include <utility>

#include "fmt/core.h"

namespace spoke::swarm {

std::optional<uint32_t> Ledger::Claim(const ip::Address& address, uint32_t node, int64_t now) {
  Note({.address = address, .kind = ha::Event::Kind::kHeld, .node = node, .at = now});
  Owner before;
  {
    absl::MutexLock lock(&mutex_);
    const auto [it, inserted] = owners_.try_emplace(address, Owner{.node = node});
    Owner& owner = it->second;
    if (!inserted && !owner.given_up) {
      return owner.node == node ? std::nullopt : std::optional(owner.node);
    }
    before = owner;
    owner = {.node = node};
    ++owned_;
    if (before.node == node) return std::nullopt;
    ++moves_;
  }
  if (now - before.given_up_at < cooldown_) {
    Complain("too_soon",
             fmt::format("{} went from node {} to node {} after {} ms", address.ToString(),
                         before.node, node, (now - before.given_up_at) / 1'000'000));
  }
  return std::nullopt;
}

void Ledger::GiveUp(const ip::Address& address, uint32_t node, int64_t now) {
  Note({.address = address, .kind = ha::Event::Kind::kGivenUp, .node = node, .at = now});
  absl::MutexLock lock(&mutex_);
  const auto it = owners_.find(address);
  if (it == owners_.end() || it->second.node != node || it->second.given_up) return;
  it->second = {.node = node, .given_up = true, .given_up_at = now};
  --owned_;
}

void Ledger::Note(const ha::Event& event) {
  if (memory_ == Memory::kNone) return;
  absl::MutexLock lock(&mutex_);
  history_.push_back(event);
}

std::vector<ha::Event> Ledger::history() const {
  absl::MutexLock lock(&mutex_);
  return history_;
}

size_t Ledger::size() const {
  absl::MutexLock lock(&mutex_);
  return owned_;
}

uint64_t Ledger::moves() const {
  absl::MutexLock lock(&mutex_);
  return moves_;
}

void Ledger::Complain(std::string_view kind, std::string text) {
  absl::MutexLock lock(&mutex_);
  ++complaints_.total;
  ++complaints_.by_kind[std::string(kind)];
  if (complaints_.first.size() < kTextsKept) {
    complaints_.first.push_back(fmt::format("{}: {}", kind, std::move(text)));
  }
}

Ledger::Complaints Ledger::complaints() const {
  absl::MutexLock lock(&mutex_);
  return complaints_;
}

}  // namespace spoke::swarm
