// iptables' rules where iptables-legacy keeps them: in the x_tables of the kernel, read and added
// by running its programs. On a host without such tables no program is ever run.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/os/subprocess.h"
#include "netagent/iptables/iptables.h"

namespace spoke::netagent {

// The programs of iptables-legacy on this host, as paths.
struct LegacyPrograms {
  std::string iptables;
  std::string save_v4;
  std::string save_v6;
  // Whether the host's `iptables` is this one.
  bool is_default = false;
};

using RunIptables =
    std::function<absl::StatusOr<os::ProgramResult>(const std::vector<std::string>& command)>;

// Finds the programs in the folders where system programs are; whoever looks asks `iptables` for
// its version. Returns nullopt where iptables-legacy is not installed.
std::optional<LegacyPrograms> FindLegacyPrograms(const std::string& root, const RunIptables& run);

class LegacyIptables final : public Iptables {
 public:
  struct Settings {
    std::optional<LegacyPrograms> programs;
    RunIptables run;
    // The file where the kernel lists the names of the tables that there are.
    std::string names_v4 = "/proc/thread-self/net/ip_tables_names";
    std::string names_v6 = "/proc/thread-self/net/ip6_tables_names";
  };
  explicit LegacyIptables(Settings settings) : settings_(std::move(settings)) {}

  absl::StatusOr<std::vector<IptablesTable>> Read(ip::Family family,
                                                  const std::vector<std::string>& names) override;
  absl::Status Append(const std::vector<PublishedRule>& rules) override;
  absl::StatusOr<size_t> Erase(const std::vector<PublishedRule>& rules) override;

 private:
  const Settings settings_;
};

}  // namespace spoke::netagent
