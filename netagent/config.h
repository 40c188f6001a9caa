// The agent's configuration: one YAML file. Pure: what has to be looked up comes as an argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/config/variables.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"
#include "lib/node_checks/services/service_answers.h"
#include "lib/rpc/credentials.h"
#include "netagent/connections/connection_shares.h"
#include "netagent/traffic/traffic_plan.h"

namespace spoke::netagent {

// The services of Azure that this node asks, and how it proves addresses.
struct AzureConfig {
  std::string imds = "http://169.254.169.254";      // The Instance Metadata Service's URL.
  std::string wireserver = "http://168.63.129.16";  // The URL of the wire server.
  std::optional<ip::Address> reflector;             // IPv4; answers the ICMP echoes of proofs.
  bool prove = true;                                // Whether addresses are proven first.
  absl::Duration prove_deadline = absl::Minutes(2);

  bool operator==(const AzureConfig&) const = default;
};

// The plugin and the network configuration that the agent puts where the runtime looks for them,
// once it can serve.
struct CniFilesConfig {
  std::string conf_dir = "/etc/cni/net.d";
  std::string conf_file = "10-spoke.conflist";
  std::string content = "/usr/share/spoke/10-spoke.conflist";  // The file it is a copy of.

  std::string bin_dir;                        // The plugin's place; empty: it is not copied.
  std::string plugin = "/usr/lib/cni/spoke";  // The file that becomes bin_dir/spoke.

  bool operator==(const CniFilesConfig&) const = default;
};

// The settings of counting, isolation and egress.
struct TrafficConfig {
  bool enabled = true;
  bool fast_path = true;  // Used where the kernel can: `auto` and `always`.
  bool yields = true;  // Whether it gives way to others' filters and translation; false: `always`.
  // Whether pods reach the cloud's metadata service and wireserver without an egress policy that
  // lets them.
  PlatformAccess platform_access = PlatformAccess::kClosed;
  // Whether a node attaches no pod until it hears of a policy. A server without policies says so.
  bool require_policy = true;
  // What each pod may have of the node's connections: the keys `pod_connections` and `pod_ports`.
  ShareSettings shares;

  bool operator==(const TrafficConfig&) const = default;
};

// Limits and budgets of traffic with the Internet and with destination groups.
struct ShapingConfig {
  bool enabled = true;
  // Resolvers whose answers are believed, beside those of the node and of Services.
  std::vector<ip::Address> resolvers;

  bool operator==(const ShapingConfig&) const = default;
};

// ip-masq-agent's files, for pods that no egress policy selects.
struct IpMasqSource {
  std::string path;   // A file, or a directory whose files that begin with "ip-masq" count.
  bool ipv6 = false;  // The flag --enable-ipv6 of ip-masq-agent.

  bool operator==(const IpMasqSource&) const = default;
};

// The role of a node that translates what other nodes' pods send through it.
struct EgressGatewayRole {
  std::vector<ip::Address> addresses;  // Addresses it translates to; empty: the NIC's.
  uint16_t health_port = 9467;
  bool draining = false;   // Whether it gets no new flows.
  std::string drain_file;  // While this file exists, the node drains; empty: none.

  bool operator==(const EgressGatewayRole&) const = default;
};

// The role of a node that translates what the hub sends to Services.
struct NatHostConfig {
  std::string endpoints;  // The file that lists them; empty: kube-proxy chooses.
  absl::Duration max_age = absl::Seconds(60);
  uint16_t health_port = 9468;

  bool operator==(const NatHostConfig&) const = default;
};

struct EgressConfig {
  // Whether pods reach the platform's addresses from the node's own, whatever policies there are.
  bool platform = false;
  std::optional<IpMasqSource> ip_masq;
  std::optional<EgressGatewayRole> gateway;
  std::optional<NatHostConfig> nat_host;

  bool operator==(const EgressConfig&) const = default;
};

// The settings for the counts of iptables' rules, and for the rules that are laid down for it.
struct IptablesExporterConfig {
  std::string address = "127.0.0.1:9119";  // madron/iptables-exporter's; empty: not served.
  std::string retailnext_address;          // retailnext/iptables_exporter's; empty: not served.
  // The tables that both serve. The default leaves nat out: kube-proxy has tens of thousands of
  // rules and chains there.
  std::vector<std::string> tables = {"filter", "mangle"};
  // The inside, to the published rules; nullopt: they are not laid down.
  std::optional<ip::Prefix> cluster = ip::Prefix::Parse("10.0.0.0/8").value();

  bool operator==(const IptablesExporterConfig&) const = default;
};

// Where the node learns what maintenance is announced for it.
struct MaintenanceConfig {
  std::string file;                        // Empty: Azure's metadata service.
  absl::Duration poll = absl::Seconds(1);  // The pause between two questions.

  bool operator==(const MaintenanceConfig&) const = default;
};

struct MetricsConfig {
  std::string address = "127.0.0.1:9465";  // The listener of /metrics; empty: not served.
  // The file with the token that lets others than this node read all endpoints; empty: none can.
  std::string token_file;
  // At most this many namespaces have series of their own on this node.
  uint32_t namespaces = 4;
  uint32_t pods = 6;
  IptablesExporterConfig iptables_exporter;

  bool operator==(const MetricsConfig&) const = default;
};

// The servers, one of which gives this node's certificate in return for the token of the agent's
// pod.
struct EnrollConfig {
  std::vector<std::string> servers;  // The enroll ports of the servers, as AgentConfig::servers.
  std::string token_file = "/var/run/secrets/spoke/token";  // Read anew each time.
  std::string ca_file = "/var/run/spoke-ca/ca.pem";         // The authority; may come later.
  std::string server_name;  // The name in the servers' certificates; empty: that of each server.

  bool operator==(const EnrollConfig&) const = default;
};

inline constexpr size_t kMaxServers = 16;

struct AgentConfig {
  std::string node_name;  // The node's name; empty: the host name.
  std::string vm_id;      // Empty: Azure's with `azure`, else the machine's DMI UUID.
  std::string nic;        // The device that has the addresses; empty: that of the default route.
  // One to kMaxServers, each once: host:port or unix:/path. The keys `server` and `servers`.
  std::vector<std::string> servers;
  std::string server_name;             // The name in their certificates; empty: that of each.
  rpc::TlsFiles tls;                   // The files that `enroll`, if set, writes.
  std::optional<EnrollConfig> enroll;  // nullopt: certificates come from elsewhere.
  std::string cni_socket = "/run/spoke/cni.sock";
  // How long an ADD waits at most for an address; 0: not at all.
  absl::Duration cni_wait = absl::Seconds(20);
  // Whether STATUS also fails while pods have all addresses of the node. To Kubernetes, a node
  // whose plugin is not ready is broken: after five minutes it evicts the pods that run there.
  bool strict_status = false;
  std::optional<CniFilesConfig> cni;              // nullopt: the agent installs neither.
  std::string state_dir = "/run/spoke/netagent";  // A directory on tmpfs.
  // Keeps what has to outlive a reboot: what the server last said of its store. Empty: none does.
  std::string lasting_dir;
  // Where the node's root directory is, for the checks of the node; in a container not "/".
  std::string host_root = "/";
  absl::Duration cooldown = absl::Seconds(30);
  // How long the link and the network namespace of a pod are gone before its addresses are released
  // without a DEL; 0: never.
  absl::Duration lost_del_after = absl::Minutes(5);
  uint32_t mtu = 0;         // Bytes; 0: the NIC's.
  bool repair_pods = true;  // Whether pods' insides are repaired too.
  // Whether the network is asked and heard, should another machine have an address of this node. On
  // Azure it never is: the fabric answers for every address.
  bool detect_conflicts = true;
  // Whether kernel settings that checks of the node find too small are made larger, rather than
  // only told.
  bool own_settings = false;
  node_checks::ServiceSettings service_checks;  // Which resolvers are asked for what: node_checks.
  std::map<std::string, std::string> labels;    // Pools and policy select nodes by them.
  std::string vnet;                             // The NIC's virtual network; empty: unknown.
  // The first attempt to reach the server comes within this time, chosen at random.
  absl::Duration connect_jitter;
  TrafficConfig traffic;
  ShapingConfig shaping;
  MetricsConfig metrics;
  std::optional<AzureConfig> azure;              // nullopt: Azure is not asked anything.
  std::optional<MaintenanceConfig> maintenance;  // nullopt: nobody is asked.
  EgressConfig egress;
  // Where it says whether it is ready and alive: unix:/path or host:port; empty: nowhere.
  std::string health = "unix:/run/spoke/netagent-health.sock";
  std::string health_http = "127.0.0.1:9469";  // The same for /livez and /readyz; empty: nowhere.
  bool debug = false;
};

using CheckDirectory = std::function<absl::Status(const std::string& path)>;

// Values may name `variables` (lib/config/variables.h).
// Errors: kInvalidArgument with one line "FILE:LINE: KEY: what is wrong" for each mistake, all at
// once; missing directories are mistakes too.
absl::StatusOr<AgentConfig> ParseAgentConfig(std::string_view text, const std::string& file,
                                             const CheckDirectory& check_directory,
                                             const config::VariableLookup& variables = {});

}  // namespace spoke::netagent
