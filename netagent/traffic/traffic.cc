#include "netagent/traffic/traffic.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "netagent/traffic/share_rules.h"
#include "netagent/traffic/traffic_rules.h"

namespace spoke::netagent {
namespace {

// The shortest time between two looks: somebody may change our tables again and again.
constexpr absl::Duration kShortestPause = absl::Milliseconds(50);
// The most namespaces that are named in the log.
constexpr size_t kMostDenied = 1000;
constexpr std::string_view kEgressPrefix = "egress_";

// Returns whether it is certain that a transaction that ended so did not happen.
bool DidNotHappen(const absl::Status& status) {
  return !absl::IsDeadlineExceeded(status) && !absl::IsDataLoss(status) &&
         !absl::IsInternal(status);
}

// Narrows the status to the codes that PodTraffic promises.
absl::Status Narrow(const absl::Status& status) {
  if (status.ok() || absl::IsUnavailable(status) || absl::IsResourceExhausted(status)) {
    return status;
  }
  return absl::InternalError(status.message());
}

bool IsPolicysFault(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
}

}  // namespace

struct Traffic::Found {
  bool table = false;
  bool other_schema = false;
  TrafficReadings readings;
  TrafficLabels labels;
  std::vector<nft::RuleReading> rules;
};

Traffic::Traffic(Settings settings, const Edges& edges)
    : settings_(std::move(settings)),
      tables_(edges.tables),
      routes_(edges.routes),
      clock_(edges.clock),
      log_(edges.log),
      begin_egress_(edges.begin_egress),
      put_gateway_routes_(edges.put_gateway_routes),
      read_obstacles_(edges.read_obstacles),
      read_shares_(edges.read_shares),
      fast_pods_(edges.fast_path, edges.tracks_connections, edges.log) {}

absl::StatusOr<Traffic::Decision> Traffic::Decide(const Policy& policy) {
  ASSIGN_OR_RETURN(const NodeNetwork network, routes_.Read(settings_.fast_path.uplink));
  return DecideWith(policy, network);
}

absl::StatusOr<Traffic::Decision> Traffic::DecideWith(const Policy& policy,
                                                      const NodeNetwork& network) const {
  Decision next{.policy = policy};
  ASSIGN_OR_RETURN(next.classes, ClassMap::Compile(policy, groups_));
  RETURN_IF_ERROR(CheckWayToServer(next.classes));
  EgressSettings egress = egress_;
  for (const NodeAddress& own : network.addresses) egress.own.insert(own.address);
  egress.platform_access = settings_.platform_access;
  ASSIGN_OR_RETURN(next.egress, EgressRules::Compile(policy, next.classes, healthy_, egress));
  FastPathSettings fast = settings_.fast_path;
  fast.ordinary = next.egress->TunnelGateways();
  next.fast = FastPathPlan::Plan(fast, next.classes, network);
  return next;
}

absl::Status Traffic::CheckWayToServer(const ClassMap& classes) const {
  if (!settings_.server_addresses) return absl::OkStatus();
  for (const ip::Address& server : settings_.server_addresses()) {
    if (classes.ClassOf(server) != kPeerSpoke) continue;
    return absl::FailedPreconditionError(
        fmt::format("the server's address {} would be of the class peer-spoke: this node would cut "
                    "its own way to it",
                    server.ToString()));
  }
  return absl::OkStatus();
}

bool Traffic::IsFast(const Decision& decision, const TrafficPod& pod) const {
  if (!decision.fast.WhyNot(pod, decision.egress->KeepsFromFastPath(pod)).empty()) return false;
  if (!decision.fast.takes_new_pods() && !fast_pods_.IsFast(pod.host_link)) return false;
  // Everything that passes by it counts as the cluster's.
  return std::all_of(pod.addresses.begin(), pod.addresses.end(), [&](const ip::Address& address) {
    return decision.classes.ClassOf(address) == kCluster;
  });
}

absl::Status Traffic::Commit(const nft::Transaction& transaction) {
  if (transaction.empty()) return absl::OkStatus();
  const absl::Status status = tables_.Apply(transaction);
  if (status.ok()) {
    if (generation_) ++*generation_;
    return status;
  }
  if (!DidNotHappen(status)) {
    suspect_ = true;
    generation_.reset();
  }
  return status;
}

TrafficPlanSettings Traffic::PlanSettingsOf(const Decision& decision) const {
  const bool fast = decision.fast.on();
  const bool open =
      settings_.platform_access == PlatformAccess::kOpen && !decision.egress->NamesPlatform();
  const bool audit = settings_.platform_access == PlatformAccess::kAudit;
  return {.mark_translated = fast,
          .uplink = fast ? 0 : decision.fast.network().uplink_index,
          .platform = open    ? PlatformAccess::kOpen
                      : audit ? PlatformAccess::kAudit
                              : PlatformAccess::kClosed,
          .shares = shares_,
          .keep_peer_spokes = KeepsPeerSpokes(decision.policy)};
}

void Traffic::AppendAll(const Decision& decision, const TrafficTableBefore& before,
                        nft::Transaction& transaction) {
  AppendTrafficTable(decision.classes, PlanSettingsOf(decision), before, transaction);
  if (shares_ && before.classes == nullptr) AppendOver(over_, transaction);
  decision.egress->AppendTables(before.rules, transaction);
  for (const auto& [link, pod] : ledger_.live()) {
    if (before.classes == nullptr) AppendTrafficPod(pod, transaction);
    decision.egress->AppendPod(pod, transaction);
  }
}

bool Traffic::HoldsInForce() {
  if (suspect_ || !generation_) return false;
  const auto generation = tables_.Generation();
  return generation.ok() && *generation == *generation_;
}

void Traffic::FastPathIsMissing(const absl::Status& why, Decision& decision) {
  const std::string message(base::MessageOf(why));
  if (std::exchange(fast_missing_, message) != message) {
    log_.Warn("fast_path_unavailable", {{"error", why}});
  }
  if (!decision.fast.on()) return;
  settings_.fast_path.missing = message;
  decision.fast =
      FastPathPlan::Plan(settings_.fast_path, decision.classes, decision.fast.network());
}

void Traffic::PrepareFast(Decision& decision) {
  const absl::Status status = fast_pods_.Prepare(decision.fast.Table().uplink);
  if (!status.ok()) FastPathIsMissing(status, decision);
}

absl::Status Traffic::TryPutFast(const Decision& decision) {
  return fast_pods_.Put(decision.fast.Table(), decision.fast.Local(), ledger_.live(),
                        [&](const TrafficPod& pod) { return IsFast(decision, pod); });
}

void Traffic::PutFast(Decision& decision) {
  absl::Status status = TryPutFast(decision);
  if (status.ok()) return;
  const bool was_on = decision.fast.on();
  FastPathIsMissing(status, decision);
  if (!was_on) return;
  status = TryPutFast(decision);
  if (!status.ok()) FastPathIsMissing(status, decision);
}

absl::Status Traffic::CommitAllRules(const Decision& decision) {
  TrafficTableBefore before;
  ASSIGN_OR_RETURN(before.rules, ReadRulesIfThere());
  ASSIGN_OR_RETURN(const bool counts_lost, HasNoEpoch());
  const absl::Time epoch = counts_lost ? clock_.Now() : epoch_;
  nft::Transaction transaction;
  AppendAll(decision, before, transaction);
  if (counts_lost) AppendEpoch(epoch, transaction);
  RETURN_IF_ERROR(Commit(transaction));
  epoch_ = epoch;
  return absl::OkStatus();
}

absl::Status Traffic::CommitRules(const Decision& decision) {
  if (!HoldsInForce()) return CommitAllRules(decision);
  nft::Transaction transaction;
  AppendAll(decision,
            {.rules = rules_, .classes = &in_force_.classes, .settings = rules_made_with_},
            transaction);
  absl::Status status = Commit(transaction);
  const bool changed_just_now = absl::IsNotFound(status) || absl::IsAlreadyExists(status);
  return changed_just_now ? CommitAllRules(decision) : status;
}

absl::Status Traffic::Put(Decision decision) {
  // The routes come before the rules that lead there.
  if (put_gateway_routes_) RETURN_IF_ERROR(put_gateway_routes_(*decision.egress));
  PrepareFast(decision);
  const TrafficPlanSettings made_with = PlanSettingsOf(decision);
  RETURN_IF_ERROR(CommitRules(decision));
  // The fast path comes behind the rules that tell it of translated connections.
  PutFast(decision);
  if (decision.fast.state() != in_force_.fast.state()) {
    log_.Info("fast_path", {{"state", decision.fast.state()}});
  }
  in_force_ = std::move(decision);
  rules_made_with_ = made_with;
  egress_.tracked = egress_.tracked || in_force_.egress->NeedsTracking();
  egress_.known_marks = in_force_.egress->GatewayMarks();
  egress_.known_tunnel_port = in_force_.egress->TunnelPort();
  for (const auto& [name, number] : in_force_.classes.groups()) groups_[name] = number;
  suspect_ = false;
  // Rules that cannot be read now are read by the next look.
  auto rules = ReadOwnRules();
  auto generation = tables_.Generation();
  generation_ = rules.ok() && generation.ok() ? std::optional(*generation) : std::nullopt;
  rules_ = rules.ok() ? *std::move(rules) : std::vector<nft::RuleReading>();
  return absl::OkStatus();
}

absl::StatusOr<Traffic::Found> Traffic::FindTables() {
  Found found;
  const auto counters = tables_.ReadCounters(kSpokeTable);
  if (absl::IsNotFound(counters.status())) return found;
  if (!counters.ok()) return counters.status();
  found.table = true;
  found.labels = ReadLabels(*counters);
  found.other_schema = found.labels.schema != kTrafficSchema;
  ASSIGN_OR_RETURN(found.readings, ReadAll());
  ASSIGN_OR_RETURN(found.readings.names, ReadNames());
  // Schema 2 had the names of pods in the table spoke.
  std::copy_if(counters->begin(), counters->end(), std::back_inserter(found.readings.names),
               IsPodLabel);
  found.labels.namespaces = ReadLabels(found.readings.names).namespaces;
  ASSIGN_OR_RETURN(found.rules, tables_.ReadRules(kSpokeTable));
  return found;
}

// This is done before anything is read, since what the fast path has counted is a part of it.
absl::Status Traffic::TakeOverFast(const Policy& policy) {
  auto decision = Decide(policy);
  if (IsPolicysFault(decision.status())) decision = Decide(Policy{});
  RETURN_IF_ERROR(decision.status());
  const absl::Status status = fast_pods_.TakeOver(decision->fast.Table(), ledger_.live());
  if (status.ok()) return status;
  if (absl::IsUnavailable(status)) return Narrow(status);
  FastPathIsMissing(status, *decision);
  return absl::OkStatus();
}

std::string Traffic::WhyHold(const std::optional<Policy>& policy, const absl::Status& decided,
                             const Found& found) {
  if (found.other_schema || found.rules.empty()) return "";
  if (!policy) return "the policy that was kept cannot be read";
  if (IsPolicysFault(decided)) return std::string(decided.message());
  const bool of_a_policy =
      std::any_of(found.rules.begin(), found.rules.end(),
                  [](const nft::RuleReading& rule) { return TellsOfAPolicy(rule.chain); });
  return policy->version == 0 && of_a_policy ? "the policy that was kept is gone" : "";
}

absl::Status Traffic::Start(const std::optional<Policy>& policy,
                            const std::vector<TrafficPod>& pods) {
  generation_.reset();
  if (begin_egress_) {
    ASSIGN_OR_RETURN(egress_, begin_egress_());
  }
  LookForObstacles();
  ReadShares();
  ledger_ = TrafficLedger();
  for (const TrafficPod& pod : pods) ledger_.Began(pod);
  RETURN_IF_ERROR(TakeOverFast(policy.value_or(Policy())));
  ASSIGN_OR_RETURN(const Found found, FindTables());
  groups_ = found.labels.groups;
  // Rules of egress policies track connections, and these go on.
  egress_.tracked =
      egress_.tracked ||
      std::any_of(found.rules.begin(), found.rules.end(), [](const nft::RuleReading& rule) {
        return rule.chain.compare(0, kEgressPrefix.size(), kEgressPrefix) == 0;
      });
  epoch_ = found.labels.epoch.value_or(clock_.Now());
  auto decision = Decide(policy.value_or(Policy()));
  if (std::string why = WhyHold(policy, decision.status(), found); !why.empty()) {
    return Hold(std::move(why), found);
  }
  if (IsPolicysFault(decision.status())) {
    log_.Error("traffic_policy_refused",
               {{"version", policy->version}, {"error", decision.status()}});
    decision = Decide(Policy{});
  }
  RETURN_IF_ERROR(decision.status());
  return Begin(*std::move(decision), found);
}

absl::Status Traffic::Hold(std::string why, const Found& found) {
  ASSIGN_OR_RETURN(in_force_, Decide(Policy{}));
  held_ = std::move(why);
  started_ = true;
  log_.Error("traffic_rules_held", {{"rules", found.rules.size()}, {"why", held_}});
  return absl::OkStatus();
}

absl::Status Traffic::Begin(Decision decision, const Found& found) {
  nft::Transaction before;
  if (found.table && found.other_schema) AppendTakeOver(found.readings, before);
  TrafficTableBefore table;
  if (!found.other_schema) table.rules = found.rules;
  AppendAll(decision, table, before);
  if (!found.labels.epoch) AppendEpoch(epoch_, before);
  // Ids begin anew where the fast path does: none of a pod before may be in the set.
  AppendFolded(found.readings.folded, before);
  // These are the pods that went while no agent was there.
  AddressOwners left;
  for (const auto& [address, pod_namespace] : found.labels.namespaces) {
    if (!ledger_.Knows(address)) left[address] = pod_namespace;
  }
  std::vector<uint64_t> folded;
  if (!left.empty()) folded = AppendFold(left, found.readings, decision.classes, before);
  RETURN_IF_ERROR(Narrow(base::Annotate(Commit(before), "take over the table spoke")));
  fast_pods_.Forget(folded);
  RETURN_IF_ERROR(Narrow(Put(std::move(decision))));
  held_.clear();
  started_ = true;
  next_look_ = clock_.Now() + kLook;
  log_.Info("traffic_started", {{"pods", ledger_.live().size()},
                                {"taken_over", found.table},
                                {"settled", left.size()},
                                {"fast_path", in_force_.fast.state()}});
  return absl::OkStatus();
}

absl::Status Traffic::Ready() const {
  if (!held_.empty() && egress_.tracked) {
    return absl::ResourceExhaustedError(fmt::format(
        "the egress policy that is in force is not known ({}): waiting for the server's", held_));
  }
  if (started_ && held_.empty() && settings_.require_policy && in_force_.policy.version == 0) {
    return absl::ResourceExhaustedError(
        "no policy is known yet: waiting for the server's (traffic.require_policy)");
  }
  return absl::OkStatus();
}

absl::Status Traffic::Attach(const TrafficPod& pod) {
  if (!started_) return absl::UnavailableError("traffic is not ready yet");
  if (const absl::Status ready = Ready(); !ready.ok()) return ready;
  if (const TrafficPod* known = ledger_.Find(pod.host_link); known != nullptr) {
    if (*known == pod) return absl::OkStatus();
    RETURN_IF_ERROR(Detach(pod.host_link));
  }
  if (const AddressOwners owners = ledger_.InTheWayOf(pod); !owners.empty()) {
    RETURN_IF_ERROR(Settle(owners));
  }
  nft::Transaction transaction;
  AppendTrafficPod(pod, transaction);
  in_force_.egress->AppendPod(pod, transaction);
  const bool fast = IsFast(in_force_, pod);
  const absl::Status status = Commit(transaction);
  if (!status.ok()) {
    // Somebody may have changed what the transaction builds upon.
    generation_.reset();
    next_look_ = clock_.Now();
    return Narrow(base::Annotate(status, "count the pod's traffic"));
  }
  ledger_.Began(pod);
  fast_pods_.Add(pod, fast);
  return absl::OkStatus();
}

absl::Status Traffic::Detach(const std::string& host_link) {
  const TrafficPod* pod = ledger_.Find(host_link);
  if (pod == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(Narrow(base::Annotate(fast_pods_.End(host_link), "end the pod's traffic")));
  nft::Transaction transaction;
  AppendTrafficPodRemoval(*pod, transaction);
  in_force_.egress->AppendPodRemoval(*pod, transaction);
  absl::Status status = Commit(transaction);
  // Somebody has taken away what was to be removed: all is put anew, without this pod.
  const bool anew = absl::IsNotFound(status);
  if (!status.ok() && !anew) return Narrow(base::Annotate(status, "end the pod's traffic"));
  const TrafficPod gone = *pod;
  ledger_.Ended(host_link, clock_.Now());
  // Rules that nobody knows are not put anew: what is missing of this pod was to go anyway.
  if (!anew || !held_.empty()) return absl::OkStatus();
  generation_.reset();
  status = Put(in_force_);
  if (status.ok()) {
    ++drift_repaired_;
    return status;
  }
  ledger_.Restore(gone);
  return Narrow(base::Annotate(status, "end the pod's traffic"));
}

void Traffic::OnPodMac(const std::string& host_link, const ip::MacAddress& mac) {
  if (started_) fast_pods_.SetMac(host_link, mac);
}

absl::StatusOr<CutRules> Traffic::CutsOf(const Policy& policy) {
  // Only what would end is counted: the network that is in force is new enough, and to read it
  // takes as long as all the rest.
  const bool is_known = started_ && held_.empty();
  ASSIGN_OR_RETURN(const Decision next,
                   is_known ? DecideWith(policy, in_force_.fast.network()) : Decide(policy));
  return CutRules(policy, next.classes, *next.egress, ledger_.live());
}

CutRules Traffic::Cuts() const {
  if (!started_ || !held_.empty()) return {};
  return {in_force_.policy, in_force_.classes, *in_force_.egress, ledger_.live()};
}

absl::Status Traffic::OnPolicy(const Policy& policy) {
  auto decision = Decide(policy);
  RETURN_IF_ERROR(decision.status());
  absl::Status status;
  if (held_.empty()) {
    status = Put(*std::move(decision));
  } else {
    ASSIGN_OR_RETURN(const Found found, FindTables());
    status = Begin(*std::move(decision), found);
  }
  // The policy is not at fault, unless the kernel says so.
  return absl::IsInvalidArgument(status) ? absl::InternalError(status.message()) : Narrow(status);
}

absl::Status Traffic::OnGateways(std::set<GatewayEndpoint> healthy) {
  if (healthy == healthy_) return absl::OkStatus();
  std::swap(healthy, healthy_);
  if (!held_.empty()) return absl::OkStatus();
  const absl::Status status = OnPolicy(in_force_.policy);
  if (!status.ok()) std::swap(healthy, healthy_);
  return status;
}

absl::Status Traffic::OnIpMasq(std::optional<IpMasqConfig> ip_masq) {
  if (ip_masq == egress_.ip_masq) return absl::OkStatus();
  std::swap(ip_masq, egress_.ip_masq);
  if (!held_.empty()) return absl::OkStatus();
  const absl::Status status = OnPolicy(in_force_.policy);
  if (!status.ok()) std::swap(ip_masq, egress_.ip_masq);
  return status;
}

absl::Status Traffic::Settle(const AddressOwners& owners) {
  ASSIGN_OR_RETURN(TrafficReadings readings, ReadAll());
  ASSIGN_OR_RETURN(readings.names, ReadNames());
  nft::Transaction transaction;
  const std::vector<uint64_t> ids = AppendFold(owners, readings, in_force_.classes, transaction);
  RETURN_IF_ERROR(Narrow(base::Annotate(Commit(transaction), "settle pods that have gone")));
  fast_pods_.Forget(ids);
  ledger_.Settled(owners, readings, groups_);
  return absl::OkStatus();
}

absl::StatusOr<TrafficReadings> Traffic::ReadAll() {
  TrafficReadings readings;
  const auto read = [&](const nft::TableKey& table, const std::string& set,
                        std::vector<nft::ElementReading>& out) -> absl::Status {
    auto elements = tables_.ReadSet(table, set);
    // The set is of another schema, or somebody has deleted it, which the next look will see.
    if (absl::IsNotFound(elements.status())) return absl::OkStatus();
    if (!elements.ok()) return elements.status();
    out = *std::move(elements);
    return absl::OkStatus();
  };
  for (CountingSet& set : CountingSets()) {
    SetReading& reading = readings.pods.emplace_back(SetReading{std::move(set), {}});
    RETURN_IF_ERROR(read(reading.set.table, reading.set.name, reading.elements));
  }
  RETURN_IF_ERROR(read(kSpokeTable, "host_in", readings.host_in));
  RETURN_IF_ERROR(read(kSpokeTable, "host_out", readings.host_out));
  ASSIGN_OR_RETURN(readings.counters, tables_.ReadCounters(kSpokeTable));
  std::vector<nft::ElementReading> folded;
  RETURN_IF_ERROR(read(kSpokeTable, kFolded, folded));
  for (const nft::ElementReading& reading : folded) {
    if (const auto id = NumberOfKey(reading.element.key)) readings.folded.insert(*id);
  }
  ASSIGN_OR_RETURN(readings.fast, fast_pods_.Read(readings.folded));
  ASSIGN_OR_RETURN(readings.refused, fast_pods_.ReadRefused());
  return readings;
}

absl::StatusOr<std::vector<nft::CounterReading>> Traffic::ReadNames() {
  auto names = tables_.ReadCounters(kNamesTable);
  if (absl::IsNotFound(names.status())) return std::vector<nft::CounterReading>();
  return names;
}

absl::StatusOr<TrafficTotals> Traffic::Read(bool is_scrape) {
  ASSIGN_OR_RETURN(const TrafficReadings readings, ReadAll());
  TrafficTotals totals = ledger_.Total(readings, groups_, is_scrape);
  totals.epoch = epoch_;
  totals.fast_path = in_force_.fast.on();
  totals.fast_path_state =
      held_.empty() ? in_force_.fast.state() : "rules of a policy that is not known are in force";
  const auto is_over = [](const FastPodReading& pod) { return !pod.ended && pod.over_share; };
  totals.over_share_pods =
      static_cast<uint64_t>(std::count_if(readings.fast.begin(), readings.fast.end(), is_over));
  totals.drift_repaired = drift_repaired_;
  SayWhoIsDenied(totals);
  return totals;
}

void Traffic::SayWhoIsDenied(const TrafficTotals& totals) {
  for (const auto& [name, volumes] : totals.namespaces) {
    if (!volumes.contains(std::string(kPlatformDeniedName)) || denied_.size() >= kMostDenied) {
      continue;
    }
    if (!denied_.insert(name).second) continue;
    const bool passes = settings_.platform_access == PlatformAccess::kAudit;
    log_.Warn("platform_denied", {{"namespace", name}, {"passed", passes}});
  }
}

void Traffic::Tick() {
  if (!started_ || clock_.Now() < NextWake()) return;
  if (clock_.Now() >= next_look_) {
    Look();
  } else {
    SettleThoseThatWent();
  }
}

absl::Time Traffic::NextWake() const {
  if (!started_) return absl::InfiniteFuture();
  if (!held_.empty()) return next_look_;
  return std::min(next_look_, std::max(ledger_.NextDue(), next_settling_));
}

void Traffic::OnTablesChanged() {
  if (!started_) return;
  next_look_ = std::min(next_look_, std::max(clock_.Now(), looked_ + kShortestPause));
}

}  // namespace spoke::netagent
