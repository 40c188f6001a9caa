#include "ipam-server/cloud/azure/azure_state.h"

#include <algorithm>

#include "fmt/format.h"
#include "ipam-server/cloud/azure/call_answer.h"
#include "lib/base/backoff.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace spoke::ipam::azure {
namespace {

// A list of all NICs takes some pages; fewer VMs than this are read one by one.
constexpr size_t kSweepAtLeast = 8;
// The VMs that a list serves for each of its pages to save at least half the calls.
constexpr size_t kVmsAPage = 2;
constexpr absl::Duration kSweepPause = absl::Seconds(5);
constexpr absl::Duration kCountPause = absl::Seconds(1);
// The part of the waiting VMs that a list must serve to be worth its pages: one in so many.
constexpr size_t kWorthServing = 8;  // One in so many.
constexpr absl::Duration kUselessSweepPause = absl::Minutes(1);
// The number of VMs of one scale set at work that are a crowd.
constexpr size_t kCrowd = 32;
// The number of VMs in a row that may not be written before the whole scale set may not.
constexpr int kForbiddenVms = 3;
// Writes to one VM within an hour, whatever they are for and whatever comes of them: a fault of
// ours or of Azure's must not use up what the subscription may do.
constexpr size_t kMostWrites = 60;
constexpr absl::Duration kWritesWithin = absl::Hours(1);
// What is known of a VM with nothing to do is kept for this long.
constexpr absl::Duration kKeepIdle = absl::Minutes(1);
constexpr base::Backoff kSweepRetry = {.initial = absl::Seconds(1), .max = absl::Seconds(20)};
constexpr int kMostScaleSetFailures = 4;
// How soon the margin is looked at again where it was too small for writes.
constexpr ParkTime kMarginPark = {absl::Milliseconds(500), absl::Milliseconds(500)};

uint64_t Mix(uint64_t& state) {  // splitmix64
  state += 0x9e3779b97f4a7c15ULL;
  uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

Settings Normalized(Settings settings) {
  for (std::string& set : settings.scale_sets) {
    const auto id = ResourceId::Parse(set);
    CHECK(id.ok() && id->kind() == ResourceKind::kScaleSet, "scale sets are validated before");
    set = id->text();
  }
  return settings;
}

std::string ReadGate(std::string_view of) { return fmt::format("read:{}", of); }
std::string WriteGate(std::string_view of) { return fmt::format("write:{}", of); }
std::string SubnetGate(std::string_view of) { return fmt::format("subnet:{}", of); }

bool IsWrite(CallKind kind) { return kind == CallKind::kPutInstance || kind == CallKind::kPutNic; }

bool IsPoll(CallKind kind) {
  return kind == CallKind::kPollCompute || kind == CallKind::kPollNetwork;
}

}  // namespace

AzureState::AzureState(Settings settings, uint64_t seed)
    : settings_(Normalized(std::move(settings))),
      random_(seed),
      plan_({.share_for_others = settings_.share_for_others,
             .principals = std::max<size_t>(1, settings_.identities.size())}) {
  for (const std::string& id : settings_.scale_sets) {
    sets_.try_emplace(id, Set{.id = ResourceId::Parse(id).value()});
  }
}

double AzureState::Jitter() { return static_cast<double>(Mix(random_) >> 11U) * 0x1.0p-53; }

bool AzureState::Outcome::forbidden() const {
  return error.has_value() &&
         (error->kind == ErrorKind::kForbidden || error->kind == ErrorKind::kLocked);
}

absl::Status AzureState::Outcome::status() const {
  if (!response.ok()) return absl::UnavailableError(response.status().message());
  if (!error.has_value()) return absl::OkStatus();
  return forbidden() ? absl::PermissionDeniedError(Describe(*error))
                     : absl::UnavailableError(Describe(*error));
}

WorkContext AzureState::ContextOf(const Work& work, absl::Time now) {
  WorkContext context{.now = now, .jitter = Jitter()};
  context.pace = work.work->is_flexible() ? &network_pace_ : &compute_pace_;
  context.crowded = work.set->working.size() >= kCrowd;
  const CloudGate* full = plan_.ParkedAt(SubnetGate(work.work->subnet()), now);
  if (full != nullptr) context.full_subnet = full->why;
  return context;
}

// A VM of a Flexible scale set does not say whose it is, but is in its resource group; that it is
// of one of ours is checked when it is read.
AzureState::Set* AzureState::SetOf(const ResourceId& vm) {
  if (vm.kind() == ResourceKind::kInstance) {
    const auto set = ScaleSetOf(vm);
    const auto it = set.has_value() ? sets_.find(set->text()) : sets_.end();
    return it == sets_.end() ? nullptr : &it->second;
  }
  if (vm.kind() != ResourceKind::kVirtualMachine) return nullptr;
  for (auto& [id, set] : sets_) {
    const bool near = set.id.subscription() == vm.subscription() &&
                      set.id.resource_group() == vm.resource_group();
    if (near && (!set.info.has_value() || set.info->flexible)) return &set;
  }
  return nullptr;
}

void AzureState::Request(NicRequest request, absl::Time now) {
  auto id = ResourceId::Parse(request.instance);
  Set* set = id.ok() ? SetOf(*id) : nullptr;
  if (set == nullptr) {
    answers_.push_back({request.node, absl::FailedPreconditionError(
                                          fmt::format("node {}: \"{}\" is no VM of our scale sets",
                                                      request.node.name, request.instance))});
    return;
  }
  const std::string vm = id->text();
  Work& work = works_[vm];
  if (work.work == nullptr) {
    work.work = std::make_unique<InstanceWork>(settings_, *std::move(id));
    work.set = set;
  }
  vm_of_[request.node] = vm;
  if (request.mended) {
    for (const std::string& scope : {vm, set->id.text()}) {
      plan_.Unpark(ReadGate(scope));
      plan_.Unpark(WriteGate(scope));
    }
    plan_.Unpark(SubnetGate(work.work->subnet()));
    set->forbidden = 0;
  }
  work.work->Ask(std::move(request), ContextOf(work, now));
  Settle(vm, now);
}

uint64_t AzureState::NewCall(Target target) {
  targets_[++last_call_] = std::move(target);
  return last_call_;
}

// --- Waiting to be sent.

void AzureState::Unqueue(Work& work) {
  if (work.call == 0 || work.sent) return;
  plan_.Remove(work.call);
  targets_.erase(work.call);
  work.set->list_would_do.erase(work.work->id().text());
  work.call = 0;
}

void AzureState::Queue(const std::string& vm, absl::Time now) {
  Work& work = works_.at(vm);
  if (work.sent) return;
  Unqueue(work);
  const std::optional<WorkCall> wanted = work.work->Wanted();
  if (!wanted.has_value()) return;
  Set& set = *work.set;
  if (!set.info.has_value()) {
    QueueScaleSet(set, now);
    return;
  }
  CallRequest options;
  options.id = NewCall({.kind = Target::Kind::kWork, .vm = vm, .set = &set, .call = wanted->kind});
  options.kind = wanted->kind;
  options.lane = work.work->lane();
  options.since = work.work->since();
  options.not_before = wanted->not_before;
  options.subscription = std::string(work.work->id().subscription());
  options.region = set.info->region;
  options.resource = vm;
  options.prepares_write = wanted->prepares_write;
  if (wanted->writes) {
    options.gates = {WriteGate(set.id.text()), WriteGate(vm)};
  } else if (!IsPoll(wanted->kind)) {
    options.gates = {ReadGate(set.id.text()), ReadGate(vm)};
  }
  if (IsWrite(wanted->kind)) options.gates.emplace_back(kEveryWrite);
  if (!wanted->grows.empty()) options.gates.push_back(SubnetGate(wanted->grows));
  if (wanted->list_from != absl::InfiniteFuture()) set.list_would_do[vm] = wanted->list_from;
  work.call = options.id;
  plan_.Add(std::move(options));
}

void AzureState::QueueScaleSet(Set& set, absl::Time now) {
  if (set.reading || set.info.has_value()) return;
  set.reading = true;
  CallRequest options;
  options.id =
      NewCall({.kind = Target::Kind::kScaleSet, .set = &set, .call = CallKind::kGetScaleSet});
  options.kind = CallKind::kGetScaleSet;
  options.lane = CloudLane::kBlocking;  // All else of the scale set waits for it.
  options.since = now;
  if (set.failures > 0) {
    options.not_before = now + kSweepRetry.Delay(set.failures - 1, Jitter());
  }
  options.subscription = std::string(set.id.subscription());
  options.resource = set.id.text();
  options.gates = {ReadGate(set.id.text())};
  plan_.Add(std::move(options));
}

void AzureState::QueueSweep(Set& set, absl::Time now) {
  const Sweep::NextCall next = set.sweep->Next();
  CallRequest options;
  options.id = NewCall({.kind = Target::Kind::kSweep, .set = &set, .call = next.kind});
  options.kind = next.kind;
  options.since = set.sweep->asked();
  for (const std::string& vm : set.working) {
    const InstanceWork& work = *works_.at(vm).work;
    options.lane = std::min(options.lane, work.lane());
    options.since = std::min(options.since, work.since());
  }
  if (set.sweep->retries() > 0) {
    options.not_before = now + kSweepRetry.Delay(set.sweep->retries() - 1, Jitter());
  }
  options.subscription = std::string(set.id.subscription());
  options.region = set.info->region;
  options.resource = set.id.text();
  options.gates = {ReadGate(set.id.text())};
  plan_.Add(std::move(options));
}

size_t AzureState::WorthASweep(const Set& set) const {
  return std::max(kSweepAtLeast, kVmsAPage * static_cast<size_t>(set.pages));
}

void AzureState::StartSweep(Set& set, absl::Time now) {
  set.sweep = std::make_unique<Sweep>(settings_, set.id, set.info->flexible, now);
  // The sweep serves these VMs; who comes later reads for itself, or waits for the next.
  std::vector<std::string> served;
  for (const auto& [vm, from] : set.list_would_do) {
    if (from <= now) served.push_back(vm);
  }
  for (const std::string& vm : served) Unqueue(works_.at(vm));
  QueueSweep(set, now);
}

void AzureState::SweepWhereManyWait(absl::Time now) {
  for (auto& [id, set] : sets_) {
    const size_t enough = WorthASweep(set);
    const bool idle = set.sweep == nullptr && now >= set.no_sweep_until;
    if (!idle || now < set.count_at || set.list_would_do.size() < enough) continue;
    set.count_at = now + kCountPause;
    const auto due = std::count_if(set.list_would_do.begin(), set.list_would_do.end(),
                                   [&](const auto& entry) { return entry.second <= now; });
    if (static_cast<size_t>(due) >= enough) StartSweep(set, now);
  }
}

// --- Sending.

std::optional<http::Request> AzureState::BuildRequest(uint64_t id, Target& target) {
  switch (target.kind) {
    case Target::Kind::kWork: {
      Work& work = works_.at(target.vm);
      CHECK(work.call == id, "one call a VM waits");
      http::Request request = work.work->Wanted().value().request;
      work.work->OnSent();
      work.sent = true;
      work.set->list_would_do.erase(target.vm);
      return request;
    }
    case Target::Kind::kSweep:
      return target.set->sweep->Next().request;
    case Target::Kind::kScaleSet: {
      http::Request request;
      request.url = ResourceUrl(settings_.endpoints.resource_manager, target.set->id);
      request.headers.Add("Accept", "application/json");
      return request;
    }
  }
  return std::nullopt;
}

void AzureState::HoldWrites(absl::Duration write_margin, absl::Time now) {
  if (write_margin >= kWriteMargin) {
    plan_.Unpark(kEveryWrite);
  } else {
    plan_.Park(kEveryWrite, kMarginPark, "this server's leadership to be renewed", now, 0);
  }
}

std::vector<MachineCall> AzureState::Next(absl::Time now, absl::Duration write_margin) {
  if (now >= forget_at_) ForgetIdle(now);
  HoldWrites(write_margin, now);
  if (listings_at_work_ == 0 && listings_wanted_ > 0) StartListing(now);
  SweepWhereManyWait(now);
  std::vector<MachineCall> calls;
  for (const AdmittedCall& admitted : plan_.Next(now)) {
    Target& target = targets_.at(admitted.id);
    auto request = BuildRequest(admitted.id, target);
    CHECK(request.has_value(), "every call has a request");
    Count(target.call);
    if (IsWrite(target.call)) {
      writes_[target.vm].push_back(now);
      if (write_margin != absl::InfiniteDuration()) request->send_within = kWriteLeaves;
    }
    calls.push_back({.id = admitted.id,
                     .request = *std::move(request),
                     .principal = admitted.principal,
                     .timeout = settings_.timeout});
  }
  return calls;
}

absl::Time AzureState::NextWake() const { return plan_.NextWake(); }

// --- Answers.

void AzureState::OnResponse(uint64_t id, const absl::StatusOr<http::Response>& response,
                            absl::Time now) {
  const auto it = targets_.find(id);
  CHECK(it != targets_.end(), "one response a call");
  const Target target = std::move(it->second);
  targets_.erase(it);
  std::optional<ArmError> error;
  CallAnswer answer;
  if (response.ok()) {
    if (response->status < 200 || response->status >= 300) {
      error = DecodeArmError(*response, now);
    }
    answer = CallAnswerOf(*response, error);
  }
  const bool refused = answer.refusal != CallAnswer::Refusal::kNone;
  const Outcome outcome{.response = response, .error = error, .refused = refused};
  CountAnswer(outcome);
  plan_.Answer(id, answer, now, Jitter());
  switch (target.kind) {
    case Target::Kind::kWork:
      OnWorkAnswer(target, outcome, now);
      return;
    case Target::Kind::kSweep:
      OnSweepAnswer(*target.set, outcome, now);
      return;
    case Target::Kind::kScaleSet:
      OnScaleSetAnswer(*target.set, outcome, now);
      return;
  }
}

void AzureState::OnWorkAnswer(const Target& target, const Outcome& outcome, absl::Time now) {
  Work& work = works_.at(target.vm);
  work.sent = false;
  work.call = 0;
  const WorkContext context = ContextOf(work, now);
  if (!outcome.response.ok()) {
    work.work->OnLost(outcome.response.status(), context);
  } else if (outcome.refused) {
    work.work->OnRefused();
  } else {
    work.work->OnResponse(*outcome.response, context);
  }
  Settle(target.vm, now);
}

// Takes what a step left: things to be parked, an answer, the next call.
void AzureState::Settle(const std::string& vm, absl::Time now) {
  Work& work = works_.at(vm);
  InstanceWork& instance = *work.work;
  for (const WorkPark& park : instance.TakeParks()) Park(work, park, now);
  while (auto answer = instance.TakeAnswer()) {
    if (answer->ok()) {
      plan_.Unpark(ReadGate(vm));
      plan_.Unpark(WriteGate(vm));
      if (!instance.request().wanted.empty()) plan_.Unpark(SubnetGate(instance.subnet()));
      work.set->forbidden = 0;
    }
    answers_.push_back({instance.request().node, *std::move(answer)});
    instance.StartNext(ContextOf(work, now));
    for (const WorkPark& park : instance.TakeParks()) Park(work, park, now);
  }
  if (instance.idle()) {
    work.set->working.erase(vm);
  } else {
    work.set->working.insert(vm);
  }
  LimitSpending(vm, now);
  Queue(vm, now);
}

void AzureState::LimitSpending(const std::string& vm, absl::Time now) {
  const auto found = writes_.find(vm);
  if (found == writes_.end()) return;
  std::deque<absl::Time>& writes = found->second;
  while (!writes.empty() && now - writes.front() >= kWritesWithin) writes.pop_front();
  if (writes.size() < kMostWrites || plan_.ParkedAt(WriteGate(vm), now) != nullptr) return;
  const absl::Duration wait = writes.front() + kWritesWithin - now;
  plan_.Park(WriteGate(vm), {.first = wait, .most = wait},
             fmt::format("{} writes to VM {} within an hour, which is more than any work takes",
                         writes.size(), vm),
             now, Jitter());
}

void AzureState::Park(const Work& work, const WorkPark& park, absl::Time now) {
  const std::string& vm = work.work->id().text();
  if (park.what == WorkPark::What::kSubnet) {
    plan_.Park(SubnetGate(park.subnet), park.time, park.why, now, Jitter());
    return;
  }
  plan_.Park(park.writes ? WriteGate(vm) : ReadGate(vm), park.time, park.why, now, Jitter());
  if (!park.forbidden || ++work.set->forbidden < kForbiddenVms) return;
  const std::string& set = work.set->id.text();
  plan_.Park(park.writes ? WriteGate(set) : ReadGate(set), park.time, park.why, now, Jitter());
}

void AzureState::OnScaleSetAnswer(Set& set, const Outcome& outcome, absl::Time now) {
  set.reading = false;
  if (outcome.refused) {
    QueueScaleSet(set, now);
    return;
  }
  absl::Status status = outcome.status();
  if (status.ok()) {
    auto info = DecodeScaleSet(outcome.response->body);
    if (info.ok()) {
      set.info = *std::move(info);
    } else {
      status = absl::UnavailableError(info.status().message());
    }
  }
  if (!status.ok()) {
    if (outcome.forbidden()) {
      plan_.Park(ReadGate(set.id.text()), kForbiddenPark, std::string(status.message()), now,
                 Jitter());
    }
    FailSet(set, base::Annotate(status, "read scale set " + set.id.text()), now);
    return;
  }
  set.failures = 0;
  plan_.Unpark(ReadGate(set.id.text()));
  const std::vector<std::string> vms(set.working.begin(), set.working.end());
  for (const std::string& vm : vms) Queue(vm, now);
  if (set.listing_due && set.sweep == nullptr) StartSweep(set, now);
}

// Some failures are met by trying again; then all that waits is told.
void AzureState::FailSet(Set& set, const absl::Status& status, absl::Time now) {
  ++set.failures;
  const bool waits = !set.working.empty() || set.listing_due;
  if (set.failures % kMostScaleSetFailures != 0 && !absl::IsPermissionDenied(status)) {
    if (waits) QueueScaleSet(set, now);
    return;
  }
  for (const std::string& vm : set.working) {
    answers_.push_back({works_.at(vm).work->request().node, status});
    works_.erase(vm);
  }
  set.working.clear();
  if (set.listing_due) AddToListing(set, status, now);
}

void AzureState::OnSweepAnswer(Set& set, const Outcome& outcome, absl::Time now) {
  Sweep& sweep = *set.sweep;
  if (outcome.forbidden()) {
    plan_.Park(ReadGate(set.id.text()), kForbiddenPark, Describe(*outcome.error), now, Jitter());
    sweep.Abort(outcome.status());
  } else if (!outcome.response.ok()) {
    sweep.Fail(outcome.response.status());
  } else if (!outcome.refused) {
    sweep.OnResponse(*outcome.response, now);
  }
  if (sweep.done()) {
    FinishSweep(set, now);
  } else {
    QueueSweep(set, now);
  }
}

void AzureState::FinishSweep(Set& set, absl::Time now) {
  const std::unique_ptr<Sweep> sweep = std::move(set.sweep);
  set.pages = sweep->pages();
  size_t waited = 0;
  size_t served = 0;
  const std::vector<std::string> vms(set.working.begin(), set.working.end());
  for (const std::string& vm : vms) {
    Work& work = works_.at(vm);
    if (work.call == 0 && !work.sent) ++waited;
    const auto nics = sweep->nics().find(vm);
    if (nics == sweep->nics().end()) {
      Queue(vm, now);
      continue;
    }
    const WorkStage before = work.work->stage();
    work.work->OnNics(nics->second, sweep->asked(), ContextOf(work, now));
    if (work.work->stage() != before) ++served;
    Settle(vm, now);
  }
  const bool useless = kWorthServing * served < waited;
  set.no_sweep_until = now + (useless ? kUselessSweepPause : kSweepPause);
  if (!set.listing_due) return;
  if (sweep->asked() < listing_since_) {
    StartSweep(set, now);
    return;
  }
  for (const auto& [vm, nics] : sweep->nics()) {
    for (const NicResource& nic : nics) {
      listing_.push_back({.node = {},
                          .nic_mac = nic.mac.value_or(ip::MacAddress()),
                          .configurations = OursOn(nic, settings_.name_prefix),
                          .instance = vm});
    }
  }
  AddToListing(set, sweep->status(), now);
}

void AzureState::Count(CallKind kind) {
  ++counts_.calls;
  switch (kind) {
    case CallKind::kPutInstance:
    case CallKind::kPutNic:
      ++counts_.writes;
      return;
    case CallKind::kPollCompute:
    case CallKind::kPollNetwork:
      ++counts_.polls;
      break;
    case CallKind::kListInstanceNics:
    case CallKind::kListVms:
    case CallKind::kListNics:
      ++counts_.list_pages;
      break;
    case CallKind::kGetScaleSet:
    case CallKind::kGetInstance:
    case CallKind::kGetInstanceNic:
    case CallKind::kGetVm:
    case CallKind::kGetNic:
      break;
  }
  ++counts_.reads;
}

void AzureState::CountAnswer(const Outcome& outcome) {
  if (outcome.refused) {
    ++counts_.refused;
  } else if (outcome.error.has_value() &&
             (outcome.error->status == 409 || outcome.error->status == 412)) {
    ++counts_.conflicts;
  } else if (outcome.error.has_value() || !outcome.response.ok()) {
    ++counts_.errors;
  }
}

void AzureState::ForgetIdle(absl::Time now) {
  forget_at_ = now + kKeepIdle;
  std::erase_if(works_, [&](const auto& entry) {
    const InstanceWork& work = *entry.second.work;
    return work.idle() && now - work.idle_since() >= kKeepIdle;
  });
  std::erase_if(vm_of_, [&](const auto& entry) { return !works_.contains(entry.second); });
  absl::erase_if(writes_, [&](const auto& entry) {
    return entry.second.empty() || now - entry.second.back() >= kWritesWithin;
  });
}

std::vector<MachineAnswer> AzureState::TakeAnswers() { return std::exchange(answers_, {}); }

}  // namespace spoke::ipam::azure
