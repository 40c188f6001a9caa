#include "tests/bench/swarm/measures.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "lib/os/file.h"

namespace spoke::swarm {
namespace {

constexpr size_t kLast = 100;

double Seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

const char* NameOf(SimNode::Use use) {
  switch (use) {
    case SimNode::Use::kGone:
      return "gone";
    case SimNode::Use::kAvailable:
      return "available";
    case SimNode::Use::kInUse:
      return "in_use";
    case SimNode::Use::kCooldown:
      return "cooldown";
    case SimNode::Use::kWithdrawn:
      return "withdrawn";
  }
  return "gone";
}

}  // namespace

Json DescribeProgress(const std::vector<Swarm::Progress>& progress, int64_t started,
                      absl::Duration timeout) {
  std::vector<Swarm::Progress> done;
  uint64_t timeouts = 0;
  for (const Swarm::Progress& agent : progress) {
    if (agent.synced != 0) done.push_back(agent);
    const bool in_time = agent.synced != 0 &&
                         agent.synced - agent.first_attempt <= absl::ToInt64Nanoseconds(timeout);
    if (!in_time) ++timeouts;
  }
  std::sort(done.begin(), done.end(),
            [](const auto& a, const auto& b) { return a.synced < b.synced; });
  Json out = {{"synced", done.size()}, {"timeouts", timeouts}};
  if (done.empty()) return out;
  std::vector<double> all;
  std::vector<double> attempts;
  for (const Swarm::Progress& agent : done) {
    all.push_back(Seconds(agent.synced - agent.first_attempt));
    attempts.push_back(Seconds(agent.synced - agent.last_attempt));
  }
  const size_t skip = all.size() - std::min(all.size(), kLast);
  const auto last = [&](const std::vector<double>& values) {
    return std::vector<double>(values.begin() + static_cast<std::ptrdiff_t>(skip), values.end());
  };
  out["seconds"] = Seconds(done.back().synced - started);
  out["p50_s"] = QuantileOf(all, 0.5);
  out["p99_s"] = QuantileOf(all, 0.99);
  out["max_s"] = QuantileOf(all, 1.0);
  out["p99_last100_s"] = QuantileOf(last(all), 0.99);
  out["last_attempt_p50_s"] = QuantileOf(attempts, 0.5);
  out["last_attempt_p99_last100_s"] = QuantileOf(last(attempts), 0.99);
  return out;
}

Json DescribeSwarm(const Swarm& swarm) {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const Ledger::Complaints complaints = swarm.ledger().complaints();
  Json out = {{"agents", swarm.size()},
              {"processes", 1},
              {"addresses", swarm.ledger().size()},
              {"attempts", swarm.attempts()},
              {"start_lag_s", Seconds(swarm.start_lag())},
              {"ends", swarm.ends()},
              {"budget_reports", swarm.budget_reports()},
              {"violations", complaints.total},
              {"violations_by_kind", complaints.by_kind},
              {"first_violations", complaints.first},
              {"swarm_cpu_s", Seconds(used.ru_utime) + Seconds(used.ru_stime)},
              {"swarm_rss_mib", static_cast<double>(used.ru_maxrss) / 1024}};
  return out;
}

absl::Status WriteHoldings(Swarm& swarm, const std::string& path) {
  std::string text;
  for (size_t i = 0; i < swarm.size(); ++i) {
    swarm.agent(i).WithNode([&](const SimNode& node) {
      const std::string name = NamesOf(node.node()).name;
      for (const SimNode::Held& held : node.held()) {
        if (held.use == SimNode::Use::kGone) continue;
        text += fmt::format(
            "{}\t{}\t{}\t{}\t{}\n", held.address.ToString(), name, NameOf(held.use),
            held.use == SimNode::Use::kInUse ? ContainerOf(node.node(), held.generation) : "-",
            held.settled ? 1 : 0);
      }
      return true;
    });
  }
  return os::WriteFileAtomic(path, text, os::Durability::kVisible);
}

}  // namespace spoke::swarm
