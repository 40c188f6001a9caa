#include "netagent/verification/address_verification.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "fmt/format.h"

namespace spoke::netagent {

void Readiness::SetWanted(const std::vector<ip::Address>& addresses, absl::Time now) {
  const std::set<ip::Address> wanted(addresses.begin(), addresses.end());
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto current = it++;
    if (wanted.contains(current->first)) continue;
    if (current->second.probing) --probes_;
    entries_.erase(current);
  }
  bool any_new = false;
  for (const ip::Address& address : wanted) {
    any_new |= entries_.try_emplace(address, Entry{.since = now}).second;
  }
  if (!any_new) return;
  pause_ = kListingFirstPause;
  expected_ = true;
  if (!reading_) next_reading_ = std::max(last_reading_ + kListingShortest, now);
}

bool Readiness::TakeReading(absl::Time now) {
  if (!settings_.want_listing || reading_ || now < next_reading_) return false;
  const bool any = std::any_of(entries_.begin(), entries_.end(),
                               [](const auto& entry) { return !entry.second.listed; });
  if (!any) return false;
  reading_ = true;
  expected_ = false;
  last_reading_ = now;
  return true;
}

void Readiness::EndReading(absl::Time now) {
  reading_ = false;
  if (expected_) {
    next_reading_ = std::max(last_reading_ + kListingShortest, now);
    return;
  }
  next_reading_ = now + pause_;
  pause_ = std::min(pause_ * 2, kListingLongestPause);
}

void Readiness::OnListing(const std::set<ip::Address>& listed, absl::Time now) {
  readable_ = true;
  for (auto& [address, entry] : entries_) entry.listed = listed.contains(address);
  EndReading(now);
}

void Readiness::OnListingFailed(absl::Time now) {
  readable_ = false;
  EndReading(now);
}

absl::Time Readiness::ProbeFrom(const Entry& entry) const {
  if (!settings_.want_answer || entry.answered) return absl::InfiniteFuture();
  if (!settings_.want_listing || entry.listed || !readable_) return entry.next_probe;
  return std::max(entry.next_probe, entry.since + kListingPatience);
}

std::vector<ip::Address> Readiness::TakeProbes(absl::Time now) {
  for (auto& [address, entry] : entries_) {
    if (!entry.probing || entry.next_probe > now) continue;
    entry.probing = false;
    --probes_;
    entry.next_probe = now + entry.pause;
    entry.pause = std::min(entry.pause * 2, kProbeLongestPause);
  }
  std::vector<ip::Address> send;
  for (auto& [address, entry] : entries_) {
    if (probes_ >= kMaxProbes) break;
    if (entry.probing || ProbeFrom(entry) > now) continue;
    entry.probing = true;
    ++probes_;
    entry.next_probe = now + kAnswerWithin;
    send.push_back(address);
  }
  return send;
}

void Readiness::OnAnswer(const ip::Address& address) {
  const auto it = entries_.find(address);
  if (it == entries_.end()) return;
  it->second.answered = true;
  if (!it->second.probing) return;  // Late, and as good.
  it->second.probing = false;
  --probes_;
}

bool Readiness::IsProven(const Entry& entry) const {
  return settings_.want_answer ? entry.answered : entry.listed;
}

std::vector<ip::Address> Readiness::TakeProven() {
  std::vector<ip::Address> proven;
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto current = it++;
    if (!IsProven(current->second)) continue;
    proven.push_back(current->first);
    if (current->second.probing) --probes_;
    entries_.erase(current);
  }
  return proven;
}

Missing Readiness::MissingOf(const Entry& entry) const {
  if (!settings_.want_listing || entry.listed) return Missing::kAnswer;
  if (readable_) return Missing::kListing;
  return settings_.want_answer ? Missing::kAnswer : Missing::kReading;
}

std::vector<OverdueAddress> Readiness::TakeOverdue(absl::Time now) {
  std::vector<OverdueAddress> overdue;
  for (auto& [address, entry] : entries_) {
    if (entry.overdue || now - entry.since < settings_.deadline) continue;
    entry.overdue = true;
    overdue.push_back({address, MissingOf(entry), now - entry.since});
  }
  return overdue;
}

std::optional<absl::Time> Readiness::NextWake() const {
  if (entries_.empty()) return std::nullopt;
  absl::Time next = absl::InfiniteFuture();
  bool any_unlisted = false;
  for (const auto& [address, entry] : entries_) {
    any_unlisted |= !entry.listed;
    if (!entry.overdue) next = std::min(next, entry.since + settings_.deadline);
    if (entry.probing) {
      next = std::min(next, entry.next_probe);
    } else if (probes_ < kMaxProbes) {
      next = std::min(next, ProbeFrom(entry));
    }
  }
  if (settings_.want_listing && any_unlisted && !reading_) next = std::min(next, next_reading_);
  return next;
}

std::string Readiness::Explain() const {
  constexpr std::array<std::string_view, 3> kWords = {"not listed by the host",
                                                      "while the host's list cannot be read",
                                                      "without an answer through the network"};
  std::array<size_t, kWords.size()> counts{};
  for (const auto& [address, entry] : entries_) ++counts.at(static_cast<size_t>(MissingOf(entry)));
  std::string text;
  for (size_t i = 0; i < kWords.size(); ++i) {
    if (counts.at(i) == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts.at(i), kWords.at(i));
  }
  return text;
}

}  // namespace spoke::netagent
