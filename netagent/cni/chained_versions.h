// Which versions of the CNI protocol a chain speaks. A runtime takes the highest version of the
// network configuration's "cniVersions" that it knows, and every plugin of the chain gets each verb
// in that version (CNI specification 1.1, section 1): one that is older fails, and no pod starts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace spoke::netagent {

using CniVersions = std::vector<std::string>;

// The types of the plugins except Spoke's own, wherever that stands, in their order. Empty if the
// text is no conflist. Pure.
std::vector<std::string> ChainedPlugins(std::string_view conflist);

// Reads a plugin's answer to VERSION (CNI specification, section 4). Pure, safe on any input.
// Error: kInvalidArgument (it has no list of versions).
absl::StatusOr<CniVersions> ParseVersionAnswer(std::string_view answer);

// Returns the configuration with the "cniVersions" that all chained plugins speak; without the
// list, so that runtimes take "cniVersion", if nothing is known (nullopt) of one; unchanged, byte
// for byte, if nothing is to be left out. `spoken` has each of ChainedPlugins(). Pure.
std::string WithVersionsOfAll(std::string_view conflist,
                              const std::map<std::string, std::optional<CniVersions>>& spoken);

// Asks the plugins of a directory what they speak, each again only once its file has changed or it
// gave no answer. Not thread-safe.
class ChainedVersions {
 public:
  // Runs a plugin for a second at most; nullopt when it is not there, fails, or says something
  // else.
  std::optional<CniVersions> Ask(const std::string& directory, const std::string& plugin);

 private:
  struct Answer {
    std::string file;  // Changes whenever the file is replaced.
    CniVersions versions;
  };
  std::map<std::string, Answer> answers_;  // The answers by path.
};

}  // namespace spoke::netagent
