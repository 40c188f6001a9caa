// The verb ADD: carried out at once or, while the node has no address for the pod, when one comes.
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
#include "netagent/attach/add_counts.h"
#include "netagent/attach/attach_traces.h"
#include "netagent/attach/attachments.h"
#include "netagent/cni/cni_server.h"
#include "netagent/session/server_link.h"

namespace spoke::netagent {

// Reads what an ADD asks for. An address may be followed by any prefix length: an interface has the
// address alone. Errors: kInvalidArgument (a MAC or an address that cannot be read, or more than
// kMaxRequests addresses). Pure.
inline constexpr size_t kMaxRequests = 16;
absl::StatusOr<Assignment> AssignmentOf(const cni::Request& request);

// Reads addresses as AssignmentOf() does, with the same errors. Pure.
absl::StatusOr<std::vector<ip::Address>> ReadAddresses(const std::vector<std::string>& texts);

// Not thread-safe; belongs to the loop's thread.
class AddService {
 public:
  struct Edges {
    Attachments& attachments;
    ServerLink& server;
    const os::Clock& clock;
    telemetry::Log& log;
    // Milliseconds of CLOCK_MONOTONIC, which is the clock of the plugin's deadline.
    std::function<int64_t()> monotonic_ms;
    std::function<uint64_t()> random;  // Makes the ids of traces.
    // Carries out the DEL of this attachment that nobody has heard yet; false: there is none.
    std::function<bool(const AttachmentKey&)> take_up_del = [](const AttachmentKey&) {
      return false;
    };
  };

  // The time before its deadline at which an ADD is answered, so that the plugin still hears it.
  static constexpr absl::Duration kAnswerMargin = absl::Milliseconds(300);
  // The least time before its deadline with which an ADD begins to wait.
  static constexpr absl::Duration kShortestWait = absl::Seconds(1);
  // The most ADDs that wait, each with two descriptors; a node has at most some hundreds of pods.
  static constexpr size_t kMaxWaiting = 256;
  // The delay before the server is told, so that a burst of pods is one demand.
  static constexpr absl::Duration kDemandDelay = absl::Milliseconds(10);

  // `longest_wait` bounds the wait whatever the deadline; zero: nobody waits. Borrows the edges.
  AddService(absl::Duration longest_wait, Edges edges)
      : longest_wait_(longest_wait), edges_(std::move(edges)) {}

  // Answers the ADD now or later. Its key must not be empty.
  void Handle(const cni::Request& request, os::UniqueFd pod_netns, Responder responder);

  // Gives up the ADD of `key`: nobody waits for it any more, since its DEL has come.
  void Forget(const AttachmentKey& key);

  // Serves who waits as far as there is something for them, and tells those whose time is up. Call
  // after each round of the loop, and at NextWake().
  void Tick();
  // When to call Tick(), by the monotonic clock since its beginning; nullopt: nobody waits.
  std::optional<absl::Duration> NextWake() const;

  // Returns who waits now, for the hello of a new session.
  node_api::Demand DemandForHello();
  void OnForecast(const node_api::Forecast& forecast);
  // Takes how a session began (OK) or ended, or why none could be begun.
  void OnSession(const absl::Status& outcome);
  // Answers with the last ADDs. Those that wait come first, with an error that says so.
  void OnTracesRequest(const node_api::AttachTracesRequest& request);

  // Returns the trace id of the request's trace context, or a new one.
  std::string TraceIdFor(const cni::Request& request) const;
  // Returns "server: enlarging the node, expected in 12s"; empty: the server has said nothing.
  std::string ForecastText() const;
  // Returns that the server is away, and since when; empty: it is not, as far as is known.
  std::string ServerAwayText() const;
  size_t waiting() const { return jobs_.size(); }
  const AddCounts& counts() const { return counts_; }

 private:
  struct Job {
    Assignment asked;
    os::UniqueFd netns;
    Responder responder;
    StepTimes steps;
    std::string trace_id;
    absl::Duration deadline;  // By the monotonic clock; zero: none was said.
    // The beginning of the wait, by the monotonic clock; zero: it does not wait.
    absl::Duration waiting_since = absl::ZeroDuration();
    absl::Duration told_at = absl::ZeroDuration();  // When it was told that nothing has come.

    // Whether it waits for an address that is here, such as one in cooldown: more would not help.
    bool picky() const { return !asked.addresses.empty(); }
  };

  absl::Duration Now() const { return absl::Milliseconds(edges_.monotonic_ms()); }
  static node_api::AttachTrace TraceOf(const Job& job, std::string error);
  absl::StatusOr<AttachSpec> Add(Job& job);
  // Returns the answer to an ADD for which there is no address.
  cni::Response AnswerOf(const absl::StatusOr<AttachSpec>& result) const;
  // Returns until when `job` may wait; nullopt: it may not.
  std::optional<absl::Duration> WaitUntil(const Job& job) const;
  bool Wait(Job& job);
  void Finish(Job job, const absl::StatusOr<AttachSpec>& result);
  Job TakeOut(uint64_t id);
  void ServeLine();
  void FailOverdue();
  void SayDemand();
  // Counts how many pods of which namespace wait for addresses that are not here.
  node_api::Demand DemandNow() const;

  const absl::Duration longest_wait_;
  const Edges edges_;
  std::map<uint64_t, Job> jobs_;  // The jobs that wait, in the order of their arrival.
  uint64_t last_job_ = 0;
  AttachTraces traces_;
  AddCounts counts_;
  node_api::Demand said_;                 // The demand that the server knows.
  std::optional<absl::Duration> say_at_;  // When to say that the demand has changed.
  std::optional<node_api::Forecast> forecast_;
  absl::Duration forecast_at_;
  struct Away {
    absl::Time since;          // For people.
    absl::Duration monotonic;  // The same, by the monotonic clock.
  };
  std::optional<Away> away_;  // The server has not been reached since then.
};

}  // namespace spoke::netagent
