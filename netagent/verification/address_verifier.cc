#include "netagent/verification/address_verifier.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace spoke::netagent {
namespace {

// The lines of one moment: when the host cannot be read, all of a node's addresses are overdue.
constexpr size_t kMaxOverdueLines = 8;

std::string_view NameOf(Missing missing) {
  switch (missing) {
    case Missing::kListing:
      return "host_listing";
    case Missing::kReading:
      return "host_unreadable";
    case Missing::kAnswer:
      return "answer";
  }
  return "unknown";
}

}  // namespace

AddressVerifier::AddressVerifier(const Edges& edges, ip::Family family, absl::Duration deadline,
                                 Attachments& attachments)
    : edges_(edges),
      family_(family),
      attachments_(attachments),
      readiness_({.want_listing = edges.host != nullptr,
                  .want_answer = edges.wire != nullptr,
                  .deadline = deadline}) {}

AddressVerifier::~AddressVerifier() {
  if (edges_.wire != nullptr) edges_.wire->Rest();
}

void AddressVerifier::Tick() {
  const absl::Time now = edges_.clock.Now();
  UpdateWanted(now);
  HearAnswers();
  Keep(now);
  BeginReading(now);
  SendProbes(now);
  ReportOverdue(now);
  if (edges_.wire != nullptr && !readiness_.HasProbes()) edges_.wire->Rest();
}

void AddressVerifier::UpdateWanted(absl::Time now) {
  std::vector<ip::Address> unproven = attachments_.assignments().Unproven();
  std::erase_if(unproven,
                [this](const ip::Address& address) { return address.family() != family_; });
  std::erase_if(unkept_, [&](const ip::Address& address) {
    return !std::binary_search(unproven.begin(), unproven.end(), address);
  });
  std::erase_if(unproven, [&](const ip::Address& address) { return unkept_.contains(address); });
  readiness_.SetWanted(unproven, now);
}

void AddressVerifier::HearAnswers() {
  if (edges_.wire == nullptr || !readiness_.HasProbes()) return;
  const auto answered = edges_.wire->TakeAnswered();
  if (!answered.ok()) return NoteWire(answered.status());
  for (const ip::Address& address : *answered) readiness_.OnAnswer(address);
}

void AddressVerifier::Keep(absl::Time now) {
  const std::vector<ip::Address> proven = readiness_.TakeProven();
  unkept_.insert(proven.begin(), proven.end());
  if (unkept_.empty() || now < next_keep_) return;
  if (!attachments_.OnProven({unkept_.begin(), unkept_.end()}).ok()) {
    next_keep_ = now + kKeepPause;  // Attachments has logged it.
    return;
  }
  edges_.log.Info("addresses_proven",
                  {{"count", unkept_.size()}, {"waiting", readiness_.waiting()}});
  unkept_.clear();
}

void AddressVerifier::BeginReading(absl::Time now) {
  if (!readiness_.TakeReading(now)) return;
  const bool begun = edges_.host->Read(
      [this, post = edges_.post, alive = std::weak_ptr<bool>(alive_)](auto listed) {
        post([this, alive, listed = std::move(listed)] {
          if (!alive.expired()) OnReading(listed);
        });
      });
  if (!begun) readiness_.OnListingFailed(now);
}

void AddressVerifier::OnReading(const absl::StatusOr<std::set<ip::Address>>& listed) {
  if (listed.ok()) {
    if (failed_readings_ > 0) {
      edges_.log.Info("host_list_readable", {{"failed_before", failed_readings_}});
    }
    failed_readings_ = 0;
    readiness_.OnListing(*listed, edges_.clock.Now());
  } else {
    if (failed_readings_++ == 0) {
      edges_.log.Warn("host_list_unreadable", {{"error", listed.status()}});
    }
    readiness_.OnListingFailed(edges_.clock.Now());
  }
  Tick();
}

void AddressVerifier::SendProbes(absl::Time now) {
  if (edges_.wire == nullptr) return;
  for (const ip::Address& address : readiness_.TakeProbes(now)) {
    NoteWire(edges_.wire->Send(address));
  }
}

void AddressVerifier::NoteWire(const absl::Status& status) {
  if (!status.ok() && !wire_failed_) edges_.log.Warn("wire_probe_failed", {{"error", status}});
  wire_failed_ = !status.ok();
}

void AddressVerifier::ReportOverdue(absl::Time now) {
  const std::vector<OverdueAddress> all = readiness_.TakeOverdue(now);
  const size_t shown = std::min(all.size(), kMaxOverdueLines);
  for (const OverdueAddress& overdue : std::span(all).first(shown)) {
    edges_.log.Warn("address_unproven", {{"address", overdue.address.ToString()},
                                         {"missing", NameOf(overdue.missing)},
                                         {"waited_s", absl::ToInt64Seconds(overdue.waited)}});
  }
  if (all.size() > shown) {
    edges_.log.Warn("address_unproven", {{"others", all.size() - shown}, {"missing", Explain()}});
  }
}

std::optional<absl::Time> AddressVerifier::NextWake() const {
  auto wake = readiness_.NextWake();
  const auto earlier = [&](absl::Time other) { wake = wake ? std::min(*wake, other) : other; };
  if (!unkept_.empty()) earlier(next_keep_);
  if (readiness_.HasProbes()) earlier(edges_.clock.Now() + kAnswerLook);
  return wake;
}

}  // namespace spoke::netagent
