// The request of the runtime: its environment, and the network configuration on standard input (CNI
// spec 1.1.0, sections 1 to 3). Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cni-plugin/agent/wire.h"
#include "cni-plugin/cni_error.h"

namespace spoke::cni {

// Returns the value of an environment variable; nullptr: not set, which no verb tells from empty.
using Environment = std::function<const char*(const char* name)>;

// The versions this plugin speaks, oldest first.
inline constexpr const char* kSupportedVersions[] = {"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"};
inline constexpr const char* kNewestVersion = "1.1.0";

// Returns which verb it is, with the environment it needs. Reads no configuration. DEL needs
// CNI_CONTAINERID and CNI_IFNAME alone, GC, STATUS and VERSION need nothing; what is malformed
// in CNI_ARGS is passed over. Errors: code 4, naming every missing or malformed variable at
// once.
Expected<Request> ParseEnvironment(const Environment& environment);

// Reads the network configuration on standard input into `request`: fills in what `text` says; what
// the error leaves unset is as it was. Unknown keys are passed over, and each verb reads only what
// it uses: a DEL is kept from nothing by what only an ADD needs. Errors, in the order of the
// reference plugins: code 6 (not a JSON object), 7 (no name), 1 (a version that the plugin does not
// speak, or one that does not have this verb), then 7 for what else is malformed, naming key and
// value, and 6 for a prevResult that cannot be read.
std::optional<Error> ReadConfig(std::string_view text, Request& request);

// Returns "prod/web" or, where the runtime does not say it, the container: for messages.
std::string NameOfPod(const Request& request);

}  // namespace spoke::cni
