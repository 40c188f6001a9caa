#include "netagent/verification/address_questions.h"

#include <algorithm>

namespace spoke::netagent {

void AddressQuestions::SetOwn(const std::vector<OwnAddress>& own, absl::Time now) {
  std::set<ip::Address> ours;
  std::set<Question> controls;
  for (const OwnAddress& one : own) {
    ours.insert(one.address);
    const auto [it, inserted] = own_.try_emplace(one.address);
    Entry& entry = it->second;
    if (inserted && one.in_conflict) {
      entry.in_conflict = true;
      entry.heard = now;
    }
    const bool moved = entry.nic != one.nic || entry.control != one.control;
    entry.nic = one.nic;
    entry.control = one.control;
    if (one.control) controls.insert({*one.control, one.nic});
    if (!one.control) {
      entry.asking = false;
    } else if (entry.asking ? moved : !entry.asked) {
      Ask(entry, now);
    }
  }
  std::erase_if(own_, [&](const auto& entry) { return !ours.contains(entry.first); });
  active_.clear();
  for (const auto& [address, entry] : own_) {
    if (entry.asking || entry.in_conflict) active_.insert(active_.end(), address);
  }
  std::erase_if(controls_, [&](const auto& entry) { return !controls.contains(entry.first); });
  SetWake();
}

void AddressQuestions::Ask(Entry& entry, absl::Time now) {
  entry.asking = true;
  entry.round = {.next = now};
  entry.answer.reset();
}

void AddressQuestions::Calm() {
  std::erase_if(active_, [&](const ip::Address& address) {
    const Entry& entry = own_.at(address);
    return !entry.asking && !entry.in_conflict;
  });
}

const AddressQuestions::Round* AddressQuestions::ControlOf(const Entry& entry) const {
  if (!entry.control) return nullptr;
  const auto it = controls_.find({*entry.control, entry.nic});
  return it == controls_.end() ? nullptr : &it->second;
}

// Asks about the controls of the addresses to be asked about, unless they were asked just before.
void AddressQuestions::AskControls(absl::Time now) {
  for (const ip::Address& address : active_) {
    const Entry& entry = own_.at(address);
    if (!entry.asking || entry.round.sent > 0 || !entry.control) continue;
    const auto [it, inserted] = controls_.try_emplace({*entry.control, entry.nic});
    Round& control = it->second;
    const bool old = control.sent == kQuestionFrames && control.next + kControlLasts <= now;
    if (inserted || old) control = {.next = now};
  }
}

std::vector<Question> AddressQuestions::TakeQuestions(absl::Time now) {
  std::vector<Question> questions;
  EndQuestions(now);
  for (const ip::Address& address : active_) {
    Entry& entry = own_.at(address);
    if (entry.in_conflict && entry.control && !entry.asking && entry.ask_again <= now) {
      Ask(entry, now);
    }
  }
  if (now < next_turn_) {
    SetWake();
    return questions;
  }
  AskControls(now);
  const auto take = [&](const Question& question, Round& round) {
    if (questions.size() == kFramesATurn || round.sent == kQuestionFrames || round.next > now) {
      return;
    }
    questions.push_back(question);
    ++round.sent;
    round.next = now + (round.sent == kQuestionFrames ? kAnswerTime : kQuestionPause);
  };
  for (auto& [question, round] : controls_) take(question, round);
  for (const ip::Address& address : active_) {
    Entry& entry = own_.at(address);
    const Round* control = ControlOf(entry);
    if (!entry.asking || control == nullptr || control->sent == 0) continue;
    take({address, entry.nic}, entry.round);
  }
  if (!questions.empty()) next_turn_ = now + kQuestionTurn;
  SetWake();
  return questions;
}

void AddressQuestions::OnNotSent(absl::Time now) {
  for (const ip::Address& address : active_) {
    Entry& entry = own_.at(address);
    if (entry.asking) Ask(entry, now + kNotSentPause);
  }
  controls_.clear();
  next_turn_ = now + kNotSentPause;
  SetWake();
}

void AddressQuestions::EndQuestions(absl::Time now) {
  for (const ip::Address& address : active_) {
    Entry& entry = own_.at(address);
    const Round* control = ControlOf(entry);
    if (!entry.asking || !entry.round.IsOver(now) || control == nullptr || !control->IsOver(now)) {
      continue;
    }
    entry.asking = false;
    entry.asked = true;
    entry.ask_again = now + kAskAgain;
    entry.unanswered = true;
    const std::optional<ip::MacAddress> answer = std::exchange(entry.answer, std::nullopt);
    if (answer && !IsProxy(*answer, now)) NoteConflict(address, entry, *answer, now);
  }
  Calm();
}

void AddressQuestions::OnHeard(const NeighbourClaim& claim, absl::Time now) {
  if (claim.mac == kAzureFabricMac) return;
  const bool is_control = claim.kind == NeighbourClaim::Kind::kHas &&
                          std::any_of(controls_.begin(), controls_.end(), [&](const auto& entry) {
                            return entry.first.address == claim.address;
                          });
  if (is_control) {
    std::erase_if(proxies_, [&](const auto& proxy) { return proxy.second + kProxyLasts <= now; });
  }
  const auto known = proxies_.find(claim.mac);
  if (is_control && (known != proxies_.end() || proxies_.size() < kMaxProxies)) {
    if (!IsProxy(claim.mac, now)) new_proxies_.push_back(claim.mac);
    proxies_.insert_or_assign(claim.mac, now);
  }
  const auto it = own_.find(claim.address);
  if (it == own_.end()) return;
  Entry& entry = it->second;
  if (entry.asking) {
    // The end of the question tells whether the machine is a proxy.
    if (!entry.answer || IsProxy(*entry.answer, now)) entry.answer = claim.mac;
  } else if (!IsProxy(claim.mac, now)) {
    NoteConflict(claim.address, entry, claim.mac, now);
    active_.insert(claim.address);
    wake_ = now;
  }
}

bool AddressQuestions::IsProxy(const ip::MacAddress& mac, absl::Time now) const {
  const auto it = proxies_.find(mac);
  return it != proxies_.end() && now < it->second + kProxyLasts;
}

void AddressQuestions::NoteConflict(const ip::Address& address, Entry& entry,
                                    const ip::MacAddress& mac, absl::Time now) {
  if (!entry.in_conflict) entry.ask_again = now + kAskAgain;
  entry.in_conflict = true;
  entry.heard = now;
  entry.unanswered = false;
  if (now < entry.told + kTellEvery) return;
  entry.told = now;
  to_tell_.insert_or_assign(address, ConflictNoted{address, mac});
}

std::vector<ConflictNoted> AddressQuestions::TakeConflicts(absl::Time now) {
  EndQuestions(now);
  std::vector<ConflictNoted> conflicts;
  for (auto& [address, conflict] : std::exchange(to_tell_, {})) conflicts.push_back(conflict);
  SetWake();
  return conflicts;
}

std::vector<ip::Address> AddressQuestions::TakeOver(absl::Time now) {
  std::vector<ip::Address> over;
  for (const ip::Address& address : active_) {
    Entry& entry = own_.at(address);
    if (!entry.in_conflict || !entry.unanswered || now < entry.heard + kConflictLasts) continue;
    entry.in_conflict = false;
    over.push_back(address);
  }
  Calm();
  SetWake();
  return over;
}

std::set<ip::Address> AddressQuestions::Open() const {
  std::set<ip::Address> open;
  for (const ip::Address& address : active_) {
    const Entry& entry = own_.at(address);
    if (entry.asking && !entry.asked) open.insert(open.end(), address);
  }
  return open;
}

bool AddressQuestions::IsAsking() const {
  return std::any_of(active_.begin(), active_.end(),
                     [&](const ip::Address& address) { return own_.at(address).asking; });
}

void AddressQuestions::SetWake() {
  wake_.reset();
  const auto earlier = [this](absl::Time time) { wake_ = wake_ ? std::min(*wake_, time) : time; };
  if (!to_tell_.empty()) earlier(absl::InfinitePast());
  for (const ip::Address& address : active_) {
    const Entry& entry = own_.at(address);
    if (entry.asking) {
      // A frame waits for its turn; an end waits only for the control's.
      const Round* control = ControlOf(entry);
      const absl::Time end = control == nullptr ? absl::InfinitePast() : control->next;
      earlier(entry.round.sent == kQuestionFrames ? std::max(entry.round.next, end)
                                                  : std::max(entry.round.next, next_turn_));
    } else if (entry.in_conflict && entry.control) {
      earlier(entry.ask_again);
    }
    if (entry.in_conflict && entry.unanswered) earlier(entry.heard + kConflictLasts);
  }
}

}  // namespace spoke::netagent
