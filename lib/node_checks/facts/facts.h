// What a node is like, as far as it decides whether pods on it will work. Values; facts_reader.h
// reads them, examine.h judges them. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/nft/firewall.h"

namespace spoke::node_checks {

// Which parts of Spoke's own the checks look for.
enum class Stage : uint8_t {
  kBeforeInstall,  // None: is this a node that pods could have addresses on?
  kInstalled,      // All: will pods work now?
  kAgent,          // None: the agent asks, and knows itself what it has put where.
};

// What Spoke's configuration says about the node. Paths are the node's own.
struct NodeSettings {
  std::string nic = "eth0";                 // The device that has the addresses.
  uint32_t mtu = 0;                         // Of pods' links, bytes; 0: the NIC's.
  std::string conf_dir = "/etc/cni/net.d";  // Empty: not looked at.
  std::string conf_file = "10-spoke.conflist";
  std::string bin_dir = "/opt/cni/bin";       // Empty: not looked at.
  std::string plugin = "/usr/lib/cni/spoke";  // What bin_dir/spoke is a copy of.
  std::string cni_socket = "/run/spoke/cni.sock";
  std::string state_dir = "/run/spoke/netagent";
  std::string server;     // HOST:PORT; empty: not looked at.
  bool counts = true;     // traffic.enabled
  bool fast_path = true;  // traffic.fast_path is auto.
  bool azure = false;     // On an Azure VM.
  uint32_t pods = 110;    // That the node has at most.
  Stage stage = Stage::kInstalled;
};

// What Spoke asks of the kernel.
enum class KernelFeature : uint8_t {
  kVeth,         // Pods' links.
  kNftables,     // Tables of family inet, with sets that count: counting and isolation.
  kTokenBucket,  // tbf: bandwidth annotations of pods.
  kClassifiers,  // clsact and BPF programs at tc's hooks: the fast path, and shaping.
  kIfb,          // Shaping.
  kHtb,          // Shaping.
};

struct FeatureState {
  enum class Answer : uint8_t { kPresent, kMissing, kUnknown } answer = Answer::kUnknown;
  std::string words;  // The kernel's, unless it is present.

  bool operator==(const FeatureState&) const = default;
};

// A file of somebody else's. `text` is of no meaning when `status` is not OK.
struct ForeignFile {
  std::string path;  // On the node.
  std::string name;  // Its last part, which decides the order.
  std::string text;
  absl::Status status;
};

struct LinkFacts {
  std::string name;
  std::string kind;  // "veth", "bridge"; empty for hardware and lo.
  bool up = false;
  uint32_t mtu = 0;  // Bytes.
};

struct NicFacts {
  LinkFacts link;
  std::optional<int> v4_length;  // Of its first IPv4 address's prefix.
  bool has_v6 = false;           // An IPv6 address that is not link-local.
};

// A directory that Spoke writes into, or a file system it depends on.
struct PlaceFacts {
  bool exists = false;
  std::string file_system;  // "tmpfs"; empty: not known.
  bool read_only = false;
  std::optional<uint64_t> free_bytes;
  std::optional<uint64_t> free_files;  // Nothing where a file system has no such limit.
};

struct PluginFacts {
  bool exists = false;
  bool runs = false;                // It may be executed.
  std::optional<bool> same_as_own;  // Nothing: there is no other to compare it with.
};

struct CloudInitFacts {
  bool configures_addresses = false;  // It will put secondary addresses on the NIC.
  std::string decided_by;             // The file that says so; empty: the default.
  std::vector<std::string> unreadable;
};

struct NodeFacts {
  NodeSettings settings;
  absl::Status configuration;  // Whether the agent's could be read; NotFound: there is none.

  std::map<KernelFeature, FeatureState> kernel;
  std::map<std::string, std::string> sysctls;  // "net.ipv4.ip_forward"; those that are there.
  std::optional<uint64_t> neighbours;          // Entries of IPv4 now.
  std::optional<uint64_t> connections;         // That are tracked now.

  absl::Status links_status;  // Not OK: `links` and `nic` are not known.
  std::vector<LinkFacts> links;
  std::optional<NicFacts> nic;  // Nothing: there is no such device.

  absl::Status firewall_status;  // Not OK: `chains` lacks some or all.
  std::vector<nft::ChainGist> chains;
  bool virtual_services = false;  // IPVS translates some (virtual_services.h).

  absl::Status cni_status;             // Not OK: the directory could not be read.
  std::vector<ForeignFile> cni_files;  // Of conf_dir that runtimes load, sorted by name.
  PlaceFacts bin_dir;
  // What may be executed there, and in the other directories that runtimes look into
  // (kPluginPaths), with the first of them that has it.
  std::map<std::string, std::string> cni_programs;
  PluginFacts plugin;
  PlaceFacts state_dir;
  absl::Status agent;   // Whether it answers at its socket.
  absl::Status server;  // Whether a connection to it stands; OK too when nobody tried.

  std::optional<CloudInitFacts> cloud_init;  // Nothing: not installed, or switched off.
  bool networkd_runs = false;
  std::vector<ForeignFile> networkd_conf;  // In the order in which later ones override.
  std::vector<ForeignFile> network_files;  // *.network in the order in which they are tried.
  std::vector<ForeignFile> link_files;     // *.link, the same.
};

// The shortest path of Spoke's plugin there.
inline constexpr const char* kPluginName = "spoke";
// Where runtimes and distributions have plugins: containerd's default, Debian's, and Fedora's.
inline constexpr std::array<const char*, 3> kPluginPaths = {"/opt/cni/bin", "/usr/lib/cni",
                                                            "/usr/libexec/cni"};
// Host ends of pods' links begin so.
inline constexpr const char* kPodLinkPrefix = "spk";

}  // namespace spoke::node_checks
