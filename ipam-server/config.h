// The server's configuration: one YAML file. Pure: what has to be looked up comes as an argument.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ipam-server/cloud/azure/settings.h"
#include "ipam-server/core/address_pool.h"
#include "ipam-server/core/fleet.h"
#include "ipam-server/core/history.h"
#include "lib/config/variables.h"
#include "lib/ip/address.h"
#include "lib/rpc/credentials.h"

namespace spoke::ipam {

struct ServerConfig {
  std::string listen_agents = "0.0.0.0:7443";  // host:port
  // Where agents reach it, beside what it listens on: such as a load balancer's address.
  std::vector<ip::Address> advertised;
  std::string listen_admin = "unix:/run/spoke/ipam-admin.sock";  // A unix socket, for root only.
  std::string listen_metrics = "127.0.0.1:9464";                 // host:port; "off": nowhere.
  rpc::TlsFiles tls;                                             // For agents.
  std::string sqlite = "/var/lib/spoke/ipam.db";
  std::optional<azure::Settings> azure;  // Absent: the static cloud.
  std::string attachments_file;          // Of the static cloud; empty: none.
  std::vector<PoolSpec> pools;           // Others come as policy objects.
  HistoryLimits history;
  absl::Duration audit_period = absl::Minutes(10);  // 0: only when an operator asks.
  FleetPolicy policy;
  // Where it says whether it is ready and alive: unix:/path or host:port; empty: nowhere.
  std::string health = "unix:/run/spoke/ipam-server-health.sock";
  bool debug = false;
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
