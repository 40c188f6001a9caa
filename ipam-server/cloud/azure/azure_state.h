// Azure as a machine of values: requests and responses in, HTTP calls and answers out. Pure: time
// is an argument, and nothing here waits, so the same code runs against the real service and, in
// tests and benchmarks, against a simulated one on a simulated clock.
//
//   while (true) {
//     for (const MachineCall& call : machine.Next(now, margin)) send it with its principal's token;
//     for each response: machine.OnResponse(call.id, response, now);
//     machine.TakeAnswers(), machine.TakeListings();
//     wait until machine.NextWake(), a response or a request;
//   }
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/cloud/azure/instance_work.h"
#include "ipam-server/cloud/azure/operation_pace.h"
#include "ipam-server/cloud/azure/scale_set.h"
#include "ipam-server/cloud/azure/settings.h"
#include "ipam-server/cloud/azure/sweep.h"
#include "ipam-server/cloud/calls/cloud_forecast.h"
#include "ipam-server/cloud/calls/cloud_plan.h"
#include "ipam-server/cloud/nic_request.h"
#include "lib/http/message.h"

namespace spoke::ipam::azure {

// Where the right to write ends unless it is renewed, a write has this time to leave in full
// (http::Request::send_within); its answer may take Settings::timeout. What has left is Azure's,
// and its ETag guards it.
inline constexpr absl::Duration kWriteLeaves = absl::Seconds(1);
// The least time for which nobody else may write, at which a write is sent: its time to leave, and
// what the sender takes from looking at the margin to handing the write over.
inline constexpr absl::Duration kWriteMargin = absl::Milliseconds(1500);

// The gate that every write passes.
inline constexpr std::string_view kEveryWrite = "write";

struct MachineCall {
  uint64_t id = 0;
  http::Request request;  // It has no token: the sender adds the principal's.
  size_t principal = 0;   // An index into Settings::identities.
  absl::Duration timeout;
};

struct MachineAnswer {
  NodeKey node;
  absl::StatusOr<NicAddresses> result;
};

// Counts for metrics and benchmarks, since the machine was made.
struct MachineCounts {
  uint64_t calls = 0;
  uint64_t writes = 0;
  uint64_t reads = 0;
  uint64_t polls = 0;
  uint64_t list_pages = 0;
  uint64_t refused = 0;    // 429.
  uint64_t conflicts = 0;  // 409 and 412.
  uint64_t errors = 0;     // All other failures, lost answers included.
};

// Not thread-safe.
class AzureState {
 public:
  // `seed` decides the jitter. Ids of `settings.scale_sets` that are none of a scale set are a bug
  // of who read the configuration.
  AzureState(Settings settings, uint64_t seed);

  // Takes a request. TakeAnswers() answers it, unless a newer one for the same node replaced it
  // before it was begun. The newer one keeps its place in the queue.
  void Request(NicRequest request, absl::Time now);
  // Asks for all NICs of all scale sets; TakeListings() answers. Those asked for while one is under
  // way get the next.
  void List(absl::Time now);

  // Returns the calls to be sent now. `write_margin`: how long nobody else may write, from `now`
  // on; below kWriteMargin writes wait, and all else goes on.
  std::vector<MachineCall> Next(absl::Time now,
                                absl::Duration write_margin = absl::InfiniteDuration());
  // Takes the response of a call from Next(); each has one. An error: there is and will be none.
  void OnResponse(uint64_t id, const absl::StatusOr<http::Response>& response, absl::Time now);
  // Returns when to call Next(); InfiniteFuture: only a response or a request brings anything.
  absl::Time NextWake() const;

  std::vector<MachineAnswer> TakeAnswers();
  // Errors: kUnavailable (a listing that is not whole).
  std::vector<absl::StatusOr<std::vector<NicAddresses>>> TakeListings();

  // Returns the node's forecast, at most a second old; nullopt: nothing waits for the node.
  std::optional<CloudForecast> ForecastOf(const NodeKey& node, absl::Time now);
  // Returns the forecasts of all nodes for which something waits. Takes n log n.
  std::map<NodeKey, CloudForecast> Forecasts(absl::Time now);

  CloudLoad Load(absl::Time now) const;

  const MachineCounts& counts() const { return counts_; }
  const CloudPlan& plan() const { return plan_; }
  size_t works() const { return works_.size(); }

 private:
  // A scale set of the configuration.
  struct Set {
    ResourceId id;
    std::optional<ScaleSet> info;  // nullopt: not read yet.
    bool reading = false;          // `info` is being read.
    int failures = 0;
    std::unique_ptr<Sweep> sweep;
    bool listing_due = false;       // The listing at work still needs its NICs.
    int pages = 0;                  // The last sweep's pages.
    std::set<std::string> working;  // VMs with something to do.
    // The VMs whose next call waits to be sent, and could be spared by a list from then on.
    std::map<std::string, absl::Time> list_would_do;
    absl::Time count_at = absl::InfinitePast();  // When they are to be counted again.
    absl::Time no_sweep_until = absl::InfinitePast();
    int forbidden = 0;  // Forbidden VMs in a row.
  };
  struct Work {
    std::unique_ptr<InstanceWork> work;
    Set* set = nullptr;
    uint64_t call = 0;                    // The call that waits or is under way; 0: none.
    bool sent = false;                    // It is under way.
    CloudLane lane = CloudLane::kWarmUp;  // The lane where it waits.
  };
  // Whom a call is for.
  struct Target {
    enum class Kind : uint8_t { kWork, kSweep, kScaleSet } kind = Kind::kWork;
    std::string vm;      // Set for kWork.
    Set* set = nullptr;  // Set for the others.
    CallKind call = CallKind::kGetInstance;
  };

  double Jitter();
  WorkContext ContextOf(const Work& work, absl::Time now);
  Set* SetOf(const ResourceId& vm);
  uint64_t NewCall(Target target);

  void Queue(const std::string& vm, absl::Time now);
  void LimitSpending(const std::string& vm, absl::Time now);
  void HoldWrites(absl::Duration write_margin, absl::Time now);
  void Unqueue(Work& work);
  void QueueSweep(Set& set, absl::Time now);
  void QueueScaleSet(Set& set, absl::Time now);
  void StartSweep(Set& set, absl::Time now);
  void SweepWhereManyWait(absl::Time now);
  size_t WorthASweep(const Set& set) const;

  // What came of a call. `error`: of a response that is no success.
  struct Outcome {
    const absl::StatusOr<http::Response>& response;
    const std::optional<ArmError>& error;
    bool refused = false;

    bool forbidden() const;
    absl::Status status() const;
  };
  void OnWorkAnswer(const Target& target, const Outcome& outcome, absl::Time now);
  void OnSweepAnswer(Set& set, const Outcome& outcome, absl::Time now);
  void OnScaleSetAnswer(Set& set, const Outcome& outcome, absl::Time now);
  std::optional<http::Request> BuildRequest(uint64_t id, Target& target);
  void FinishSweep(Set& set, absl::Time now);
  void FailSet(Set& set, const absl::Status& status, absl::Time now);
  void Settle(const std::string& vm, absl::Time now);
  void Park(const Work& work, const WorkPark& park, absl::Time now);
  void StartListing(absl::Time now);
  void AddToListing(Set& set, const absl::Status& status, absl::Time now);
  void Count(CallKind kind);
  void CountAnswer(const Outcome& outcome);
  void ForgetIdle(absl::Time now);
  void RefreshForecasts(absl::Time now);

  const Settings settings_;
  uint64_t random_;
  CloudPlan plan_;
  std::map<std::string, Set> sets_;  // Keyed by id.
  // What is gone through is ordered: the same that happens gives the same calls.
  std::map<std::string, Work> works_;
  // The writes sent within the last hour, by VM. They outlive the works: a pause is not forgotten.
  absl::flat_hash_map<std::string, std::deque<absl::Time>> writes_;
  std::map<NodeKey, std::string> vm_of_;  // The works' VMs.
  absl::flat_hash_map<uint64_t, Target> targets_;
  uint64_t last_call_ = 0;
  OperationPace compute_pace_;
  OperationPace network_pace_;

  std::vector<MachineAnswer> answers_;
  std::vector<absl::StatusOr<std::vector<NicAddresses>>> listings_;
  size_t listings_wanted_ = 0;   // Listings to be begun.
  size_t listings_at_work_ = 0;  // Listings that the one at work answers.
  absl::Time listing_since_;     // When it began; what follows is what it has brought.
  absl::Status listing_status_;
  std::vector<NicAddresses> listing_;

  std::map<NodeKey, CloudForecast> forecasts_;
  absl::Time forecasts_at_ = absl::InfinitePast();
  absl::Time forget_at_ = absl::InfinitePast();
  MachineCounts counts_;
};

}  // namespace spoke::ipam::azure
