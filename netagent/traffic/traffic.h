// Counts, isolates and speeds up what pods send and receive: the one owner of the tables "spoke"
// and "spoke-names" in this node's nf_tables and of its fast path.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/nft/tables.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"
#include "netagent/attach/pod_traffic.h"
#include "netagent/classes/traffic_class.h"
#include "netagent/classes/traffic_pod.h"
#include "netagent/connections/connection_shares.h"
#include "netagent/egress/cut_rules.h"
#include "netagent/egress/egress_rules.h"
#include "netagent/fastpath/fast_path.h"
#include "netagent/fastpath/fast_path_plan.h"
#include "netagent/fastpath/fast_pods.h"
#include "netagent/node/node_routes.h"
#include "netagent/policy/policy_bundle.h"
#include "netagent/traffic/traffic_ledger.h"
#include "netagent/traffic/traffic_plan.h"
#include "netagent/traffic/traffic_totals.h"

namespace spoke::netagent {

// Not thread-safe; the agent's one loop owns it.
class Traffic : public PodTraffic {
 public:
  struct Edges {
    nft::Tables& tables;
    NodeRoutes& routes;
    const os::Clock& clock;
    telemetry::Log& log;
    // Makes the routes that packets with a gateway's mark take, before rules give any that mark.
    std::function<absl::Status(const EgressRules&)> put_gateway_routes = {};
    FastPath* fast_path = nullptr;  // Without it nothing is fast.
    // What others have on this node that forbids it; empty: nothing ever does.
    std::function<absl::StatusOr<FastPathObstacles>()> read_obstacles = {};
    // As FastPods has it; empty: some are.
    std::function<bool()> tracks_connections = {};
    // What each pod may have of the connections that the kernel tracks; nothing: it tracks none, or
    // pods may have all. Empty: they may.
    std::function<std::optional<ConnectionShares>()> read_shares = {};
  };
  struct Settings {
    EgressSettings egress;
    FastPathSettings fast_path;
    PlatformAccess platform_access = PlatformAccess::kClosed;
    bool require_policy = false;  // No pod is attached before any policy was known.
    // Where the server is, as far as it is known. A policy that would cut the way there is refused.
    std::function<std::vector<ip::Address>()> server_addresses = {};
  };
  // Borrows the edges.
  Traffic(Settings settings, const Edges& edges);

  // What of egress the node's own configuration says. Before Start().
  void UseEgress(EgressSettings settings) { settings_.egress = std::move(settings); }

  // Takes over what the kernel has: counters go on. Where `policy` is not known (nothing: it cannot
  // be read; version 0 although the rules in force are some policy's) or is refused, the rules that
  // are in force stay as they are until OnPolicy() brings one that compiles; where no rules are in
  // force, those of no policy are put in place. Errors: as Attach(); call it again.
  absl::Status Start(const std::optional<Policy>& policy, const std::vector<TrafficPod>& pods);
  // Whether the rules of a policy that is not known are in force.
  bool holds_unknown_rules() const { return !held_.empty(); }

  // Errors: as PodTraffic has it. Also where an egress policy that is not known is in force.
  absl::Status Ready() const override;
  absl::Status Attach(const TrafficPod& pod) override;
  absl::Status Detach(const std::string& host_link) override;

  // The pod's MAC is another now, as a plugin that is chained behind ours may have it. Errors are
  // logged.
  void OnPodMac(const std::string& host_link, const ip::MacAddress& mac);

  // What `policy` would cut of the connections that are there, were it in force. Errors: as
  // OnPolicy() before it changes anything.
  absl::StatusOr<CutRules> CutsOf(const Policy& policy);
  // What the policy in force does; nothing while that is not known.
  CutRules Cuts() const;

  // The whole of it or nothing; OK means that it is in force. Errors: kInvalidArgument (blocks that
  // overlap, a broken egress policy); kFailedPrecondition (it would cut the way to the server);
  // and as Attach().
  absl::Status OnPolicy(const Policy& policy);
  // The gateways that answer, or what pods without a policy do, have changed. Errors: as
  // OnPolicy().
  absl::Status OnGateways(std::set<GatewayEndpoint> healthy);
  absl::Status OnIpMasq(std::optional<IpMasqConfig> ip_masq);

  // In force since the kernel tracks connections, until the agent ends.
  const std::optional<ConnectionShares>& shares() const { return shares_; }
  // From now on these begin no connections, and no others. What fails is put right by a look.
  void OnOverShare(OverShare over);

  // Settles the counts of pods that have gone, soon after, and every kLook puts right what somebody
  // else has changed. Call after each round of the loop, and at NextWake().
  static constexpr absl::Duration kLook = absl::Seconds(10);
  // Between two readings of what others have, which takes long where they have much.
  static constexpr absl::Duration kLookForObstacles = absl::Seconds(30);
  void Tick();
  absl::Time NextWake() const;
  // Somebody else has changed our tables just now: a Tick() looks within some 50 ms.
  void OnTablesChanged();

  // Everything that was counted. A pod that has gone stays for two scrapes. Errors: kUnavailable
  // (try again); kInternal.
  absl::StatusOr<TrafficTotals> Read(bool is_scrape);

  const Policy& policy() const { return in_force_.policy; }
  // By the node's ends of their links.
  const std::map<std::string, TrafficPod>& pods() const { return ledger_.live(); }
  const ClassMap& classes() const { return in_force_.classes; }
  const EgressRules& egress() const { return *in_force_.egress; }

 private:
  // What one policy comes to on this node.
  struct Decision {
    Policy policy;
    ClassMap classes;
    std::optional<EgressRules> egress;  // Always there.
    FastPathPlan fast;
  };
  absl::StatusOr<Decision> Decide(const Policy& policy);
  absl::Status CheckWayToServer(const ClassMap& classes) const;
  bool IsFast(const Decision& decision, const TrafficPod& pod) const;

  absl::Status Commit(const nft::Transaction& transaction);
  TrafficPlanSettings PlanSettingsOf(const Decision& decision) const;
  // Everything that `decision` says about rules and pods; what has been counted stays.
  void AppendAll(const Decision& decision, const TrafficTableBefore& before,
                 nft::Transaction& transaction);
  // Whether the kernel has what is in force, and nobody else has changed anything since.
  bool HoldsInForce();
  // The fast path as `decision` says; where the kernel refuses, it is off in it.
  absl::Status TakeOverFast(const Policy& policy);
  void FastPathIsMissing(const absl::Status& why, Decision& decision);
  void PrepareFast(Decision& decision);
  absl::Status TryPutFast(const Decision& decision);
  void PutFast(Decision& decision);
  // The rules and pods of `decision`: what differs from what is in force, or all of it, where
  // somebody else has changed something. Counts that went with their table begin a new epoch.
  absl::Status CommitRules(const Decision& decision);
  absl::Status CommitAllRules(const Decision& decision);
  absl::Status Put(Decision decision);
  // What an agent before this one has left.
  struct Found;
  absl::StatusOr<Found> FindTables();
  // Why the rules that are in force are to be left alone; empty: they are not.
  static std::string WhyHold(const std::optional<Policy>& policy, const absl::Status& decided,
                             const Found& found);
  absl::Status Hold(std::string why, const Found& found);
  absl::Status Begin(Decision decision, const Found& found);
  absl::Status Settle(const AddressOwners& owners);
  // But for the names.
  absl::StatusOr<TrafficReadings> ReadAll();
  absl::StatusOr<std::vector<nft::CounterReading>> ReadNames();

  void SayWhoIsDenied(const TrafficTotals& totals);
  void Look();
  absl::Status LookForDrift();
  absl::StatusOr<bool> HasNoEpoch();
  // "" when nothing of ours differs from what it should be.
  absl::StatusOr<std::string> FindDrift();
  void LookAtFastPath();
  // Whether they are others now.
  bool ReadShares();
  void LookAtShares();
  void LookForObstacles();
  void LookAtRoutes();
  void SettleThoseThatWent();
  absl::StatusOr<std::vector<nft::RuleReading>> ReadRulesIfThere();
  absl::StatusOr<std::vector<nft::RuleReading>> ReadOwnRules();

  Settings settings_;
  nft::Tables& tables_;
  NodeRoutes& routes_;
  const os::Clock& clock_;
  telemetry::Log& log_;
  const std::function<absl::Status(const EgressRules&)> put_gateway_routes_;
  const std::function<absl::StatusOr<FastPathObstacles>()> read_obstacles_;
  absl::Time next_obstacles_ = absl::InfinitePast();
  const std::function<std::optional<ConnectionShares>()> read_shares_;
  std::optional<ConnectionShares> shares_;
  OverShare over_;

  std::set<GatewayEndpoint> healthy_;
  Decision in_force_;
  TrafficLedger ledger_;
  std::map<std::string, ClassNumber> groups_;  // Of policies before this one, too.
  FastPods fast_pods_;
  absl::Time epoch_;
  std::string fast_missing_;  // Why the kernel refused last, so that it is said once.
  std::string held_;  // Why the rules in force are left alone; empty: they are ours to change.
  std::set<std::string> denied_;  // Namespaces whose pods were denied the platform.
  bool started_ = false;
  bool suspect_ = false;  // A transaction may or may not have happened.
  // What the kernel's should be if nobody else has changed anything; nothing: it is to be read.
  std::optional<uint32_t> generation_;
  std::vector<nft::RuleReading> rules_;  // As they were last put; without counts.
  TrafficPlanSettings rules_made_with_;
  uint64_t drift_repaired_ = 0;
  absl::Time next_look_ = absl::InfinitePast();
  absl::Time looked_ = absl::InfinitePast();
  absl::Time next_settling_ = absl::InfinitePast();  // After one that failed.
};

}  // namespace spoke::netagent
