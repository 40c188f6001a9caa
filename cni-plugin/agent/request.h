// The request of the runtime: the environment, and what config.h adds from standard input (CNI spec
// 1.1.0, sections 2 and 3). Pure.
#pragma once

#include <functional>
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

// Returns whether a text is a name of a container or network: "must start with an alphanumeric
// character, optionally followed by any combination of one or more alphanumeric characters,
// underscore (_), dot (.) or hyphen (-)".
bool IsIdentifier(std::string_view text);

// Returns "prod/web" or, where the runtime does not say it, the container: for messages.
std::string NameOfPod(const Request& request);

}  // namespace spoke::cni
