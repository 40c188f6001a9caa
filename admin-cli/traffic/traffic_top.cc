#include "admin-cli/traffic/traffic_top.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "admin-cli/output/list_form.h"
#include "admin-cli/pod/wanted_pods.h"
#include "lib/base/status.h"
#include "lib/node_api/traffic_classes.h"
#include "lib/units/text.h"

namespace spoke::ctl {
namespace {

using units::BitRate;
using units::ByteCount;
using units::ByteRate;
using units::Rounded;

using ByClass = std::map<std::string, TrafficTotal>;

struct TopRow {
  TrafficKey key;
  TrafficTotal total;
  std::optional<TrafficRate> rate;
  std::vector<double> trend;
  ByClass classes;
};

struct Answer {
  std::map<TrafficKey, ByClass> rows;
  uint64_t nodes_reporting = 0;
};

v1::GetTrafficRequest RequestOf(const Arguments& arguments) {
  v1::GetTrafficRequest request;
  const std::string& what = arguments.Text("what");
  if (what == "namespaces") request.set_by(v1::GetTrafficRequest::NAMESPACE);
  if (what == "teams") request.set_by(v1::GetTrafficRequest::TEAM);
  if (what == "pods") request.set_by(v1::GetTrafficRequest::POD);
  if (what == "nodes") request.set_by(v1::GetTrafficRequest::NODE);
  request.set_traffic_class(arguments.Text("class"));
  request.set_pod_namespace(arguments.Text("namespace"));
  return request;
}

// Asks once, and adds the answer to `rates`.
absl::StatusOr<Answer> Read(const Session& session, TrafficRates& rates) {
  ASSIGN_OR_RETURN(const v1::GetTrafficResponse response,
                   session.client.Ask(kGetTraffic, RequestOf(session.arguments)));
  Answer answer{.nodes_reporting = response.nodes_reporting()};
  TrafficTotals totals;
  for (const v1::TrafficEntry& entry : response.entries()) {
    const TrafficKey key = {entry.name(), entry.node()};
    totals[key].sent += entry.sent();
    totals[key].received += entry.received();
    answer.rows[key][entry.traffic_class()] = {entry.sent(), entry.received()};
  }
  rates.Add(response.now_unix_ms(), std::move(totals));
  return answer;
}

// Returns what is sorted by: more comes first.
std::pair<double, double> WeightOf(const TopRow& row, const std::string& sort) {
  const TrafficRate rate = row.rate.value_or(TrafficRate());
  const auto sent = static_cast<double>(row.total.sent);
  const auto received = static_cast<double>(row.total.received);
  if (sort == "in") return {rate.received, received};
  if (sort == "out") return {rate.sent, sent};
  if (sort == "received") return {received, 0};
  if (sort == "sent") return {sent, 0};
  if (sort == "name") return {0, 0};
  return {rate.sent + rate.received, sent + received};
}

// Returns whether a row is of pods that are wanted. A pod is NAMESPACE/NAME.
bool IsWanted(const std::string& row, const WantedPods& wanted) {
  const size_t slash = row.find('/');
  return wanted.Has(row.substr(0, slash), slash == std::string::npos ? "" : row.substr(slash + 1));
}

std::vector<TopRow> RowsOf(const Session& session, const Answer& answer, const TrafficRates& rates,
                           const WantedPods& wanted) {
  // The server itself leaves out pods of other namespaces.
  const Arguments& arguments = session.arguments;
  const bool by_server =
      arguments.Text("what") == "pods" && !arguments.Has("pod") && !arguments.Has("team");
  std::vector<TopRow> rows;
  for (const auto& [key, classes] : answer.rows) {
    if (!by_server && !wanted.all() && !IsWanted(key.first, wanted)) continue;
    TopRow& row = rows.emplace_back(TopRow{
        .key = key, .rate = rates.RateOf(key), .trend = rates.TrendOf(key), .classes = classes});
    for (const auto& [name, total] : classes) {
      row.total.sent += total.sent;
      row.total.received += total.received;
    }
  }
  const std::string& sort = arguments.Text("sort");
  std::stable_sort(rows.begin(), rows.end(), [&](const TopRow& a, const TopRow& b) {
    return WeightOf(b, sort) < WeightOf(a, sort);
  });
  rows.resize(std::min<size_t>(rows.size(), arguments.Count("limit")));
  return rows;
}

Json ToJson(const TopRow& row) {
  Json value = {{"name", row.key.first}};
  if (!row.key.second.empty()) value["node"] = row.key.second;
  value["received"] = row.total.received;
  value["sent"] = row.total.sent;
  value["received_per_second"] = row.rate.value_or(TrafficRate()).received;
  value["sent_per_second"] = row.rate.value_or(TrafficRate()).sent;
  value["classes"] = Json::object();
  for (const auto& [name, total] : row.classes) {
    value["classes"][name] = {{"received", total.received}, {"sent", total.sent}};
  }
  return value;
}

Cell RateCell(const std::optional<TrafficRate>& rate, double TrafficRate::*direction,
              bool in_bytes) {
  if (!rate) return {"-", Tone::kFaint};
  const double value = std::max((*rate).*direction, 0.0);
  const Tone tone = value < 1 ? Tone::kFaint : Tone::kPlain;
  if (in_bytes) return {Rounded(ByteRate(static_cast<uint64_t>(value))), tone};
  return {Rounded(BitRate(static_cast<uint64_t>(value * 8))), tone};
}

Cell BytesCell(ByteCount size) {
  return {Rounded(size), size.is_zero() ? Tone::kFaint : Tone::kPlain};
}

std::string ClassesOf(const TopRow& row) {
  std::string text;
  for (const auto& [name, total] : row.classes) {
    text += fmt::format("{}{} {} in {} out", text.empty() ? "" : ", ", name,
                        Rounded(ByteCount(total.received)), Rounded(ByteCount(total.sent)));
  }
  return text;
}

ListForm<TopRow> FormOf(const Session& session) {
  const std::string& what = session.arguments.Text("what");
  const char* title = "NAMESPACE";
  if (what == "teams") title = "TEAM";
  if (what == "pods") title = "POD";
  if (what == "nodes") title = "NODE";
  ListForm<TopRow> form = {
      .what = what + " with traffic; agents report every 10 s",
      .name = [](const TopRow& row) { return row.key.first; },
      .json = ToJson,
      .columns = {{title, [](const TopRow& row) { return Cell{row.key.first}; }}}};
  const auto add = [&](const char* name, std::function<Cell(const TopRow&)> cell,
                       bool wide = false) {
    form.columns.push_back({name, std::move(cell), wide});
  };
  if (what == "pods") add("NODE", [](const TopRow& row) { return Cell{row.key.second}; });
  const bool in_bytes = session.arguments.Has("bytes");
  add("IN", [in_bytes](const TopRow& row) {
    return RateCell(row.rate, &TrafficRate::received, in_bytes);
  });
  form.columns.back().key = "received_per_second";
  add("OUT",
      [in_bytes](const TopRow& row) { return RateCell(row.rate, &TrafficRate::sent, in_bytes); });
  form.columns.back().key = "sent_per_second";
  add("RECEIVED", [](const TopRow& row) { return BytesCell(ByteCount(row.total.received)); });
  add("SENT", [](const TopRow& row) { return BytesCell(ByteCount(row.total.sent)); });
  if (session.arguments.Has("watch")) {
    add("TREND", [](const TopRow& row) {
      return Cell{Sparkline(row.trend), Tone::kNote, Change::kIgnored};
    });
  }
  add(
      "CLASSES", [](const TopRow& row) { return Cell{ClassesOf(row)}; }, true);
  return form;
}

}  // namespace

absl::StatusOr<int> TrafficTop(Session& session, TrafficRates& rates) {
  ASSIGN_OR_RETURN(const WantedPods wanted, WantedPodsOf(session));
  ASSIGN_OR_RETURN(Answer answer, Read(session, rates));
  if (!session.arguments.Has("watch") && session.format != Format::kName) {
    const absl::Duration over = session.arguments.Duration("over");
    if (session.world.console.err_is_terminal()) {
      session.Note(fmt::format("reading for {}...", absl::FormatDuration(over)));
    }
    if (session.world.wait(over)) {
      ASSIGN_OR_RETURN(answer, Read(session, rates));
    }
  }
  const std::vector<TopRow> rows = RowsOf(session, answer, rates, wanted);
  if (rows.empty()) RETURN_IF_ERROR(CheckThereAreSuch(session, wanted));
  if (session.is_table() && !rows.empty()) {
    const std::string& of = session.arguments.Text("class");
    std::string what = of.empty() ? "All classes but loopback" : "Class " + Printable(of);
    if (of == node_api::kExternalTraffic) what = "All that leaves the cluster's networks";
    session.Out(fmt::format("{}, of {} nodes that report\n\n", what, answer.nodes_reporting));
  }
  return Done(PrintList(session, FormOf(session), rows));
}

}  // namespace spoke::ctl
