#include "admin-cli/pod/add_traces.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_join.h"
#include "admin-cli/output/views.h"

namespace spoke::ctl {
namespace {

// Steps take from microseconds to seconds: all are told in one unit, so that they compare.
std::string Milliseconds(uint64_t us) { return fmt::format("{}.{:03}", us / 1000, us % 1000); }

// Numbers of a column end below each other.
void AlignRight(std::vector<Row>& rows, size_t column) {
  size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row[column].text.size());
  for (Row& row : rows) row[column].text.insert(0, width - row[column].text.size(), ' ');
}

uint64_t EndOf(const v1::AddTrace& add) {
  uint64_t end = 0;
  for (const v1::AddTrace::Step& step : add.steps()) {
    end = std::max(end, step.begin_us() + step.took_us());
  }
  return end;
}

}  // namespace

std::string TextOf(const Session& session, const v1::AddTrace& add) {
  const Cell result =
      add.error().empty()
          ? Cell{fmt::format("succeeded after {} ms", Milliseconds(EndOf(add))), Tone::kGood}
          : Cell{"failed: " + add.error(), Tone::kBad};
  std::string text = FormatFields({{"Pod", {PodOf(add.pod_namespace(), add.pod_name())}},
                                   {"Container", {add.container_id()}},
                                   {"Interface", {add.ifname()}},
                                   {"Address", {absl::StrJoin(add.addresses(), ", ")}},
                                   {"Node", {add.node()}},
                                   {"Trace id", {add.trace_id()}},
                                   {"Began",
                                    {fmt::format("{} ({} ago)", TimeOf(add.since_unix_ms()),
                                                 session.AgeOf(add.since_unix_ms()))}},
                                   {"Result", result}},
                                  session.colours);
  if (add.steps().empty()) return text + "\nit ended before its first step\n";
  std::vector<Row> rows;
  for (const v1::AddTrace::Step& step : add.steps()) {
    rows.push_back(
        {{step.name()}, {Milliseconds(step.begin_us())}, {Milliseconds(step.took_us())}});
  }
  AlignRight(rows, 1);
  AlignRight(rows, 2);
  return text + "\n" +
         FormatTable({"STEP", "AT (ms)", "TOOK (ms)"}, rows,
                     {.colours = session.colours, .header = session.header});
}

Json ToJson(const v1::AddTrace& add) {
  Json value = {{"pod_namespace", add.pod_namespace()},
                {"pod", add.pod_name()},
                {"container", add.container_id()},
                {"interface", add.ifname()},
                {"addresses", Json::array()},
                {"node", add.node()},
                {"trace_id", add.trace_id()},
                {"began", TimeOf(add.since_unix_ms())},
                {"succeeded", add.error().empty()},
                {"error", add.error()},
                {"steps", Json::array()}};
  for (const std::string& address : add.addresses()) value["addresses"].push_back(address);
  for (const v1::AddTrace::Step& step : add.steps()) {
    value["steps"].push_back(
        {{"step", step.name()}, {"at_us", step.begin_us()}, {"took_us", step.took_us()}});
  }
  return value;
}

}  // namespace spoke::ctl
