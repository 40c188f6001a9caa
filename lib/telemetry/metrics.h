// The metrics that a program tells Prometheus: every metric stands in one table, and every label in
// it has bounded values, so that no cluster, however large, makes the server's memory or
// Prometheus's grow with it. An address, an id or a name that users choose is never a label.
//
// This header knows nothing of the metrics library, whose own headers are costly to compile. Each
// program's table is listed in docs/METRICS.md; scripts/check_metrics compares the two.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/telemetry/samples.h"

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace spoke::telemetry {

enum class MetricType { kCounter, kGauge, kHistogram };

struct LabelSpec {
  std::string name;
  std::vector<std::string> values;  // The only values; empty: any, up to `max_values`.
  size_t max_values = 0;
};

// Makes a label with these values only.
LabelSpec OneOf(std::string name, std::vector<std::string> values);
// Makes a label whose values an operator names, such as pools. See Metrics for what happens beyond.
LabelSpec UpTo(std::string name, size_t max_values);

struct MetricSpec {
  std::string name;  // The name, which ends in its unit; a counter's in _total.
  MetricType type = MetricType::kGauge;
  std::string help;
  std::vector<LabelSpec> labels = {};
  std::vector<double> buckets = {};  // The upper bounds, rising; for histograms only.
  // Whether a source gives its samples at each scrape (Metrics::AddSource): it has no handles, and
  // the source keeps to the caps. Only such a metric may have a pod's name as a label.
  bool from_source = false;
};

// Make the entries of a table.
MetricSpec CounterSpec(std::string name, std::string help, std::vector<LabelSpec> labels = {});
MetricSpec GaugeSpec(std::string name, std::string help, std::vector<LabelSpec> labels = {});
MetricSpec HistogramSpec(std::string name, std::string help, std::vector<double> buckets,
                         std::vector<LabelSpec> labels = {});
// Returns the entries as those of a source.
std::vector<MetricSpec> FromSource(std::vector<MetricSpec> table);

// Handles are cheap to copy and to use (some 10 ns), thread-safe, and valid as long as their
// Metrics.
class Counter {
 public:
  explicit Counter(prometheus::Counter& counter) : counter_(&counter) {}
  // Adds `amount`, which is not negative.
  void Add(double amount = 1) const;
  double value() const;

 private:
  prometheus::Counter* counter_;
};

class Gauge {
 public:
  explicit Gauge(prometheus::Gauge& gauge) : gauge_(&gauge) {}
  void Set(double value) const;
  void Add(double amount) const;
  double value() const;

 private:
  prometheus::Gauge* gauge_;
};

class Histogram {
 public:
  explicit Histogram(prometheus::Histogram& histogram) : histogram_(&histogram) {}
  void Observe(double value) const;

 private:
  prometheus::Histogram* histogram_;
};

// All metrics of a program. Thread-safe. A name that is not in the table, a wrong type or a wrong
// number of labels is a bug in the caller, and ends the program.
class Metrics {
 public:
  // The label value for those beyond the cap: a series of its own, so that sums stay right.
  static constexpr std::string_view kOther = "other";

  // Takes the table. Names, types and labels are checked: a bad table ends the program.
  explicit Metrics(std::vector<MetricSpec> table);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Returns the series with these label values, in the order of the table; made at the first call.
  // A value that the table does not list, or one beyond its cap, becomes "other" (and is counted in
  // spoke_metrics_refused_labels_total). Costs a lookup: keep the handle.
  Counter GetCounter(std::string_view name, const std::vector<std::string>& labels = {});
  Gauge GetGauge(std::string_view name, const std::vector<std::string>& labels = {});
  Histogram GetHistogram(std::string_view name, const std::vector<std::string>& labels = {});

  // Registers what is called before every scrape, on the scraping thread, for what is cheaper to
  // look up than to keep: it must be quick, and must not call Render(). It is never called again
  // once Metrics is gone.
  void BeforeScrape(std::function<void()> update);

  // Registers what gives, at every scrape and on its thread, the samples of metrics that the table
  // has as `from_source`; a metric without samples is left out. What is said of BeforeScrape()
  // holds here too.
  void AddSource(std::function<std::vector<Samples>()> source);

  // Returns the text of a scrape, in the Prometheus exposition format.
  std::string Render() const;

  const std::vector<MetricSpec>& table() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace spoke::telemetry
