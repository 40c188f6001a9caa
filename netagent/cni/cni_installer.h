// Puts the plugin, and the network configuration that tells a runtime to use it, where the runtime
// looks for them: once the agent can serve, so that a node does not take pods before.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/telemetry/log.h"
#include "netagent/cni/chained_versions.h"
#include "netagent/cni/directory_watch.h"

namespace spoke::netagent {

struct CniInstallSettings {
  std::string plugin_source;     // The program that is copied.
  std::string plugin_directory;  // The runtime's, such as /opt/cni/bin; empty: it is not copied.
  std::string conf_source;       // The file with the network configuration.
  std::string conf_directory;    // The runtime's, such as /etc/cni/net.d.
  std::string conf_file;         // The file's name there, such as 10-spoke.conflist.

  // The paths where the two end up; empty for a plugin that is not copied.
  std::string PluginPath() const;
  std::string ConfPath() const;

  bool operator==(const CniInstallSettings&) const = default;
};

// What was found at the path before it was right.
enum class CniFileFound { kRight, kNothing, kAnother };

// Makes the path a copy of its source unless it is one: by content, and for the plugin by being
// executable too. The configuration's copy has only the versions that all plugins of the chain
// speak: those behind Spoke's are asked, in the plugin's directory. It appears, or changes, by a
// rename within the directory, which is what runtimes watch for (a file that is moved in from
// elsewhere they do not notice), from PATH.tmp, which none of them loads. On an error what was
// there is as it was. Errors: what the files say, with the path; kInvalidArgument (the
// configuration is no JSON object, or the plugin is empty).
absl::StatusOr<CniFileFound> InstallPlugin(const CniInstallSettings& settings);
absl::StatusOr<CniFileFound> InstallConflist(const CniInstallSettings& settings,
                                             ChainedVersions& chained);

// Installs the plugin, then the configuration, and tries again until both are there. Then it looks
// whether they still are: when somebody has changed one of them, and each minute. They are never
// removed here: runtimes need them for DEL. Where their sources are gone, which is how an uninstall
// begins, they are not put back. Not thread-safe.
class CniInstaller {
 public:
  static constexpr absl::Duration kPause = absl::Seconds(10);     // The pause after a failure.
  static constexpr absl::Duration kLookAgain = absl::Minutes(1);  // The pause once they are there.
  // The least time between two looks, so that somebody else who wants these files otherwise cannot
  // keep the agent busy.
  static constexpr absl::Duration kAtOnce = absl::Seconds(1);

  // Borrows `log`. An installer without settings does nothing.
  CniInstaller(std::optional<CniInstallSettings> settings, telemetry::Log& log)
      : settings_(std::move(settings)), log_(log) {}

  // Does what is due. `ready`: pods can be served. Only the first time waits for it.
  void Tick(bool ready, absl::Time now);
  // When Tick() has something to do; InfiniteFuture: not before `ready` changes.
  absl::Time NextWake(bool ready) const {
    return !settings_ || (!ready && !installed_) ? absl::InfiniteFuture() : next_;
  }

  // Becomes readable when somebody has changed one of the files or their directories; -1: the
  // kernel does not tell. OnReadable() then makes Tick() look.
  int fd() const { return watch_.fd(); }
  void OnReadable();

  // Why the two are not in place, as one line that says what to do; empty when they are, or are
  // not the agent's to put there.
  std::string Reason() const;

 private:
  // Logs what was found at `path` unless it was right already.
  void Note(const std::string& path, CniFileFound found);
  absl::Status Install();

  const std::optional<CniInstallSettings> settings_;
  telemetry::Log& log_;
  ChainedVersions chained_;
  DirectoryWatch watch_;
  bool installed_ = false;  // Installed at least once.
  std::string failure_;     // The last attempt's.
  absl::Time next_ = absl::InfinitePast();
  absl::Time looked_ = absl::InfinitePast();
};

}  // namespace spoke::netagent
