// The nodes of page_json.h.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "admin-cli/dashboard/page_json.h"

namespace spoke::ctl {
namespace {

// The most nodes that are listed one by one.
constexpr size_t kMostWaiting = 100;
constexpr std::string_view kBlockingLane = "blocking";

const v1::NodeFinding* BlockingOf(const v1::NodeInfo& node) {
  for (const v1::NodeFinding& finding : node.findings()) {
    if (finding.blocking()) return &finding;
  }
  return nullptr;
}

// Returns why pods wait on the node, or will; empty: they do not.
std::string WaitReasonOf(const v1::NodeInfo& node) {
  if (const v1::NodeFinding* finding = BlockingOf(node)) {
    return fmt::format("its check {} finds: {} {}", finding->check(), finding->object(),
                       finding->what());
  }
  if (!node.shortage().empty()) return node.shortage();
  if (node.cloud_lane() == kBlockingLane) return "waits for " + node.cloud_waits_for();
  if (node.pods_waiting() > 0) return "the server has not answered yet";
  return "";
}

struct Waiting {
  const v1::NodeInfo* node;
  std::string why;
};

// Returns whether `a` is worse: pods wait there already, or for longer.
bool IsWorse(const Waiting& a, const Waiting& b) {
  const auto rank = [](const Waiting& one) {
    const int64_t eta = one.node->cloud_eta_unix_ms();
    const bool pods_wait = one.node->pods_waiting() > 0 || one.node->cloud_lane() == kBlockingLane;
    return std::tuple(!pods_wait, eta != 0, -eta, one.node->name());
  };
  return rank(a) < rank(b);
}

Json WaitingJson(const std::vector<v1::NodeInfo>& nodes) {
  std::vector<Waiting> waiting;
  uint64_t pods = 0;
  for (const v1::NodeInfo& node : nodes) {
    std::string why = WaitReasonOf(node);
    if (why.empty()) continue;
    pods += node.pods_waiting();
    waiting.push_back({.node = &node, .why = std::move(why)});
  }
  std::sort(waiting.begin(), waiting.end(), IsWorse);
  const size_t total = waiting.size();
  waiting.resize(std::min(total, kMostWaiting));
  return {{"total", total}, {"pods", pods}, {"nodes", JsonList(waiting, [](const Waiting& one) {
                                               return Json{{"node", one.node->name()},
                                                           {"pods", one.node->pods_waiting()},
                                                           {"why", one.why},
                                                           {"lane", one.node->cloud_lane()},
                                                           {"eta", one.node->cloud_eta_unix_ms()}};
                                             })}};
}

struct Gate {
  uint64_t nodes = 0;
  int64_t first_eta = 0;
  int64_t last_eta = 0;
};

// What waits for the cloud, by what it waits for and by lane.
Json GatesJson(const std::vector<v1::NodeInfo>& nodes) {
  std::map<std::pair<std::string, std::string>, Gate> gates;
  for (const v1::NodeInfo& node : nodes) {
    if (node.cloud_lane().empty()) continue;
    Gate& gate = gates[{node.cloud_waits_for(), node.cloud_lane()}];
    const int64_t eta = node.cloud_eta_unix_ms();
    ++gate.nodes;
    if (eta == 0) continue;
    gate.first_eta = gate.first_eta == 0 ? eta : std::min(gate.first_eta, eta);
    gate.last_eta = std::max(gate.last_eta, eta);
  }
  Json list = Json::array();
  for (const auto& [key, gate] : gates) {
    list.push_back({{"waits_for", key.first},
                    {"lane", key.second},
                    {"nodes", gate.nodes},
                    {"first_eta", gate.first_eta},
                    {"last_eta", gate.last_eta}});
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Json& a, const Json& b) { return a["last_eta"] > b["last_eta"]; });
  return list;
}

}  // namespace

char FitnessOf(const v1::NodeInfo& node) {
  if (node.mode() == "retired") return 'd';
  if (!node.connected()) return 'a';
  if (BlockingOf(node) != nullptr) return 'b';
  if (!node.shortage().empty()) return 's';
  if (node.mode() == "draining" || node.mode() == "frozen") return 'd';
  return node.findings().empty() ? 'o' : 'w';
}

Json NodesJson(const std::vector<v1::NodeInfo>& nodes, const std::map<std::string, double>& rates,
               const std::set<std::string>& lossy) {
  Json names = Json::array();
  Json free = Json::array();
  Json held = Json::array();
  Json internet = Json::array();
  std::string fitness;
  for (const v1::NodeInfo& node : nodes) {
    const uint64_t taken = node.in_use() + node.cooldown();
    names.push_back(node.name());
    held.push_back(node.attached());
    free.push_back(node.attached() - std::min(taken, node.attached()));
    const auto rate = rates.find(node.name());
    internet.push_back(rate == rates.end() ? 0 : std::llround(rate->second));
    const char letter = FitnessOf(node);
    const bool is_worse = letter == 'd' || letter == 'a' || letter == 'b';
    fitness.push_back(lossy.contains(node.name()) && !is_worse ? 'l' : letter);
  }
  return {{"names", names},           {"free", free},       {"held", held},
          {"internet", internet},     {"fitness", fitness}, {"waiting", WaitingJson(nodes)},
          {"gates", GatesJson(nodes)}};
}

}  // namespace spoke::ctl
