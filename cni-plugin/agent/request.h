// What the runtime asks: the environment, and what config.h adds from standard input (CNI spec
// 1.1.0, sections 2 and 3). Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cni-plugin/agent/wire.h"
#include "cni-plugin/cni_error.h"

namespace spoke::cni {

enum class Command : uint8_t { kAdd, kDel, kCheck, kGc, kStatus, kVersion };

// What plugins before this one in the chain have answered, as JSON in the shape that
// `Request::cni_version` has: the elements of the three lists, separated by commas.
struct ChainedResult {
  unsigned interface_count = 0;
  std::string interfaces;
  std::string ips;
  std::string routes;
};

// An interface of prevResult that may be the one to check: the name is CNI_IFNAME.
struct Expectation {
  std::string sandbox;
  Attachment attachment;
};

struct Request {
  Command command = Command::kVersion;
  // From the environment.
  std::string container_id;
  std::string ifname;
  std::string netns;  // Path; may be empty for DEL.
  PodReference pod;
  std::string trace_parent;  // Well-formed, or empty.
  std::string args_mac;      // CNI_ARGS MAC and IP, as they are.
  std::string args_ip;
  // From the configuration.
  std::string network_name;
  std::string cni_version;                          // Empty until it is known to be supported.
  std::string socket = "/run/spoke/cni.sock";       // The agent's.
  int add_timeout_ms = 20'000;                      // Below what containerd and CRI-O give an ADD.
  Options options;                                  // ADD.
  ChainedResult chained;                            // ADD.
  std::string dns = "{}";                           // ADD: an object of JSON.
  std::vector<Expectation> expectations;            // CHECK: at least one.
  std::optional<std::vector<AttachmentRef>> valid;  // GC; nullopt: the runtime does not say.
};

// The value of an environment variable; nullptr: not set, which no verb tells from empty.
using Environment = std::function<const char*(const char* name)>;

// Versions this plugin speaks, oldest first.
inline constexpr const char* kSupportedVersions[] = {"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"};
inline constexpr const char* kNewestVersion = "1.1.0";

// Which command, with the environment it needs. Reads no configuration. DEL needs CNI_CONTAINERID
// and CNI_IFNAME alone, GC, STATUS and VERSION need nothing; what is malformed in CNI_ARGS is
// passed over.
// Errors: code 4, naming every missing or malformed variable at once.
Expected<Request> ParseEnvironment(const Environment& environment);

// Names of containers and networks: "must start with an alphanumeric character, optionally followed
// by any combination of one or more alphanumeric characters, underscore (_), dot (.) or hyphen
// (-)".
bool IsIdentifier(std::string_view text);

// "prod/web" or, where the runtime does not say it, the container: for messages.
std::string NameOfPod(const Request& request);

}  // namespace spoke::cni
