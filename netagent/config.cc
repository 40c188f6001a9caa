#include "netagent/config.h"

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/config/config_text.h"
#include "lib/config/tls_fields.h"
#include "lib/os/file.h"

namespace spoke::netagent {
namespace {

using config::ConfigMap;
using config::Need;

constexpr uint32_t kMinMtu = 576;     // RFC 791: every host takes that much.
constexpr uint32_t kMaxMtu = 65'535;  // What an IPv4 length field holds.

void RequireDirectory(const ConfigMap& map, std::string_view key, const std::string& directory,
                      const CheckDirectory& check) {
  if (const absl::Status status = check(directory); !status.ok()) {
    map.Error(key, fmt::format("{}; create it first", base::MessageOf(status)));
  }
}

void ReadMtu(const ConfigMap& root, uint32_t* mtu) {
  root.Uint32("mtu", mtu, Need::kOptional, {0, kMaxMtu});
  if (*mtu != 0 && *mtu < kMinMtu) {
    root.Error("mtu", fmt::format("{} is below {}; 0 takes the NIC's", *mtu, kMinMtu));
  }
}

}  // namespace

absl::StatusOr<AgentConfig> ParseAgentConfig(std::string_view text, const std::string& file,
                                             const CheckDirectory& check_directory) {
  AgentConfig out;
  config::ConfigText document = config::ConfigText::Parse(text, file);
  const ConfigMap root = document.Root();
  root.String("node_name", &out.node_name, Need::kOptional);
  root.String("vm_id", &out.vm_id, Need::kOptional);
  root.String("nic", &out.nic, Need::kOptional);
  root.String("server", &out.server, Need::kRequired);
  root.String("server_name", &out.server_name, Need::kOptional);
  config::ReadTls(root, &out.tls);
  root.String("cni_socket", &out.cni_socket, Need::kOptional);
  RequireDirectory(root, "cni_socket", os::DirectoryOf(out.cni_socket), check_directory);
  root.String("state_dir", &out.state_dir, Need::kOptional);
  RequireDirectory(root, "state_dir", out.state_dir, check_directory);
  root.Duration("cooldown", &out.cooldown, Need::kOptional, {absl::ZeroDuration(), absl::Hours(1)});
  ReadMtu(root, &out.mtu);
  root.Bool("debug", &out.debug, Need::kOptional);
  RETURN_IF_ERROR(document.Finish());
  return out;
}

}  // namespace spoke::netagent
