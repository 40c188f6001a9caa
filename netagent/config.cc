#include "netagent/config.h"

#include <algorithm>
#include <vector>

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
constexpr size_t kMaxLabels = 64;
constexpr size_t kMaxLabelBytes = 63;
constexpr size_t kMaxLabelPrefixBytes = 253;

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

// Kubernetes' rules for labels, so that those of a node can be copied: letters, digits and "-_.",
// with a letter or digit at both ends.
bool IsLabelText(std::string_view text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !text.empty() && text.size() <= kMaxLabelBytes && plain(text.front()) &&
         plain(text.back()) && std::all_of(text.begin(), text.end(), [&](char c) {
           return plain(c) || c == '-' || c == '_' || c == '.';
         });
}

// "zone" or "example.com/zone".
bool IsLabelKey(std::string_view key) {
  const size_t slash = key.find('/');
  if (slash == std::string_view::npos) return IsLabelText(key);
  const std::string_view prefix = key.substr(0, slash);
  return prefix.size() <= kMaxLabelPrefixBytes && IsLabelText(key.substr(slash + 1)) &&
         !prefix.empty() && std::all_of(prefix.begin(), prefix.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
         });
}

void ReadLabels(const ConfigMap& root, std::map<std::string, std::string>* labels) {
  const ConfigMap map = root.Map("labels", Need::kOptional);
  const std::vector<std::string> keys = map.Keys();
  if (keys.size() > kMaxLabels) {
    map.Error("", fmt::format("{} labels; at most {} are taken", keys.size(), kMaxLabels));
  }
  for (const std::string& key : keys) {
    if (!IsLabelKey(key)) map.Error(key, "is no label's name: use letters, digits and -_.");
    map.Custom(key, Need::kOptional, [&](std::string_view text) -> absl::Status {
      if (!IsLabelText(text)) {
        return absl::InvalidArgumentError(fmt::format(
            "must be 1 to {} letters, digits and -_. with a letter or digit at both ends, not '{}'",
            kMaxLabelBytes, text));
      }
      labels->insert_or_assign(key, std::string(text));
      return absl::OkStatus();
    });
  }
}

// "http://169.254.169.254": what paths are put behind.
absl::Status TakeBaseUrl(std::string_view text, std::string* out) {
  constexpr std::string_view kScheme = "http://";
  const bool right = text.substr(0, kScheme.size()) == kScheme && text.size() > kScheme.size() &&
                     text.find_first_of("/?#@ ", kScheme.size()) == std::string_view::npos;
  if (!right) {
    return absl::InvalidArgumentError(
        fmt::format("must be http://HOST or http://HOST:PORT and no more, not '{}'", text));
  }
  *out = std::string(text);
  return absl::OkStatus();
}

absl::Status TakeReflector(std::string_view text, std::optional<ip::Address>* out) {
  const auto address = ip::Address::Parse(text);
  if (!address.ok() || !address->is_v4()) {
    return absl::InvalidArgumentError(fmt::format("must be an IPv4 address, not '{}'", text));
  }
  *out = *address;
  return absl::OkStatus();
}

void ReadAzure(const ConfigMap& root, std::optional<AzureConfig>* azure) {
  if (!root.Has("azure")) return;
  AzureConfig& out = azure->emplace();
  const ConfigMap map = root.Map("azure", Need::kOptional);
  map.Custom("imds", Need::kOptional,
             [&](std::string_view text) { return TakeBaseUrl(text, &out.imds); });
  map.Custom("wireserver", Need::kOptional,
             [&](std::string_view text) { return TakeBaseUrl(text, &out.wireserver); });
  map.Custom("reflector", Need::kOptional,
             [&](std::string_view text) { return TakeReflector(text, &out.reflector); });
  map.Bool("prove", &out.prove, Need::kOptional);
  map.Duration("prove_deadline", &out.prove_deadline, Need::kOptional,
               {absl::Seconds(1), absl::Hours(1)});
}

// A file's name that runtimes load, in the directory and nowhere else.
absl::Status TakeConflistName(std::string_view text, std::string* out) {
  const auto ends_with = [&](std::string_view end) {
    return text.size() > end.size() && text.substr(text.size() - end.size()) == end;
  };
  if (text.empty() || text.front() == '.' || text.find('/') != std::string_view::npos ||
      !ends_with(".conflist")) {
    return absl::InvalidArgumentError(
        fmt::format("must be a file's name that ends in .conflist, not '{}'", text));
  }
  *out = std::string(text);
  return absl::OkStatus();
}

void ReadConflist(const ConfigMap& root, const CheckDirectory& check,
                  std::optional<ConflistConfig>* conflist) {
  if (!root.Has("cni")) return;
  ConflistConfig& out = conflist->emplace();
  const ConfigMap map = root.Map("cni", Need::kOptional);
  map.String("conf_dir", &out.conf_dir, Need::kOptional);
  RequireDirectory(map, "conf_dir", out.conf_dir, check);
  map.Custom("conf_file", Need::kOptional,
             [&](std::string_view text) { return TakeConflistName(text, &out.conf_file); });
  map.String("content", &out.content, Need::kOptional);
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
  root.Duration("cni_wait", &out.cni_wait, Need::kOptional,
                {absl::ZeroDuration(), absl::Minutes(4)});
  root.Bool("strict_status", &out.strict_status, Need::kOptional);
  ReadConflist(root, check_directory, &out.cni);
  root.String("state_dir", &out.state_dir, Need::kOptional);
  RequireDirectory(root, "state_dir", out.state_dir, check_directory);
  root.Duration("cooldown", &out.cooldown, Need::kOptional, {absl::ZeroDuration(), absl::Hours(1)});
  ReadMtu(root, &out.mtu);
  root.Bool("repair_pods", &out.repair_pods, Need::kOptional);
  ReadLabels(root, &out.labels);
  root.String("vnet", &out.vnet, Need::kOptional);
  root.Duration("connect_jitter", &out.connect_jitter, Need::kOptional,
                {absl::ZeroDuration(), absl::Minutes(10)});
  ReadAzure(root, &out.azure);
  root.Bool("debug", &out.debug, Need::kOptional);
  RETURN_IF_ERROR(document.Finish());
  return out;
}

}  // namespace spoke::netagent
