// What Azure answers to a VM's calls, and what then.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "fmt/format.h"
#include "ipam-server/cloud/azure/instance_work.h"
#include "ipam-server/cloud/azure/resources/operation.h"
#include "lib/base/backoff.h"
#include "lib/base/status.h"
#include "lib/json_text/json_text.h"

namespace spoke::ipam::azure {
namespace {

constexpr int kMostRetries = 6;
constexpr base::Backoff kRetryWait = {.initial = absl::Seconds(1), .max = absl::Seconds(60)};
// The rounds while somebody else writes all the time; each costs a write of the VM's few.
constexpr int kMostConflicts = 10;
constexpr int kConflictsAtOnce = 3;
constexpr base::Backoff kConflictWait = {.initial = absl::Seconds(1), .max = absl::Seconds(30)};
constexpr absl::Duration kConcurrentWriteWait = absl::Seconds(5);
// The wait while another operation is at work on the VM: most are over within a minute.
constexpr absl::Duration kUpdatingWait = absl::Seconds(10);
constexpr absl::Duration kLongUpdatingWait = absl::Minutes(1);
constexpr int kReadingsAMinute = 6;
// An operation that Azure says runs for longer than this is not asked about any more.
constexpr absl::Duration kMostOperationTime = absl::Minutes(30);

// How long the NIC may not show yet what an operation that failed has done to it.
constexpr absl::Duration kBelieved = absl::Minutes(1);

constexpr int kAccepted = 202;
constexpr int kNotFound = 404;

bool Is(std::string_view state, std::string_view wanted) {
  return absl::EqualsIgnoreCase({state.data(), state.size()}, {wanted.data(), wanted.size()});
}

}  // namespace

void InstanceWork::OnLost(const absl::Status& status, const WorkContext& context) {
  under_way_ = false;
  Retry(absl::UnavailableError(fmt::format("call Azure: {}", base::MessageOf(status))), context);
}

void InstanceWork::OnModelResponse(const http::Response& response, const WorkContext& context) {
  std::string state;
  if (is_flexible()) {
    auto body = json_text::ParseJsonObject(response.body);
    auto nic = ReadWhole(body.ok() ? DecodeNic(response) : body.status());
    if (!nic.ok()) return Retry(nic.status(), context);
    if (nic->mac != request_.nic_mac) {
      TryNextNic(absl::FailedPreconditionError("VM " + id_.text() + " has no NIC with MAC " +
                                               request_.nic_mac.ToString()),
                 context);
      return;
    }
    Learn(*nic);
    nic_body_ = *std::move(body);
    etag_ = nic->etag;
    state = nic->provisioning_state;
  } else {
    auto model = DecodeInstance(response);
    if (!model.ok()) return Retry(model.status(), context);
    etag_ = model->etag;
    state = model->provisioning_state;
    if (!model->nics.has_value() || Is(state, "Deleting")) {
      // It goes away, or comes; a PUT would be refused, and its addresses are no longer ours.
      GiveUp(absl::UnavailableError("VM " + id_.text() + " has no network profile (" + state + ")"),
             kFailedPark, context);
      return;
    }
    model_ = *std::move(model);
  }
  model_at_ = context.now;
  model_failed_ = Is(state, "Failed");
  if (etag_.empty()) {
    return Retry(absl::UnavailableError("VM " + id_.text() +
                                        " shows no ETag, so that no write could be guarded by it"),
                 context);
  }
  if (!state.empty() && !IsFinalProvisioningState(state)) return AwaitOperation(state, context);
  busy_readings_ = 0;
  Plan(context);
}

// The operation is ours, whose answer was lost, or another's: a PUT now would meet a conflict, or
// end it half way.
void InstanceWork::AwaitOperation(std::string_view state, const WorkContext& context) {
  if (busy_readings_++ == 0) busy_since_ = context.now;
  if (context.now - busy_since_ > kMostOperationTime) {
    GiveUp(absl::UnavailableError(
               fmt::format("an operation on VM {} does not end ({})", id_.text(), state)),
           kFailedPark, context);
    return;
  }
  const bool prompt = busy_readings_ <= kReadingsAMinute;
  ReadModel(context.now + (prompt ? kUpdatingWait : kLongUpdatingWait));
}

void InstanceWork::OnPutResponse(const http::Response& response, const WorkContext& context) {
  retries_ = 0;
  polls_ = 0;
  model_failed_ = false;
  operation_since_ = context.now;
  model_.reset();
  if (!is_flexible()) {
    if (auto model = DecodeInstance(response); model.ok() && model->nics.has_value()) {
      etag_ = model->etag;
      model_ = *std::move(model);
      model_at_ = context.now;
    }
  }
  const auto headers =
      DecodeOperationHeaders(response.headers, settings_.endpoints.resource_manager, context.now);
  if (!headers.ok()) {
    // A place that our token must not go to. The NIC will tell what became of it.
    ReadModel(context.now + kUpdatingWait);
    return;
  }
  by_location_ = headers->operation_url.empty();
  operation_url_ = by_location_ ? headers->location_url : headers->operation_url;
  if (operation_url_.empty()) {
    AfterOperation(context);
    return;
  }
  absl::Duration wait = context.pace->first_poll();
  // Pods wait, and calls are not scarce: some more.
  if (request_.lane == CloudLane::kBlocking && !context.crowded) wait = wait / 2;
  wait = std::max(wait, headers->retry_after.value_or(absl::ZeroDuration()));
  if (!failure_.has_value()) {
    // The NIC has to be read in the end, and where it shows all that was asked for, the operation
    // need not be asked at all.
    ReadNic(Reading::kInsteadOfPoll, context.now + wait, context);
  } else {
    Poll(context.now + wait);
  }
}

void InstanceWork::Poll(absl::Time not_before) {
  stage_ = WorkStage::kPoll;
  not_before_ = not_before;
}

void InstanceWork::OnPollResponse(const http::Response& response, const WorkContext& context) {
  OperationStatus status;
  if (by_location_) {
    if (response.status == kAccepted) {
      status.state = OperationState::kRunning;
    } else if (response.status >= 200 && response.status < 300) {
      status.state = OperationState::kSucceeded;
    } else {
      OnError(DecodeArmError(response, context.now), context);
      return;
    }
  } else {
    auto decoded = DecodeOperation(response.body);
    if (!decoded.ok()) return Retry(decoded.status(), context);
    status = *std::move(decoded);
  }
  const bool running = status.state == OperationState::kRunning;
  ++polls_;
  retries_ = 0;
  if (running && context.now - operation_since_ > kMostOperationTime) {
    GiveUp(absl::UnavailableError("an operation on VM " + id_.text() + " does not end"),
           kFailedPark, context);
  } else if (running) {
    const auto headers =
        DecodeOperationHeaders(response.headers, settings_.endpoints.resource_manager, context.now);
    // Pods wait: the waits do not grow.
    const bool blocking = request_.lane == CloudLane::kBlocking;
    absl::Duration wait = context.pace->NextPoll(blocking ? 1 : polls_);
    if (headers.ok()) wait = std::max(wait, headers->retry_after.value_or(absl::ZeroDuration()));
    not_before_ = context.now + wait;
  } else if (status.state == OperationState::kSucceeded) {
    AfterOperation(context);
  } else {
    OnOperationFailed(status.error, context);
  }
}

// A failed operation leaves its entries in the model, where they make every later PUT fail as well
// (github.com/cilium/cilium/issues/43598): what has no address is taken off again, once.
void InstanceWork::OnOperationFailed(const std::optional<ArmError>& error,
                                     const WorkContext& context) {
  if (failure_.has_value()) {
    GiveUp(*failure_, failure_park_.value_or(kFailedPark), context);
    return;
  }
  ArmError known = error.value_or(ArmError());
  if (!error.has_value()) known.message = "the operation failed and does not say why";
  if (known.kind == ErrorKind::kPreempted || known.kind == ErrorKind::kConflict) {
    StartOver(known, context);
    return;
  }
  if (known.kind == ErrorKind::kTransient && !forced_) {
    // Azure has trouble of its own: the same once more spares one write and one operation.
    forced_ = true;
    ReadModel(absl::InfinitePast());
    return;
  }
  failure_ = FailureOf(known);
  const bool elsewhere = known.kind == ErrorKind::kRefused || known.kind == ErrorKind::kUnknown;
  believed_at_ = elsewhere ? context.now + kBelieved : absl::InfinitePast();
  if (known.kind == ErrorKind::kTransient) {
    failure_park_ = kFailedPark;
  } else if (known.kind != ErrorKind::kSubnetFull) {  // Which has a gate of its own.
    failure_park_ = kRefusedPark;
  }
  cleaning_ = true;
  model_.reset();
  ReadNic(Reading::kAfterFailure, absl::InfinitePast(), context);
}

absl::Status InstanceWork::OnSubnetFull(const ArmError& error) {
  const std::string why = "subnet " + subnet_ + " is full";
  if (!subnet_.empty()) {
    parks_.push_back(
        {.what = WorkPark::What::kSubnet, .subnet = subnet_, .time = kSubnetFullPark, .why = why});
  }
  return absl::ResourceExhaustedError(why + ": " + Describe(error));
}

absl::Status InstanceWork::FailureOf(const ArmError& error) {
  const std::string text = Describe(error);
  switch (error.kind) {
    case ErrorKind::kSubnetFull:
      return OnSubnetFull(error);
    case ErrorKind::kLimit:
      return absl::ResourceExhaustedError(text);
    case ErrorKind::kUnauthenticated:
    case ErrorKind::kForbidden:
    case ErrorKind::kLocked:
      return absl::PermissionDeniedError(text);
    case ErrorKind::kRefused:
    case ErrorKind::kBadRequest:
    case ErrorKind::kInstanceGone:
    case ErrorKind::kResourceGone:
    case ErrorKind::kGroupGone:
      return absl::FailedPreconditionError(text);
    case ErrorKind::kThrottled:
    case ErrorKind::kAnotherOperation:
    case ErrorKind::kPreempted:
    case ErrorKind::kConflict:
    case ErrorKind::kPrecondition:
    case ErrorKind::kGoingAway:
    case ErrorKind::kTransient:
    case ErrorKind::kUnknown:
      break;
  }
  return absl::UnavailableError(text);
}

void InstanceWork::StartOver(const ArmError& error, const WorkContext& context) {
  ++conflicts_;
  if (conflicts_ > kMostConflicts) {
    GiveUp(
        absl::UnavailableError("others keep writing to VM " + id_.text() + ": " + Describe(error)),
        kConflictPark, context);
    return;
  }
  absl::Time when = absl::InfinitePast();
  if (error.kind != ErrorKind::kPrecondition) {
    when = context.now + kConcurrentWriteWait * (1 + context.jitter);
  } else if (conflicts_ > kConflictsAtOnce) {
    when = context.now + kConflictWait.Delay(conflicts_, context.jitter);
  }
  ReadModel(when);
}

// The outcome of a PUT that was not answered is unknown: only reading tells.
void InstanceWork::Retry(const absl::Status& status, const WorkContext& context) {
  ++retries_;
  if (retries_ > kMostRetries) {
    const bool precondition = absl::IsFailedPrecondition(status);
    GiveUp(precondition ? status : absl::UnavailableError(status.message()), kFailedPark, context);
    return;
  }
  const absl::Time when = context.now + kRetryWait.Delay(retries_ - 1, context.jitter);
  if (stage_ == WorkStage::kPut || stage_ == WorkStage::kReadModel) {
    ReadModel(when);
  } else {
    not_before_ = when;
  }
}

void InstanceWork::GiveUp(absl::Status status, const ParkTime& park, const WorkContext& context) {
  parks_.push_back(
      {.writes = Changes(request_), .time = park, .why = std::string(base::MessageOf(status))});
  Finish(failure_.has_value() ? *failure_ : std::move(status), context);
}

// Such a call, retried as it is, only uses up what the subscription may do
// (github.com/cilium/cilium/issues/19695).
void InstanceWork::Forbid(const ArmError& error, const WorkContext& context) {
  parks_.push_back({.writes = stage_ == WorkStage::kPut || stage_ == WorkStage::kReadModel,
                    .forbidden = true,
                    .time = kForbiddenPark,
                    .why = Describe(error)});
  Finish(failure_.has_value() ? *failure_ : absl::PermissionDeniedError(Describe(error)), context);
}

void InstanceWork::OnError(const ArmError& error, const WorkContext& context) {
  switch (error.kind) {
    case ErrorKind::kPreempted:
    case ErrorKind::kConflict:
    case ErrorKind::kPrecondition:
    case ErrorKind::kAnotherOperation:
      StartOver(error, context);
      return;
    case ErrorKind::kForbidden:
    case ErrorKind::kLocked:
      Forbid(error, context);
      return;
    case ErrorKind::kSubnetFull:
      Finish(OnSubnetFull(error), context);
      return;
    case ErrorKind::kLimit:
    case ErrorKind::kBadRequest:
      GiveUp(FailureOf(error), kRejectedPark, context);
      return;
    case ErrorKind::kRefused:
      GiveUp(FailureOf(error), kRefusedPark, context);
      return;
    case ErrorKind::kGoingAway:
      GiveUp(FailureOf(error), kRefusedPark, context);
      return;
    case ErrorKind::kInstanceGone:
    case ErrorKind::kResourceGone:
    case ErrorKind::kGroupGone:
      // Operations are forgotten some time after their end.
      if (stage_ == WorkStage::kPoll && error.status == kNotFound) {
        ReadModel(absl::InfinitePast());
      } else {
        GiveUp(FailureOf(error), kFailedPark, context);
      }
      return;
    case ErrorKind::kUnauthenticated:
    case ErrorKind::kThrottled:
    case ErrorKind::kTransient:
    case ErrorKind::kUnknown:
      Retry(absl::UnavailableError(Describe(error)), context);
      return;
  }
}

}  // namespace spoke::ipam::azure
