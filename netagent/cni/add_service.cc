#include "netagent/cni/add_service.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/base/time_text.h"
#include "netagent/cni/cni_errors.h"

namespace spoke::netagent {
namespace {

absl::StatusOr<ip::Address> AddressOf(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return ip::Address::Parse(text);
  ASSIGN_OR_RETURN(const ip::Address address, ip::Address::Parse(text.substr(0, slash)));
  const std::string length = text.substr(slash + 1);
  const bool number = !length.empty() && length.size() <= 3 &&
                      length.find_first_not_of("0123456789") == std::string::npos;
  if (!number || std::stoi(length) > address.bits()) {
    return absl::InvalidArgumentError(fmt::format("'{}' is no address", text));
  }
  return address;
}

AddOutcome OutcomeOf(const absl::Status& status) {
  if (status.ok()) return AddOutcome::kAttached;
  return absl::IsResourceExhausted(status) ? AddOutcome::kNoAddress : AddOutcome::kFailed;
}

cni::Response AttachmentOf(const absl::StatusOr<AttachSpec>& result) {
  cni::Attachment attachment{.host_link = result->host_link,
                             .host_mac = result->host_mac.ToString(),
                             .pod_mac = result->pod_mac.ToString(),
                             .mtu = result->mtu};
  for (const ip::Address& address : result->addresses) {
    attachment.addresses.push_back(
        {fmt::format("{}/{}", address.ToString(), address.bits()), GatewayOf(address).ToString()});
  }
  return {.outcome = cni::Response::Outcome::kAttachment, .attachment = std::move(attachment)};
}

}  // namespace

absl::StatusOr<std::vector<ip::Address>> ReadAddresses(const std::vector<std::string>& texts) {
  if (texts.size() > kMaxRequests) {
    return absl::InvalidArgumentError(
        fmt::format("{} addresses are named: an interface has one a family", texts.size()));
  }
  std::vector<ip::Address> addresses;
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(addresses.emplace_back(), AddressOf(text));
  }
  return addresses;
}

absl::StatusOr<Assignment> AssignmentOf(const cni::Request& request) {
  Assignment out{.key = {request.container_id, request.ifname},
                 .pod = request.pod,
                 .attempt = request.attempt,
                 .netns_path = request.netns,
                 .network = request.network_name,
                 .options = {.mtu = request.options.mtu,
                             .bandwidth = request.options.bandwidth,
                             .internet = request.options.internet}};
  out.options.internet.weight = std::min(out.options.internet.weight, cni::kMaxPodWeight);
  if (!request.options.mac.empty()) {
    ASSIGN_OR_RETURN(out.options.pod_mac, ip::MacAddress::Parse(request.options.mac));
  }
  ASSIGN_OR_RETURN(out.addresses, ReadAddresses(request.options.addresses));
  return out;
}

// While the server is away, no address comes from it: what usually helps is no help then.
cni::Response AddService::AnswerOf(const absl::StatusOr<AttachSpec>& result) const {
  if (result.ok()) return AttachmentOf(result);
  cni::Error error = ErrorOf(result.status(), cni::Verb::kAdd);
  if (const std::string away = ServerAwayText();
      absl::IsResourceExhausted(result.status()) && !away.empty()) {
    error.message = fmt::format("{}; {}", away, error.message);
    error.details =
        "addresses come when the server is back, or when pods of this node end and their cooldown "
        "is "
        "over: the runtime tries again; if it lasts, see server_unreachable in the agent's log on "
        "the node: journalctl -u spoke-netagent";
  }
  return {.outcome = cni::Response::Outcome::kError, .error = std::move(error)};
}

void AddService::Handle(const cni::Request& request, os::UniqueFd pod_netns, Responder responder) {
  absl::StatusOr<Assignment> asked = AssignmentOf(request);
  const absl::Status understood = asked.status();
  Job job{.asked = understood.ok() ? *std::move(asked)
                                   : Assignment{.key = {request.container_id, request.ifname}},
          .netns = std::move(pod_netns),
          .responder = std::move(responder),
          .steps = StepTimes(edges_.clock.Now()),
          .trace_id = TraceIdFor(request),
          .deadline = absl::Milliseconds(request.deadline_monotonic_ms)};
  if (!understood.ok()) return Finish(std::move(job), understood);
  if (job.deadline > absl::ZeroDuration() && Now() >= job.deadline) {
    // So many ADDs came at once that this one waited too long: the runtime has given it up.
    return Finish(std::move(job),
                  absl::DeadlineExceededError("the plugin no longer waits for this ADD"));
  }
  // An ADD that waits under this key has lost its plugin, or there would not be another.
  Forget(job.asked.key);
  job.steps.Ended("receive", edges_.clock.Now());
  // Nobody overtakes those who have waited longer.
  ServeLine();
  const absl::StatusOr<AttachSpec> result = Add(job);
  if (absl::IsResourceExhausted(result.status()) && Wait(job)) return;
  Finish(std::move(job), result);
}

absl::StatusOr<AttachSpec> AddService::Add(Job& job) {
  auto result = edges_.attachments.Add(job.asked, job.netns.get(), &job.steps);
  // The DEL that would have made room may have come while no agent was there.
  if (absl::IsAlreadyExists(result.status()) && edges_.take_up_del(job.asked.key)) {
    result = edges_.attachments.Add(job.asked, job.netns.get(), &job.steps);
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
  if (!until || jobs_.size() >= kMaxWaiting) return false;
  const uint64_t id = ++last_job_;
  job.waiting_since = Now();
  job.told_at = *until;
  edges_.log.Info("cni_add_waits", {{"container", job.asked.key.container_id},
                                    {"ifname", job.asked.key.ifname},
                                    {"pod", job.asked.pod.name},
                                    {"trace", job.trace_id},
                                    {"waiting", jobs_.size() + 1}});
  job.responder.OnHangUp([this, id] {
    if (!jobs_.contains(id)) return;
    const Job gone = TakeOut(id);
    counts_.Add(AddOutcome::kGivenUp, gone.steps);
    edges_.log.Info("cni_add_given_up", {{"container", gone.asked.key.container_id},
                                         {"ifname", gone.asked.key.ifname},
                                         {"trace", gone.trace_id}});
  });
  jobs_.emplace(id, std::move(job));
  return true;
}

AddService::Job AddService::TakeOut(uint64_t id) { return std::move(jobs_.extract(id).mapped()); }

void AddService::Forget(const AttachmentKey& key) {
  std::erase_if(jobs_, [&](const auto& entry) {
    const bool gone = entry.second.asked.key == key;
    if (gone) counts_.Add(AddOutcome::kGivenUp, entry.second.steps);
    return gone;
  });
}

void AddService::ServeLine() {
  std::set<std::string> starved;
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    const uint64_t id = it->first;
    Job& job = it++->second;
    const std::string pod_namespace = job.asked.pod.pod_namespace;
    if (!job.picky() && starved.contains(pod_namespace)) continue;
    const StepTimes so_far = job.steps;
    job.steps.Ended("wait", edges_.clock.Now());
    const absl::StatusOr<AttachSpec> result = Add(job);
    if (absl::IsResourceExhausted(result.status())) {
      job.steps = so_far;
      if (!job.picky()) starved.insert(pod_namespace);
      continue;
    }
    Finish(TakeOut(id), result);
  }
}

void AddService::FailOverdue() {
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    const auto current = it++;
    if (current->second.told_at > Now()) continue;
    Job job = TakeOut(current->first);
    job.steps.Ended("wait", edges_.clock.Now());
    absl::Status why = edges_.attachments.Plan(job.asked).status();
    // An address came this very moment, but too late to be built and heard of in time.
    if (why.ok()) why = absl::ResourceExhaustedError("an address came too late for this ADD");
    std::string text = fmt::format("{}; waited {}", base::MessageOf(why),
                                   absl::FormatDuration(Now() - job.waiting_since));
    // What a server said that has gone since does not hold.
    if (const std::string forecast = ForecastText(); !forecast.empty() && !away_) {
      text += "; " + forecast;
    }
    Finish(std::move(job), absl::Status(why.code(), text));
  }
}

void AddService::Finish(Job job, const absl::StatusOr<AttachSpec>& result) {
  const absl::Status answered = job.responder.Answer(AnswerOf(result));
  job.steps.Ended("answer", edges_.clock.Now());
  counts_.Add(OutcomeOf(result.status()), job.steps);
  const AttachmentKey& key = job.asked.key;
  if (!result.ok()) {
    edges_.log.Warn("cni_add_failed", {{"container", key.container_id},
                                       {"ifname", key.ifname},
                                       {"pod", job.asked.pod.name},
                                       {"trace", job.trace_id},
                                       {"took_us", job.steps.total_us()},
                                       {"error", result.status()}});
  } else {
    edges_.log.Info("cni_add", {{"container", key.container_id},
                                {"ifname", key.ifname},
                                {"pod", job.asked.pod.name},
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
  ServeLine();
  FailOverdue();
  SayDemand();
}

std::optional<absl::Duration> AddService::NextWake() const {
  std::optional<absl::Duration> next = say_at_;
  for (const auto& [id, job] : jobs_) next = next ? std::min(*next, job.told_at) : job.told_at;
  return next;
}

void AddService::SayDemand() {
  node_api::Demand demand = DemandNow();
  if (demand == said_) {
    say_at_.reset();
    return;
  }
  if (!say_at_) say_at_ = Now() + kDemandDelay;
  if (Now() < *say_at_) return;
  say_at_.reset();
  if (demand.waiting.empty()) forecast_.reset();  // It would say nothing of the next demand.
  edges_.server.Ask(demand);
  said_ = std::move(demand);
}

node_api::Demand AddService::DemandNow() const {
  node_api::Demand demand;
  for (const auto& [id, job] : jobs_) {
    if (!job.picky()) ++demand.waiting[job.asked.pod.pod_namespace];
  }
  return demand;
}

node_api::Demand AddService::DemandForHello() {
  said_ = DemandNow();
  forecast_.reset();
  return said_;
}

void AddService::OnForecast(const node_api::Forecast& forecast) {
  forecast_ = forecast;
  forecast_at_ = Now();
}

void AddService::OnSession(const absl::Status& outcome) {
  if (outcome.ok()) {
    away_.reset();
  } else if (!away_) {
    away_ = Away{.since = edges_.clock.Now(), .monotonic = Now()};
  }
}

std::string AddService::ServerAwayText() const {
  if (!away_) return "";
  return fmt::format(
      "the server has been away since {}, for {} now, and only it can give this node more "
      "addresses",
      base::ClockText(away_->since),
      absl::FormatDuration(absl::Trunc(Now() - away_->monotonic, absl::Seconds(1))));
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
  return {.container_id = job.asked.key.container_id,
          .ifname = job.asked.key.ifname,
          .pod_namespace = job.asked.pod.pod_namespace,
          .pod_name = job.asked.pod.name,
          .trace_id = job.trace_id,
          .since = job.steps.begin(),
          .error = std::move(error),
          .steps = job.steps.steps()};
}

std::string AddService::TraceIdFor(const cni::Request& request) const {
  const std::string_view given = TraceIdOf(request.trace_parent);
  if (!given.empty()) return std::string(given);
  return fmt::format("{:016x}{:016x}", edges_.random(), edges_.random());
}

}  // namespace spoke::netagent
