// The request of the runtime: its environment, and the network configuration on standard input (CNI
// spec 1.1.0, sections 1 to 3). Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cni-plugin/expected.h"
#include "lib/cni_api/wire.h"

namespace spoke::cni {

// The answers of plugins before this one in the chain, as JSON in the shape that
// `Invocation::cni_version` has: the elements of the three lists, separated by commas.
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

// What the runtime asks in one exec: the request for the agent, and what of it stays in the plugin.
// `netns` may be any bytes; other text is UTF-8.
struct Invocation : Request {
  std::string args_mac;  // The MAC and IP of CNI_ARGS, as they are.
  std::string args_ip;
  std::string cni_version;  // The version; empty until it is known to be supported.
  std::string socket = "/run/spoke/cni.sock";  // The agent's socket.
  int add_timeout_ms = 20'000;  // The time for an ADD, below what containerd and CRI-O give it.
  ChainedResult chained;        // The result of an ADD before this plugin.
  std::string dns = "{}";       // The DNS settings of an ADD: an object of JSON.
  // The expectations of a CHECK: at least one. `expected` becomes one of them.
  std::vector<Expectation> expectations;
};

// Returns the value of an environment variable; nullptr: not set, which no verb tells from empty.
using Environment = std::function<const char*(const char* name)>;

// The versions this plugin speaks, oldest first.
inline constexpr const char* kSupportedVersions[] = {"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"};
inline constexpr const char* kNewestVersion = "1.1.0";

// Returns which verb it is, with the environment it needs. Reads no configuration. DEL needs
// CNI_CONTAINERID and CNI_IFNAME alone, GC, STATUS and VERSION need nothing; what is malformed
// in CNI_ARGS is passed over. Errors: code 4, naming every missing or malformed variable at
// once.
Expected<Invocation> ParseEnvironment(const Environment& environment);

// Reads the network configuration on standard input into `request`: fills in what `text` says; what
// the error leaves unset is as it was. Unknown keys are passed over, and each verb reads only what
// it uses: a DEL is kept from nothing by what only an ADD needs. Errors, in the order of the
// reference plugins: code 6 (not a JSON object), 7 (no name), 1 (a version that the plugin does not
// speak, or one that does not have this verb), then 7 for what else is malformed, naming key and
// value, and 6 for a prevResult that cannot be read.
std::optional<Error> ReadConfig(std::string_view text, Invocation& request);

// Returns "prod/web" or, where the runtime does not say it, the container: for messages.
std::string NameOfPod(const Invocation& request);

}  // namespace spoke::cni
