// The owner of everything that shapes: keeps queues as policy, pods, grants and DNS say, reads what
// they count, tells the server what budgets' teams use, and repairs what somebody has changed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"
#include "netagent/attach/pod_traffic.h"
#include "netagent/classes/traffic_class.h"
#include "netagent/classes/traffic_pod.h"
#include "netagent/policy/policy_bundle.h"
#include "netagent/session/server_link.h"
#include "netagent/shaping/budget_holder.h"
#include "netagent/shaping/shaper.h"
#include "netagent/shaping/shaping_meter.h"
#include "netagent/shaping/shaping_plan.h"
#include "netagent/shaping/shaping_rules.h"

namespace spoke::netagent {

// The state of shaping, as metrics and people see it.
struct ShapingState {
  struct Grant {
    GrantInForce grant;
    TrafficDirection direction = TrafficDirection::kIngress;
    bool shadow = false;
    units::BitRate demand = {};
    units::BitRate usage = {};
  };
  // The reason why nothing is shaped; empty: it is, where there is something to.
  std::string missing;
  std::vector<Grant> grants;
  std::map<std::pair<std::string, TrafficDirection>, ShapingTotals> totals;
  uint64_t repaired = 0;
  size_t flows = 0;
  size_t learned_addresses = 0;  // The number of learned addresses that are in force.
};

// Not thread-safe; the agent's one loop owns it.
class Shaping : public PodTraffic {
 public:
  struct Edges {
    Shaper& shaper;
    ServerLink& server;
    const os::Clock& clock;
    telemetry::Log& log;
    // Returns a time that nobody sets, by which grants are measured.
    std::function<absl::Time()> monotonic;
    // Returns any number, so that not all nodes report at once.
    std::function<uint64_t()> random;
  };
  explicit Shaping(const Edges& edges);

  // Checks whether OnPolicy() would take the policy. Errors: kInvalidArgument, naming the object.
  static absl::Status Check(const Policy& policy);

  // Puts the policy in force: what it says of limits and budgets is in force when this returns, as
  // far as the kernel takes it: what it refuses is no error of the policy, but logged, shown in
  // state().missing, and tried again. Errors: those of Check(); the policy before stays in force.
  absl::Status OnPolicy(const Policy& policy, const ClassMap& classes);

  // Takes all pods that there are, at the start. Before that nothing is put into the kernel.
  void Start(const std::vector<TrafficPod>& pods);
  // Attaches a pod. One with options of its own is shaped when this returns, as far as the kernel
  // takes it; one that only policy limits kSoon after, with all others that came meanwhile: its
  // containers have yet to be made, and a plan goes through all pods of the node, which so many
  // ADDs at once would wait for in turn. On a node with so many pods that a plan takes long, it is
  // later, so that plans take a tenth of the loop's time at most, but not after the next look. One
  // with the same host link is replaced. What policy and
  // annotations say of the Internet never fails an ADD; a limit of all that the pod sends does,
  // since it was asked for with the ADD. Errors: kUnavailable (that limit is not in force, and
  // why).
  absl::Status Attach(const TrafficPod& pod) override;
  // Detaches the pod, whose link is down already; always OK.
  absl::Status Detach(const std::string& host_link) override;
  // Always OK: no pod waits for what shapes it.
  absl::Status Ready() const override { return absl::OkStatus(); }

  // Says that a stream to the server begins.
  void OnStream();
  void OnGrants(const node_api::BudgetGrants& grants);
  // Takes what DNS says now of names of groups, which replaces what it said before.
  void OnLearned(std::map<ip::Address, ClassNumber> learned);

  // Reads and plans anew every kLook while there is something to shape, and sooner twice after a
  // grant has grown: to see whether that is enough, and whether it was too much. Repairs every
  // kRepair, and reports as often as the budgets say; soon when a team begins to be held back, when
  // a grant has grown, or a team could use far less than it holds; and at once when a grant has
  // become less, or is the first of a stream. Call after each round of the loop, and at NextWake().
  static constexpr absl::Duration kLook = absl::Seconds(1);
  // The time after which pods that only policy limits are shaped: see Attach().
  static constexpr absl::Duration kSoon = absl::Milliseconds(20);
  // The least time before such a plan, in times that the last plan took.
  static constexpr int kPause = 10;
  // The time from a grant's growth to the first look.
  static constexpr absl::Duration kFirstLook = absl::Milliseconds(200);
  // The time from the first look to the second.
  static constexpr absl::Duration kSecondLook = absl::Milliseconds(300);
  static constexpr absl::Duration kRepair = absl::Seconds(10);
  // The time for which the queues stay behind the last pod with limits of its own, where no policy
  // limits any: making them takes ten milliseconds, which the next one's ADD would wait for, and
  // taking them away fifty.
  static constexpr absl::Duration kKeptFor = absl::Minutes(10);
  // The pause before what the kernel lacks is tried again.
  static constexpr absl::Duration kRetry = absl::Minutes(1);
  // The least time between two reports.
  static constexpr absl::Duration kEarliest = absl::Milliseconds(250);
  void Tick();
  absl::Time NextWake() const;

  const ShapingRules& rules() const { return rules_; }
  ShapingState state() const;

 private:
  std::vector<std::pair<std::string, std::string>> TeamsHere() const;
  // Makes the kernel as everything together says now.
  void PutInForce();
  void PlanAndApply();
  void ReadCounts();
  void OnRefusal(const absl::Status& status);
  void Look();
  void Report();
  // Returns whether a team could use much less than it holds (where its grant has grown: does not
  // use all of it), and the server does not know.
  bool WantsLess(bool has_grown) const;
  void Repair();
  bool Concerns(const TrafficPod& pod) const;

  const Edges edges_;
  ShapingRules rules_;
  ClassMap classes_;
  std::map<std::string, TrafficPod> pods_;  // The pods, by host link.
  std::map<ip::Address, ClassNumber> learned_;
  BudgetHolder holder_;
  std::vector<GrantInForce> grants_;  // The grants as of the last plan.
  ShapingMeter meter_;
  ShapingPlan plan_;
  // The tables that the kernel has; nothing: that is not known, since an agent before this one may
  // have left something, or the kernel has refused some of it.
  std::optional<ShapingTables> in_kernel_;
  bool started_ = false;
  bool unread_ = false;  // Pods have gone since their counts were read.
  std::string missing_;
  uint64_t repaired_ = 0;
  uint64_t sequence_ = 0;  // The number of the last report in this stream.
  bool streaming_ = false;
  absl::Time put_at_ = absl::InfiniteFuture();    // When a pod that came is to be shaped.
  absl::Duration plan_took_;                      // The time that the last plan took.
  absl::Time kept_until_ = absl::InfinitePast();  // The queues stay until then.
  absl::Time next_look_ = absl::InfiniteFuture();
  absl::Time next_repair_ = absl::InfiniteFuture();
  absl::Time next_report_ = absl::InfiniteFuture();
  absl::Time last_report_ = absl::InfinitePast();
  int looks_at_growth_ = 0;  // The looks still to come, since a grant has grown; 2 at most.
  bool report_soon_ = false;
  // The demand that was last reported, by budget and team.
  std::map<std::pair<std::string, std::string>, units::BitRate> told_;
};

}  // namespace spoke::netagent
