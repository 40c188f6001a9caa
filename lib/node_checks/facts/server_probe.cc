#include "lib/node_checks/facts/server_probe.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/config/config_text.h"
#include "lib/node_checks/services/service_settings.h"
#include "lib/os/unique_fd.h"

namespace spoke::node_checks {
namespace {

absl::Status Refusal(int error) {
  return absl::UnavailableError(fmt::format("does not answer: {}", std::strerror(error)));
}

absl::Status TryOne(const addrinfo& address, absl::Time until) {
  const os::UniqueFd fd(
      ::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!fd.valid()) return base::ErrnoToStatus(errno, "open a socket");
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return absl::OkStatus();
  if (errno != EINPROGRESS) return Refusal(errno);
  pollfd wanted{.fd = fd.get(), .events = POLLOUT, .revents = 0};
  while (true) {
    const absl::Duration left = std::max(until - absl::Now(), absl::ZeroDuration());
    const int ready = ::poll(&wanted, 1, static_cast<int>(absl::ToInt64Milliseconds(left)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return base::ErrnoToStatus(errno, "wait for the connection");
    if (ready == 0) return absl::DeadlineExceededError("does not answer in time");
    break;
  }
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) < 0) error = errno;
  return error == 0 ? absl::OkStatus() : Refusal(error);
}

using config::ConfigMap;
using config::Need;

// Passes over the rest: what is not read here is the agent's to judge.
void PassOver(const ConfigMap& map) {
  if (!map.present()) return;
  for (const std::string& key : map.Keys()) (void)map.Has(key);
}

// Returns whether there is a text in which every variable is known: the agent may have others.
bool IsKnown(const ConfigMap& map, const char* key) {
  bool known = false;
  map.Custom(key, Need::kOptional, [&known](std::string_view text) {
    known = text.find("${") == std::string_view::npos;
    return absl::OkStatus();
  });
  return known;
}

void Take(const ConfigMap& map, const char* key, std::string& out) {
  if (IsKnown(map, key)) map.String(key, &out, Need::kOptional);
}

// Takes the keys `server` and `servers`, as far as they are known.
void TakeServers(const ConfigMap& root, std::vector<std::string>& out) {
  std::vector<std::string> servers;
  const auto take = [&servers](std::string_view text) {
    if (text.find("${") == std::string_view::npos) servers.emplace_back(text);
    return absl::OkStatus();
  };
  root.Custom("server", Need::kOptional, take);
  root.CustomList("servers", Need::kOptional, take);
  if (!servers.empty()) out = std::move(servers);
}

}  // namespace

absl::Status TryToConnect(const std::string& target, absl::Duration timeout) {
  const size_t colon = target.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == target.size()) {
    return absl::InvalidArgumentError(fmt::format("'{}' is not HOST:PORT", target));
  }
  std::string host = target.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), target.c_str() + colon + 1, &hints, &found);
  if (error != 0) {
    return absl::NotFoundError(fmt::format("'{}' has no address: {}", host, ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);
  const absl::Time until = absl::Now() + timeout;
  absl::Status last = absl::NotFoundError(fmt::format("'{}' has no address", host));
  for (const addrinfo* address = list.get(); address != nullptr; address = address->ai_next) {
    last = TryOne(*address, until);
    if (last.ok()) break;
  }
  return last;
}

absl::Status TryAgentSocket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(path + " is too long for a socket");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const os::UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return base::ErrnoToStatus(errno, "open a socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return absl::OkStatus();
  }
  // Others wait there, so somebody listens.
  if (errno == EAGAIN) return absl::OkStatus();
  if (errno == ECONNREFUSED) {
    return absl::UnavailableError("nobody listens there: the agent does not run");
  }
  return base::ErrnoToStatus(errno, "connect");
}

absl::Status TakeAgentSettings(std::string_view text, const std::string& file,
                               const config::VariableLookup& variables, NodeSettings& settings) {
  const auto known_or_itself = [&variables](const std::string& name) {
    return variables(name).value_or("${" + name + "}");
  };
  config::ConfigText document = config::ConfigText::Parse(text, file, known_or_itself);
  const ConfigMap root = document.Root();
  PassOver(root);
  Take(root, "nic", settings.nic);
  TakeServers(root, settings.servers);
  Take(root, "cni_socket", settings.cni_socket);
  Take(root, "state_dir", settings.state_dir);
  if (IsKnown(root, "mtu")) root.Uint32("mtu", &settings.mtu, Need::kOptional);
  if (root.Has("cni")) {
    const ConfigMap cni = root.Map("cni", Need::kOptional);
    PassOver(cni);
    Take(cni, "conf_dir", settings.conf_dir);
    Take(cni, "conf_file", settings.conf_file);
    Take(cni, "bin_dir", settings.bin_dir);
    Take(cni, "plugin", settings.plugin);
  }
  if (root.Has("traffic")) {
    const ConfigMap traffic = root.Map("traffic", Need::kOptional);
    PassOver(traffic);
    if (IsKnown(traffic, "enabled")) traffic.Bool("enabled", &settings.counts, Need::kOptional);
    std::string fast_path = "auto";
    Take(traffic, "fast_path", fast_path);
    settings.fast_path = fast_path == "auto";
  }
  settings.azure = root.Has("azure");
  if (settings.azure) {
    settings.metadata_url = kAzureMetadataUrl;
    const ConfigMap azure = root.Map("azure", Need::kOptional);
    PassOver(azure);
    Take(azure, "imds", settings.metadata_url);
  }
  if (root.Has("node_checks")) {
    const ConfigMap checks = root.Map("node_checks", Need::kOptional);
    PassOver(checks);
    for (const char* key : {"cluster_dns", "node_dns"}) {
      if (checks.Has(key)) PassOver(checks.Map(key, Need::kOptional));
    }
    ReadServiceSettings(root, &settings.services);
  }
  return document.Finish();
}

}  // namespace spoke::node_checks
