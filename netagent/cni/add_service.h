// The verb ADD: carried out at once, or, while the node has no address for the pod, when one comes.
//
// A node that runs out of addresses asks the server for as many as pods wait, once, and assigns
// what comes in the order of their arrival. A pod whose time is nearly up is told why, with what
// the server last said about it. Whoever hangs up has left the line.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "lib/os/clock.h"
#include "lib/os/unique_fd.h"
#include "lib/telemetry/log.h"
#include "netagent/attach/attach_traces.h"
#include "netagent/attach/attachments.h"
#include "netagent/attach/waiting_line.h"
#include "netagent/cni/responder.h"
#include "netagent/session/server_link.h"
#include "proto/spoke/v1/cni.pb.h"

namespace spoke::netagent {

// Not thread-safe; belongs to the loop's thread.
class AddService {
 public:
  struct Edges {
    Attachments& attachments;
    ServerLink& server;
    const os::Clock& clock;
    telemetry::Log& log;
    // Milliseconds of CLOCK_MONOTONIC, which is what the plugin's deadline is in.
    std::function<int64_t()> monotonic_ms;
    std::function<uint64_t()> random;  // For the ids of traces.
    // Carries out the DEL of this attachment that nobody has heard yet; false: there is none.
    std::function<bool(const AttachmentKey&)> take_up_del = [](const AttachmentKey&) {
      return false;
    };
  };

  // An ADD is answered this long before its deadline, so that the plugin still hears it.
  static constexpr absl::Duration kAnswerMargin = absl::Milliseconds(300);
  // With less time than this left it does not begin to wait.
  static constexpr absl::Duration kShortestWait = absl::Seconds(1);
  // The server is told this much later, so that a burst of pods is one demand.
  static constexpr absl::Duration kDemandDelay = absl::Milliseconds(10);

  // `longest_wait` bounds the wait whatever the deadline; zero: nobody waits. Borrows the edges.
  AddService(absl::Duration longest_wait, Edges edges)
      : longest_wait_(longest_wait), edges_(std::move(edges)) {}

  // Answers now or later. The key must not be empty.
  void Handle(const v1::CniRequest& request, os::UniqueFd pod_netns, Responder responder);

  // Nobody waits for the ADD of `key` any more: its DEL has come.
  void Forget(const AttachmentKey& key);

  // Serves who waits as far as there is something for them, and tells those whose time is up. Call
  // after each round of the loop, and at NextWake().
  void Tick();
  // Of the monotonic clock, as time since its beginning; nullopt: nobody waits.
  std::optional<absl::Duration> NextWake() const;

  // A new session begins: who waits now.
  node_api::Demand DemandForHello();
  void OnForecast(const node_api::Forecast& forecast);
  // Those who wait come first, with an error that says so.
  void OnTracesRequest(const node_api::AttachTracesRequest& request);

  // The trace id of the request's trace context, or a new one.
  std::string TraceIdFor(const v1::CniRequest& request) const;
  // "server: enlarging the node, expected in 12s"; empty: it has said nothing.
  std::string ForecastText() const;
  size_t waiting() const { return jobs_.size(); }

 private:
  struct Job {
    AssignmentRequest request;
    os::UniqueFd netns;
    Responder responder;
    StepTimes steps;
    std::string trace_id;
    absl::Duration deadline;  // Of the monotonic clock; zero: none was said.
    absl::Duration waiting_since = absl::ZeroDuration();  // Zero: it does not wait.
  };

  absl::Duration Now() const { return absl::Milliseconds(edges_.monotonic_ms()); }
  // `plan`: Attachments::Plan() of the job's request, of this moment.
  static node_api::AttachTrace TraceOf(const Job& job, std::string error);
  absl::StatusOr<AttachSpec> Add(Job& job, const absl::StatusOr<Assignment>& plan);
  // Until when `job` may wait; nullopt: it may not.
  std::optional<absl::Duration> WaitUntil(const Job& job) const;
  bool Wait(Job& job);
  void Finish(Job job, const absl::StatusOr<AttachSpec>& result);
  Job TakeOut(uint64_t id);
  void ServeLine();
  void FailOverdue();
  void SayDemand();

  const absl::Duration longest_wait_;
  const Edges edges_;
  std::map<uint64_t, Job> jobs_;  // Those who wait, by number.
  WaitingLine line_;              // Likewise. Times since the beginning of the monotonic clock.
  uint64_t last_job_ = 0;
  AttachTraces traces_;
  node_api::Demand said_;                 // To the server, in this session.
  std::optional<absl::Duration> say_at_;  // When to say that it has changed.
  std::optional<node_api::Forecast> forecast_;
  absl::Duration forecast_at_;
};

}  // namespace spoke::netagent
