// The `health:` keys that server and agent have in common. Pure, except that it looks for a
// directory.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "lib/config/config_text.h"

namespace spoke::config {

// Reads `health: unix:/path`, `host:port` or `off` of `root` into `address`, which holds the
// default, and is empty for `off`. The directory of a socket that is named must be there.
void ReadHealth(const ConfigMap& root,
                const std::function<absl::Status(const std::string&)>& check_directory,
                std::string* address);

// Reads `health_http: host:port` or `off` of `root`, where /livez and /readyz are answered. The
// host is a loopback address, since reasons name hosts and files.
void ReadHealthHttp(const ConfigMap& root, std::string* address);

}  // namespace spoke::config
