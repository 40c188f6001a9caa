#include "netagent/dns/learned_names.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace spoke::netagent {
namespace {

constexpr std::string_view kBelow = "*.";

absl::Time ExpiryOf(const DnsAddress& address, absl::Time now) {
  return now + std::clamp(address.ttl, LearnedNames::kLeastLife, LearnedNames::kMostLife);
}

}  // namespace

bool LearnedNames::SetNames(const std::vector<std::pair<std::string, ClassNumber>>& names) {
  std::map<std::string, ClassNumber, std::less<>> exact;
  std::map<std::string, ClassNumber, std::less<>> below;
  for (const auto& [text, group] : names) {
    std::string name = absl::AsciiStrToLower(text);
    if (name.ends_with('.')) name.pop_back();
    const bool wild = name.starts_with(kBelow);
    if (wild) name.erase(0, kBelow.size());
    (wild ? below : exact).emplace(std::move(name), group);
  }
  if (exact == exact_ && below == below_) return false;
  exact_ = std::move(exact);
  below_ = std::move(below);
  // Addresses of no group may be of one now.
  others_.clear();
  other_at_.clear();
  bool changed = false;
  for (auto entry = learned_.begin(); entry != learned_.end();) {
    Learned& learned = entry->second;
    const std::optional<ClassNumber> group = GroupOf(learned.name);
    if (!group) {
      entry = Forget(entry);
      changed = true;
      continue;
    }
    if (*group != learned.group) {
      const auto old = by_expiry_.find(learned.group);
      old->second.erase({learned.expiry, entry->first});
      if (old->second.empty()) by_expiry_.erase(old);
      learned.group = *group;
      by_expiry_[*group].emplace(learned.expiry, entry->first);
      changed = true;
    }
    ++entry;
  }
  // Two groups may have become one.
  std::vector<ClassNumber> groups;
  for (const auto& [group, unused] : by_expiry_) groups.push_back(group);
  for (const ClassNumber group : groups) {
    while (by_expiry_[group].size() > kMaxAddresses) {
      Forget(learned_.find(by_expiry_[group].begin()->second));
    }
  }
  return changed;
}

std::optional<ClassNumber> LearnedNames::GroupOf(std::string_view name) const {
  if (const auto it = exact_.find(name); it != exact_.end()) return it->second;
  for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
    name.remove_prefix(dot + 1);
    if (const auto it = below_.find(name); it != below_.end()) return it->second;
  }
  return std::nullopt;
}

std::optional<LearnedNames::Match> LearnedNames::MatchOf(const DnsAnswer& answer) const {
  if (const auto group = GroupOf(answer.question)) return Match{*group, answer.question};
  for (const std::string& alias : answer.aliases) {
    if (const auto group = GroupOf(alias)) return Match{*group, alias};
  }
  return std::nullopt;
}

bool LearnedNames::OnAnswer(const DnsAnswer& answer, absl::Time now) {
  bool changed = Expire(now);
  const std::optional<Match> match = MatchOf(answer);
  for (const DnsAddress& address : answer.addresses) {
    if (match) {
      changed = Learn(address, *match, now) || changed;
    } else {
      NoteOther(address, now);
    }
  }
  return changed;
}

bool LearnedNames::Learn(const DnsAddress& address, const Match& match, absl::Time now) {
  const absl::Time expiry = ExpiryOf(address, now);
  const auto known = learned_.find(address.address);
  if (known == learned_.end()) {
    MakeRoom(match.group);
    Learned& learned =
        learned_
            .emplace(address.address, Learned{match.group, expiry, false, std::string(match.name)})
            .first->second;
    by_expiry_[match.group].emplace(expiry, address.address);
    if (IsOther(address.address, now)) MarkShared(learned);
    return true;
  }
  Learned& learned = known->second;
  if (learned.group != match.group) {
    MarkShared(learned);
    return false;
  }
  if (expiry > learned.expiry) {
    auto& expiries = by_expiry_[learned.group];
    expiries.erase({learned.expiry, address.address});
    expiries.emplace(expiry, address.address);
    learned.expiry = expiry;
    learned.name = match.name;
  }
  return false;
}

LearnedNames::Entry LearnedNames::Forget(Entry entry) {
  const auto group = by_expiry_.find(entry->second.group);
  group->second.erase({entry->second.expiry, entry->first});
  if (group->second.empty()) by_expiry_.erase(group);
  if (entry->second.shared) --shared_;
  return learned_.erase(entry);
}

void LearnedNames::MakeRoom(ClassNumber group) {
  const auto it = by_expiry_.find(group);
  if (it == by_expiry_.end() || it->second.size() < kMaxAddresses) return;
  Forget(learned_.find(it->second.begin()->second));
}

void LearnedNames::NoteOther(const DnsAddress& address, absl::Time now) {
  if (const auto known = learned_.find(address.address); known != learned_.end()) {
    MarkShared(known->second);
  }
  absl::Time expiry = ExpiryOf(address, now);
  if (const auto it = other_at_.find(address.address); it != other_at_.end()) {
    expiry = std::max(expiry, it->second->expiry);
    others_.erase(it->second);
    other_at_.erase(it);
  } else if (others_.size() == kMaxOthers) {
    other_at_.erase(others_.front().address);
    others_.pop_front();
  }
  other_at_[address.address] = others_.insert(others_.end(), {address.address, expiry});
}

bool LearnedNames::IsOther(const ip::Address& address, absl::Time now) const {
  const auto it = other_at_.find(address);
  return it != other_at_.end() && it->second->expiry > now;
}

void LearnedNames::MarkShared(Learned& learned) {
  if (!std::exchange(learned.shared, true)) ++shared_;
}

bool LearnedNames::Expire(absl::Time now) {
  bool changed = false;
  for (auto group = by_expiry_.begin(); group != by_expiry_.end();) {
    const auto next = std::next(group);
    // Forget() takes the group away with its last address.
    size_t due = 0;
    for (const auto& [expiry, unused] : group->second) {
      if (expiry > now) break;
      ++due;
    }
    changed = changed || due > 0;
    for (; due > 0; --due) Forget(learned_.find(group->second.begin()->second));
    group = next;
  }
  return changed;
}

absl::Time LearnedNames::NextExpiry() const {
  absl::Time first = absl::InfiniteFuture();
  for (const auto& [group, expiries] : by_expiry_) {
    first = std::min(first, expiries.begin()->first);
  }
  return first;
}

std::map<ip::Address, ClassNumber> LearnedNames::At(absl::Time now) const {
  std::map<ip::Address, ClassNumber> out;
  for (const auto& [address, learned] : learned_) {
    if (learned.expiry > now) out.emplace(address, learned.group);
  }
  return out;
}

}  // namespace spoke::netagent
