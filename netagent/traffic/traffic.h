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
    // Reads what the node's own configuration and the last agent say of egress; Start() calls it
    // first. Empty: they say nothing.
    std::function<absl::StatusOr<EgressSettings>()> begin_egress = {};
    // Makes the routes that packets with a gateway's mark take, before rules give any that mark.
    std::function<absl::Status(const EgressRules&)> put_gateway_routes = {};
    FastPath* fast_path = nullptr;  // The fast path; null: nothing is fast.
    // Reads what others have on this node that forbids the fast path; empty: nothing ever does.
    std::function<absl::StatusOr<FastPathObstacles>()> read_obstacles = {};
    // Tells whether the kernel tracks any connection now, as FastPods asks; empty: it always does.
    std::function<bool()> tracks_connections = {};
    // Reads what each pod may have of the connections that the kernel tracks; nothing: it tracks
    // none, or pods may have all. Empty: pods may have all.
    std::function<std::optional<ConnectionShares>()> read_shares = {};
  };
  struct Settings {
    FastPathSettings fast_path;
    PlatformAccess platform_access = PlatformAccess::kClosed;
    bool require_policy = false;  // Whether no pod is attached before a policy is known.
    // Returns where the server is, as far as it is known. A policy that would cut the way there is
    // refused.
    std::function<std::vector<ip::Address>()> server_addresses = {};
  };
  // Borrows the edges.
  Traffic(Settings settings, const Edges& edges);

  // Takes over what the kernel has: counters go on. Where `policy` is not known (nothing: it cannot
  // be read; version 0 although the rules in force are some policy's) or is refused, the rules that
  // are in force stay as they are until OnPolicy() brings one that compiles; where no rules are in
  // force, those of no policy are put in place. Errors: those of Attach() and
  // Edges::begin_egress; call it again.
  absl::Status Start(const std::optional<Policy>& policy, const std::vector<TrafficPod>& pods);
  // Returns whether the rules of a policy that is not known are in force.
  bool holds_unknown_rules() const { return !held_.empty(); }

  // Errors: as PodTraffic has them; also where an egress policy that is not known is in force.
  absl::Status Ready() const override;
  absl::Status Attach(const TrafficPod& pod) override;
  absl::Status Detach(const std::string& host_link) override;

  // Takes over the pod's new MAC, as a plugin that is chained behind ours may have it. Errors are
  // logged.
  void OnPodMac(const std::string& host_link, const ip::MacAddress& mac);

  // Returns what `policy` would cut of the connections that are there. Errors: those of
  // OnPolicy() before it changes anything.
  absl::StatusOr<CutRules> CutsOf(const Policy& policy);
  // Returns what the policy in force cuts; nothing while that policy is not known.
  CutRules Cuts() const;

  // Puts the whole policy in force, or nothing of it; OK means that it is in force. Errors:
  // kInvalidArgument (blocks that overlap, a broken egress policy); kFailedPrecondition (it would
  // cut the way to the server); and those of Attach().
  absl::Status OnPolicy(const Policy& policy);
  // Takes over that the gateways that answer, or what pods without a policy do, have changed.
  // Errors: those of OnPolicy().
  absl::Status OnGateways(std::set<GatewayEndpoint> healthy);
  absl::Status OnIpMasq(std::optional<IpMasqConfig> ip_masq);

  // The shares that are in force since the kernel tracks connections, until the agent ends.
  const std::optional<ConnectionShares>& shares() const { return shares_; }
  // Keeps these pods, and no others, from beginning connections from now on. The next look puts
  // right what fails.
  void OnOverShare(OverShare over);

  // Settles the counts of pods soon after they have gone, and puts right every kLook what somebody
  // else has changed. Call after each round of the loop, and at NextWake().
  static constexpr absl::Duration kLook = absl::Seconds(10);
  // The time between two readings of what others have; a reading takes long where they have much.
  static constexpr absl::Duration kLookForObstacles = absl::Seconds(30);
  void Tick();
  absl::Time NextWake() const;
  // Says that somebody else has changed our tables just now: a Tick() looks within some 50 ms.
  void OnTablesChanged();

  // Returns everything that was counted. A pod that has gone stays for two scrapes. Errors:
  // kUnavailable (try again); kInternal.
  absl::StatusOr<TrafficTotals> Read(bool is_scrape);

  const Policy& policy() const { return in_force_.policy; }
  // Returns the pods, by the node's ends of their links.
  const std::map<std::string, TrafficPod>& pods() const { return ledger_.live(); }
  const ClassMap& classes() const { return in_force_.classes; }
  const EgressRules& egress() const { return *in_force_.egress; }

 private:
  // Everything that one policy comes to on this node.
  struct Decision {
    Policy policy;
    ClassMap classes;
    std::optional<EgressRules> egress;  // The egress rules; always there.
    FastPathPlan fast;
  };
  absl::StatusOr<Decision> Decide(const Policy& policy);
  absl::StatusOr<Decision> DecideWith(const Policy& policy, const NodeNetwork& network) const;
  absl::Status CheckWayToServer(const ClassMap& classes) const;
  bool IsFast(const Decision& decision, const TrafficPod& pod) const;

  absl::Status Commit(const nft::Transaction& transaction);
  TrafficPlanSettings PlanSettingsOf(const Decision& decision) const;
  // Appends everything that `decision` says about rules and pods; what has been counted stays.
  void AppendAll(const Decision& decision, const TrafficTableBefore& before,
                 nft::Transaction& transaction);
  // Returns whether the kernel has what is in force, and nobody else has changed anything since.
  bool HoldsInForce();
  // Takes over the fast path as `decision` says; where the kernel refuses, the decision has it off.
  absl::Status TakeOverFast(const Policy& policy);
  void FastPathIsMissing(const absl::Status& why, Decision& decision);
  void PrepareFast(Decision& decision);
  absl::Status TryPutFast(const Decision& decision);
  void PutFast(Decision& decision);
  // Commits the rules and pods of `decision`: what differs from what is in force, or all of it,
  // where somebody else has changed something. Counts that went with their table begin a new epoch.
  absl::Status CommitRules(const Decision& decision);
  absl::Status CommitAllRules(const Decision& decision);
  absl::Status Put(Decision decision);
  // Everything that an agent before this one has left.
  struct Found;
  absl::StatusOr<Found> FindTables();
  // Returns why the rules that are in force are to be left alone; empty: they are not.
  static std::string WhyHold(const std::optional<Policy>& policy, const absl::Status& decided,
                             const Found& found);
  absl::Status Hold(std::string why, const Found& found);
  absl::Status Begin(Decision decision, const Found& found);
  absl::Status Settle(const AddressOwners& owners);
  // Reads everything except the names.
  absl::StatusOr<TrafficReadings> ReadAll();
  absl::StatusOr<std::vector<nft::CounterReading>> ReadNames();

  void SayWhoIsDenied(const TrafficTotals& totals);
  void Look();
  absl::Status LookForDrift();
  absl::StatusOr<bool> HasNoEpoch();
  // Returns what of ours differs from what it should be; "" when nothing does.
  absl::StatusOr<std::string> FindDrift();
  void LookAtFastPath();
  // Returns whether the shares are others now.
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
  const std::function<absl::StatusOr<EgressSettings>()> begin_egress_;
  const std::function<absl::Status(const EgressRules&)> put_gateway_routes_;
  const std::function<absl::StatusOr<FastPathObstacles>()> read_obstacles_;
  absl::Time next_obstacles_ = absl::InfinitePast();
  const std::function<std::optional<ConnectionShares>()> read_shares_;
  std::optional<ConnectionShares> shares_;
  OverShare over_;

  EgressSettings egress_;
  std::set<GatewayEndpoint> healthy_;
  Decision in_force_;
  TrafficLedger ledger_;
  // The numbers of destination groups, also those of policies before this one.
  std::map<std::string, ClassNumber> groups_;
  FastPods fast_pods_;
  absl::Time epoch_;
  std::string fast_missing_;  // Why the kernel refused last, so that it is said once.
  std::string held_;  // Why the rules in force are left alone; empty: they are ours to change.
  std::set<std::string> denied_;  // Namespaces whose pods were denied the platform.
  bool started_ = false;
  bool suspect_ = false;  // A transaction may or may not have happened.
  // The kernel's generation if nobody else has changed anything; nothing: it is to be read.
  std::optional<uint32_t> generation_;
  std::vector<nft::RuleReading> rules_;  // The rules as they were last put, without counts.
  TrafficPlanSettings rules_made_with_;
  uint64_t drift_repaired_ = 0;
  absl::Time next_look_ = absl::InfinitePast();
  absl::Time looked_ = absl::InfinitePast();
  // When settling is tried again, after one that failed.
  absl::Time next_settling_ = absl::InfinitePast();
};

}  // namespace spoke::netagent
