// What an operator tells the server about its Azure: which cloud, who we are, and which scale sets.
// Plain values.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace spoke::ipam::azure {

// The URLs of one of Azure's clouds, without a slash at the end.
struct Endpoints {
  std::string resource_manager;  // "https://management.azure.com"; also what tokens are asked for.
  std::string authority;         // "https://login.microsoftonline.com"
  // The instance metadata service; the same in all clouds.
  std::string metadata = "http://169.254.169.254";

  bool operator==(const Endpoints&) const = default;
};

// Who the server is to Azure. Each identity has front-door budgets of its own.
struct Identity {
  enum class Kind {
    kManaged,       // The metadata service's; `client_id` empty: the system-assigned one.
    kWorkload,      // A projected Kubernetes token, exchanged: `token_file`.
    kClientSecret,  // `secret_file`.
  };
  Kind kind = Kind::kManaged;
  std::string client_id;
  std::string tenant;       // The tenant of the last two kinds.
  std::string token_file;   // Read anew for each token.
  std::string secret_file;  // Read anew for each token.

  bool operator==(const Identity&) const = default;
};

struct Settings {
  Endpoints endpoints;
  std::vector<Identity> identities;  // One at least; calls are spread over them.
  // ARM ids of the scale sets whose instances the server looks after, Uniform or Flexible, of any
  // subscriptions. Compared without regard to case.
  std::vector<std::string> scale_sets;
  // IP configurations whose names begin with it are ours; all others are never touched.
  std::string name_prefix = "spoke-";
  // The share of every limit that stays free for others who use the same subscriptions. The lane
  // kBlocking may use it.
  double share_for_others = 0.1;
  // The kinds of NIC that the subscription can give /28 blocks to.
  bool blocks_on_nics = false;        // Network API, Flexible scale sets.
  bool blocks_on_scale_sets = false;  // Compute API 2026-07-02.
  std::string ca_file;                // Extra authority for TLS; empty: the system's.
  std::string proxy;  // Empty: the environment's, as curl reads it. Not used for metadata.
  absl::Duration timeout = absl::Seconds(30);  // One HTTP call's.
  absl::Duration listing = absl::Minutes(5);   // How often all NICs are listed.

  bool operator==(const Settings&) const = default;
};

}  // namespace spoke::ipam::azure
