#include "lib/node_checks/facts/facts_reader.h"

#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/node_checks/facts/cloud_init.h"
#include "lib/node_checks/facts/foreign_files.h"
#include "lib/node_checks/facts/kernel_probe.h"
#include "lib/node_checks/facts/network_facts.h"
#include "lib/node_checks/facts/server_probe.h"
#include "lib/node_checks/facts/virtual_services.h"
#include "lib/os/file.h"

namespace spoke::node_checks {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxForeignBytes = size_t{1} << 20U;
constexpr size_t kMaxForeignFiles = 1024;  // The most files of one directory.
constexpr size_t kMaxPluginBytes = size_t{256} << 20U;
constexpr size_t kMaxMountBytes = size_t{16} << 20U;

bool Exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The names in the directory that `wanted` takes, sorted. Errors: kNotFound, kPermissionDenied.
absl::StatusOr<std::vector<std::string>> NamesIn(
    const std::string& directory, const std::function<bool(const std::string&)>& wanted) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end;
       !error && it != end && names.size() < kMaxForeignFiles; it.increment(error)) {
    std::string name = it->path().filename().string();
    std::error_code ignored;
    // A file that is read must end; a link to /dev/null does, and one to nowhere is reported.
    const fs::file_type type = it->status(ignored).type();
    const bool ends = type == fs::file_type::regular || type == fs::file_type::character ||
                      type == fs::file_type::not_found;
    if (ends && wanted(name)) names.push_back(std::move(name));
  }
  if (error) return base::ErrnoToStatus(error.value(), directory);
  std::sort(names.begin(), names.end());
  return names;
}

bool EndsIn(const std::string& name, const std::string& end) {
  return name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

std::optional<uint64_t> FirstHex(const std::string& text, size_t line, size_t word) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (lines.size() <= line) return std::nullopt;
  const std::vector<std::string> words = absl::StrSplit(lines[line], ' ', absl::SkipEmpty());
  if (words.size() <= word) return std::nullopt;
  uint64_t number = 0;
  const std::string& digits = words[word];
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

// Reads a file of /sys with a number; nullopt: there is none, as the speed of a device without one
// is -1.
std::optional<uint64_t> ReadNumber(const std::string& file) {
  const auto text = os::ReadFile(file, 4096);
  uint64_t value = 0;
  if (!text.ok() || !absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &value)) {
    return std::nullopt;
  }
  return value;
}

bool AllPresent(const std::map<KernelFeature, FeatureState>& kernel) {
  return std::all_of(kernel.begin(), kernel.end(), [](const auto& entry) {
    return entry.second.answer == FeatureState::Answer::kPresent;
  });
}

// A container's /host may be the node's root without what is mounted below, or have parts of it
// only.
std::string ProcOf(const NodeView& view) {
  if (!view.proc.empty()) return view.proc;
  const std::string below = (view.root == "/" ? "" : view.root) + "/proc";
  return Exists(below + "/1/mountinfo") ? below : "/proc";
}

// Returns the file with the node's mounts: those of its first process, not the container's, in
// which its root may be read-only. A container that has only parts of the node has these as mounts
// of its own.
std::string MountsOf(const std::string& proc, const std::string& root) {
  return proc + (root == "/" || proc == "/proc" ? "/self/mountinfo" : "/1/mountinfo");
}

}  // namespace

std::string DefaultRoot() {
  const bool in_container = Exists("/.dockerenv") || Exists("/run/.containerenv") ||
                            ::getenv("KUBERNETES_SERVICE_HOST") != nullptr;
  return in_container && Exists("/host/etc") ? "/host" : "/";
}

FactsReader::FactsReader(NodeView view, NodeSettings settings)
    : view_(std::move(view)), proc_(ProcOf(view_)), settings_(std::move(settings)) {}

std::string FactsReader::Rooted(const std::string& path) const {
  return view_.root == "/" ? path : view_.root + path;
}

NodeFacts FactsReader::Read() {
  NodeFacts facts{.settings = settings_};
  if (kernel_) {
    facts.kernel = *kernel_;
  } else {
    facts.kernel = view_.probe_kernel ? view_.probe_kernel() : ProbeKernel();
    if (AllPresent(facts.kernel)) kernel_ = facts.kernel;
  }
  ReadSysctls(facts);
  ReadCounters(facts);
  ReadPodLinks(facts);
  ReadLinks(facts);
  ReadFirewall(proc_, facts);
  ReadCni(facts);
  facts.state_dir = ReadPlace(settings_.state_dir);
  if (settings_.stage == Stage::kInstalled) {
    facts.agent = TryAgentSocket(Rooted(settings_.cni_socket));
  }
  const CloudInitReading reading = ReadCloudInit(view_.root == "/" ? "" : view_.root);
  if (reading.secondary_ips != SecondaryIps::kNotInstalled) {
    CloudInitFacts& cloud_init = facts.cloud_init.emplace();
    cloud_init.configures_addresses = reading.secondary_ips == SecondaryIps::kOn;
    cloud_init.decided_by = reading.decided_by;
    for (const absl::Status& file : reading.unreadable) {
      cloud_init.unreadable.emplace_back(base::MessageOf(file));
    }
  }
  ReadSystemd(facts);
  return facts;
}

void FactsReader::ReadCounters(NodeFacts& facts) {
  const std::string device = Rooted("/sys/class/net/" + settings_.nic + "/");
  const auto statistic = [&](const char* name) {
    return ReadNumber(device + "statistics/" + name).value_or(0);
  };
  NetworkCounters now{.packets = statistic("rx_packets") + statistic("tx_packets"),
                      .errors = statistic("rx_errors") + statistic("tx_errors"),
                      .missed = statistic("rx_missed_errors"),
                      .dropped = statistic("rx_dropped") + statistic("tx_dropped"),
                      .carrier_lost = ReadNumber(device + "carrier_down_count").value_or(0)};
  if (const auto snmp = os::ReadFile(proc_ + "/net/snmp", kMaxForeignBytes); snmp.ok()) {
    ParseTcpCounters(*snmp, now);
  }
  if (counters_) facts.counted = Difference(*counters_, now);
  counters_ = now;
  const auto sockets = os::ReadFile(proc_ + "/net/sockstat", kMaxForeignBytes);
  if (sockets.ok()) facts.tcp_sockets = ParseTcpSockets(*sockets);
  const auto speed = ReadNumber(device + "speed");
  if (speed && *speed > 0 && *speed <= UINT32_MAX) {
    facts.speed_mbit = static_cast<uint32_t>(*speed);
    best_speed_mbit_ = std::max(best_speed_mbit_.value_or(0), *facts.speed_mbit);
  }
  facts.best_speed_mbit = best_speed_mbit_;
}

void FactsReader::ReadPodLinks(NodeFacts& facts) const {
  if (settings_.stage != Stage::kAgent || !settings_.counts) return;
  const auto devices = os::ReadFile(proc_ + "/net/dev", kMaxForeignBytes);
  if (devices.ok()) facts.link_packets = ParsePackets(*devices, kPodLinkPrefix);
}

void FactsReader::ReadSysctls(NodeFacts& facts) const {
  const std::string& nic = settings_.nic;
  const std::array<std::string, 13> paths = {
      "net/ipv4/ip_forward",
      "net/ipv4/ip_local_port_range",
      "net/ipv4/conf/" + nic + "/forwarding",
      "net/ipv6/conf/all/forwarding",
      "net/ipv4/conf/all/rp_filter",
      "net/ipv4/conf/default/rp_filter",
      "net/ipv4/conf/" + nic + "/rp_filter",
      "net/ipv4/neigh/default/gc_thresh1",
      "net/ipv4/neigh/default/gc_thresh2",
      "net/ipv4/neigh/default/gc_thresh3",
      "net/netfilter/nf_conntrack_max",
      "net/netfilter/nf_conntrack_count",
      "net/netfilter/nf_conntrack_tcp_loose",
  };
  for (const std::string& path : paths) {
    const auto value = os::ReadFile(proc_ + "/sys/" + path, 4096);
    if (!value.ok()) continue;
    // This is sysctl(8)'s way of writing: a dot of a device's name becomes a slash.
    std::string name = path;
    for (char& c : name) {
      if (c == '/' || c == '.') c = c == '/' ? '.' : '/';
    }
    facts.sysctls[name] = std::string(absl::StripAsciiWhitespace(*value));
  }
  const auto count = facts.sysctls.find("net.netfilter.nf_conntrack_count");
  if (count != facts.sysctls.end()) {
    uint64_t number = 0;
    const std::string& text = count->second;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec == std::errc()) facts.connections = number;
  }
  // The file has any length: a line for each service, and one for each of its servers.
  const auto ip_vs = os::ReadFile(proc_ + "/net/ip_vs", kMaxForeignBytes);
  facts.virtual_services =
      ip_vs.ok() ? HasVirtualServices(*ip_vs) : absl::IsResourceExhausted(ip_vs.status());
  // There is one line for each processor; entries are counted once for all.
  const auto neighbours = os::ReadFile(proc_ + "/net/stat/arp_cache", kMaxForeignBytes);
  if (neighbours.ok()) facts.neighbours = FirstHex(*neighbours, 1, 0);
}

PlaceFacts FactsReader::ReadPlace(const std::string& path) const {
  PlaceFacts place;
  const std::string rooted = Rooted(path);
  place.exists = Exists(rooted);
  const auto mounts = os::ReadFile(MountsOf(proc_, view_.root), kMaxMountBytes);
  const auto mount = mounts.ok() ? FindMount(*mounts, path) : std::nullopt;
  if (mount) {
    place.file_system = mount->file_system;
    place.read_only = mount->read_only;
  }
  struct statvfs room {};
  if (!place.exists || ::statvfs(rooted.c_str(), &room) != 0) return place;
  if (!mount && view_.root == "/") place.read_only = (room.f_flag & ST_RDONLY) != 0;
  place.free_bytes = uint64_t{room.f_bavail} * room.f_frsize;
  // Some file systems have no table of files, and say 0 of 0.
  if (room.f_files != 0) place.free_files = room.f_favail;
  return place;
}

void FactsReader::ReadNetworkConfigs(NodeFacts& facts) const {
  const auto names = NamesIn(Rooted(settings_.conf_dir), &IsNetworkConfigName);
  facts.cni_status = names.status();
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    ForeignFile file{.path = settings_.conf_dir + "/" + name, .name = name};
    auto text = os::ReadFile(Rooted(file.path), kMaxForeignBytes);
    file.status = text.status();
    if (text.ok()) file.text = *std::move(text);
    facts.cni_files.push_back(std::move(file));
  }
}

void FactsReader::ReadPrograms(NodeFacts& facts) const {
  std::vector<std::string> directories = {settings_.bin_dir};
  directories.insert(directories.end(), kPluginPaths.begin(), kPluginPaths.end());
  for (const std::string& directory : directories) {
    const std::string rooted = Rooted(directory);
    const auto names = NamesIn(rooted, [&](const std::string& name) {
      const std::string path = fmt::format("{}/{}", rooted, name);
      std::error_code ignored;
      // Where the node's root is not ours, its links lead elsewhere for us.
      const bool unseen = view_.root != "/" && fs::is_symlink(path, ignored);
      return unseen || ::access(path.c_str(), X_OK) == 0;
    });
    if (!names.ok()) continue;
    for (const std::string& name : *names) facts.cni_programs.emplace(name, directory);
  }
}

void FactsReader::ReadCni(NodeFacts& facts) const {
  if (!settings_.conf_dir.empty()) ReadNetworkConfigs(facts);
  if (settings_.bin_dir.empty()) return;
  facts.bin_dir = ReadPlace(settings_.bin_dir);
  ReadPrograms(facts);
  const std::string plugin = Rooted(settings_.bin_dir + "/" + kPluginName);
  facts.plugin.exists = Exists(plugin);
  if (!facts.plugin.exists) return;
  facts.plugin.runs = ::access(plugin.c_str(), X_OK) == 0;
  if (settings_.stage != Stage::kInstalled) return;  // It costs two reads of some megabytes.
  const auto there = os::ReadFile(plugin, kMaxPluginBytes);
  // This is one of this process's own files: a container brings its plugin along.
  const auto own = os::ReadFile(settings_.plugin, kMaxPluginBytes);
  if (there.ok() && own.ok()) facts.plugin.same_as_own = *there == *own;
}

void FactsReader::ReadSystemd(NodeFacts& facts) const {
  // This is systemd's order: of one name the first directory's file is taken, then names decide.
  const std::array<std::string, 4> roots = {"/etc/systemd", "/run/systemd", "/usr/lib/systemd",
                                            "/lib/systemd"};
  const auto collect = [&](const std::string& folder, const std::string& end) {
    std::map<std::string, std::string> by_name;
    for (const std::string& root : roots) {
      const std::string directory = root + "/" + folder;
      const auto names =
          NamesIn(Rooted(directory), [&](const std::string& name) { return EndsIn(name, end); });
      if (!names.ok()) continue;
      for (const std::string& name : *names) by_name.emplace(name, directory + "/" + name);
    }
    std::vector<ForeignFile> files;
    for (const auto& [name, path] : by_name) {
      ForeignFile file{.path = path, .name = name};
      auto text = os::ReadFile(Rooted(path), kMaxForeignBytes);
      file.status = text.status();
      if (text.ok()) file.text = *std::move(text);
      files.push_back(std::move(file));
    }
    return files;
  };
  facts.link_files = collect("network", ".link");
  facts.networkd_runs = Exists(Rooted("/run/systemd/netif/state"));
  if (!facts.networkd_runs) return;
  facts.network_files = collect("network", ".network");
  for (const std::string& root : roots) {
    const std::string path = root + "/networkd.conf";
    auto text = os::ReadFile(Rooted(path), kMaxForeignBytes);
    if (absl::IsNotFound(text.status())) continue;
    ForeignFile file{.path = path, .name = "networkd.conf", .status = text.status()};
    if (text.ok()) file.text = *std::move(text);
    facts.networkd_conf.push_back(std::move(file));
    break;
  }
  for (ForeignFile& file : collect("networkd.conf.d", ".conf")) {
    facts.networkd_conf.push_back(std::move(file));
  }
}

}  // namespace spoke::node_checks
