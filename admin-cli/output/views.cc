#include "admin-cli/output/views.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_join.h"

namespace spoke::ctl {
namespace {

Json ToJson(const google::protobuf::Map<std::string, std::string>& labels) {
  Json value = Json::object();
  for (const auto& [key, label] :
       std::map<std::string, std::string>(labels.begin(), labels.end())) {
    value[key] = label;
  }
  return value;
}

Cell StateCell(const std::string& state) {
  if (state == "in_use") return {state, Tone::kGood};
  if (state == "quarantined" || state == "unusable") return {state, Tone::kBad};
  if (state == "attaching" || state == "detaching") return {state, Tone::kWarning};
  return {state};
}

// Returns whether a check finds what keeps pods from working.
bool IsBlocked(const v1::NodeInfo& node) {
  return std::any_of(node.findings().begin(), node.findings().end(),
                     [](const v1::NodeFinding& finding) { return finding.blocking(); });
}

Cell AgentCell(const v1::NodeInfo& node) {
  if (!node.connected()) return {"away", Tone::kBad};
  return IsBlocked(node) ? Cell{"blocked", Tone::kBad} : Cell{"connected", Tone::kGood};
}

// Returns the ids of the checks that find something, each once.
Cell ChecksCell(const v1::NodeInfo& node) {
  std::vector<std::string> ids;
  for (const v1::NodeFinding& finding : node.findings()) {
    if (ids.empty() || ids.back() != finding.check()) ids.push_back(finding.check());
  }
  return {absl::StrJoin(ids, ","), IsBlocked(node) ? Tone::kBad : Tone::kWarning};
}

// Returns the mode, and the next thing that the cloud is about to do to the node's machine.
Cell ModeCell(const v1::NodeInfo& node) {
  if (!node.maintenance().empty()) {
    return {fmt::format("{} ({})", node.mode(), node.maintenance(0).kind()), Tone::kWarning};
  }
  return {node.mode(), node.mode() == "active" ? Tone::kPlain : Tone::kWarning};
}

}  // namespace

std::string LabelsOf(const google::protobuf::Map<std::string, std::string>& labels) {
  std::vector<std::string> pairs;
  for (const auto& [key, label] :
       std::map<std::string, std::string>(labels.begin(), labels.end())) {
    pairs.push_back(fmt::format("{}={}", key, label));
  }
  return absl::StrJoin(pairs, ",");
}

std::string PodOf(const std::string& pod_namespace, const std::string& name) {
  return pod_namespace.empty() ? name : pod_namespace + "/" + name;
}

Json ToJson(const v1::MaintenanceEvent& event) {
  return {{"event", event.id()},
          {"kind", event.kind()},
          {"started", event.started()},
          {"not_before", TimeOf(event.not_before_unix_ms())},
          {"duration_ms", event.duration_ms()},
          {"description", event.description()},
          {"origin", event.origin()},
          {"other_machines", event.other_machines()},
          {"others", JsonList(event.others())}};
}

Json ToJson(const v1::NodeInfo& node) {
  return {
      {"name", node.name()},
      {"vm_id", node.vm_id()},
      {"boot_id", node.boot_id()},
      {"mode", node.mode()},
      {"connected", node.connected()},
      {"session_epoch", node.session_epoch()},
      {"target", node.target()},
      {"attaching", node.attaching()},
      {"attached", node.attached()},
      {"in_use", node.in_use()},
      {"pods_waiting", node.pods_waiting()},
      {"cooldown", node.cooldown()},
      {"withheld", node.withheld()},
      {"detaching", node.detaching()},
      {"reserved", node.reserved()},
      {"desired_version", node.desired_version()},
      {"acked_version", node.acked_version()},
      {"policy_version", node.policy_version()},
      {"policy_error", node.policy_error()},
      {"shortage", node.shortage()},
      {"labels", ToJson(node.labels())},
      {"vnet", node.vnet()},
      {"nic_mac", node.nic_mac()},
      {"instance", node.instance()},
      {"cloud_lane", node.cloud_lane()},
      {"cloud_eta", TimeOf(node.cloud_eta_unix_ms())},
      {"cloud_waits_for", node.cloud_waits_for()},
      {"findings", JsonList(node.findings(),
                            [](const v1::NodeFinding& finding) {
                              return Json{{"check", finding.check()},
                                          {"blocking", finding.blocking()},
                                          {"object", finding.object()},
                                          {"what", finding.what()},
                                          {"remedy", finding.remedy()}};
                            })},
      {"maintenance", JsonList(node.maintenance(),
                               [](const v1::MaintenanceEvent& event) { return ToJson(event); })},
      {"agent_version", node.agent_version()},
      {"last_seen", TimeOf(node.last_seen_unix_ms())}};
}

Json ToJson(const v1::AddressInfo& address) {
  return {{"address", address.address()},
          {"state", address.state()},
          {"pool", address.pool()},
          {"block", address.block()},
          {"node", address.node()},
          {"vm_id", address.vm_id()},
          {"nic_mac", address.nic_mac()},
          {"ip_configuration", address.ip_configuration()},
          {"pod_namespace", address.pod_namespace()},
          {"pod_name", address.pod_name()},
          {"container_id", address.container_id()},
          {"ifname", address.ifname()},
          {"since", TimeOf(address.since_unix_ms())},
          {"note", address.note()}};
}

Json ToJson(const v1::PoolInfo& pool) {
  return {{"name", pool.name()},
          {"cidr", pool.cidr()},
          {"vnet", pool.vnet()},
          {"source", pool.source()},
          {"block_prefix_length", pool.block_prefix_length()},
          {"usable", pool.usable()},
          {"free", pool.free()},
          {"reserved", pool.reserved()},
          {"attaching", pool.attaching()},
          {"available", pool.available()},
          {"in_use", pool.in_use()},
          {"cooldown", pool.cooldown()},
          {"detaching", pool.detaching()},
          {"released", pool.released()},
          {"quarantined", pool.quarantined()},
          {"node_labels", ToJson(pool.node_labels())},
          {"namespaces", JsonList(pool.namespaces())}};
}

ListForm<v1::NodeInfo> NodeForm(const Session& session) {
  using Node = v1::NodeInfo;
  return {
      .what = "nodes",
      .name = [](const Node& node) { return node.name(); },
      .json = [](const Node& node) { return ToJson(node); },
      .columns =
          {{"NAME", [](const Node& node) { return Cell{node.name()}; }},
           {"VM", [](const Node& node) { return Cell{node.vm_id()}; }, true, Fit::kWhole, "vm_id"},
           {"AGENT", AgentCell},
           {"MODE", ModeCell},
           {"TARGET", [](const Node& node) { return NumberCell(node.target()); }, true},
           {"ATTACHING", [](const Node& node) { return NumberCell(node.attaching()); }, true},
           {"ATTACHED", [](const Node& node) { return NumberCell(node.attached()); }},
           {"IN-USE", [](const Node& node) { return NumberCell(node.in_use()); }},
           {"WAITING", [](const Node& node) { return NumberCell(node.pods_waiting()); }, false,
            Fit::kWhole, "pods_waiting"},
           {"COOLDOWN", [](const Node& node) { return NumberCell(node.cooldown()); }, true},
           {"DETACHING", [](const Node& node) { return NumberCell(node.detaching()); }, true},
           {"RESERVED", [](const Node& node) { return NumberCell(node.reserved()); }, true},
           {"SYNCED",
            [](const Node& node) {
              return node.desired_version() == node.acked_version() ? Cell{"yes"}
                                                                    : Cell{"no", Tone::kWarning};
            },
            true},
           {"ETA",
            [&](const Node& node) { return Cell{session.UntilOf(node.cloud_eta_unix_ms())}; },
            false, Fit::kWhole, "cloud_eta"},
           {"LANE", [](const Node& node) { return Cell{node.cloud_lane()}; }, true},
           {"POLICY", [](const Node& node) { return NumberCell(node.policy_version()); }, true,
            Fit::kWhole, "policy_version"},
           {"VNET", [](const Node& node) { return Cell{node.vnet()}; }, true},
           {"SEEN", [&](const Node& node) { return Cell{session.AgeOf(node.last_seen_unix_ms())}; },
            true, Fit::kWhole, "last_seen"},
           {"VERSION", [](const Node& node) { return Cell{node.agent_version()}; }, true},
           {"CHECKS", ChecksCell, true},
           {"LABELS", [](const Node& node) { return Cell{LabelsOf(node.labels())}; }, true},
           {"SHORTAGE",
            [](const Node& node) {
              return Cell{node.shortage(), Tone::kWarning};
            },
            false, Fit::kClause}}};
}

ListForm<v1::AddressInfo> AddressForm(const Session& session) {
  using Address = v1::AddressInfo;
  return {
      .what = "such addresses",
      .name = [](const Address& address) { return address.address(); },
      .json = [](const Address& address) { return ToJson(address); },
      .columns =
          {{"ADDRESS", [](const Address& address) { return Cell{address.address()}; }},
           {"STATE", [](const Address& address) { return StateCell(address.state()); }},
           {"POOL", [](const Address& address) { return Cell{address.pool()}; }, true},
           {"NODE", [](const Address& address) { return Cell{address.node()}; }},
           {"POD",
            [](const Address& address) {
              return Cell{PodOf(address.pod_namespace(), address.pod_name())};
            }},
           {"CONTAINER",
            [](const Address& address) { return Cell{address.container_id().substr(0, 12)}; },
            true},
           {"SINCE",
            [&](const Address& address) { return Cell{session.AgeOf(address.since_unix_ms())}; }},
           {"BLOCK", [](const Address& address) { return Cell{address.block()}; }, true},
           {"VM", [](const Address& address) { return Cell{address.vm_id()}; }, true},
           {"NIC", [](const Address& address) { return Cell{address.nic_mac()}; }, true},
           {"IFNAME", [](const Address& address) { return Cell{address.ifname()}; }, true},
           {"NOTE", [](const Address& address) { return Cell{address.note()}; }, true}}};
}

ListForm<v1::PoolInfo> PoolForm() {
  using Pool = v1::PoolInfo;
  return {
      .what = "pools",
      .name = [](const Pool& pool) { return pool.name(); },
      .json = [](const Pool& pool) { return ToJson(pool); },
      .columns =
          {{"NAME", [](const Pool& pool) { return Cell{pool.name()}; }},
           {"CIDR", [](const Pool& pool) { return Cell{pool.cidr()}; }},
           {"USABLE", [](const Pool& pool) { return NumberCell(pool.usable()); }},
           {"FREE",
            [](const Pool& pool) {
              return Cell{std::to_string(pool.free()),
                          pool.free() == 0 ? Tone::kBad : Tone::kPlain};
            }},
           {"ATTACHING", [](const Pool& pool) { return NumberCell(pool.attaching()); }},
           {"AVAILABLE", [](const Pool& pool) { return NumberCell(pool.available()); }},
           {"IN-USE", [](const Pool& pool) { return NumberCell(pool.in_use()); }},
           {"COOLDOWN", [](const Pool& pool) { return NumberCell(pool.cooldown()); }},
           {"DETACHING", [](const Pool& pool) { return NumberCell(pool.detaching()); }, true},
           {"RELEASED", [](const Pool& pool) { return NumberCell(pool.released()); }, true},
           {"QUARANTINED", [](const Pool& pool) { return NumberCell(pool.quarantined()); }, true},
           {"RESERVED", [](const Pool& pool) { return NumberCell(pool.reserved()); }, true},
           {"BLOCKS",
            [](const Pool& pool) {
              const auto length = pool.block_prefix_length();
              return Cell{length == 0 ? "" : fmt::format("/{}", length)};
            },
            true},
           {"VNET", [](const Pool& pool) { return Cell{pool.vnet()}; }, true},
           {"SOURCE", [](const Pool& pool) { return Cell{pool.source()}; }, true},
           {"NODES", [](const Pool& pool) { return Cell{LabelsOf(pool.node_labels())}; }, true},
           {"NAMESPACES",
            [](const Pool& pool) { return Cell{absl::StrJoin(pool.namespaces(), ",")}; }, true}}};
}

}  // namespace spoke::ctl
