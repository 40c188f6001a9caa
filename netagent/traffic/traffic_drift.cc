// Finds what somebody else has changed, and puts it right.
#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "netagent/traffic/traffic.h"

namespace spoke::netagent {
namespace {

constexpr std::string_view kNatHostPrefix = "nathost_";

bool SameRules(const std::vector<nft::RuleReading>& one,
               const std::vector<nft::RuleReading>& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](const nft::RuleReading& a, const nft::RuleReading& b) {
                      return a.handle == b.handle && a.chain == b.chain && a.comment == b.comment;
                    });
}

std::vector<TrafficPod> PodsOf(const TrafficLedger& ledger) {
  std::vector<TrafficPod> pods;
  for (const auto& [link, pod] : ledger.live()) pods.push_back(pod);
  return pods;
}

}  // namespace

void Traffic::Look() {
  looked_ = clock_.Now();
  next_look_ = looked_ + kLook;
  if (!held_.empty()) return;  // Nobody knows what should be there.
  if (clock_.Now() >= next_obstacles_) LookForObstacles();
  LookAtRoutes();
  LookAtShares();
  if (const absl::Status status = LookForDrift(); !status.ok()) {
    log_.Warn("traffic_look_failed", {{"error", status}});
    return;
  }
  LookAtFastPath();
  SettleThoseThatWent();
  ledger_.Forget(clock_.Now());
}

void Traffic::SettleThoseThatWent() {
  const AddressOwners gone = ledger_.Unsettled();
  if (gone.empty()) return;
  if (const absl::Status status = Settle(gone); !status.ok()) {
    next_settling_ = clock_.Now() + kLook;
    log_.Warn("traffic_look_failed", {{"error", status}});
  }
}

void Traffic::LookAtFastPath() {
  const auto repaired = fast_pods_.Look(in_force_.fast.Local(), ledger_.live());
  if (!repaired.ok()) {
    log_.Warn("traffic_look_failed", {{"error", repaired.status()}});
  } else if (*repaired > 0) {
    log_.Warn("traffic_rules_changed",
              {{"what", fmt::format("programs of {} devices have been taken off", *repaired)}});
    ++drift_repaired_;
  }
}

void Traffic::LookForObstacles() {
  next_obstacles_ = clock_.Now() + kLookForObstacles;
  if (!read_obstacles_ || !settings_.fast_path.wanted) return;
  auto obstacles = read_obstacles_();
  if (obstacles.ok()) {
    settings_.fast_path.obstacles = *std::move(obstacles);  // LookAtRoutes() goes by it.
  } else {
    log_.Warn("traffic_look_failed", {{"error", obstacles.status()}});
  }
}

void Traffic::LookAtRoutes() {
  const auto network = routes_.Read(settings_.fast_path.uplink);
  if (!network.ok()) {
    log_.Warn("traffic_look_failed", {{"error", network.status()}});
    return;
  }
  FastPathPlan plan = FastPathPlan::Plan(settings_.fast_path, in_force_.classes, *network);
  if (plan == in_force_.fast) {
    // The plan goes by the routes of today, which say what is this node's.
    in_force_.fast = std::move(plan);
    return;
  }
  Decision next = in_force_;
  next.fast = std::move(plan);
  if (const absl::Status status = Put(std::move(next)); !status.ok()) {
    log_.Warn("traffic_look_failed", {{"error", status}});
  }
}

absl::StatusOr<std::vector<nft::RuleReading>> Traffic::ReadRulesIfThere() {
  auto rules = tables_.ReadRules(kSpokeTable);
  if (absl::IsNotFound(rules.status())) return std::vector<nft::RuleReading>();
  return rules;
}

absl::StatusOr<std::vector<nft::RuleReading>> Traffic::ReadOwnRules() {
  ASSIGN_OR_RETURN(std::vector<nft::RuleReading> rules, tables_.ReadRules(kSpokeTable));
  // The rules of the NAT host are left out: its role looks after them.
  const auto others = [](const nft::RuleReading& rule) {
    return rule.chain.compare(0, kNatHostPrefix.size(), kNatHostPrefix) == 0;
  };
  rules.erase(std::remove_if(rules.begin(), rules.end(), others), rules.end());
  return rules;
}

absl::Status Traffic::LookForDrift() {
  ASSIGN_OR_RETURN(const uint32_t generation, tables_.Generation());
  if (!suspect_ && generation_ == generation) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string drift, FindDrift());
  if (!suspect_ && drift.empty()) {
    generation_ = generation;  // Somebody changed tables of others.
    return absl::OkStatus();
  }
  const bool others = !drift.empty() && !suspect_;
  if (others) log_.Warn("traffic_rules_changed", {{"what", drift}});
  RETURN_IF_ERROR(Put(in_force_));
  if (others) ++drift_repaired_;
  return absl::OkStatus();
}

absl::StatusOr<bool> Traffic::HasNoEpoch() {
  const auto counters = tables_.ReadCounters(kSpokeTable);
  if (absl::IsNotFound(counters.status())) return true;
  if (!counters.ok()) return counters.status();
  return !ReadLabels(*counters).epoch.has_value();
}

absl::StatusOr<std::string> Traffic::FindDrift() {
  auto rules = ReadOwnRules();
  if (absl::IsNotFound(rules.status())) return "the table spoke has been deleted";
  if (!rules.ok()) return rules.status();
  if (!SameRules(*rules, rules_)) {
    for (const nft::RuleReading& rule : *rules) {
      if (std::none_of(rules_.begin(), rules_.end(), [&](const nft::RuleReading& own) {
            return own.handle == rule.handle && own.comment == rule.comment;
          })) {
        return fmt::format("a rule of somebody else in chain {} ({})", rule.chain, rule.comment);
      }
    }
    return "rules of ours are missing";
  }
  const auto names = tables_.ReadCounters(kNamesTable);
  if (absl::IsNotFound(names.status())) return "the table spoke-names has been deleted";
  if (!names.ok()) return names.status();
  for (const auto& [set, keys] : ExpectedKeys(in_force_.classes, PodsOf(ledger_))) {
    const auto elements = tables_.ReadSet(kSpokeTable, set);
    if (absl::IsNotFound(elements.status())) return fmt::format("set {} has been deleted", set);
    if (!elements.ok()) return elements.status();
    std::set<nft::Bytes> found;
    for (const nft::ElementReading& reading : *elements) {
      found.insert(WholeKey(reading.element));
    }
    if (found != keys) return fmt::format("set {} has other elements", set);
  }
  return "";
}

}  // namespace spoke::netagent
