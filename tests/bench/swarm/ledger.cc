#include "tests/bench/swarm/ledger.h"

#include <utility>

#include "fmt/core.h"

namespace spoke::swarm {

std::optional<uint32_t> Ledger::Claim(const ip::Address& address, uint32_t node) {
  absl::MutexLock lock(&mutex_);
  const auto [it, inserted] = owners_.try_emplace(address, node);
  if (inserted || it->second == node) return std::nullopt;
  return it->second;
}

void Ledger::GiveUp(const ip::Address& address, uint32_t node) {
  absl::MutexLock lock(&mutex_);
  const auto it = owners_.find(address);
  if (it != owners_.end() && it->second == node) owners_.erase(it);
}

size_t Ledger::size() const {
  absl::MutexLock lock(&mutex_);
  return owners_.size();
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
