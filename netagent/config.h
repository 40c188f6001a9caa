// The agent's configuration: one YAML file. Pure: what has to be looked up comes as an argument.
#pragma once

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
#include "lib/rpc/credentials.h"
#include "netagent/connections/connection_shares.h"
#include "netagent/traffic/traffic_plan.h"

namespace spoke::netagent {

// What Azure itself can tell this node, and how it proves addresses.
struct AzureConfig {
  std::string imds = "http://169.254.169.254";      // The Instance Metadata Service.
  std::string wireserver = "http://168.63.129.16";  // What the host has programmed.
  std::optional<ip::Address> reflector;             // IPv4; answers ICMP echo, to prove with.
  bool prove = true;                                // Whether before an address is first assigned.
  absl::Duration prove_deadline = absl::Minutes(2);

  bool operator==(const AzureConfig&) const = default;
};

// The plugin and the network configuration that the agent puts where the runtime looks for them,
// once it can serve.
struct CniFilesConfig {
  std::string conf_dir = "/etc/cni/net.d";
  std::string conf_file = "10-spoke.conflist";
  std::string content = "/usr/share/spoke/10-spoke.conflist";  // The file it is a copy of.

  std::string bin_dir;                        // Empty: the plugin is not copied.
  std::string plugin = "/usr/lib/cni/spoke";  // Which becomes bin_dir/spoke.

  bool operator==(const CniFilesConfig&) const = default;
};

// Counting, isolation and egress.
struct TrafficConfig {
  bool enabled = true;
  bool fast_path = true;  // Where the kernel can: `auto` and `always`.
  bool yields = true;  // Not where others filter between pods, or translate unseen: not `always`.
  // Whether pods reach the cloud's metadata service and wireserver without an egress policy that
  // lets them.
  PlatformAccess platform_access = PlatformAccess::kClosed;
  // A node that has never heard of any policy attaches no pod. A server without policies says so.
  bool require_policy = true;
  // What each pod may have of the node's connections: `pod_connections` and `pod_ports`.
  ShareSettings shares;

  bool operator==(const TrafficConfig&) const = default;
};

// Limits and budgets of traffic with the Internet and with destination groups.
struct ShapingConfig {
  bool enabled = true;
  // Whose DNS answers are believed, beside those of the node's name servers and of Services.
  std::vector<ip::Address> resolvers;

  bool operator==(const ShapingConfig&) const = default;
};

// ip-masq-agent's files, for pods that no egress policy selects.
struct IpMasqSource {
  std::string path;   // A file, or a directory whose files that begin with "ip-masq" count.
  bool ipv6 = false;  // As the flag --enable-ipv6 there.

  bool operator==(const IpMasqSource&) const = default;
};

// This node translates what other nodes' pods send through it.
struct EgressGatewayRole {
  std::vector<ip::Address> addresses;  // Which it translates to; empty: the NIC's.
  uint16_t health_port = 9467;
  bool draining = false;   // Gets no new flows.
  std::string drain_file;  // As long as there is such a file, the same; empty: none.

  bool operator==(const EgressGatewayRole&) const = default;
};

// This node translates what the hub sends to Services.
struct NatHostConfig {
  std::string endpoints;  // The file that says which there are; empty: kube-proxy chooses.
  absl::Duration max_age = absl::Seconds(60);
  uint16_t health_port = 9468;

  bool operator==(const NatHostConfig&) const = default;
};

struct EgressConfig {
  // Pods reach the platform's addresses from the node's own, whatever policies there are.
  bool platform = false;
  std::optional<IpMasqSource> ip_masq;
  std::optional<EgressGatewayRole> gateway;
  std::optional<NatHostConfig> nat_host;

  bool operator==(const EgressConfig&) const = default;
};

// What iptables' rules have counted, and the rules that are laid down for it.
struct IptablesExporterConfig {
  std::string address = "127.0.0.1:9119";  // As madron/iptables-exporter; empty: not served.
  std::string retailnext_address;          // As retailnext/iptables_exporter; empty: not served.
  // What both serve. Not nat by default: kube-proxy has tens of thousands of rules and chains
  // there.
  std::vector<std::string> tables = {"filter", "mangle"};
  // What the published rules take for the inside; nullopt: they are not laid down.
  std::optional<ip::Prefix> cluster = ip::Prefix::Parse("10.0.0.0/8").value();

  bool operator==(const IptablesExporterConfig&) const = default;
};

struct MetricsConfig {
  std::string address = "127.0.0.1:9465";  // Of /metrics; empty: not served.
  // What others than this node show to all endpoints; empty: none can.
  std::string token_file;
  // With series of their own at most, on this node.
  uint32_t namespaces = 4;
  uint32_t pods = 6;
  IptablesExporterConfig iptables_exporter;

  bool operator==(const MetricsConfig&) const = default;
};

// Where this node's certificate comes from, in return for the token of the agent's pod.
struct EnrollConfig {
  std::string server;  // host:port of the server's enroll port.
  std::string token_file = "/var/run/secrets/spoke/token";  // Read anew each time.
  std::string ca_file = "/var/run/spoke-ca/ca.pem";         // Whom to trust; may come later.
  std::string server_name;  // In the server's certificate; empty: that of `server`.

  bool operator==(const EnrollConfig&) const = default;
};

struct AgentConfig {
  std::string node_name;               // Empty: the host name.
  std::string vm_id;                   // Empty: Azure's with `azure`, else the machine's DMI UUID.
  std::string nic = "eth0";            // The device that has the addresses.
  std::string server;                  // host:port
  std::string server_name;             // In its certificate.
  rpc::TlsFiles tls;                   // With `enroll`, what that gets.
  std::optional<EnrollConfig> enroll;  // nullopt: certificates come from elsewhere.
  std::string cni_socket = "/run/spoke/cni.sock";
  // How long an ADD waits at most for an address; 0: not at all.
  absl::Duration cni_wait = absl::Seconds(20);
  // STATUS fails also while pods have all addresses of the node. Kubernetes takes a node whose
  // network plugin is not ready for broken, and after five minutes evicts the pods that run there.
  bool strict_status = false;
  std::optional<CniFilesConfig> cni;              // nullopt: the agent installs neither.
  std::string state_dir = "/run/spoke/netagent";  // On tmpfs.
  // For what has to outlive a reboot: what the server last said of its store. Empty: nothing does.
  std::string lasting_dir;
  // Where the node's root directory is, for the checks of the node; in a container not "/".
  std::string host_root = "/";
  absl::Duration cooldown = absl::Seconds(30);
  // How long the link and the network namespace of a pod are gone before its addresses are released
  // without a DEL; 0: never.
  absl::Duration lost_del_after = absl::Minutes(5);
  uint32_t mtu = 0;         // Bytes; 0: the NIC's.
  bool repair_pods = true;  // Inside as well, not only on the node.
  // Whether the network is asked and heard, should another machine have an address of this node. On
  // Azure it never is: the fabric answers for every address.
  bool detect_conflicts = true;
  std::map<std::string, std::string> labels;  // What pools and policy choose nodes by.
  std::string vnet;                           // The NIC's virtual network; empty: unknown.
  // The first attempt to reach the server comes within this time, chosen at random.
  absl::Duration connect_jitter;
  TrafficConfig traffic;
  ShapingConfig shaping;
  MetricsConfig metrics;
  std::optional<AzureConfig> azure;  // nullopt: Azure is not asked anything.
  EgressConfig egress;
  // Where it says whether it is ready and alive: unix:/path or host:port; empty: nowhere.
  std::string health = "unix:/run/spoke/netagent-health.sock";
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
