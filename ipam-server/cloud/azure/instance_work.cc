#include "ipam-server/cloud/azure/instance_work.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "ipam-server/cloud/azure/resources/list_page.h"
#include "ipam-server/cloud/azure/scale_set.h"
#include "lib/base/backoff.h"
#include "lib/base/check.h"
#include "lib/json_text/json_text.h"

namespace spoke::ipam::azure {
namespace {

// The answer to a PUT is a model too. Who else writes makes it out of date, which costs a refused
// PUT: it is not used for long.
constexpr absl::Duration kModelFresh = absl::Minutes(1);
constexpr int kMostReadBacks = 10;
constexpr absl::Duration kAfterFailureWait = absl::Seconds(10);
constexpr base::Backoff kReadBackWait = {.initial = absl::Seconds(1), .max = absl::Seconds(30)};
// How long a VM in a crowd waits for a list that serves all: one call a VM would be more than the
// front door lets through (25 reads a second, where 8 writes a second need three reads each).
constexpr absl::Duration kGather = absl::Seconds(30);
constexpr absl::Duration kGatherObserve = absl::Seconds(5);

// Whether the NIC shows `entry`: by its name, and not with another range. What has no range yet, or
// no longer, serves nobody.
bool Shows(const NicResource& nic, const IpConfiguration& entry) {
  return std::any_of(nic.configurations.begin(), nic.configurations.end(),
                     [&](const NicConfiguration& there) {
                       return SameName(there.name, entry.name) &&
                              (!there.range.has_value() || *there.range == entry.range);
                     });
}

bool IsSuccess(int status) { return status >= 200 && status < 300; }

}  // namespace

InstanceWork::InstanceWork(const Settings& settings, ResourceId id)
    : settings_(settings), id_(std::move(id)) {}

bool InstanceWork::Changes(const NicRequest& request) {
  return !request.wanted.empty() || !request.removing.empty();
}

CloudLane InstanceWork::lane() const {
  // What comes next is held up by what is under way.
  return next_.has_value() ? std::min(request_.lane, next_->lane) : request_.lane;
}

void InstanceWork::Ask(NicRequest request, const WorkContext& context) {
  if (put_sent_) {
    if (!next_.has_value()) next_since_ = context.now;
    next_ = std::move(request);
    return;
  }
  const bool was_idle = idle();
  const bool changes = Changes(request);
  const bool changed = changes != Changes(request_);
  request_ = std::move(request);
  shown_.reset();
  if (was_idle) {
    since_ = context.now;
    Begin(context);
  } else if (under_way_ || stage_ == WorkStage::kReadVm) {
    return;  // What is being read serves the newer request as well.
  } else if (stage_ == WorkStage::kPut) {
    if (changes) {
      Plan(context);
    } else {
      Begin(context);
    }
  } else if (changed) {
    Begin(context);
  }
}

void InstanceWork::Begin(const WorkContext& context) {
  retries_ = 0;
  conflicts_ = 0;
  read_backs_ = 0;
  polls_ = 0;
  busy_readings_ = 0;
  forced_ = false;
  cleaning_ = false;
  put_sent_ = false;
  model_failed_ = false;
  failure_.reset();
  failure_park_.reset();
  if (is_flexible() && nics_.empty()) {
    stage_ = WorkStage::kReadVm;
    stage_since_ = context.now;
    not_before_ = absl::InfinitePast();
  } else if (!Changes(request_)) {
    ReadNicWithOthers(Reading::kObserve, context);
  } else if (model_.has_value() && context.now - model_at_ < kModelFresh) {
    Plan(context);
  } else {
    ReadModel(absl::InfinitePast());
  }
}

void InstanceWork::ReadNic(Reading reading, absl::Time not_before, const WorkContext& context) {
  stage_ = WorkStage::kReadNic;
  reading_ = reading;
  stage_since_ = context.now;
  not_before_ = not_before;
}

// Reads the NIC; in a crowd it waits until one list serves all.
void InstanceWork::ReadNicWithOthers(Reading reading, const WorkContext& context) {
  ReadNic(reading, context.crowded ? context.now + kGatherObserve : absl::InfinitePast(), context);
}

void InstanceWork::ReadModel(absl::Time not_before) {
  stage_ = WorkStage::kReadModel;
  put_sent_ = false;
  not_before_ = not_before;
  model_.reset();
  nic_body_ = nullptr;
}

void InstanceWork::Finish(absl::StatusOr<NicAddresses> answer, const WorkContext& context) {
  answer_ = std::move(answer);
  stage_ = WorkStage::kIdle;
  put_sent_ = false;
  nic_body_ = nullptr;
  idle_since_ = context.now;
}

std::optional<absl::StatusOr<NicAddresses>> InstanceWork::TakeAnswer() {
  return std::exchange(answer_, std::nullopt);
}

void InstanceWork::StartNext(const WorkContext& context) {
  if (!idle() || !next_.has_value()) return;
  request_ = *std::exchange(next_, std::nullopt);
  shown_.reset();
  since_ = next_since_;
  Begin(context);
}

std::vector<WorkPark> InstanceWork::TakeParks() { return std::exchange(parks_, {}); }

absl::StatusOr<NicResource> ReadWhole(absl::StatusOr<NicResource> nic) {
  if (!nic.ok()) return absl::UnavailableError(nic.status().message());
  if (nic->configurations.empty()) {
    return absl::UnavailableError("NIC " + nic->id.text() + " shows no IP configuration at all");
  }
  return nic;
}

std::vector<IpConfiguration> OursOn(const NicResource& nic, std::string_view prefix) {
  std::vector<IpConfiguration> ours;
  for (const NicConfiguration& entry : nic.configurations) {
    if (entry.primary || !entry.IsUsable() || nic.configurations.size() == 1) continue;
    if (!absl::StartsWithIgnoreCase(entry.name, {prefix.data(), prefix.size()})) continue;
    ours.push_back({entry.name, *entry.range});
  }
  std::sort(ours.begin(), ours.end());
  return ours;
}

NicAddresses InstanceWork::AddressesOf(const NicResource& nic) const {
  return {.node = request_.node,
          .nic_mac = nic.mac.value_or(request_.nic_mac),
          .configurations = OursOn(nic, settings_.name_prefix),
          .instance = id_.text()};
}

// --- Calls.

WorkCall InstanceWork::NicCall() const {
  WorkCall call;
  if (is_flexible()) {
    call.kind = CallKind::kGetNic;
    call.request.url = ResourceUrl(settings_.endpoints.resource_manager, nics_.at(nic_index_));
  } else {
    call.kind = CallKind::kGetInstanceNic;
    call.request.url = NicsUrl(settings_.endpoints.resource_manager, id_);
  }
  if (!is_flexible()) {
    // The NIC may show that the operation is over half way to the call.
    call.list_from = reading_ == Reading::kInsteadOfPoll
                         ? operation_since_ + (not_before_ - operation_since_) / 2
                         : absl::InfinitePast();
  }
  return call;
}

WorkCall InstanceWork::ModelCall() const {
  WorkCall call;
  if (is_flexible()) {
    call = NicCall();
  } else {
    call.kind = CallKind::kGetInstance;
    call.request.url =
        ResourceUrl(settings_.endpoints.resource_manager, id_,
                    settings_.blocks_on_scale_sets ? kComputeBlocksVersion : kComputeVersion);
  }
  call.prepares_write = true;
  call.writes = true;
  // What is to be taken off makes room; it need not wait for it.
  if (!request_.wanted.empty() && request_.removing.empty() && !failure_.has_value()) {
    call.grows = subnet_;
  }
  return call;
}

std::optional<WorkCall> InstanceWork::Wanted() const {
  if (under_way_) return std::nullopt;
  WorkCall call;
  switch (stage_) {
    case WorkStage::kIdle:
      return std::nullopt;
    case WorkStage::kReadVm:
      call.kind = CallKind::kGetVm;
      call.request.url = ResourceUrl(settings_.endpoints.resource_manager, id_);
      break;
    case WorkStage::kReadNic:
      call = NicCall();
      break;
    case WorkStage::kReadModel:
      call = ModelCall();
      break;
    case WorkStage::kPut:
      call.kind = is_flexible() ? CallKind::kPutNic : CallKind::kPutInstance;
      call.request = put_;
      call.writes = true;
      if (!request_.wanted.empty() && !failure_.has_value()) call.grows = subnet_;
      break;
    case WorkStage::kPoll:
      call.kind = is_flexible() ? CallKind::kPollNetwork : CallKind::kPollCompute;
      call.request.url = operation_url_;
      if (!is_flexible() && !failure_.has_value()) call.list_from = not_before_;
      break;
  }
  call.request.headers.Add("Accept", "application/json");
  call.not_before = not_before_;
  return call;
}

void InstanceWork::OnSent() {
  CHECK(!under_way_ && !idle(), "one call a VM at a time");
  under_way_ = true;
  if (stage_ == WorkStage::kPut) put_sent_ = true;
}

void InstanceWork::OnRefused() {
  under_way_ = false;
  if (stage_ == WorkStage::kPut) put_sent_ = false;
  not_before_ = absl::InfinitePast();  // The plan knows when.
}

void InstanceWork::OnResponse(const http::Response& response, const WorkContext& context) {
  CHECK(under_way_, "an answer belongs to a call");
  under_way_ = false;
  const bool polled_location = stage_ == WorkStage::kPoll && by_location_;
  if (!IsSuccess(response.status) && !polled_location) {
    OnError(DecodeArmError(response, context.now), context);
    return;
  }
  switch (stage_) {
    case WorkStage::kIdle:
      return;
    case WorkStage::kReadVm:
      OnVm(response, context);
      return;
    case WorkStage::kReadNic:
      OnNicResponse(response, context);
      return;
    case WorkStage::kReadModel:
      OnModelResponse(response, context);
      return;
    case WorkStage::kPut:
      OnPutResponse(response, context);
      return;
    case WorkStage::kPoll:
      OnPollResponse(response, context);
      return;
  }
}

// --- Reading the NIC.

void InstanceWork::OnVm(const http::Response& response, const WorkContext& context) {
  const auto body = json_text::ParseJsonObject(response.body);
  auto vm = body.ok() ? DecodeFlexibleVm(*body) : body.status();
  if (!vm.ok()) {
    Retry(vm.status(), context);
    return;
  }
  const bool ours =
      vm->scale_set.has_value() &&
      std::any_of(settings_.scale_sets.begin(), settings_.scale_sets.end(),
                  [&](const std::string& set) { return SameName(set, vm->scale_set->text()); });
  if (!ours || vm->nics.empty()) {
    Finish(absl::FailedPreconditionError("VM " + id_.text() +
                                         (ours ? " has no NIC" : " is in none of our scale sets")),
           context);
    return;
  }
  nics_ = std::move(vm->nics);
  nic_index_ = 0;
  Begin(context);
}

const NicResource* InstanceWork::Choose(const std::vector<NicResource>& nics) const {
  for (const NicResource& nic : nics) {
    if (nic.mac == request_.nic_mac) return &nic;
  }
  return nullptr;
}

void InstanceWork::Learn(const NicResource& nic) {
  nic_name_ = nic.name;
  usable_.clear();
  for (const NicConfiguration& entry : nic.configurations) {
    if (entry.primary || nic.configurations.size() == 1) subnet_ = entry.subnet;
    if (entry.IsUsable()) usable_.push_back(entry.name);
  }
  shown_.emplace();
  for (const IpConfiguration& entry : request_.configurations) {
    if (Shows(nic, entry)) shown_->kept.push_back(entry.name);
  }
  for (const IpConfiguration& entry : request_.removing) {
    if (Shows(nic, entry)) shown_->removable.push_back(entry.name);
  }
}

void InstanceWork::OnNicResponse(const http::Response& response, const WorkContext& context) {
  std::vector<NicResource> nics;
  if (is_flexible()) {
    auto nic = ReadWhole(DecodeNic(response));
    if (!nic.ok()) return Retry(nic.status(), context);
    nics.push_back(*std::move(nic));
  } else {
    auto page = DecodeListPage(response.body);
    if (!page.ok()) return Retry(page.status(), context);
    for (const nlohmann::json& item : page->items) {
      auto nic = ReadWhole(DecodeNic(item));
      if (!nic.ok()) return Retry(nic.status(), context);
      nics.push_back(*std::move(nic));
    }
  }
  if (const NicResource* nic = Choose(nics)) {
    OnNic(*nic, context);
  } else {
    TryNextNic(absl::FailedPreconditionError("VM " + id_.text() + " shows no NIC with MAC " +
                                             request_.nic_mac.ToString()),
               context);
  }
}

void InstanceWork::TryNextNic(const absl::Status& status, const WorkContext& context) {
  if (nic_index_ + 1 < nics_.size()) {
    ++nic_index_;
    return;
  }
  nic_index_ = 0;
  Retry(status, context);
}

void InstanceWork::OnNics(const std::vector<NicResource>& nics, absl::Time asked,
                          const WorkContext& context) {
  if (under_way_ || is_flexible()) return;
  const NicResource* nic = Choose(nics);
  if (nic == nullptr) return;
  const bool early =
      reading_ == Reading::kInsteadOfPoll && !IsComplete(*nic) && context.now < not_before_;
  if (stage_ == WorkStage::kReadNic && early) return;
  if (stage_ == WorkStage::kReadNic && asked >= stage_since_) {
    OnNic(*nic, context);
  } else if (stage_ == WorkStage::kPoll && asked >= operation_since_ && !failure_.has_value() &&
             IsComplete(*nic)) {
    Learn(*nic);
    Finish(AddressesOf(*nic), context);  // The NIC has it all: the operation need not be asked.
  }
}

void InstanceWork::OnNic(const NicResource& nic, const WorkContext& context) {
  Learn(nic);
  switch (reading_) {
    case Reading::kObserve:
      if (!Changes(request_)) {
        Finish(AddressesOf(nic), context);
      } else {
        ReadModel(absl::InfinitePast());
      }
      return;
    case Reading::kAfterFailure:
      OnNicAfterFailure(nic, context);
      return;
    case Reading::kBeforePlan:
      Plan(context);
      return;
    case Reading::kInsteadOfPoll:
      // It means nothing that it is not over early.
      if (IsComplete(nic) || context.now - operation_since_ >= context.pace->first_poll()) {
        context.pace->OnFirstPoll(IsComplete(nic));
      }
      if (IsComplete(nic)) {
        Finish(AddressesOf(nic), context);
      } else {
        Poll(absl::InfinitePast());
      }
      return;
    case Reading::kBack:
      if (IsComplete(nic)) {
        Finish(AddressesOf(nic), context);
      } else {
        OnIncomplete(context);
      }
      return;
  }
}

// An operation fails for the VM's extension, and the NIC was written all the same; but it shows
// that late. To take the addresses off at once would do so again each time they are asked for.
void InstanceWork::OnNicAfterFailure(const NicResource& nic, const WorkContext& context) {
  if (IsComplete(nic)) {
    failure_.reset();
    Finish(AddressesOf(nic), context);
  } else if (context.now < believed_at_) {
    ReadNic(Reading::kAfterFailure, context.now + kAfterFailureWait, context);
  } else {
    ReadModel(absl::InfinitePast());
  }
}

bool InstanceWork::IsComplete(const NicResource& nic) const {
  const auto usable = [&](std::string_view name) {
    return std::any_of(nic.configurations.begin(), nic.configurations.end(),
                       [&](const NicConfiguration& entry) {
                         return SameName(entry.name, name) && entry.IsUsable();
                       });
  };
  return std::all_of(request_.wanted.begin(), request_.wanted.end(),
                     [&](const WantedConfiguration& wanted) { return usable(wanted.name); }) &&
         std::none_of(request_.removing.begin(), request_.removing.end(),
                      [&](const IpConfiguration& entry) { return Shows(nic, entry); });
}

// The NIC shows its operation late. A model whose last operation failed, though, never comes to the
// NIC by itself: it has to be PUT once more (github.com/Azure/kube-egress-gateway/issues/981).
void InstanceWork::OnIncomplete(const WorkContext& context) {
  ++read_backs_;
  if (!forced_ && (model_failed_ || read_backs_ > kMostReadBacks)) {
    forced_ = true;
    read_backs_ = 0;
    ReadModel(absl::InfinitePast());
    return;
  }
  if (read_backs_ > kMostReadBacks) {
    GiveUp(absl::UnavailableError("the NIC of VM " + id_.text() +
                                  " does not show what was asked of it"),
           kFailedPark, context);
    return;
  }
  // The upper half of the backoff: a list may serve meanwhile.
  const absl::Duration wait = kReadBackWait.Delay(read_backs_, (1 + context.jitter) / 2);
  ReadNic(Reading::kBack, context.now + wait, context);
}

void InstanceWork::AfterOperation(const WorkContext& context) {
  if (failure_.has_value()) {
    if (failure_park_.has_value()) {
      GiveUp(*failure_, *failure_park_, context);
    } else {
      Finish(*failure_, context);
    }
    return;
  }
  const bool gather = context.crowded && request_.lane != CloudLane::kBlocking;
  ReadNic(Reading::kBack, gather ? context.now + kGather : absl::InfinitePast(), context);
}

}  // namespace spoke::ipam::azure
