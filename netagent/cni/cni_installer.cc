#include "netagent/cni/cni_installer.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "nlohmann/json.hpp"

namespace spoke::netagent {
namespace {

constexpr size_t kMaxConflistBytes = 1 << 20;
constexpr size_t kMaxPluginBytes = 64 << 20;
constexpr mode_t kConflistMode = 0644;
constexpr mode_t kPluginMode = 0755;

// Compares what is at `path` with what is to be there.
CniFileFound Find(const std::string& path, const std::string& content, mode_t mode) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return CniFileFound::kNothing;
  // A file of another length need not be read.
  if (!S_ISREG(info.st_mode) || info.st_size != static_cast<off_t>(content.size()) ||
      (info.st_mode & mode) != mode) {
    return CniFileFound::kAnother;
  }
  const absl::StatusOr<std::string> present = os::ReadFile(path, content.size());
  return present.ok() && *present == content ? CniFileFound::kRight : CniFileFound::kAnother;
}

absl::StatusOr<CniFileFound> PutInPlace(const std::string& path, const std::string& content,
                                        mode_t mode) {
  const CniFileFound found = Find(path, content, mode);
  if (found != CniFileFound::kRight) {
    RETURN_IF_ERROR(os::WriteFileAtomic(path, content, os::Durability::kSurvivesPower, mode));
  }
  return found;
}

std::vector<std::string> WatchedPaths(const CniInstallSettings& settings) {
  std::vector<std::string> paths = {settings.ConfPath()};
  if (!settings.plugin_directory.empty()) paths.push_back(settings.PluginPath());
  return paths;
}

std::string_view RemedyFor(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kResourceExhausted:
      return "free space on its file system";
    case absl::StatusCode::kPermissionDenied:
      return "let the agent write there: mount it writable, and as root";
    case absl::StatusCode::kNotFound:
      return "create it, or set the path under cni in the agent's configuration";
    case absl::StatusCode::kInvalidArgument:
      return "put the package's file back";
    default:
      return "see why, and clear the path";
  }
}

}  // namespace

std::string CniInstallSettings::PluginPath() const {
  if (plugin_directory.empty()) return "";
  return plugin_directory + "/" + plugin_source.substr(plugin_source.rfind('/') + 1);
}

std::string CniInstallSettings::ConfPath() const { return conf_directory + "/" + conf_file; }

absl::StatusOr<CniFileFound> InstallPlugin(const CniInstallSettings& settings) {
  ASSIGN_OR_RETURN(const std::string content,
                   os::ReadFile(settings.plugin_source, kMaxPluginBytes));
  if (content.empty()) return absl::InvalidArgumentError(settings.plugin_source + " is empty");
  return PutInPlace(settings.PluginPath(), content, kPluginMode);
}

absl::StatusOr<CniFileFound> InstallConflist(const CniInstallSettings& settings,
                                             ChainedVersions& chained) {
  ASSIGN_OR_RETURN(const std::string content,
                   os::ReadFile(settings.conf_source, kMaxConflistBytes));
  // A runtime that finds the first file broken uses none of the others either.
  if (!nlohmann::json::parse(content, nullptr, false).is_object()) {
    return absl::InvalidArgumentError(settings.conf_source + " is not a JSON object");
  }
  std::map<std::string, std::optional<CniVersions>> spoken;
  for (const std::string& plugin : ChainedPlugins(content)) {
    spoken[plugin] = chained.Ask(settings.plugin_directory, plugin);
  }
  return PutInPlace(settings.ConfPath(), WithVersionsOfAll(content, spoken), kConflistMode);
}

void CniInstaller::Note(const std::string& path, CniFileFound found) {
  if (found == CniFileFound::kRight) return;
  const std::string_view before = found == CniFileFound::kNothing ? "nothing" : "another";
  if (installed_) {
    log_.Warn("cni_file_restored", {{"file", path}, {"found", before}});
  } else {
    log_.Info("cni_file_installed", {{"file", path}, {"found", before}});
  }
}

absl::Status CniInstaller::Install() {
  // A configuration whose plugin is missing fails every pod.
  if (!settings_->plugin_directory.empty()) {
    ASSIGN_OR_RETURN(const CniFileFound plugin, InstallPlugin(*settings_));
    Note(settings_->PluginPath(), plugin);
  }
  ASSIGN_OR_RETURN(const CniFileFound conf, InstallConflist(*settings_, chained_));
  Note(settings_->ConfPath(), conf);
  return absl::OkStatus();
}

void CniInstaller::Tick(bool ready, absl::Time now) {
  if (!settings_ || now < next_ || (!ready && !installed_)) return;
  looked_ = now;
  // The watch comes first, or what happens before it would be heard of a minute later. A directory
  // that is not there is what Install() says.
  watch_.Watch(WatchedPaths(*settings_)).IgnoreError();
  const absl::Status status = Install();
  if (status.ok()) {
    if (!installed_ || !failure_.empty()) {
      log_.Info("cni_in_place",
                {{"plugin", settings_->PluginPath()}, {"conflist", settings_->ConfPath()}});
    }
    installed_ = true;
    failure_.clear();
    next_ = now + kLookAgain;
    return;
  }
  next_ = now + kPause;
  const std::string_view remedy = RemedyFor(status.code());
  std::string failure = fmt::format("{}; {}", base::MessageOf(status), remedy);
  // A failure is logged once for each kind, not every time.
  if (failure != failure_) {
    log_.Warn("cni_install_failed", {{"error", status}, {"remedy", remedy}});
  }
  failure_ = std::move(failure);
}

void CniInstaller::OnReadable() {
  if (!watch_.Drain() || !installed_) return;
  next_ = std::min(next_, looked_ + kAtOnce);
}

std::string CniInstaller::Reason() const {
  if (!settings_) return "";
  if (!failure_.empty()) return "plugin and network configuration are not in place: " + failure_;
  if (installed_) return "";
  return "plugin and network configuration are not in place yet: that waits for the node to have "
         "addresses";
}

}  // namespace spoke::netagent
