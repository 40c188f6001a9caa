#include "netagent/exporters/traffic_series.h"

#include <memory>
#include <random>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/random_seed.h"

namespace spoke::netagent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::Key;
using testing::Not;
using testing::Pair;

const absl::Time kEpoch = absl::FromUnixSeconds(1'700'000'000);

// "spoke_pod_bytes_total|web|web-0|internet|sent" leads to its value.
using Values = std::map<std::string, double>;

Values ValuesOf(const std::vector<telemetry::Samples>& all) {
  Values values;
  for (const telemetry::Samples& samples : all) {
    for (const telemetry::Sample& sample : samples.series) {
      const std::string name = samples.metric + "|" + absl::StrJoin(sample.labels, "|");
      EXPECT_TRUE(values.emplace(name, sample.value).second) << name << " is there twice";
    }
  }
  return values;
}

PodTotals Pod(const std::string& where, const std::string& name, CountByClass volumes,
              const std::string& uid = "1") {
  return {.pod_namespace = where, .pod_name = name, .pod_uid = uid, .volumes = std::move(volumes)};
}

TrafficCount Sent(uint64_t bytes) { return {.sent = bytes, .sent_packets = bytes / 1000}; }

TEST(TrafficSeries, APodHasItsOwnSeriesFromTheThresholdOnAndTheyBeginAtZero) {
  TrafficSeries series({.pod_bytes = 100});
  TrafficTotals totals{.epoch = kEpoch};
  totals.namespaces["web"]["internet"] = Sent(99);
  totals.pods = {Pod("web", "web-0", {{"internet", Sent(99)}})};
  EXPECT_THAT(ValuesOf(series.Update(totals)),
              IsSupersetOf({Pair("spoke_pod_bytes_total|_other|_other|internet|sent", 99.0),
                            Pair("spoke_namespace_bytes_total|web|internet|sent", 99.0)}));

  totals.namespaces["web"]["internet"] = Sent(150);
  totals.pods[0].volumes["internet"] = Sent(150);
  EXPECT_THAT(ValuesOf(series.Update(totals)),
              IsSupersetOf({Pair("spoke_pod_bytes_total|_other|_other|internet|sent", 150.0),
                            Pair("spoke_pod_bytes_total|web|web-0|internet|sent", 0.0)}));

  totals.namespaces["web"]["internet"] = Sent(170);
  totals.pods[0].volumes["internet"] = Sent(170);
  EXPECT_THAT(ValuesOf(series.Update(totals)),
              IsSupersetOf({Pair("spoke_pod_bytes_total|_other|_other|internet|sent", 150.0),
                            Pair("spoke_pod_bytes_total|web|web-0|internet|sent", 20.0)}));
}

TEST(TrafficSeries, WhatAnEndedPodShowedDoesNotComeBackInOther) {
  TrafficSeries series({.pod_bytes = 1});
  TrafficTotals totals{.epoch = kEpoch};
  totals.namespaces["web"]["internet"] = Sent(10);
  totals.pods = {Pod("web", "web-0", {{"internet", Sent(10)}})};
  series.Update(totals);
  totals.namespaces["web"]["internet"] = Sent(500);
  totals.pods[0].volumes["internet"] = Sent(500);
  series.Update(totals);
  // Its last bytes were never seen as its own.
  totals.namespaces["web"]["internet"] = Sent(503);
  totals.pods.clear();
  const Values values = ValuesOf(series.Update(totals));
  EXPECT_THAT(values, Contains(Pair("spoke_pod_bytes_total|_other|_other|internet|sent", 13.0)));
  EXPECT_THAT(values, Not(Contains(Key("spoke_pod_bytes_total|web|web-0|internet|sent"))));
}

TEST(TrafficSeries, ANameIsNeverTwoPodsSeries) {
  TrafficSeries series({.pod_bytes = 1});
  TrafficTotals totals{.epoch = kEpoch};
  totals.namespaces["web"]["internet"] = Sent(20);
  totals.pods = {Pod("web", "web-0", {{"internet", Sent(10)}}, "old")};
  series.Update(totals);
  totals.pods[0].ended = true;
  totals.pods.push_back(Pod("web", "web-0", {{"internet", Sent(10)}}, "new"));
  series.Update(totals);  // ValuesOf() would see it twice.
  ValuesOf(series.Update(totals));
  EXPECT_THAT(series.state().pods.slots, ElementsAre(Key(SeriesState::Key{"web", "web-0", "old"})));
  totals.pods.erase(totals.pods.begin());
  series.Update(totals);
  EXPECT_THAT(series.state().pods.slots, ElementsAre(Key(SeriesState::Key{"web", "web-0", "new"})));
}

TEST(TrafficSeries, ANamespaceKeepsItsPlaceUntilItHasNoPodsAndAnotherWantsIt) {
  TrafficSeries series({.namespaces = 1});
  TrafficTotals totals{.epoch = kEpoch};
  totals.namespaces["a"]["cluster"] = Sent(10);
  totals.pods = {Pod("a", "p", {})};
  series.Update(totals);
  totals.namespaces["b"]["cluster"] = Sent(1000);
  totals.pods.push_back(Pod("b", "p", {}));
  EXPECT_THAT(ValuesOf(series.Update(totals)),
              IsSupersetOf({Pair("spoke_namespace_bytes_total|a|cluster|sent", 10.0),
                            Pair("spoke_namespace_bytes_total|_other|cluster|sent", 1000.0)}));
  totals.pods.erase(totals.pods.begin());
  totals.namespaces["b"]["cluster"] = Sent(1200);
  EXPECT_THAT(ValuesOf(series.Update(totals)),
              IsSupersetOf({Pair("spoke_namespace_bytes_total|b|cluster|sent", 0.0),
                            Pair("spoke_namespace_bytes_total|_other|cluster|sent", 1200.0)}));
}

TEST(TrafficSeries, GroupsAndRareClassesAreOther) {
  TrafficSeries series({});
  TrafficTotals totals{.epoch = kEpoch};
  totals.node["forward"]["group:hub"] = Sent(3);
  totals.node["forward"]["peer-spoke"] = Sent(4);
  totals.node["forward"]["platform"] = Sent(5);
  totals.node["input"]["internet"] = {.received = 7, .received_packets = 1};
  const Values values = ValuesOf(series.Update(totals));
  EXPECT_THAT(values, IsSupersetOf({Pair("spoke_node_bytes_total|_other|sent|forward", 7.0),
                                    Pair("spoke_node_bytes_total|platform|sent|forward", 5.0),
                                    Pair("spoke_node_bytes_total|internet|received|input", 7.0),
                                    Pair("spoke_node_packets_total|internet|received|input", 1.0),
                                    Pair("spoke_node_bytes_total|cluster|received|input", 0.0)}));
  EXPECT_THAT(values, Not(Contains(Key("spoke_node_bytes_total|internet|sent|input"))));
}

TEST(TrafficSeries, APodCalledOtherIsAPartOfIt) {
  TrafficSeries series({.pod_bytes = 1});
  TrafficTotals totals{.epoch = kEpoch};
  totals.namespaces["_other"]["internet"] = Sent(5);
  totals.pods = {Pod("_other", "_other", {{"internet", Sent(5)}})};
  EXPECT_THAT(ValuesOf(series.Update(totals)),
              IsSupersetOf({Pair("spoke_pod_bytes_total|_other|_other|internet|sent", 5.0),
                            Pair("spoke_namespace_bytes_total|_other|internet|sent", 5.0)}));
}

// The history of a node, as the kernel's counters would tell it.
class History {
 public:
  explicit History(std::mt19937_64& random) : random_(random) {}

  void Step() {
    if (Chance(0.4)) {
      const std::string where = "ns" + std::to_string(Below(9));
      totals_.pods.push_back(
          Pod(where, "p" + std::to_string(Below(6)), {}, std::to_string(++uid_)));
    }
    if (Chance(0.3) && !totals_.pods.empty()) {
      const size_t at = Below(totals_.pods.size());
      if (totals_.pods[at].ended || Chance(0.3)) {
        totals_.pods.erase(totals_.pods.begin() + static_cast<ptrdiff_t>(at));
      } else {
        totals_.pods[at].ended = true;
      }
    }
    for (PodTotals& pod : totals_.pods) {
      if (pod.ended || Chance(0.3)) continue;
      static constexpr const char* kNames[] = {"cluster", "internet", "hub", "group:x", "storage"};
      const std::string name = kNames[Below(5)];
      const uint64_t sent = Below(400);
      const uint64_t received = Below(400);
      for (TrafficCount* volume : {&pod.volumes[name], &totals_.namespaces[pod.pod_namespace][name],
                                   &totals_.node["forward"][name]}) {
        volume->sent += sent;
        volume->received += received;
      }
    }
  }
  void Reboot() { totals_ = {.epoch = totals_.epoch + absl::Hours(1)}; }
  const TrafficTotals& totals() const { return totals_; }
  uint64_t Below(uint64_t end) { return random_() % end; }
  bool Chance(double share) { return std::uniform_real_distribution<>(0, 1)(random_) < share; }

 private:
  std::mt19937_64& random_;
  TrafficTotals totals_{.epoch = kEpoch};
  int uid_ = 0;
};

double SumOf(const Values& values, const std::string& metric, const std::string& direction) {
  double sum = 0;
  for (const auto& [name, value] : values) {
    if (name.starts_with(metric + "|") && name.ends_with("|" + direction)) sum += value;
  }
  return sum;
}

double SentIn(const Flows& flows) {
  double sum = 0;
  for (const auto& [name, flow] : flows) sum += static_cast<double>(flow.sent);
  return sum;
}

// Returns the uid of the pod whose series that is; empty for any other series.
std::string PodOf(const SeriesState& state, const std::string& series) {
  for (const auto& [key, slot] : state.pods.slots) {
    const std::string prefix = "spoke_pod_bytes_total|" + key.pod_namespace + "|" + key.pod + "|";
    if (series.starts_with(prefix)) return key.uid;
  }
  return "";
}

TEST(TrafficSeries, OverAnyHistoryNoSeriesFallsAndAllAddUpToTheTotals) {
  std::mt19937_64 random(testing_support::RandomSeed());
  for (int run = 0; run < 12; ++run) {
    History history(random);
    const SeriesLimits limits{.namespaces = 3, .pods = 4, .pod_bytes = 1000};
    auto series = std::make_unique<TrafficSeries>(limits);
    Values before;
    SeriesState old;
    for (int step = 0; step < 150; ++step) {
      history.Step();
      if (history.Chance(0.02)) {  // Another agent takes up.
        series = std::make_unique<TrafficSeries>(limits, series->state());
      }
      if (history.Chance(0.005)) {
        history.Reboot();
        before.clear();
      }
      const Values now = ValuesOf(series->Update(history.totals()));
      const SeriesState& state = series->state();
      for (const auto& [name, value] : before) {
        const auto found = now.find(name);
        if (found == now.end()) {
          EXPECT_TRUE(name.starts_with("spoke_pod_bytes_total|ns") ||
                      name.starts_with("spoke_namespace_bytes_total|ns"))
              << name << " never ends";
          continue;
        }
        // A name may have become another pod's.
        if (PodOf(old, name) == PodOf(state, name)) {
          EXPECT_GE(found->second, value) << name;
        }
      }
      double total = 0;
      for (const auto& [name, volumes] : history.totals().namespaces) {
        for (const auto& [kind, volume] : volumes) total += static_cast<double>(volume.sent);
      }
      EXPECT_EQ(
          SumOf(now, "spoke_namespace_bytes_total", "sent") + SentIn(state.namespaces.departed),
          total);
      EXPECT_EQ(SumOf(now, "spoke_pod_bytes_total", "sent") + SentIn(state.pods.departed), total);
      EXPECT_LE(state.pods.slots.size(), limits.pods);
      EXPECT_LE(state.namespaces.slots.size(), limits.namespaces);
      before = now;
      old = state;
    }
  }
}

TEST(TrafficSeries, AThousandPodsInAHundredNamespacesMakeFewSeries) {
  TrafficSeries series({.pod_bytes = 1});
  TrafficTotals totals{.epoch = kEpoch};
  const char* classes[] = {"loopback", "platform",   "cluster",  "hub",    "storage",
                           "internet", "peer-spoke", "group:hf", "group:x"};
  for (const char* name : classes) {
    const TrafficCount volume{.sent = 1, .received = 1, .sent_packets = 1, .received_packets = 1};
    for (const char* hook : {"forward", "input", "output"}) totals.node[hook][name] = volume;
    for (int pod = 0; pod < 1000; ++pod) {
      const std::string where = "ns" + std::to_string(pod % 100);
      totals.namespaces[where][name].sent += 1;
      totals.namespaces[where][name].received += 1;
      if (name == classes[0]) totals.pods.push_back(Pod(where, "p" + std::to_string(pod), {}));
      totals.pods[static_cast<size_t>(pod)].volumes[name] = volume;
    }
  }
  series.Update(totals);
  for (auto& pod : totals.pods) {
    for (auto& [name, volume] : pod.volumes) {
      volume.sent += 1;
      volume.received += 1;
      totals.namespaces[pod.pod_namespace][name].sent += 1;
      totals.namespaces[pod.pod_namespace][name].received += 1;
    }
  }
  // With 58 of other kinds at most, a node stays below 200.
  EXPECT_LE(ValuesOf(series.Update(totals)).size(), 140U);
}

}  // namespace
}  // namespace spoke::netagent
