// Feeds what iptables-save prints, and what the kernel says of rules: never a crash; what was read
// is printed so that reading it gives the same, and becomes labels that Prometheus takes.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "lib/base/check.h"
#include "netagent/exporters/iptables_series.h"
#include "netagent/exporters/label_text.h"
#include "netagent/iptables/nft_rule_text.h"

namespace {

using spoke::netagent::CommentSeries;
using spoke::netagent::kMaxRuleSeries;
using spoke::netagent::LabelText;
using spoke::netagent::MergeBackends;
using spoke::netagent::ParseIptablesSave;
using spoke::netagent::ReadNftChain;
using spoke::netagent::ReadNftRule;
using spoke::netagent::RuleSeries;

void CheckSeries(const std::vector<spoke::telemetry::Samples>& all) {
  for (const auto& samples : all) {
    CHECK(samples.series.size() <= kMaxRuleSeries * 2, "the number of series has an end");
    for (const auto& sample : samples.series) {
      // The first ones are the table's own.
      for (size_t i = samples.metric.starts_with("iptables_rule_") ? 1 : 2;
           i < sample.labels.size(); ++i) {
        CHECK(LabelText(sample.labels[i]) == sample.labels[i], "a label is text");
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tables = ParseIptablesSave(text);
  if (tables.ok()) {
    CheckSeries(CommentSeries(*tables, *tables));
    CheckSeries(RuleSeries(*tables));
    const auto merged = MergeBackends(*tables, *tables);
    CHECK(merged.size() <= tables->size(), "a host has each table once");
  }
  const std::span<const uint8_t> bytes(data, size);
  if (const auto rule = ReadNftRule(bytes); rule.ok()) {
    static_cast<void>(CommentSeries({{.name = rule->table, .rules = {rule->rule}}}, {}));
  }
  static_cast<void>(ReadNftChain(bytes));
  return 0;
}
