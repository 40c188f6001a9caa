// spoke-netagent: reads the configuration, builds the edges, and hands them to the agent.
#include <netdb.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "lib/base/status.h"
#include "lib/base/version.h"
#include "lib/daemon/daemon_main.h"
#include "lib/daemon/probe.h"
#include "lib/daemon/served_health.h"
#include "lib/http/plain_transport.h"
#include "lib/nft/connection.h"
#include "lib/node_checks/facts/network_facts.h"
#include "lib/node_checks/facts/virtual_services.h"
#include "lib/os/clock.h"
#include "lib/os/environment.h"
#include "lib/os/file.h"
#include "lib/os/signals.h"
#include "lib/os/subprocess.h"
#include "lib/telemetry/log_tail.h"
#include "netagent/agent.h"
#include "netagent/azure/kept_identity.h"
#include "netagent/azure/threaded_host_list.h"
#include "netagent/azure/wireserver.h"
#include "netagent/cleanup/command.h"
#include "netagent/config.h"
#include "netagent/connections/netlink_conntrack_table.h"
#include "netagent/dns/packet_dns_listener.h"
#include "netagent/egress/gateways/netlink_gateway_routes.h"
#include "netagent/exporters/exporters.h"
#include "netagent/fastpath/bpf_fast_path.h"
#include "netagent/iptables/legacy_iptables.h"
#include "netagent/iptables/nft_iptables.h"
#include "netagent/journal/clock_base.h"
#include "netagent/journal/faulty_journal.h"
#include "netagent/links/fault_points.h"
#include "netagent/links/kernel_links.h"
#include "netagent/maintenance/azure_events.h"
#include "netagent/maintenance/file_events.h"
#include "netagent/maintenance/maintenance_watch.h"
#include "netagent/maintenance/scheduled_events.h"
#include "netagent/nftables/nft_watch.h"
#include "netagent/node/claims_text.h"
#include "netagent/node/netlink_node_routes.h"
#include "netagent/node/nic_name.h"
#include "netagent/node/node_checks.h"
#include "netagent/node/node_setup.h"
#include "netagent/shaping/queues/tc_shaper.h"
#include "netagent/verification/packet_neighbour_watch.h"
#include "netagent/verification/packet_wire_probe.h"

namespace spoke::netagent {
namespace {

// The longest silence of the loop, which turns every 5 s and between two parts of its work.
constexpr absl::Duration kLongestSilence = absl::Seconds(60);

// How much of its log an agent keeps for `spokectl logs node`: thousands of lines.
constexpr size_t kKeptLogBytes = size_t{256} << 10U;

absl::StatusOr<node_api::NodeIdentity> ReadIdentity(const AgentConfig& config) {
  node_api::NodeIdentity identity{.node_name = config.node_name,
                                  .vm_id = config.vm_id,
                                  .agent_version = base::kVersion,
                                  .labels = config.labels,
                                  .vnet = config.vnet};
  if (identity.node_name.empty()) {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) < 0) {
      return base::ErrnoToStatus(errno, "read the host name");
    }
    identity.node_name = name.data();
  }
  if (identity.vm_id.empty() && !config.azure) {
    auto uuid = os::ReadFile("/sys/class/dmi/id/product_uuid");
    if (!uuid.ok()) {
      return base::Annotate(uuid.status(), "this machine has no DMI UUID: set vm_id");
    }
    absl::StripTrailingAsciiWhitespace(&*uuid);
    identity.vm_id = *std::move(uuid);
  }
  ASSIGN_OR_RETURN(std::string boot_id, os::ReadFile("/proc/sys/kernel/random/boot_id"));
  absl::StripTrailingAsciiWhitespace(&boot_id);
  identity.boot_id = std::move(boot_id);
  return identity;
}

absl::StatusOr<http::Response> FetchFromAzure(const http::Request& request,
                                              absl::Duration timeout) {
  ASSIGN_OR_RETURN(const auto transport, http::PlainTransport::Create(azure::kMaxImdsBytes));
  return http::Fetch(*transport, request, timeout);
}

// Makes Azure's parts. It starts threads, so the signals have to be blocked before.
CloudParts AzureParts(const AzureConfig& azure, const Nic& nic, const azure::Identity& identity,
                      telemetry::Log& log) {
  CloudParts parts;
  if (!identity.addresses.empty()) {
    parts.secondaries.insert(identity.addresses.begin() + 1, identity.addresses.end());
  }
  if (!azure.prove) return parts;
  parts.host = std::make_unique<azure::ThreadedHostList>([url = azure.wireserver, mac = nic.mac] {
    return azure::ReadHostAddresses(url, &FetchFromAzure, mac);
  });
  // The wire server does not list them.
  parts.host_ipv6 = std::make_unique<azure::ThreadedHostList>(
      [url = azure.imds] { return azure::ReadImdsIpv6(url, &FetchFromAzure); });
  if (!azure.reflector || identity.addresses.empty()) return parts;
  if (identity.addresses.front() == *azure.reflector) {
    // A fleet has one configuration, and its reflector may be one of its nodes.
    log.Info("reflector_is_this_node", {{"reflector", azure.reflector->ToString()}});
    return parts;
  }
  std::random_device random;
  parts.wire = std::make_unique<PacketWireProbe>(
      PacketWireProbe::Settings{.device = nic.name,
                                .mac = nic.mac,
                                .address = identity.addresses.front(),
                                .answerer = *azure.reflector,
                                .next_hop = NextHopTo(*azure.reflector, identity.subnets),
                                .identifier = static_cast<uint16_t>(random()),
                                .nonce = (uint64_t{random()} << 32U) | random()});
  return parts;
}

// Makes the parts of the cloud. Where no fabric answers for every address, neighbours are heard.
CloudParts CloudPartsOf(const AgentConfig& config, const Nic& nic, const azure::Identity& identity,
                        telemetry::Log& log) {
  if (config.azure) return AzureParts(*config.azure, nic, identity, log);
  CloudParts parts;
  if (config.detect_conflicts) {
    parts.neighbours = std::make_unique<PacketNeighbourWatch>(config.nic);
  }
  return parts;
}

// Asks who this node is to Azure, and puts it into `node`. May take azure::kImdsPatience.
absl::StatusOr<azure::Identity> AskAzure(const AgentConfig& config, const Nic& nic,
                                         node_api::NodeIdentity& node, telemetry::Log& log) {
  const os::RealClock clock;
  azure::Imds imds(config.azure->imds, &FetchFromAzure, clock,
                   [](absl::Duration pause) { absl::SleepFor(pause); });
  ASSIGN_OR_RETURN(azure::Identity identity,
                   azure::LearnIdentity(imds, config.state_dir + "/azure-instance.json", nic.name,
                                        nic.mac, log));
  if (node.vm_id.empty()) node.vm_id = identity.vm_id;
  node.instance = identity.instance;
  node.subnets = identity.subnets;
  return identity;
}

// The same on Azure; elsewhere there is nothing to learn.
absl::StatusOr<azure::Identity> LearnIdentity(const AgentConfig& config, const Nic& nic,
                                              const os::SignalWaiter& signals,
                                              node_api::NodeIdentity& node, telemetry::Log& log) {
  if (!config.azure) return azure::Identity();
  // The call may wait for long, and nobody waits for signals yet.
  const os::SignalWaiter::LetThrough interruptible(signals);
  return AskAzure(config, nic, node, log);
}

// Reads SPOKE_FAULT in the builds that have the switch: for tests of crash safety it says at which
// step the agent fails or dies.
absl::StatusOr<FaultPoint> FaultPointOfEnvironment() {
#ifdef SPOKE_FAULT_SWITCH
  const char* text = std::getenv("SPOKE_FAULT");
  return ParseFaultPoint(text == nullptr ? "" : text);
#else
  return FaultPoint();
#endif
}

struct KernelTraffic {
  std::optional<nft::Connection> tables;
  std::unique_ptr<NetlinkNodeRoutes> routes;
  std::unique_ptr<BpfFastPath> fast_path;
  std::unique_ptr<NetlinkGatewayRoutes> gateway_routes;
  std::unique_ptr<TcShaper> shaper;
  PacketDnsListener dns;
  std::unique_ptr<NftWatch> watch;
  std::unique_ptr<ConntrackTable> connections;
  TrafficParts parts;
};

// Adds the server's addresses.
void AddAddressesOf(const std::string& server, std::vector<ip::Address>& addresses) {
  const size_t colon = server.rfind(':');
  std::string host = server.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo* list = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, nullptr, &list) != 0) return;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(entry->ai_addr, entry->ai_addrlen, text, sizeof(text), nullptr, 0,
                      NI_NUMERICHOST) != 0) {
      continue;
    }
    const auto address = ip::Address::Parse(text);
    if (address.ok()) addresses.push_back(*address);
  }
  ::freeaddrinfo(list);
}

// The servers' addresses now, so that no policy cuts the way there. May wait for a name server.
std::vector<ip::Address> AddressesOf(const std::vector<std::string>& servers) {
  std::vector<ip::Address> addresses;
  for (const std::string& server : servers) AddAddressesOf(server, addresses);
  return addresses;
}

// Reads what others have on this node that forbids the fast path.
absl::StatusOr<FastPathObstacles> ReadObstacles() {
  node_checks::NodeFacts facts;
  node_checks::ReadFirewall("/proc", facts);
  RETURN_IF_ERROR(facts.firewall_status);
  // A file is missing where the kernel has not loaded what it belongs to.
  const auto text = [](const char* path) { return os::ReadFile(path).value_or(""); };
  return ObstaclesIn({.chains = std::move(facts.chains),
                      .virtual_services = node_checks::HasVirtualServices(text("/proc/net/ip_vs")),
                      .tcp_loose = text("/proc/sys/net/netfilter/nf_conntrack_tcp_loose")});
}

absl::StatusOr<TableUse> ReadTableUse() {
  ASSIGN_OR_RETURN(const ConntrackReading reading, ReadConntrack());
  return TableUse{.entries = reading.entries, .limit = reading.limit};
}

absl::Status OpenTraffic(const AgentConfig& config, KernelTraffic& traffic) {
  ASSIGN_OR_RETURN(traffic.tables, nft::Connection::Open());
  ASSIGN_OR_RETURN(traffic.routes, NetlinkNodeRoutes::Create());
  ASSIGN_OR_RETURN(traffic.fast_path, BpfFastPath::Create());
  ASSIGN_OR_RETURN(traffic.gateway_routes, NetlinkGatewayRoutes::Create(config.nic));
  ASSIGN_OR_RETURN(traffic.watch, NftWatch::Open(traffic.tables->port_id()));
  // Where the table cannot be opened, the part that deletes connections says so.
  if (auto connections = NetlinkConntrackTable::Open(); connections.ok()) {
    traffic.connections = *std::move(connections);
  }
  traffic.parts = {.tables = &*traffic.tables,
                   .routes = traffic.routes.get(),
                   .fast_path = traffic.fast_path.get(),
                   .gateway_routes = traffic.gateway_routes.get(),
                   .dns = &traffic.dns,
                   .read_obstacles = &ReadObstacles,
                   .watch = traffic.watch.get(),
                   .connections = traffic.connections.get(),
                   .read_table_use = &ReadTableUse,
                   .server_addresses = AddressesOf(config.servers)};
  return absl::OkStatus();
}

// Removes what an agent that counted has left: its rules would drop what unknown pods send.
absl::Status RemoveTraffic() {
  ASSIGN_OR_RETURN(const std::unique_ptr<BpfFastPath> fast_path, BpfFastPath::Create());
  RETURN_IF_ERROR(base::Annotate(fast_path->Remove(), "remove the fast path"));
  ASSIGN_OR_RETURN(nft::Connection tables, nft::Connection::Open());
  nft::Transaction transaction;
  transaction.Add(kSpokeTable, nft::DeleteTable{});
  transaction.Add(kNamesTable, nft::DeleteTable{});
  return base::Annotate(tables.Apply(transaction), "remove the tables spoke and spoke-names");
}

// Opens the table; null where this kernel cannot delete tracked connections: a cooldown then is a
// time and nothing else.
std::unique_ptr<ConntrackTable> OpenConntrack(telemetry::Log& log) {
  auto table = NetlinkConntrackTable::Open();
  if (table.ok()) return *std::move(table);
  log.Warn("connections_not_deletable", {{"error", table.status()}});
  return nullptr;
}

absl::StatusOr<os::ProgramResult> RunProgram(const std::vector<std::string>& command) {
  return os::RunProgram(command);
}

void SetUpNode(const std::string& sysctl_root, telemetry::Log& log) {
  LogSettings(PrepareNode(sysctl_root), log);
}

void LogStarted(const AgentConfig& config, const node_api::NodeIdentity& identity,
                telemetry::Log& log) {
  log.Info("agent_started", {{"version", base::kVersion},
                             {"node", identity.node_name},
                             {"vm", identity.vm_id},
                             {"instance", identity.instance},
                             {"nic", config.nic},
                             {"socket", config.cni_socket}});
}

struct Clocks {
  os::RealClock time_of_day;
  os::MonotonicClock uptime;
  ClockBase base;
  std::optional<os::SteadyClock> journal;  // That of the journal's times, which is never set.
};

absl::StatusOr<std::unique_ptr<const Clocks>> OpenClocks(const AgentConfig& config,
                                                         const node_api::NodeIdentity& identity) {
  auto clocks = std::make_unique<Clocks>();
  ASSIGN_OR_RETURN(clocks->base, ReadClockBase(config.state_dir + "/clock", identity.boot_id,
                                               clocks->time_of_day.Now() - clocks->uptime.Now()));
  clocks->journal.emplace(clocks->time_of_day, clocks->uptime, clocks->base.ahead);
  return clocks;
}

absl::StatusOr<OpenedJournal> OpenNodesJournal(const AgentConfig& config,
                                               const FaultPoint& fault_point, telemetry::Log& log) {
  ASSIGN_OR_RETURN(OpenedJournal opened, OpenJournal(config.state_dir + "/journal"));
  if (opened.dropped_bytes > 0) {
    log.Error("journal_damaged", {{"dropped_bytes", opened.dropped_bytes}});
  }
  if (fault_point) {
    opened.journal = std::make_unique<FaultyJournal>(std::move(opened.journal), fault_point);
  }
  return opened;
}

absl::Status OpenKernelTraffic(const AgentConfig& config, KernelTraffic& traffic) {
  RETURN_IF_ERROR(config.traffic.enabled ? OpenTraffic(config, traffic) : RemoveTraffic());
  // The shaper is made where policy shapes nothing too: limits of ADDs hold on every node.
  ASSIGN_OR_RETURN(traffic.shaper, TcShaper::Create());
  traffic.parts.shaper = traffic.shaper.get();
  return absl::OkStatus();
}

daemon::HealthSettings HealthOf(const AgentConfig& config) {
  return {.address = config.health,
          .http = config.health_http,
          .loops = {"the agent's loop"},
          .longest_silence = kLongestSilence};
}

// Borrows both.
HealthParts HealthPartsOf(daemon::ServedHealth& health, NodeChecks& checks) {
  return {
      .heartbeat = &health.heartbeat(0),
      .node_findings = [&checks] { return checks.watch().Reasons(); },
      .read_findings = [&checks] { return checks.watch().findings(); },
      .say = [&health](std::vector<std::string> reasons) { health.Say(std::move(reasons)); },
      .try_to_reach =
          [&checks](node_checks::ReachTargets targets) { checks.SetTargets(std::move(targets)); },
      .say_counted = [&checks](uint64_t packets) { checks.SetCounted(packets); },
      .server_clock = &checks.server_clock()};
}

// Makes what asks for the node's maintenance, where anybody is to be asked. It starts a thread.
absl::StatusOr<std::unique_ptr<MaintenanceWatch>> WatchMaintenance(const AgentConfig& config,
                                                                   const std::string& name_in_azure,
                                                                   telemetry::Log& log) {
  if (!config.maintenance) return nullptr;
  std::unique_ptr<MaintenanceSource> source;
  if (!config.maintenance->file.empty()) {
    source = std::make_unique<FileEvents>(config.maintenance->file, config.node_name);
  } else {
    ASSIGN_OR_RETURN(auto transport, http::PlainTransport::Create(kMaxScheduledEventsBytes));
    source = std::make_unique<AzureEvents>(config.azure->imds, name_in_azure, std::move(transport));
  }
  auto watch = std::make_unique<MaintenanceWatch>(std::move(source), config.maintenance->poll, log);
  watch->Start();
  return watch;
}

// Borrows `watch`.
AnnouncedMaintenance MaintenanceOf(MaintenanceWatch* watch) {
  if (watch == nullptr) return {};
  return {.read = [watch] { return watch->latest(); },
          .begin = [watch](std::vector<std::string> events) { watch->Begin(std::move(events)); }};
}

// Finds the NIC where the configuration does not name it.
absl::StatusOr<AgentConfig> WithNic(AgentConfig config, KernelLinks& links) {
  if (!config.nic.empty()) return config;
  absl::StatusOr<std::string> found =
      FindNic({.file = config.state_dir + "/nic",
               .is_there = [&](const std::string& name) { return links.ReadNic(name).ok(); },
               .find = &node_checks::ReadUplink});
  if (!found.ok()) {
    return base::Annotate(found.status(),
                          "set `nic` to the device that carries the node's addresses, since it "
                          "cannot be found");
  }
  config.nic = *std::move(found);
  return config;
}

absl::Status Run(const AgentConfig& written, telemetry::Log& standard_error) {
  telemetry::LogTail log(standard_error, kKeptLogBytes);
  ASSIGN_OR_RETURN(node_api::NodeIdentity identity, ReadIdentity(written));
  RETURN_IF_ERROR(os::MakeDirectory(written.state_dir));
  ASSIGN_OR_RETURN(const FaultPoint fault_point, FaultPointOfEnvironment());
  // The journal's lock comes first: nothing may be touched while another agent is alive.
  ASSIGN_OR_RETURN(OpenedJournal opened, OpenNodesJournal(written, fault_point, log));
  ASSIGN_OR_RETURN(const std::unique_ptr<const Clocks> clocks, OpenClocks(written, identity));
  // Signals are blocked before the first thread: one that does not block them would get them, and
  // be ended by them, or, in a container, lose them.
  const os::SignalWaiter signals({SIGINT, SIGTERM});
  daemon::ServedHealth health(HealthOf(written), log);
  const std::string sysctl_root = SysctlRoot(written.host_root);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<KernelLinks> links,
      KernelLinks::Create({.log = &log, .fault_point = fault_point, .sysctl_root = sysctl_root}));
  ASSIGN_OR_RETURN(const AgentConfig config, WithNic(written, *links));
  const auto nic = links->ReadNic(config.nic);
  if (!nic.ok()) return base::Annotate(nic.status(), "nic " + config.nic);
  ASSIGN_OR_RETURN(const azure::Identity in_azure,
                   LearnIdentity(config, *nic, signals, identity, log));
  KernelTraffic traffic;
  RETURN_IF_ERROR(OpenKernelTraffic(config, traffic));
  const std::unique_ptr<ConntrackTable> conntrack = OpenConntrack(log);
  const std::unique_ptr<ConntrackTable> cuts = conntrack != nullptr ? OpenConntrack(log) : nullptr;
  SetUpNode(sysctl_root, log);
  // They start after forwarding is on, and run even while the agent below cannot start.
  NodeChecks checks(config, log);

  ASSIGN_OR_RETURN(const std::unique_ptr<MaintenanceWatch> maintenance,
                   WatchMaintenance(config, in_azure.name, log));
  ASSIGN_OR_RETURN(os::EventLoop loop, os::EventLoop::Create());
  Agent agent(config, identity,
              {.links = *links,
               .journal = std::move(opened.journal),
               .clock = *clocks->journal,
               .unrecorded_use_end =
                   UnrecordedUseEnd(clocks->base, opened.events.empty(), clocks->journal->Now()),
               .log = log,
               .loop = std::move(loop),
               .cloud = CloudPartsOf(config, *nic, in_azure, log),
               .traffic = traffic.parts,
               .health = HealthPartsOf(health, checks),
               .maintenance = MaintenanceOf(maintenance.get()),
               .read_log = [&log] { return log.Text(); },
               .conntrack = conntrack.get(),
               .cuts = cuts.get()});
  RETURN_IF_ERROR(agent.Start(opened.events));
  NftIptables nft_iptables;
  const auto legacy_programs = FindLegacyPrograms("", &RunProgram);
  LegacyIptables legacy_iptables({.programs = legacy_programs, .run = &RunProgram});
  // The exporters come after the agent, so that they are destroyed first.
  Exporters exporters({.config = config.metrics,
                       .legacy_command = legacy_programs.has_value(),
                       .legacy_is_default = legacy_programs && legacy_programs->is_default,
                       .state_file = config.state_dir + "/series",
                       .version = base::kVersion,
                       .tls = config.tls},
                      {.nft = nft_iptables,
                       .legacy = legacy_iptables,
                       .clock = clocks->time_of_day,
                       .log = log,
                       .read_agent = [&agent](absl::Duration within) { return agent.Read(within); },
                       .read_node = [&checks] { return checks.watch().counts(); }});
  exporters.Start();
  LogStarted(config, identity, log);
  agent.Run(signals);
  return absl::OkStatus();
}

}  // namespace
}  // namespace spoke::netagent

int main(int argc, char** argv) {
  const auto parse = [](std::string_view text, const std::string& file) {
    return spoke::netagent::ParseAgentConfig(text, file, &spoke::os::CheckDirectory,
                                             &spoke::os::EnvironmentVariable);
  };
  return spoke::daemon::Main(
      argc, argv,
      {.about = "spoke-netagent assigns this node's addresses to pods and owns their links.",
       .config_path = "/etc/spoke/netagent.yaml",
       .check =
           [](std::string_view text, const std::string& file) {
             return spoke::netagent::ParseAgentConfig(text, file,
                                                      &spoke::daemon::NoteMissingDirectory,
                                                      &spoke::os::EnvironmentVariable)
                 .status();
           },
       .statements = {{"--claims", "Print what of the kernel is the agent's own, and why",
                       &spoke::netagent::ClaimsTable, &spoke::netagent::ClaimsJson}},
       .commands = {spoke::netagent::CleanupCommand(), spoke::netagent::HoldCommand(),
                    spoke::daemon::ProbeCommand("spoke-netagent", parse)}},
      parse, &spoke::netagent::Run);
}
