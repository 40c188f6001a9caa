#include "lib/telemetry/metrics.h"

#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "lib/base/check.h"

namespace spoke::telemetry {
namespace {

bool IsName(std::string_view text) {
  return !text.empty() && text.front() >= 'a' && text.front() <= 'z' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

// Returns whether a label is what one must never be, since there are as many values as there are
// addresses or pods.
bool IsUnbounded(const LabelSpec& spec, bool from_source) {
  // A source may name a few pods, sorted out by what they use.
  constexpr size_t kMostPods = 64;
  const std::string_view label = spec.name;
  if (label == "pod") return !from_source || spec.max_values > kMostPods;

  static constexpr std::string_view kBanned[] = {"address", "ip",           "container", "uid",
                                                 "mac",     "container_id", "vm_id"};
  return std::find(std::begin(kBanned), std::end(kBanned), label) != std::end(kBanned);
}

prometheus::MetricType TypeOf(const MetricSpec& spec) {
  switch (spec.type) {
    case MetricType::kCounter:
      return prometheus::MetricType::Counter;
    case MetricType::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricType::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

void SetValue(const MetricSpec& spec, const Sample& sample, prometheus::ClientMetric& metric) {
  const bool is_histogram = spec.type == MetricType::kHistogram;
  CHECK(sample.counts.size() == (is_histogram ? spec.buckets.size() + 1 : 0),
        "a sample has a count for each bucket of its metric, and one more");
  if (!is_histogram) {
    (spec.type == MetricType::kCounter ? metric.counter.value : metric.gauge.value) = sample.value;
    return;
  }
  metric.histogram.sample_sum = sample.value;
  for (size_t i = 0; i < sample.counts.size(); ++i) {
    metric.histogram.sample_count += sample.counts[i];
    metric.histogram.bucket.push_back(
        {.cumulative_count = metric.histogram.sample_count,
         .upper_bound =
             i < spec.buckets.size() ? spec.buckets[i] : std::numeric_limits<double>::infinity()});
  }
}

void CheckSpec(const MetricSpec& spec) {
  CHECK(IsName(spec.name) && !spec.help.empty(), "a metric has a name and a help text");
  const std::string_view name = spec.name;
  CHECK(name.ends_with("_total") == (spec.type == MetricType::kCounter),
        "counters, and only they, end in _total");
  CHECK(!name.ends_with("_count") && !name.ends_with("_sum") && !name.ends_with("_bucket"),
        "those endings are a histogram's own");
  CHECK((spec.type == MetricType::kHistogram) == !spec.buckets.empty() &&
            std::is_sorted(spec.buckets.begin(), spec.buckets.end()),
        "histograms, and only they, have buckets");
  for (const LabelSpec& label : spec.labels) {
    CHECK(IsName(label.name) && label.name != "le" && !IsUnbounded(label, spec.from_source),
          "a label has few values");
    CHECK(label.values.empty() != (label.max_values == 0), "a label's values are bounded");
  }
}

}  // namespace

LabelSpec OneOf(std::string name, std::vector<std::string> values) {
  return {.name = std::move(name), .values = std::move(values)};
}

LabelSpec UpTo(std::string name, size_t max_values) {
  return {.name = std::move(name), .max_values = max_values};
}

MetricSpec CounterSpec(std::string name, std::string help, std::vector<LabelSpec> labels) {
  return {.name = std::move(name),
          .type = MetricType::kCounter,
          .help = std::move(help),
          .labels = std::move(labels)};
}

MetricSpec GaugeSpec(std::string name, std::string help, std::vector<LabelSpec> labels) {
  return {.name = std::move(name),
          .type = MetricType::kGauge,
          .help = std::move(help),
          .labels = std::move(labels)};
}

MetricSpec HistogramSpec(std::string name, std::string help, std::vector<double> buckets,
                         std::vector<LabelSpec> labels) {
  return {.name = std::move(name),
          .type = MetricType::kHistogram,
          .help = std::move(help),
          .labels = std::move(labels),
          .buckets = std::move(buckets)};
}

std::vector<MetricSpec> FromSource(std::vector<MetricSpec> table) {
  for (MetricSpec& spec : table) spec.from_source = true;
  return table;
}

void Counter::Add(double amount) const {
  CHECK(amount >= 0, "a counter only rises");
  counter_->Increment(amount);
}
double Counter::value() const { return counter_->Value(); }
void Gauge::Set(double value) const { gauge_->Set(value); }
void Gauge::Add(double amount) const { gauge_->Increment(amount); }
double Gauge::value() const { return gauge_->Value(); }
void Histogram::Observe(double value) const { histogram_->Observe(value); }

class Metrics::Impl final : public prometheus::Collectable {
 public:
  explicit Impl(std::vector<MetricSpec> table) : table_(std::move(table)) {
    table_.push_back(CounterSpec("spoke_metrics_refused_labels_total",
                                 "Label values that were not in the table or beyond its cap"));
    for (const MetricSpec& spec : table_) {
      CheckSpec(spec);
      Family family{.spec = &spec, .seen = std::vector<std::set<std::string>>(spec.labels.size())};
      if (!spec.from_source) Register(spec, family);
      const bool is_new = families_.emplace(spec.name, std::move(family)).second;
      CHECK(is_new, "a metric stands in the table once");
    }
    refused_ = &families_.find(table_.back().name)->second.counters->Add({});
  }

  prometheus::Counter& GetCounter(std::string_view name, const std::vector<std::string>& labels) {
    const absl::MutexLock lock(&mutex_);
    Family& family = Find(name, MetricType::kCounter, labels);
    return family.counters->Add(LabelsOf(family, labels));
  }

  prometheus::Gauge& GetGauge(std::string_view name, const std::vector<std::string>& labels) {
    const absl::MutexLock lock(&mutex_);
    Family& family = Find(name, MetricType::kGauge, labels);
    return family.gauges->Add(LabelsOf(family, labels));
  }

  prometheus::Histogram& GetHistogram(std::string_view name,
                                      const std::vector<std::string>& labels) {
    const absl::MutexLock lock(&mutex_);
    Family& family = Find(name, MetricType::kHistogram, labels);
    return family.histograms->Add(LabelsOf(family, labels), family.spec->buckets);
  }

  void BeforeScrape(std::function<void()> update) {
    const absl::MutexLock lock(&hooks_mutex_);
    hooks_.push_back(std::move(update));
  }

  void AddSource(std::function<std::vector<Samples>()> source) {
    const absl::MutexLock lock(&hooks_mutex_);
    sources_.push_back(std::move(source));
  }

  std::vector<prometheus::MetricFamily> Collect() const override {
    std::vector<prometheus::MetricFamily> given;
    {
      const absl::MutexLock lock(&hooks_mutex_);
      for (const auto& update : hooks_) update();
      for (const auto& source : sources_) {
        for (const Samples& samples : source()) {
          if (!samples.series.empty()) given.push_back(FamilyOf(samples));
        }
      }
    }
    std::vector<prometheus::MetricFamily> all = registry_.Collect();
    std::move(given.begin(), given.end(), std::back_inserter(all));
    return all;
  }

  const std::vector<MetricSpec>& table() const { return table_; }

 private:
  struct Family {
    const MetricSpec* spec = nullptr;
    prometheus::Family<prometheus::Counter>* counters = nullptr;
    prometheus::Family<prometheus::Gauge>* gauges = nullptr;
    prometheus::Family<prometheus::Histogram>* histograms = nullptr;
    std::vector<std::set<std::string>> seen;  // The values by label, for those with a cap.
  };

  void Register(const MetricSpec& spec, Family& family) {
    switch (spec.type) {
      case MetricType::kCounter:
        family.counters =
            &prometheus::BuildCounter().Name(spec.name).Help(spec.help).Register(registry_);
        break;
      case MetricType::kGauge:
        family.gauges =
            &prometheus::BuildGauge().Name(spec.name).Help(spec.help).Register(registry_);
        break;
      case MetricType::kHistogram:
        family.histograms =
            &prometheus::BuildHistogram().Name(spec.name).Help(spec.help).Register(registry_);
        break;
    }
  }

  // The table does not change once it is made, so this takes no lock.
  prometheus::MetricFamily FamilyOf(const Samples& samples) const {
    const auto spec = std::find_if(table_.begin(), table_.end(), [&](const MetricSpec& metric) {
      return metric.name == samples.metric;
    });
    CHECK(spec != table_.end() && spec->from_source, "a source's metric stands in the table");
    prometheus::MetricFamily family;
    family.name = spec->name;
    family.help = spec->help;
    family.type = TypeOf(*spec);
    for (const Sample& sample : samples.series) {
      CHECK(sample.labels.size() == spec->labels.size(), "a sample has its metric's labels");
      prometheus::ClientMetric metric;
      for (size_t i = 0; i < sample.labels.size(); ++i) {
        metric.label.push_back({spec->labels[i].name, sample.labels[i]});
      }
      SetValue(*spec, sample, metric);
      family.metric.push_back(std::move(metric));
    }
    return family;
  }

  Family& Find(std::string_view name, MetricType type, const std::vector<std::string>& labels)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = families_.find(name);
    CHECK(found != families_.end() && found->second.spec->type == type &&
              found->second.spec->labels.size() == labels.size() &&
              !found->second.spec->from_source,
          "a metric stands in the table with its type and labels");
    return found->second;
  }

  prometheus::Labels LabelsOf(Family& family, const std::vector<std::string>& values)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    prometheus::Labels named;
    for (size_t i = 0; i < values.size(); ++i) {
      const LabelSpec& label = family.spec->labels[i];
      named[label.name] = std::string(Admit(label, family.seen[i], values[i]));
    }
    return named;
  }

  std::string_view Admit(const LabelSpec& label, std::set<std::string>& seen,
                         const std::string& value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const bool listed =
        std::find(label.values.begin(), label.values.end(), value) != label.values.end();
    if (listed || value == kOther || seen.contains(value)) return value;
    if (seen.size() < label.max_values) return *seen.insert(value).first;
    refused_->Increment();
    return kOther;
  }

  std::vector<MetricSpec> table_;
  prometheus::Registry registry_;  // The registry is thread-safe.
  prometheus::Counter* refused_ = nullptr;
  absl::Mutex mutex_;
  std::map<std::string, Family, std::less<>> families_ ABSL_GUARDED_BY(mutex_);
  mutable absl::Mutex hooks_mutex_;
  std::vector<std::function<void()>> hooks_ ABSL_GUARDED_BY(hooks_mutex_);
  std::vector<std::function<std::vector<Samples>()>> sources_ ABSL_GUARDED_BY(hooks_mutex_);
};

Metrics::Metrics(std::vector<MetricSpec> table) : impl_(std::make_unique<Impl>(std::move(table))) {}
Metrics::~Metrics() = default;

Counter Metrics::GetCounter(std::string_view name, const std::vector<std::string>& labels) {
  return Counter(impl_->GetCounter(name, labels));
}
Gauge Metrics::GetGauge(std::string_view name, const std::vector<std::string>& labels) {
  return Gauge(impl_->GetGauge(name, labels));
}
Histogram Metrics::GetHistogram(std::string_view name, const std::vector<std::string>& labels) {
  return Histogram(impl_->GetHistogram(name, labels));
}
void Metrics::BeforeScrape(std::function<void()> update) { impl_->BeforeScrape(std::move(update)); }
void Metrics::AddSource(std::function<std::vector<Samples>()> source) {
  impl_->AddSource(std::move(source));
}
const std::vector<MetricSpec>& Metrics::table() const { return impl_->table(); }

std::string Metrics::Render() const {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, impl_->Collect());
  return std::move(text).str();
}

}  // namespace spoke::telemetry
