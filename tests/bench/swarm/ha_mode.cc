// The mode in which servers are killed and stopped under the agents.
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "tests/bench/swarm/latencies.h"
#include "tests/bench/swarm/modes.h"
#include "tests/bench/swarm/pod_arrivals.h"
#include "tests/bench/swarm/waiting.h"
#include "tests/ha/history/takeover_reader.h"

namespace spoke::swarm {
namespace {

constexpr const char* kPrefix = "/spoke/";  // The default of the server's configuration.

double Seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

Json DescribeWaits(const Swarm& swarm) {
  std::vector<double> next;
  std::vector<double> longest;
  for (const Swarm::Wait& wait : swarm.waits()) {
    if (wait.next != 0) next.push_back(Seconds(wait.next));
    if (wait.longest != 0) longest.push_back(Seconds(wait.longest));
  }
  Json out = {{"event", "answered"}, {"answered", next.size()}, {"agents", swarm.size()}};
  if (next.empty()) return out;
  out["first_s"] = QuantileOf(next, 0.0);
  out["next_s"] = std::move(next);
  out["longest_s"] = std::move(longest);
  return out;
}

class HaRun {
 public:
  HaRun(Swarm& swarm, const Plan& plan) : swarm_(swarm), plan_(plan), arrivals_(swarm) {}

  absl::Status Open() {
    if (plan_.etcd.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(auto endpoints, ipam::etcd::ParseEndpoints(plan_.etcd));
    ASSIGN_OR_RETURN(
        reader_, ha::TakeoverReader::Open({.endpoints = std::move(endpoints)}, kPrefix, &NodeOf));
    return absl::OkStatus();
  }

  absl::Status Obey(const std::string& line) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    const std::string& verb = words[0];
    double number = 0;
    if (words.size() > 1 && !absl::SimpleAtod(words[1], &number)) {
      return absl::InvalidArgumentError(fmt::format("{} is not a number, in: {}", words[1], line));
    }
    if (verb == "pods" && words.size() == 2) {
      arrivals_.SetRate(static_cast<uint32_t>(std::min<double>(number, PodArrivals::kMostRate)));
      return absl::OkStatus();
    }
    int signal = 0;
    if (verb == "strike" && words.size() == 3 && absl::SimpleAtoi(words[2], &signal)) {
      return Strike(static_cast<pid_t>(number), signal);
    }
    if (verb == "await" && words.size() == 2) return AwaitAnswers(number);
    if (verb == "watch" && words.size() == 2) return Watch(absl::Seconds(number));
    if (verb == "read" && words.size() == 1) return Read();
    return absl::InvalidArgumentError(fmt::format("no such command: {}", line));
  }

  absl::StatusOr<Json> Judge() {
    arrivals_.SetRate(0);
    std::vector<ha::Reading> readings;
    for (const Left& left : left_) {
      ASSIGN_OR_RETURN(ha::Reading reading, reader_->Decode(left.records));
      reading.from = left.from;
      reading.to = left.to;
      readings.push_back(std::move(reading));
    }
    const ha::Verdict verdict = ha::CheckHistory(swarm_.ledger().history(), readings);
    for (const std::string& text : verdict.first) fmt::print(stderr, "spoke-swarm: {}\n", text);
    return Json{{"doubled", verdict.doubled},    {"lost", verdict.lost},
                {"first_faults", verdict.first}, {"holds", verdict.holds},
                {"moves", verdict.moves},        {"uses", verdict.uses},
                {"readings", readings.size()},   {"compared", verdict.compared},
                {"pods", arrivals_.arrived()},   {"pods_without_address", arrivals_.failed()}};
  }

 private:
  absl::Status Strike(pid_t process, int signal) {
    if (process <= 1) return absl::InvalidArgumentError("strike takes one process");
    if (reader_ != nullptr) RETURN_IF_ERROR(reader_->Remember());
    struck_ = swarm_.Strike();
    if (::kill(process, signal) == 0) return absl::OkStatus();
    return base::ErrnoToStatus(errno, fmt::format("send signal {} to {}", signal, process));
  }

  absl::Status AwaitAnswers(double share) {
    const auto enough = std::max(1.0, share * static_cast<double>(swarm_.size()));
    RETURN_IF_ERROR(Await(swarm_, plan_, "acknowledge a write of each agent",
                          [&] { return swarm_.answered() >= enough; }));
    Print(DescribeWaits(swarm_));
    return absl::OkStatus();
  }

  absl::Status Watch(absl::Duration duration) {
    const int64_t until = struck_ + absl::ToInt64Nanoseconds(duration);
    RETURN_IF_ERROR(Await(swarm_, plan_, "watch", [&] { return NowNs() >= until; }));
    Print(DescribeWaits(swarm_));
    return absl::OkStatus();
  }

  // The next leader has answered by now, so the instant of the reading was before its answer.
  absl::Status Read() {
    if (reader_ == nullptr || swarm_.first_wait() == 0) {
      return absl::FailedPreconditionError("read needs --etcd, and an answer since the strike");
    }
    ASSIGN_OR_RETURN(auto records, reader_->Read());
    Print({{"event", "read"}, {"records", records.size()}});
    left_.push_back(
        {.from = struck_, .to = struck_ + swarm_.first_wait(), .records = std::move(records)});
    return absl::OkStatus();
  }

  // What a leader has left, as it was at an instant between the two.
  struct Left {
    int64_t from = 0;
    int64_t to = 0;
    ha::TakeoverReader::Records records;
  };

  Swarm& swarm_;
  const Plan& plan_;
  std::unique_ptr<ha::TakeoverReader> reader_;
  std::vector<Left> left_;
  int64_t struck_ = 0;
  PodArrivals arrivals_;  // The last: its thread uses the swarm.
};

}  // namespace

absl::StatusOr<Json> RunHa(Swarm& swarm, const Plan& plan) {
  ASSIGN_OR_RETURN(Json result, RunStorm(swarm, plan));
  RETURN_IF_ERROR(Assign(swarm, plan));
  HaRun run(swarm, plan);
  RETURN_IF_ERROR(run.Open());
  Print({{"event", "ready"}});
  std::string line;
  while (std::getline(std::cin, line)) RETURN_IF_ERROR(run.Obey(line));
  ASSIGN_OR_RETURN(const Json judgement, run.Judge());
  result.update(judgement);
  result.update(DescribeSwarm(swarm));
  return result;
}

}  // namespace spoke::swarm
