#include "netagent/cni/chained_versions.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "lib/os/subprocess.h"
#include "nlohmann/json.hpp"

namespace spoke::netagent {
namespace {

constexpr absl::Duration kLongestAnswer = absl::Seconds(1);
constexpr size_t kMaxAnswerBytes = 64 << 10;
constexpr const char* kVersions = "cniVersions";
constexpr const char* kOwnType = "spoke";

template <typename Json>
CniVersions Texts(const Json& list) {
  CniVersions texts;
  for (const auto& item : list) {
    if (item.is_string()) texts.push_back(item.template get<std::string>());
  }
  return texts;
}

// Identifies the file at `path`; empty: there is no such file.
std::string IdentityOf(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return "";
  return fmt::format("{}:{} {} {}.{:09}", info.st_dev, info.st_ino, info.st_size,
                     info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
}

}  // namespace

std::vector<std::string> ChainedPlugins(std::string_view conflist) {
  std::vector<std::string> types;
  const auto json = nlohmann::json::parse(conflist, nullptr, false);
  if (!json.is_object()) return types;
  const auto plugins = json.find("plugins");
  if (plugins == json.end() || !plugins->is_array()) return types;
  for (const auto& plugin : *plugins) {
    if (!plugin.is_object()) continue;
    const auto type = plugin.find("type");
    if (type == plugin.end() || !type->is_string() || *type == kOwnType) continue;
    types.push_back(type->get<std::string>());
  }
  return types;
}

absl::StatusOr<CniVersions> ParseVersionAnswer(std::string_view answer) {
  const auto json = nlohmann::json::parse(answer, nullptr, false);
  if (json.is_object()) {
    const auto list = json.find("supportedVersions");
    if (list != json.end() && list->is_array() && !list->empty()) return Texts(*list);
  }
  return absl::InvalidArgumentError("the answer to VERSION has no supportedVersions");
}

std::string WithVersionsOfAll(std::string_view conflist,
                              const std::map<std::string, std::optional<CniVersions>>& spoken) {
  // The JSON keeps its order, since people compare the file with its source.
  auto json = nlohmann::ordered_json::parse(conflist, nullptr, false);
  if (!json.is_object()) return std::string(conflist);
  const auto list = json.find(kVersions);
  if (list == json.end() || !list->is_array()) return std::string(conflist);
  const CniVersions offered = Texts(*list);
  CniVersions left = offered;
  for (const auto& [plugin, versions] : spoken) {
    const CniVersions known = versions.value_or(CniVersions());
    std::erase_if(left, [&](const std::string& version) {
      return std::find(known.begin(), known.end(), version) == known.end();
    });
  }
  if (left == offered) return std::string(conflist);
  if (left.empty()) {
    json.erase(kVersions);
  } else {
    *list = left;
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::optional<CniVersions> ChainedVersions::Ask(const std::string& directory,
                                                const std::string& plugin) {
  // A type is a file's name (section 1); with a directory in it, it would be another file.
  if (plugin.empty() || plugin.find('/') != std::string::npos) return std::nullopt;
  const std::string path = directory + "/" + plugin;
  const std::string file = IdentityOf(path);
  if (file.empty()) return std::nullopt;
  const auto known = answers_.find(path);
  if (known != answers_.end() && known->second.file == file) return known->second.versions;
  const auto result = os::RunProgram({path}, {.time = kLongestAnswer,
                                              .output_bytes = kMaxAnswerBytes,
                                              .variables = {"CNI_COMMAND=VERSION"}});
  if (!result.ok() || result->exit_code != 0) return std::nullopt;
  absl::StatusOr<CniVersions> versions = ParseVersionAnswer(result->output);
  if (!versions.ok()) return std::nullopt;
  answers_.insert_or_assign(path, Answer{.file = file, .versions = *versions});
  return *std::move(versions);
}

}  // namespace spoke::netagent
