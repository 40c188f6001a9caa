#include "tests/bench/swarm/modes.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include "absl/time/clock.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "tests/bench/swarm/waiting.h"

namespace spoke::swarm {
namespace {

double UnixSeconds() { return static_cast<double>(absl::GetCurrentTimeNanos()) / 1e9; }

void StopPods(Swarm& swarm) {
  for (size_t i = 0; i < swarm.size(); ++i) {
    swarm.agent(i).WithNode([](SimNode& node) {
      node.StopPods();
      return true;
    });
  }
}

absl::Status StartPods(Swarm& swarm, const Plan& plan) {
  for (size_t i = 0; i < swarm.size(); ++i) {
    const size_t started =
        swarm.agent(i).WithNode([&](SimNode& node) { return node.StartPods(plan.pods); });
    if (started != plan.pods) {
      return absl::FailedPreconditionError(
          fmt::format("node {} has room for {} of {} pods", i, started, plan.pods));
    }
  }
  return absl::OkStatus();
}

// The number of the latencies' operations that came in each second.
struct Rates {
  std::vector<double> a_second;
  double seconds = 0;
  uint64_t operations = 0;
};

Rates Measure(Swarm& swarm, absl::Duration duration) {
  Rates rates;
  swarm.latencies().Reset();
  const int64_t started = NowNs();
  int64_t from = started;
  uint64_t before = 0;
  while (from - started < absl::ToInt64Nanoseconds(duration)) {
    absl::SleepFor(absl::Seconds(1));
    const int64_t now = NowNs();
    const uint64_t count = swarm.latencies().count();
    rates.a_second.push_back(static_cast<double>(count - before) * 1e9 /
                             static_cast<double>(now - from));
    before = count;
    from = now;
  }
  rates.seconds = static_cast<double>(from - started) / 1e9;
  rates.operations = before;
  return rates;
}

class Recovery {
 public:
  Recovery(Swarm& swarm, const Plan& plan) : swarm_(swarm), plan_(plan) {}

  absl::Status Obey(const std::string& line) {
    const auto space = line.find(' ');
    const std::string verb = line.substr(0, space);
    const std::string argument = space == std::string::npos ? "" : line.substr(space + 1);
    if (verb == "killed") {
      swarm_.ForgetSyncs();
      killed_ = NowNs();
      return absl::OkStatus();
    }
    if (verb == "wait") return Wait();
    if (verb == "holdings") {
      RETURN_IF_ERROR(WriteHoldings(swarm_, argument));
      Print({{"event", "written"}, {"file", argument}});
      return absl::OkStatus();
    }
    if (verb == "work") return StartPods(swarm_, plan_);
    if (verb == "rest") {
      StopPods(swarm_);
      RETURN_IF_ERROR(AwaitSettled(swarm_, plan_, "rest"));
      Print({{"event", "resting"}, {"operations", swarm_.latencies().count()}});
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(fmt::format("no such command: {}", line));
  }

 private:
  absl::Status Wait() {
    RETURN_IF_ERROR(AwaitSynced(swarm_, plan_, "synchronize"));
    const int64_t offset = absl::GetCurrentTimeNanos() - NowNs();
    int64_t first = 0;
    int64_t last = 0;
    for (const Swarm::Progress& agent : swarm_.progress()) {
      if (first == 0 || agent.welcomed < first) first = agent.welcomed;
      last = std::max(last, agent.synced);
    }
    Json event = {{"event", "synced"},
                  {"first_welcome_unix", static_cast<double>(first + offset) / 1e9},
                  {"synced_unix", static_cast<double>(last + offset) / 1e9}};
    event.update(DescribeProgress(swarm_.progress(), killed_, plan_.agent_timeout));
    event["violations"] = swarm_.ledger().complaints().total;
    Print(event);
    return absl::OkStatus();
  }

  Swarm& swarm_;
  const Plan& plan_;
  int64_t killed_ = 0;
};

Json Finish(const Swarm& swarm, Json result) {
  result.update(DescribeSwarm(swarm));
  return result;
}

}  // namespace

absl::StatusOr<Json> RunStorm(Swarm& swarm, const Plan& plan) {
  const int64_t started = NowNs();
  swarm.Start();
  RETURN_IF_ERROR(AwaitSynced(swarm, plan, "connect"));
  return Finish(swarm, DescribeProgress(swarm.progress(), started, plan.agent_timeout));
}

absl::StatusOr<Json> RunSteady(Swarm& swarm, const Plan& plan) {
  ASSIGN_OR_RETURN(Json result, RunStorm(swarm, plan));
  if (plan.assign > 0) RETURN_IF_ERROR(Assign(swarm, plan));
  Print({{"event", "ready"}, {"unix", UnixSeconds()}});
  const uint64_t attempts = swarm.attempts();
  absl::SleepFor(plan.duration);
  result["reconnects"] = swarm.attempts() - attempts;
  return Finish(swarm, std::move(result));
}

absl::StatusOr<Json> RunChurn(Swarm& swarm, const Plan& plan) {
  ASSIGN_OR_RETURN(Json result, RunStorm(swarm, plan));
  if (plan.assign > 0) RETURN_IF_ERROR(Assign(swarm, plan));
  RETURN_IF_ERROR(StartPods(swarm, plan));
  absl::SleepFor(plan.warm_up);
  Print({{"event", "ready"}, {"unix", UnixSeconds()}});
  const Rates rates = Measure(swarm, plan.duration);
  Print({{"event", "measured"}, {"unix", UnixSeconds()}});
  const Histogram& latencies = swarm.latencies();
  result["operations"] = rates.operations;
  result["measured_s"] = rates.seconds;
  result["ops_per_s"] = static_cast<double>(rates.operations) / rates.seconds;
  result["ops_per_s_min"] = QuantileOf(rates.a_second, 0.0);
  result["ops_per_s_max"] = QuantileOf(rates.a_second, 1.0);
  result["op_p50_ms"] = static_cast<double>(latencies.Quantile(0.5)) / 1e6;
  result["op_p99_ms"] = static_cast<double>(latencies.Quantile(0.99)) / 1e6;
  StopPods(swarm);
  RETURN_IF_ERROR(AwaitSettled(swarm, plan, "drain"));
  return Finish(swarm, std::move(result));
}

absl::StatusOr<Json> RunRecover(Swarm& swarm, const Plan& plan) {
  ASSIGN_OR_RETURN(Json result, RunStorm(swarm, plan));
  RETURN_IF_ERROR(Assign(swarm, plan));
  Print({{"event", "ready"}, {"unix", UnixSeconds()}});
  Recovery recovery(swarm, plan);
  std::string line;
  while (std::getline(std::cin, line)) RETURN_IF_ERROR(recovery.Obey(line));
  return Finish(swarm, std::move(result));
}

}  // namespace spoke::swarm
