#include "netagent/cni/add_service.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "netagent/cni/cni_errors.h"
#include "netagent/cni/cni_messages.h"

namespace spoke::netagent {
namespace {

// The line's times: of the monotonic clock, whose beginning is as good as any.
absl::Time LineTime(absl::Duration monotonic) { return absl::UnixEpoch() + monotonic; }

}  // namespace

void AddService::Handle(const v1::CniRequest& request, os::UniqueFd pod_netns,
                        Responder responder) {
  absl::StatusOr<AssignmentRequest> asked = AssignmentRequestOf(request);
  const absl::Status understood = asked.status();
  Job job{.request = understood.ok()
                         ? *std::move(asked)
                         : AssignmentRequest{.key = {request.container_id(), request.ifname()}},
          .netns = std::move(pod_netns),
          .responder = std::move(responder),
          .steps = StepTimes(edges_.clock.Now()),
          .trace_id = TraceIdFor(request),
          .deadline = absl::Milliseconds(request.deadline_monotonic_ms())};
  if (!understood.ok()) return Finish(std::move(job), understood);
  if (job.deadline > absl::ZeroDuration() && Now() >= job.deadline) {
    // So many came at once that this one waited too long: the runtime has given it up.
    return Finish(std::move(job),
                  absl::DeadlineExceededError("the plugin no longer waits for this ADD"));
  }
  // One that waits under this key has lost its plugin, or there would not be another.
  Forget(job.request.key);
  job.steps.Ended("receive", edges_.clock.Now());
  // Nobody overtakes those who have waited longer.
  if (!line_.empty()) ServeLine();
  const absl::StatusOr<AttachSpec> result = Add(job, edges_.attachments.Plan(job.request));
  if (absl::IsResourceExhausted(result.status()) && Wait(job)) return;
  Finish(std::move(job), result);
}

absl::StatusOr<AttachSpec> AddService::Add(Job& job, const absl::StatusOr<Assignment>& plan) {
  auto result = edges_.attachments.AddPlanned(job.request, plan, job.netns.get(), &job.steps);
  // The DEL that would have made room may have come while no agent was there.
  if (absl::IsAlreadyExists(result.status()) && edges_.take_up_del(job.request.key)) {
    result = edges_.attachments.Add(job.request, job.netns.get(), &job.steps);
  }
  return result;
}

std::optional<absl::Duration> AddService::WaitUntil(const Job& job) const {
  if (longest_wait_ <= absl::ZeroDuration()) return std::nullopt;
  const absl::Duration now = Now();
  if (job.deadline <= absl::ZeroDuration()) return now + longest_wait_;
  if (job.deadline - now < kShortestWait) return std::nullopt;
  return std::min(now + longest_wait_, job.deadline - kAnswerMargin);
}

bool AddService::Wait(Job& job) {
  const auto until = WaitUntil(job);
  const uint64_t id = last_job_ + 1;
  if (!until || !line_.Join({.id = id,
                             .pod_namespace = job.request.pod.pod_namespace,
                             .deadline = LineTime(*until),
                             .picky = !job.request.addresses.empty()})) {
    return false;
  }
  last_job_ = id;
  job.waiting_since = Now();
  edges_.log.Info("cni_add_waits", {{"container", job.request.key.container_id},
                                    {"ifname", job.request.key.ifname},
                                    {"pod", job.request.pod.name},
                                    {"trace", job.trace_id},
                                    {"waiting", line_.size()}});
  job.responder.OnHangUp([this, id] {
    if (!jobs_.contains(id)) return;
    const Job gone = TakeOut(id);
    edges_.log.Info("cni_add_given_up", {{"container", gone.request.key.container_id},
                                         {"ifname", gone.request.key.ifname},
                                         {"trace", gone.trace_id}});
  });
  jobs_.emplace(id, std::move(job));
  return true;
}

AddService::Job AddService::TakeOut(uint64_t id) {
  line_.Leave(id);
  return std::move(jobs_.extract(id).mapped());
}

void AddService::Forget(const AttachmentKey& key) {
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    const auto current = it++;
    if (current->second.request.key != key) continue;
    line_.Leave(current->first);
    jobs_.erase(current);
  }
}

void AddService::ServeLine() {
  std::set<std::string> starved;
  for (const Waiter& waiter : line_.InOrder()) {
    if (!waiter.picky && starved.contains(waiter.pod_namespace)) continue;
    const absl::StatusOr<Assignment> plan = edges_.attachments.Plan(jobs_.at(waiter.id).request);
    if (absl::IsResourceExhausted(plan.status())) {
      if (!waiter.picky) starved.insert(waiter.pod_namespace);
      continue;
    }
    Job job = TakeOut(waiter.id);
    job.steps.Ended("wait", edges_.clock.Now());
    const absl::StatusOr<AttachSpec> result = Add(job, plan);
    Finish(std::move(job), result);
  }
}

void AddService::FailOverdue() {
  for (const Waiter& waiter : line_.TakeOverdue(LineTime(Now()))) {
    Job job = TakeOut(waiter.id);
    job.steps.Ended("wait", edges_.clock.Now());
    absl::Status why = edges_.attachments.CanAdd(job.request);
    // It came this very moment, but too late to be built and heard of in time.
    if (why.ok()) why = absl::ResourceExhaustedError("an address came too late for this ADD");
    std::string text = fmt::format("{}; waited {}", base::MessageOf(why),
                                   absl::FormatDuration(Now() - job.waiting_since));
    if (const std::string forecast = ForecastText(); !forecast.empty()) text += "; " + forecast;
    Finish(std::move(job), absl::Status(why.code(), text));
  }
}

void AddService::Finish(Job job, const absl::StatusOr<AttachSpec>& result) {
  const absl::Status answered =
      job.responder.Answer(result.ok() ? AttachmentResponse(*result)
                                       : ErrorResponse(FailureOf(result.status(), CniVerb::kAdd)));
  job.steps.Ended("answer", edges_.clock.Now());
  const AttachmentKey& key = job.request.key;
  if (!result.ok()) {
    edges_.log.Warn("cni_add_failed", {{"container", key.container_id},
                                       {"ifname", key.ifname},
                                       {"pod", job.request.pod.name},
                                       {"trace", job.trace_id},
                                       {"took_us", job.steps.total_us()},
                                       {"error", result.status()}});
  } else {
    edges_.log.Info("cni_add", {{"container", key.container_id},
                                {"ifname", key.ifname},
                                {"pod", job.request.pod.name},
                                {"address", result->addresses.front().ToString()},
                                {"trace", job.trace_id},
                                {"took_us", job.steps.total_us()}});
  }
  if (!answered.ok()) {
    // The plugin was killed meanwhile. The runtime follows with a DEL, which undoes the ADD.
    edges_.log.Warn("cni_answer_lost", {{"container", key.container_id},
                                        {"ifname", key.ifname},
                                        {"trace", job.trace_id},
                                        {"error", answered}});
  }
  node_api::AttachTrace trace =
      TraceOf(job, result.ok() ? "" : std::string(base::MessageOf(result.status())));
  if (result.ok()) trace.addresses = result->addresses;
  traces_.Add(std::move(trace));
}

void AddService::Tick() {
  if (!line_.empty()) {
    ServeLine();
    FailOverdue();
  }
  SayDemand();
}

std::optional<absl::Duration> AddService::NextWake() const {
  std::optional<absl::Duration> next = say_at_;
  if (const auto deadline = line_.NextDeadline()) {
    const absl::Duration at = *deadline - absl::UnixEpoch();
    next = next ? std::min(*next, at) : at;
  }
  return next;
}

void AddService::SayDemand() {
  node_api::Demand demand{line_.Demand()};
  if (demand == said_) {
    say_at_.reset();
    return;
  }
  if (!say_at_) say_at_ = Now() + kDemandDelay;
  if (Now() < *say_at_) return;
  say_at_.reset();
  if (demand.waiting.empty()) forecast_.reset();  // Of the next demand it would say nothing.
  edges_.server.Ask(demand);
  said_ = std::move(demand);
}

node_api::Demand AddService::DemandForHello() {
  said_ = {line_.Demand()};
  forecast_.reset();
  return said_;
}

void AddService::OnForecast(const node_api::Forecast& forecast) {
  forecast_ = forecast;
  forecast_at_ = Now();
}

std::string AddService::ForecastText() const {
  if (!forecast_) return "";
  std::string text = "server: " + forecast_->reason;
  const absl::Duration left = forecast_->eta - (Now() - forecast_at_);
  if (forecast_->eta > absl::ZeroDuration()) {
    text += left > absl::ZeroDuration()
                ? fmt::format(", expected in {}",
                              absl::FormatDuration(absl::Ceil(left, absl::Seconds(1))))
                : ", expected any moment";
  }
  return text;
}

void AddService::OnTracesRequest(const node_api::AttachTracesRequest& request) {
  node_api::AttachTracesAnswer answer{.id = request.id};
  for (auto it = jobs_.rbegin(); it != jobs_.rend(); ++it) {
    const Job& job = it->second;
    node_api::AttachTrace trace =
        TraceOf(job, fmt::format("still waits for an address, for {} now",
                                 absl::FormatDuration(Now() - job.waiting_since)));
    if (Matches(trace, request)) answer.traces.push_back(std::move(trace));
  }
  for (node_api::AttachTrace& trace : traces_.Find(request)) {
    answer.traces.push_back(std::move(trace));
  }
  edges_.server.Answer(answer);
}

node_api::AttachTrace AddService::TraceOf(const Job& job, std::string error) {
  return {.container_id = job.request.key.container_id,
          .ifname = job.request.key.ifname,
          .pod_namespace = job.request.pod.pod_namespace,
          .pod_name = job.request.pod.name,
          .trace_id = job.trace_id,
          .since = job.steps.begin(),
          .error = std::move(error),
          .steps = job.steps.steps()};
}

std::string AddService::TraceIdFor(const v1::CniRequest& request) const {
  const std::string_view given = TraceIdOf(request.trace_parent());
  if (!given.empty()) return std::string(given);
  return fmt::format("{:016x}{:016x}", edges_.random(), edges_.random());
}

}  // namespace spoke::netagent
