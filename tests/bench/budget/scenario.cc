#include "tests/bench/budget/scenario.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace spoke::budget_sim {
namespace {

// The share of an average node's part below which what a pod gets is called nothing.
constexpr double kNothing = 1e-3;
constexpr double kEnough = 0.95;

class Scenario {
 public:
  explicit Scenario(const ScenarioOptions& options)
      : options_(options), world_(options.world, options.cpu_clock) {}

  ScenarioResult Run() {
    Calm();
    Capacities();
    Faults();
    if (options_.outage) Outage();
    result_.counts = world_.counts();
    result_.simulated_s = absl::ToDoubleSeconds(world_.elapsed());
    for (const ShiftResult& shift : result_.shifts) {
      if (shift.in_faults) continue;
      result_.use95_s = std::max(result_.use95_s, shift.use95_s);
      result_.fairness_error = std::max(result_.fairness_error, shift.team_error);
    }
    return std::move(result_);
  }

 private:
  void Calm() {
    Redraw(0.7);
    Observe("start", 60, false, true);
    RedrawSome(0.3, 0.9);
    Observe("a third changes", 60);
    Redraw(1.5);
    Observe("all change, half too much", 60);
    MoveToHalf(0, 1.5);
    Observe("half of the nodes only", 60);
    MoveToHalf(1, 1.5);
    Observe("the other half", 60);
    Hot();
    Observe("ten nodes want nearly all", 60);
    Redraw(3);
    Observe("all want three times as much", 90);
    Redraw(0.5);
    Observe("half is enough", 60);
  }

  void Capacities() {
    Redraw(1.2);
    Observe("before the capacity changes", 45);
    const uint64_t capacity = world_.spec().capacity.count();
    const absl::Duration before = world_.elapsed();
    world_.SetCapacity(capacity / 10 * 7);
    bool fits = false;
    Observe("a capacity of 7 tenths", 60, false, false, [&] {
      if (fits || world_.usable() > world_.spec().capacity.count()) return;
      fits = true;
      result_.shrink_s = absl::ToDoubleSeconds(world_.elapsed() - before);
    });
    world_.SetCapacity(capacity);
    Observe("all of it again", 60);
  }

  void Faults() {
    const size_t fifth = world_.agents().size() / 5;
    world_.Partition(0, fifth, true);
    RedrawSome(0.5, 1.5);
    Observe("a fifth cut off", 90, true);
    world_.Partition(0, fifth, false);
    Observe("together again", 60, true);
    RedrawSome(0.5, 1.3);
    Observe("a shift after it", 45);
    world_.KillServer();
    RedrawSome(0.3, 1.3);
    Observe("no server", 10, true);
    world_.StartServer();
    Observe("a new server", 45, true);
    Redraw(1.3);
    Observe("a shift after it", 45);
    for (size_t i = 0; i < world_.agents().size(); i += 50) world_.RestartAgent(i);
    Observe("some agents restarted", 45, true);
    for (size_t i = 7; i < world_.agents().size(); i += 50) world_.RemoveNode(i);
    Redraw(1.3);
    Observe("some nodes gone", 45);
    world_.SetTimes(absl::Seconds(60), absl::Seconds(30));
    Redraw(1.3);
    Observe("shorter grants", 45);
  }

  void Outage() {
    world_.KillServer();
    Observe("a long absence", 420, true);
    Redraw(1.3);
    world_.StartServer();
    Observe("a new server", 60, true);
    Redraw(1.3);
    Observe("a shift after it", 45);
    world_.KillServer();
    Observe("an absence into the decay", 130, true);
    world_.StartServer();
    world_.Partition(0, world_.agents().size() / 3, true);
    Redraw(1.3);
    Observe("a third never heard", 200, true);
    world_.Partition(0, world_.agents().size() / 3, false);
    Observe("heard at last", 60, true);
  }

  double Pool() const {
    return static_cast<double>(world_.spec().capacity.count()) * (1 - world_.spec().floor_part);
  }

  double SomeOptions() {
    const double fraction = std::uniform_real_distribution<double>(0, 1)(world_.random());
    if (fraction < 0.4) return 0;
    return std::lognormal_distribution<double>(0, 1.5)(world_.random());
  }

  // Scales the demand: all together want `load` times the pool.
  void Scale(double load) {
    double sum = 0;
    for (const Agent& agent : world_.agents()) {
      for (const TeamLoad& team : agent.loads()) sum += team.options;
    }
    for (Agent& agent : world_.agents()) {
      for (TeamLoad& team : agent.loads()) team.options *= load * Pool() / sum;
    }
    world_.OnOptions();
  }

  void Redraw(double load) {
    for (Agent& agent : world_.agents()) {
      for (TeamLoad& team : agent.loads()) team.options = SomeOptions();
    }
    Scale(load);
  }

  void RedrawSome(double share, double load) {
    const double typical = Pool() / static_cast<double>(world_.agents().size() * 3) / 2;
    for (Agent& agent : world_.agents()) {
      for (TeamLoad& team : agent.loads()) {
        const double fraction = std::uniform_real_distribution<double>(0, 1)(world_.random());
        if (fraction < share) team.options = typical * SomeOptions();
      }
    }
    Scale(load);
  }

  void MoveToHalf(size_t half, double load) {
    for (size_t i = 0; i < world_.agents().size(); ++i) {
      for (TeamLoad& team : world_.agents()[i].loads()) {
        team.options = i % 2 == half ? SomeOptions() : 0;
      }
    }
    Scale(load);
  }

  // Teams with a max are of no use for it.
  void Hot() {
    for (Agent& agent : world_.agents()) {
      for (TeamLoad& team : agent.loads()) team.options = SomeOptions();
    }
    Scale(0.1);
    size_t hot = 0;
    for (size_t i = 0; i < world_.agents().size() && hot < 10; ++i) {
      TeamLoad& team = world_.agents()[i].loads().front();
      if (!world_.spec().teams[team.index].max.is_zero()) continue;
      team.options = Pool() / 8;
      ++hot;
    }
    world_.OnOptions();
  }

  void Observe(
      std::string name, double seconds, bool in_faults = false, bool starting = false,
      const std::function<void()>& each_tick = [] {}) {
    const FairUse fair = world_.Fair();
    const absl::Duration begin = world_.elapsed();
    // The last moment at which too little was used.
    absl::Duration short_until = begin;
    world_.RunUntil(begin + absl::Seconds(seconds), [&] {
      if (world_.use() < kEnough * fair.all) short_until = world_.elapsed();
      each_tick();
    });
    ShiftResult shift{.name = std::move(name), .in_faults = in_faults || starting};
    shift.use95_s = absl::ToDoubleSeconds(short_until - begin);
    shift.use_at_rest = world_.use() / fair.all;
    Compare(fair, shift);
    if (options_.progress) options_.progress(shift);
    result_.shifts.push_back(std::move(shift));
  }

  void Compare(const FairUse& fair, ShiftResult& shift) {
    std::vector<double> used(fair.by_team.size());
    const double least = kNothing * Pool() / static_cast<double>(world_.agents().size());
    size_t options = 0;
    for (const Agent& agent : world_.agents()) {
      for (const TeamLoad& team : agent.loads()) {
        const double exact = fair.by_request[options++];
        if (exact <= 0) continue;
        used[team.index] += team.Use();
        if (exact < least) continue;
        shift.node_error = std::max(shift.node_error, std::abs(team.Use() - exact) / exact);
      }
    }
    for (size_t i = 0; i < used.size(); ++i) {
      if (fair.by_team[i] < least) continue;
      shift.team_error =
          std::max(shift.team_error, std::abs(used[i] - fair.by_team[i]) / fair.by_team[i]);
    }
  }

  ScenarioOptions options_;
  World world_;
  ScenarioResult result_;
};

}  // namespace

ScenarioResult RunScenario(const ScenarioOptions& options) { return Scenario(options).Run(); }

}  // namespace spoke::budget_sim
