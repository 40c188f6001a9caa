// The server's configuration: one YAML file. Pure: what has to be looked up comes as an argument.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/cloud/azure/settings.h"
#include "ipam-server/enroll/operator_login.h"
#include "ipam-server/history/history.h"
#include "ipam-server/ledger/fleet_policy.h"
#include "ipam-server/nodes/node_plan.h"
#include "ipam-server/nodes/reachability/reachability_settings.h"
#include "ipam-server/pools/address_pool.h"
#include "ipam-server/store/etcd/endpoint.h"
#include "lib/config/variables.h"
#include "lib/ip/address.h"
#include "lib/rpc/credentials.h"

namespace spoke::ipam {

// Certificates for the agents of a Kubernetes cluster, in return for their pods' tokens.
struct EnrollConfig {
  std::string address = "0.0.0.0:7445";         // host:port
  std::string directory = "/var/lib/spoke/ca";  // The authority's; made when it is missing.
  // What the server's own certificate bears: DNS names and addresses by which agents reach it.
  std::vector<std::string> server_names;
  std::string audience = "spoke-ipam-server";      // Whom the tokens are for.
  std::string service_account = "spoke-netagent";  // The agents'.
  std::string
      k8s_namespace;  // The agents', and where the authority is published; empty: our pod's.
  absl::Duration certificate_life = absl::Hours(24);
  bool stored = false;  // The authority is in the store; what is in the directory is this server's.
  OperatorRules operators;  // Who gets an operator's certificate (spokectl login).

  // The files that the server uses itself.
  rpc::TlsFiles files() const {
    return {.ca = directory + (stored ? "/roots.pem" : "/ca.pem"),
            .certificate = directory + "/server.pem",
            .key = directory + "/server.key"};
  }

  bool operator==(const EnrollConfig&) const = default;
};

// The store of several servers.
struct EtcdConfig {
  std::vector<etcd::Endpoint> endpoints;
  std::string prefix = "/spoke/";  // Of all keys; ends with a slash.
  std::string name;                // The server's, for people; empty: the machine's.
  std::string user;                // Empty: none.
  std::string password_file;       // Of the user.
  std::string ca;                  // PEM files, with endpoints of https.
  std::string certificate;
  std::string key;
  absl::Duration lease = absl::Seconds(3);  // Of the leader.
  // host:port where standbys hold a connection to this server while it leads; "off": nowhere.
  std::string listen_standbys = "0.0.0.0:7446";

  bool operator==(const EtcdConfig&) const = default;
};

// Taints and conditions of the nodes of the Kubernetes cluster that the server is a pod of.
struct KubernetesConfig {
  HoldTimes times;
  WriteLimits limits;

  bool operator==(const KubernetesConfig&) const = default;
};

struct ServerConfig {
  std::string listen_agents = "0.0.0.0:7443";  // host:port
  // The addresses where agents reach it, beside what it listens on, such as a load balancer's.
  std::vector<ip::Address> advertised;
  // A unix socket for root and the server's own user.
  std::string listen_admin = "unix:/run/spoke/ipam-admin.sock";
  // host:port where operators show a certificate of their own; "off": they have the socket alone.
  std::string listen_operators = "off";
  std::string listen_metrics = "127.0.0.1:9464";  // host:port; "off": nowhere.
  std::string metrics_token_file;  // What others than this machine show; empty: none can.
  // Connections of agents that one address may have at once.
  uint32_t agents_per_address = 64;
  rpc::TlsFiles tls;                   // The agents' listener; with `enroll`, its files.
  std::optional<EnrollConfig> enroll;  // nullopt: certificates come from elsewhere.
  // The store's file; with `etcd`, a file in whose directory the server keeps what is its own.
  std::string sqlite = "/var/lib/spoke/ipam.db";
  std::optional<EtcdConfig> etcd;  // Absent: SQLite.
  // The key under which secrets are sealed in the store; empty: there are none.
  std::string seal_key_file;
  std::optional<KubernetesConfig> kubernetes;  // Absent: nothing is written there.
  ReachabilitySettings reachability;           // The rounds in which nodes probe each other.
  std::optional<azure::Settings> azure;        // Absent: the static cloud.
  std::string attachments_file;                // The static cloud's; empty: none.
  std::vector<PoolSpec> pools;                 // Others come as policy objects.
  HistoryLimits history;
  absl::Duration audit_period = absl::Minutes(10);  // 0: only when an operator asks.
  FleetPolicy policy;
  // The share of a node's connections that a policy may end without an operator's word. In steps of
  // 0.001.
  double max_cut_share = 0.05;
  // The address where it says whether it is ready and alive: unix:/path or host:port; empty: none.
  std::string health = "unix:/run/spoke/ipam-server-health.sock";
  std::string health_http = "127.0.0.1:9466";  // The same for /livez and /readyz; empty: none.
  bool debug = false;

  // Returns where the store's key and mark lie (loop/store_witness.h): with the authority, or else
  // beside the store, but not in it.
  std::string witness_directory() const;
  // Whether the server makes the file of the seal key where it is missing: in a directory of its
  // own, and when there is no other server that would have to have the same.
  bool may_make_seal_key() const;
};

// Tells whether a directory exists: os::CheckDirectory, or a test's own.
using CheckDirectory = std::function<absl::Status(const std::string& path)>;

// Values may name `variables` (lib/config/variables.h).
// Errors: kInvalidArgument with one line "FILE:LINE: KEY: what is wrong" for each mistake: unknown
// keys, unparsable or overlapping CIDRs, missing directories and the rest, all at once.
absl::StatusOr<ServerConfig> ParseServerConfig(std::string_view text, const std::string& file,
                                               const CheckDirectory& check_directory,
                                               const config::VariableLookup& variables = {});

}  // namespace spoke::ipam
