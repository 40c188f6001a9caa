#include "admin-cli/commands.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/rpc/credentials.h"
#include "proto/spoke/v1/admin.grpc.pb.h"

namespace spoke::ctl {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

std::unique_ptr<v1::AdminService::Stub> Connect(const Options& options) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return v1::AdminService::NewStub(
      grpc::CreateCustomChannel(options.server, grpc::InsecureChannelCredentials(), arguments));
}

void SetDeadline(const Options& options, grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(options.timeout_seconds));
}

absl::Status ToStatus(const grpc::Status& status, const Options& options) {
  if (status.ok()) return absl::OkStatus();
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return absl::UnavailableError(fmt::format(
        "no server answers at {}: is spoke-ipam-server running here, and may you open its socket? "
        "(--server or SPOKE_SERVER names another) [{}]",
        options.server, status.error_message()));
  }
  return rpc::FromGrpc(static_cast<int>(status.error_code()), status.error_message());
}

std::string Print(const Options& options, const Json& value, const Row& header,
                  const std::vector<Row>& rows) {
  switch (options.format) {
    case Format::kJson:
      return FormatJson(value);
    case Format::kYaml:
      return FormatYaml(value);
    case Format::kTable:
      break;
  }
  return FormatTable(header, rows);
}

std::string AgeOf(int64_t unix_ms) {
  if (unix_ms == 0) return "";
  return FormatAge(absl::ToUnixSeconds(absl::Now()) - unix_ms / 1000);
}

std::string TimeOf(int64_t unix_ms) {
  if (unix_ms == 0) return "";
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixMillis(unix_ms), absl::UTCTimeZone());
}

Json ToJson(const v1::AddressInfo& info) {
  return {{"address", info.address()},
          {"state", info.state()},
          {"pool", info.pool()},
          {"node", info.node()},
          {"vm_id", info.vm_id()},
          {"nic_mac", info.nic_mac()},
          {"ip_configuration", info.ip_configuration()},
          {"pod_namespace", info.pod_namespace()},
          {"pod_name", info.pod_name()},
          {"container_id", info.container_id()},
          {"ifname", info.ifname()},
          {"since", TimeOf(info.since_unix_ms())}};
}

// "namespace/name", or what there is of it.
std::string PodOf(const v1::AddressInfo& info) {
  if (info.pod_namespace().empty()) return info.pod_name();
  return info.pod_namespace() + "/" + info.pod_name();
}

}  // namespace

absl::StatusOr<std::string> Status(const Options& options) {
  grpc::ClientContext context;
  SetDeadline(options, context);
  v1::GetStatusResponse response;
  RETURN_IF_ERROR(ToStatus(Connect(options)->GetStatus(&context, {}, &response), options));
  Json value = {{"version", response.version()},
                {"started", TimeOf(response.started_unix_ms())},
                {"store", response.store()},
                {"cloud", response.cloud()},
                {"nodes", response.nodes()},
                {"nodes_connected", response.nodes_connected()},
                {"addresses_usable", response.addresses_usable()},
                {"addresses_attached", response.addresses_attached()},
                {"addresses_lent", response.addresses_lent()},
                {"addresses_cooling", response.addresses_cooling()},
                {"problems", Json::array()}};
  for (const std::string& problem : response.problems()) value["problems"].push_back(problem);
  if (options.format != Format::kTable) return Print(options, value, {}, {});
  std::string text = fmt::format(
      "Server     {}, up {}, store {}, cloud {}\n"
      "Nodes      {} known, {} connected\n"
      "Addresses  {} usable, {} attached, {} lent, {} cooling\n",
      response.version(), AgeOf(response.started_unix_ms()), response.store(), response.cloud(),
      response.nodes(), response.nodes_connected(), response.addresses_usable(),
      response.addresses_attached(), response.addresses_lent(), response.addresses_cooling());
  text += response.problems().empty() ? "Problems   none\n" : "Problems\n";
  for (const std::string& problem : response.problems()) text += "  " + problem + "\n";
  return text;
}

absl::StatusOr<std::string> PoolList(const Options& options) {
  grpc::ClientContext context;
  SetDeadline(options, context);
  v1::ListPoolsResponse response;
  RETURN_IF_ERROR(ToStatus(Connect(options)->ListPools(&context, {}, &response), options));
  Json value = Json::array();
  std::vector<Row> rows;
  for (const v1::PoolInfo& pool : response.pools()) {
    value.push_back({{"name", pool.name()},
                     {"cidr", pool.cidr()},
                     {"usable", pool.usable()},
                     {"free", pool.free()},
                     {"attaching", pool.attaching()},
                     {"idle", pool.idle()},
                     {"lent", pool.lent()},
                     {"cooling", pool.cooling()}});
    rows.push_back({pool.name(), pool.cidr(), std::to_string(pool.usable()),
                    std::to_string(pool.free()), std::to_string(pool.attaching()),
                    std::to_string(pool.idle()), std::to_string(pool.lent()),
                    std::to_string(pool.cooling())});
  }
  return Print(options, value,
               {"NAME", "CIDR", "USABLE", "FREE", "ATTACHING", "IDLE", "LENT", "COOLING"}, rows);
}

absl::StatusOr<std::string> NodeList(const Options& options) {
  grpc::ClientContext context;
  SetDeadline(options, context);
  const auto stub = Connect(options);
  const auto reader = stub->ListNodes(&context, {});
  Json value = Json::array();
  std::vector<Row> rows;
  v1::ListNodesResponse response;
  while (reader->Read(&response)) {
    for (const v1::NodeInfo& node : response.nodes()) {
      value.push_back({{"name", node.name()},
                       {"vm_id", node.vm_id()},
                       {"boot_id", node.boot_id()},
                       {"connected", node.connected()},
                       {"session_epoch", node.session_epoch()},
                       {"target", node.target()},
                       {"attaching", node.attaching()},
                       {"attached", node.attached()},
                       {"lent", node.lent()},
                       {"cooling", node.cooling()},
                       {"desired_version", node.desired_version()},
                       {"acked_version", node.acked_version()},
                       {"shortage", node.shortage()}});
      rows.push_back({node.name(), node.vm_id(), node.connected() ? "connected" : "away",
                      std::to_string(node.target()), std::to_string(node.attaching()),
                      std::to_string(node.attached()), std::to_string(node.lent()),
                      std::to_string(node.cooling()),
                      node.desired_version() == node.acked_version() ? "yes" : "no",
                      node.shortage()});
    }
  }
  RETURN_IF_ERROR(ToStatus(reader->Finish(), options));
  return Print(options, value,
               {"NAME", "VM", "AGENT", "TARGET", "ATTACHING", "ATTACHED", "LENT", "COOLING",
                "SYNCED", "SHORTAGE"},
               rows);
}

absl::StatusOr<std::string> IpList(const Options& options) {
  grpc::ClientContext context;
  SetDeadline(options, context);
  v1::ListAddressesRequest request;
  request.set_node(options.node);
  request.set_pool(options.pool);
  request.set_state(options.state);
  const auto stub = Connect(options);
  const auto reader = stub->ListAddresses(&context, request);
  Json value = Json::array();
  std::vector<Row> rows;
  v1::ListAddressesResponse response;
  while (reader->Read(&response)) {
    for (const v1::AddressInfo& info : response.addresses()) {
      if (options.format != Format::kTable) {
        value.push_back(ToJson(info));
        continue;
      }
      rows.push_back({info.address(), info.state(), info.pool(), info.node(), PodOf(info),
                      info.container_id().substr(0, 12), AgeOf(info.since_unix_ms())});
    }
  }
  RETURN_IF_ERROR(ToStatus(reader->Finish(), options));
  return Print(options, value, {"ADDRESS", "STATE", "POOL", "NODE", "POD", "CONTAINER", "SINCE"},
               rows);
}

absl::StatusOr<std::string> IpShow(const Options& options) {
  grpc::ClientContext context;
  SetDeadline(options, context);
  v1::GetAddressRequest request;
  request.set_address(options.address);
  v1::AddressInfo info;
  RETURN_IF_ERROR(ToStatus(Connect(options)->GetAddress(&context, request, &info), options));
  const Json value = ToJson(info);
  std::string text;
  for (const auto& [key, member] : value.items()) {
    const auto cell = member.get<std::string>();
    if (!cell.empty()) text += fmt::format("{:<17} {}\n", key, cell);
  }
  return options.format == Format::kTable ? text : Print(options, value, {}, {});
}

}  // namespace spoke::ctl
