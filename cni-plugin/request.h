// What the runtime asks: environment and standard input to a Request (CNI spec 1.0.0, sections 2
// and 3). Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cni-plugin/cni_error.h"

namespace spoke::cni {

enum class Command { kAdd, kDel, kVersion };

struct Request {
  Command command = Command::kVersion;
  std::string container_id;
  std::string ifname;
  std::string netns;  // Path; may be empty for DEL.
  std::string network_name;
  std::string cni_version;
  std::string socket = "/run/spoke/cni.sock";  // The agent's.
  std::string pod_namespace;
  std::string pod_name;
  std::string pod_uid;
  std::string dns_json;  // The configuration's "dns" object, passed on as it is; may be empty.
};

// The value of an environment variable; nullopt: not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// Versions this plugin speaks, oldest first.
inline constexpr const char* kSupportedVersions[] = {"0.3.0", "0.3.1", "0.4.0", "1.0.0"};
inline constexpr const char* kNewestVersion = "1.0.0";

// Which command, with the environment it needs. Reads no configuration.
// Errors: code 4, naming every missing or malformed variable at once.
Expected<Request> ParseEnvironment(const Environment& environment);

// Fills in what standard input says. Unknown keys are passed over. VERSION needs no configuration.
// Errors: code 6 (not a JSON object), 7 (name or socket missing or malformed, or a prevResult: this
// plugin must be the first of its chain), 1 (a version it does not speak).
Expected<Request> ParseConfig(Request request, std::string_view text);

}  // namespace spoke::cni
