// What has to be done for one VM, step by step, until its request is answered. Pure: responses and
// the time come in, options for calls go out; whoever plans calls says when one is sent.
//
//   observe:  read the NIC, answer.
//   change:   read the model -> PUT -> read the NIC; answer when it agrees. When it does not: poll
//   the
//             operation -> read the NIC until it agrees, answer.
//
// A PUT carries the whole list, so it is made from what was just read and guarded by its ETag; who
// else writes is met by reading again (412). Nothing is written without an ETag, nor while the
// model shows an operation under way: it may be that of a server that led before this one, whose
// write was still on its way. Nothing is believed but what the NIC shows: an answer that was lost,
// a PUT without effect and an operation that failed half way all end in reading. Names are in the
// server's store before they are asked for, so reading tells what became of them.
//
// An entry is taken off only when the NIC with the request's MAC has just shown that name with that
// range: a name alone may be of the machine that was there before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/cloud/azure/operation_pace.h"
#include "ipam-server/cloud/azure/resources/arm_error.h"
#include "ipam-server/cloud/azure/resources/arm_id.h"
#include "ipam-server/cloud/azure/resources/instance_model.h"
#include "ipam-server/cloud/azure/resources/nic_resource.h"
#include "ipam-server/cloud/azure/settings.h"
#include "ipam-server/cloud/calls/call_limits.h"
#include "ipam-server/cloud/calls/cloud_gates.h"
#include "ipam-server/cloud/nic_request.h"
#include "lib/http/message.h"

namespace spoke::ipam::azure {

// The stage of a VM's next step.
enum class WorkStage : uint8_t {
  kIdle,
  kReadVm,     // Reads which NICs a Flexible scale set's VM has.
  kReadNic,    // Reads what is on the NIC.
  kReadModel,  // Reads what a PUT is made from.
  kPut,
  kPoll,
};

// An IP configuration as the model has it, which need not be what is on the NIC.
struct EntryInModel {
  std::string name;
  // nullopt: neither is said.
  std::optional<ip::Family> family;
  std::optional<int> prefix_length;
};

// The call that a VM's work would make next.
struct WorkCall {
  CallKind kind = CallKind::kGetInstanceNic;
  http::Request request;
  absl::Time not_before = absl::InfinitePast();
  bool prepares_write = false;
  bool writes = false;  // Needs the right to write, as do the reads that prepare it.
  std::string grows;    // The subnet it takes addresses of, if known.
  // The time from which a list of all NICs of the scale set would do as well.
  absl::Time list_from = absl::InfiniteFuture();
};

// Something not to be asked for a while.
struct WorkPark {
  enum class What : uint8_t { kVm, kSubnet };
  What what = What::kVm;
  std::string subnet = {};
  bool writes = false;     // Only writes to the VM are parked.
  bool forbidden = false;  // Others of the scale set will likely meet the same.
  ParkTime time = kFailedPark;
  std::string why;
};

// What a step needs from around it.
struct WorkContext {
  absl::Time now;
  double jitter = 0;  // A number in [0, 1).
  OperationPace* pace = nullptr;
  // Many VMs of the scale set are at work: reading back may wait until one list serves them all.
  bool crowded = false;
  // The VM's subnet is parked since it is full; why.
  std::string full_subnet = {};
};

// Returns `nic` if what it holds is known: not one that shows no entry, since every NIC has its
// primary one. To believe it would be to take all its addresses for gone.
// Errors: kUnavailable.
absl::StatusOr<NicResource> ReadWhole(absl::StatusOr<NicResource> nic);

// What of a NIC is ours and may be used: entries with our prefix that the fabric delivers to. The
// primary entry is the VM's own, whatever its name (github.com/cilium/cilium/issues/13415).
std::vector<IpConfiguration> OursOn(const NicResource& nic, std::string_view prefix);

// Not thread-safe.
class InstanceWork {
 public:
  // Borrows `settings`. `id`: an instance of a Uniform scale set or a VM of a Flexible one.
  InstanceWork(const Settings& settings, ResourceId id);

  // A newer request takes the place of one whose PUT has not been sent; else it comes next.
  void Ask(NicRequest request, const WorkContext& context);

  // What to call next; nullopt while a call is under way, or with nothing to do.
  std::optional<WorkCall> Wanted() const;
  void OnSent();
  void OnResponse(const http::Response& response, const WorkContext& context);
  // Notes that there will be no answer: nobody knows what became of it.
  void OnLost(const absl::Status& status, const WorkContext& context);
  // Notes that it was refused for a limit: the same call comes again.
  void OnRefused();
  // The VM's NICs, of a list that was asked for at `asked`.
  void OnNics(const std::vector<NicResource>& nics, absl::Time asked, const WorkContext& context);

  // Takes the answer to request(). Then StartNext() takes up what was asked for meanwhile, if any.
  std::optional<absl::StatusOr<NicAddresses>> TakeAnswer();
  void StartNext(const WorkContext& context);
  std::vector<WorkPark> TakeParks();

  const ResourceId& id() const { return id_; }
  WorkStage stage() const { return stage_; }
  bool idle() const { return stage_ == WorkStage::kIdle; }
  bool is_flexible() const { return id_.kind() == ResourceKind::kVirtualMachine; }
  // The request at work.
  const NicRequest& request() const { return request_; }
  CloudLane lane() const;
  absl::Time since() const { return since_; }
  absl::Time idle_since() const { return idle_since_; }
  // Its write is under way, or it has none to make.
  bool is_sent() const { return put_sent_ || !Changes(request_); }
  const std::string& subnet() const { return subnet_; }

 private:
  enum class Reading : uint8_t { kObserve, kBeforePlan, kInsteadOfPoll, kBack, kAfterFailure };

  static bool Changes(const NicRequest& request);
  void Begin(const WorkContext& context);
  void ReadNic(Reading reading, absl::Time not_before, const WorkContext& context);
  void ReadNicWithOthers(Reading reading, const WorkContext& context);
  void ReadModel(absl::Time not_before);
  void Poll(absl::Time not_before);
  // Reads the model again until the operation that it shows is over.
  void AwaitOperation(std::string_view state, const WorkContext& context);
  void Finish(absl::StatusOr<NicAddresses> answer, const WorkContext& context);
  NicAddresses AddressesOf(const NicResource& nic) const;

  WorkCall NicCall() const;
  WorkCall ModelCall() const;

  void OnVm(const http::Response& response, const WorkContext& context);
  void OnNicResponse(const http::Response& response, const WorkContext& context);
  void OnModelResponse(const http::Response& response, const WorkContext& context);
  void OnPutResponse(const http::Response& response, const WorkContext& context);
  void OnPollResponse(const http::Response& response, const WorkContext& context);

  const NicResource* Choose(const std::vector<NicResource>& nics) const;
  void Learn(const NicResource& nic);
  void OnNic(const NicResource& nic, const WorkContext& context);
  void OnNicAfterFailure(const NicResource& nic, const WorkContext& context);
  bool IsComplete(const NicResource& nic) const;
  bool MustSeeNic(const std::vector<EntryInModel>& present) const;
  void OnIncomplete(const WorkContext& context);
  void TryNextNic(const absl::Status& status, const WorkContext& context);

  // What the model has for the NIC to be changed; nullopt: it has no such NIC. Learns the subnet.
  std::optional<std::vector<EntryInModel>> EntriesInModel();
  void Plan(const WorkContext& context);
  NicChange PlanChange(const std::vector<EntryInModel>& present, const WorkContext& context);
  void LeaveOutWhatDoesNotFit(const std::vector<EntryInModel>& present, NicChange& change);
  absl::StatusOr<http::Request> BuildPut(const NicChange& change) const;
  absl::Status CheckBlocks() const;
  void AfterOperation(const WorkContext& context);

  void OnError(const ArmError& error, const WorkContext& context);
  void OnOperationFailed(const std::optional<ArmError>& error, const WorkContext& context);
  // Reads and plans again, since somebody else wrote.
  void StartOver(const ArmError& error, const WorkContext& context);
  void Retry(const absl::Status& status, const WorkContext& context);
  // Answers, since trying again will not help, and leaves the VM alone for a while.
  void GiveUp(absl::Status status, const ParkTime& park, const WorkContext& context);
  void Forbid(const ArmError& error, const WorkContext& context);
  // Parks the subnet, and says which it is.
  absl::Status OnSubnetFull(const ArmError& error);
  absl::Status FailureOf(const ArmError& error);

  const Settings& settings_;
  const ResourceId id_;
  NicRequest request_;
  std::optional<NicRequest> next_;  // The request that came while a PUT is under way.
  absl::Time since_;
  absl::Time next_since_;
  absl::Time idle_since_;
  std::optional<absl::StatusOr<NicAddresses>> answer_;
  std::vector<WorkPark> parks_;

  WorkStage stage_ = WorkStage::kIdle;
  Reading reading_ = Reading::kObserve;
  absl::Time stage_since_;
  absl::Time not_before_ = absl::InfinitePast();
  bool under_way_ = false;
  bool put_sent_ = false;

  // The counts of the request at work.
  int retries_ = 0;
  int conflicts_ = 0;
  int read_backs_ = 0;
  int polls_ = 0;
  // The readings in a row that have shown somebody's operation under way, and since when.
  int busy_readings_ = 0;
  absl::Time busy_since_;
  bool forced_ = false;
  bool cleaning_ = false;                 // The PUT takes off what never got an address.
  std::optional<absl::Status> failure_;   // The answer once the cleaning is done.
  std::optional<ParkTime> failure_park_;  // How long the VM is then left alone.
  // The time until which the NIC may still show all: the cause of failure may be another.
  absl::Time believed_at_ = absl::InfinitePast();
  http::Request put_;
  std::string operation_url_;
  bool by_location_ = false;
  absl::Time operation_since_;

  // What is known of the VM.
  std::optional<InstanceModel> model_;  // Uniform.
  nlohmann::json nic_body_;             // Flexible: the NIC as read; null: not read.
  std::string etag_;
  absl::Time model_at_ = absl::InfinitePast();
  bool model_failed_ = false;
  std::string nic_name_;
  std::vector<ResourceId> nics_;  // Flexible.
  size_t nic_index_ = 0;
  std::vector<std::string> usable_;  // Names with an address, as last read.
  // The names of what the present request keeps and of what it removes, where the NIC has shown
  // them with the address that the request says; nullopt: it was not read for that request.
  struct Shown {
    std::vector<std::string> kept;
    std::vector<std::string> removable;
  };
  std::optional<Shown> shown_;
  std::string subnet_;
};

}  // namespace spoke::ipam::azure
