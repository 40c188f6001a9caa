#include "netagent/iptables/published_rules_keeper.h"

#include "lib/base/status.h"

namespace spoke::netagent {

PublishedRulesKeeper::PublishedRulesKeeper(const Settings& settings, const Edges& edges)
    : settings_(settings),
      wanted_(settings.cluster ? PublishedRules(*settings.cluster) : std::vector<PublishedRule>()),
      edges_(edges) {}

Iptables& PublishedRulesKeeper::Of(IptablesBackend backend) {
  return backend == IptablesBackend::kNft ? edges_.nft : edges_.legacy;
}

// Reads both back ends. A back end that cannot be read leaves what was known of it.
void PublishedRulesKeeper::Scan() {
  use_.legacy_command = settings_.legacy_command;
  use_.legacy_is_default = settings_.legacy_is_default;
  const auto nft = edges_.nft.Read(ip::Family::kV4, kIptablesTables);
  if (nft.ok()) use_.nft_foreign = CountForeignRules(wanted_, *nft);
  const auto legacy = edges_.legacy.Read(ip::Family::kV4, kIptablesTables);
  if (legacy.ok()) use_.legacy_foreign = CountForeignRules(wanted_, *legacy);
  // Tables that nothing here can read were made by somebody, in a container perhaps.
  if (absl::IsUnimplemented(legacy.status())) use_.legacy_foreign = 1;

  const bool before = state().both_backends;
  if (use_.both() && !before) {
    edges_.log.Write(telemetry::Level::kWarn, "iptables_backends_mixed",
                     {{"nft_rules", use_.nft_foreign}, {"legacy_rules", use_.legacy_foreign}});
  }
  const absl::MutexLock lock(&mutex_);
  state_.both_backends = use_.both();
}

absl::Status PublishedRulesKeeper::Keep() {
  const IptablesBackend backend = ChooseBackend(use_);
  ASSIGN_OR_RETURN(const std::vector<IptablesTable> tables,
                   Of(backend).Read(ip::Family::kV4, {std::string(kPublishedTable)}));
  const std::vector<PublishedRule> missing = MissingRules(wanted_, tables);
  {
    const absl::MutexLock lock(&mutex_);
    state_.missing = missing.size();
  }
  if (!missing.empty()) {
    RETURN_IF_ERROR(Of(backend).Append(missing));
    edges_.log.Info("published_rules_added",
                    {{"backend", NameOf(backend)}, {"rules", missing.size()}});
  }
  const absl::MutexLock lock(&mutex_);
  state_.missing = 0;
  if (laid_in_ == backend) state_.repaired += missing.size();
  laid_in_ = backend;
  return absl::OkStatus();
}

void PublishedRulesKeeper::Tick(absl::Time now) {
  if (now < next_round_) return;
  next_round_ = now + kPublishedRulesRound;
  if (now >= next_scan_) {
    next_scan_ = now + kBackendScan;
    Scan();
  }
  if (wanted_.empty()) return;
  const absl::Status kept = Keep();
  if (!kept.ok() && kept.code() != last_.code()) {
    edges_.log.Write(telemetry::Level::kWarn, "published_rules_failed", {{"error", kept}});
  }
  last_ = kept;
}

PublishedRulesState PublishedRulesKeeper::state() const {
  const absl::MutexLock lock(&mutex_);
  return state_;
}

}  // namespace spoke::netagent
