// The facts of a node that decide whether pods on it will work. Values; facts_reader.h
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
#include "lib/node_checks/facts/network_counts.h"
#include "lib/node_checks/facts/pod_packets.h"
#include "lib/node_checks/services/reach_answers.h"
#include "lib/node_checks/services/service_answers.h"

namespace spoke::node_checks {

// The parts of Spoke's own that the checks look for.
enum class Stage : uint8_t {
  kBeforeInstall,  // No part is looked for: is this a node that pods could have addresses on?
  kInstalled,      // All parts are looked for: will pods work now?
  kAgent,          // No part is looked for: the agent asks, and knows itself what it has put where.
};

// The parts of Spoke's configuration that concern the node. Paths are the node's own.
struct NodeSettings {
  std::string nic = "eth0";                 // The device that has the addresses.
  uint32_t mtu = 0;                         // The MTU of pods' links, bytes; 0: the NIC's.
  std::string conf_dir = "/etc/cni/net.d";  // The directory; empty: not looked at.
  std::string conf_file = "10-spoke.conflist";
  std::string bin_dir = "/opt/cni/bin";       // The directory; empty: not looked at.
  std::string plugin = "/usr/lib/cni/spoke";  // The file that bin_dir/spoke is a copy of.
  std::string cni_socket = "/run/spoke/cni.sock";
  std::string state_dir = "/run/spoke/netagent";
  std::vector<std::string> servers;  // The servers, HOST:PORT each; empty: not looked at.
  bool counts = true;                // The key traffic.enabled.
  bool fast_path = true;             // Whether traffic.fast_path is auto.
  bool azure = false;                // Whether this is an Azure VM.
  std::string metadata_url;          // The cloud's metadata service; empty: it is not asked.
  ServiceSettings services;          // Which resolvers are asked for what.
  uint32_t pods = 110;               // The most pods that the node has.
  Stage stage = Stage::kInstalled;
};

// The features that Spoke asks of the kernel.
enum class KernelFeature : uint8_t {
  kVeth,         // The devices that are pods' links.
  kNftables,     // Tables of family inet, with sets that count: counting and isolation.
  kTokenBucket,  // The kernel's tbf: bandwidth annotations of pods.
  kClassifiers,  // The kernel's clsact and BPF programs at tc's hooks: the fast path, and shaping.
  kIfb,          // The device that shaping needs.
  kHtb,          // The queue that shaping needs.
};

struct FeatureState {
  enum class Answer : uint8_t { kPresent, kMissing, kUnknown } answer = Answer::kUnknown;
  std::string words;  // The kernel's words, unless it is present.

  bool operator==(const FeatureState&) const = default;
};

// A file of somebody else's. `text` is of no meaning when `status` is not OK.
struct ForeignFile {
  std::string path;  // The path on the node.
  std::string name;  // The last part of the path, which decides the order.
  std::string text;
  absl::Status status;
};

struct LinkFacts {
  std::string name;
  std::string kind;  // The kind, "veth" or "bridge"; empty for hardware and lo.
  bool up = false;
  uint32_t mtu = 0;  // The MTU in bytes.
};

struct NicFacts {
  LinkFacts link;
  std::optional<int> v4_length;  // The prefix length of its first IPv4 address.
  bool has_v6 = false;           // Whether it has an IPv6 address that is not link-local.
};

// A next hop of a default route by the NIC, as the kernel's table of neighbours has it.
struct GatewayFacts {
  std::string address;
  bool silent = false;  // The kernel asked who has the address, and nobody answered.
};

// A directory that Spoke writes into, or a file system it depends on.
struct PlaceFacts {
  bool exists = false;
  std::string file_system;  // The file system, such as "tmpfs"; empty: not known.
  bool read_only = false;
  std::optional<uint64_t> free_bytes;
  // The free files; nullopt where a file system has no such limit.
  std::optional<uint64_t> free_files;
};

struct PluginFacts {
  bool exists = false;
  bool runs = false;  // Whether it may be executed.
  // Whether it is the same as ours; nullopt: there is no other to compare it with.
  std::optional<bool> same_as_own;
};

struct CloudInitFacts {
  bool configures_addresses = false;  // Whether it will put secondary addresses on the NIC.
  std::string decided_by;             // The file that says so; empty: the default.
  std::vector<std::string> unreadable;
};

struct NodeFacts {
  NodeSettings settings;
  // Whether the agent's configuration could be read; NotFound: there is none.
  absl::Status configuration;

  std::map<KernelFeature, FeatureState> kernel;
  // The sysctls that are there, such as "net.ipv4.ip_forward".
  std::map<std::string, std::string> sysctls;
  std::optional<uint64_t> neighbours;   // The IPv4 entries now.
  std::optional<uint64_t> connections;  // The connections that are tracked now.

  // What was counted since the look before; nullopt: this is the first one.
  std::optional<NetworkCounters> counted;
  // The packets that each pod's link has carried, by its host end's name; empty unless an agent
  // that counts asks.
  std::map<std::string, uint64_t> link_packets;
  // Those of the last looks against what the agent counted (PodPacketLooks).
  std::vector<PodPackets> pod_packets;
  std::optional<uint64_t> tcp_sockets;      // The IPv4 sockets of TCP that hold a port now.
  std::optional<uint32_t> speed_mbit;       // The NIC's; nullopt: it does not say.
  std::optional<uint32_t> best_speed_mbit;  // The highest that has been seen.

  // What the services said that were asked; nullopt: none has been asked yet.
  std::optional<ServiceAnswers> services;
  std::optional<ClockDifference> server_clock;  // nullopt: the server has not said its time.
  // What could be connected to of the targets that policy names; nullopt: nobody has looked yet.
  std::optional<ReachAnswers> reach;

  absl::Status links_status;  // The status; not OK: `links` and `nic` are not known.
  std::vector<LinkFacts> links;
  std::optional<NicFacts> nic;  // The NIC; nullopt: there is no such device.
  std::vector<GatewayFacts> gateways;

  absl::Status firewall_status;  // The status; not OK: `chains` lacks some or all.
  std::vector<nft::ChainGist> chains;
  bool virtual_services = false;  // Whether IPVS translates some (virtual_services.h).

  absl::Status cni_status;             // The status; not OK: the directory could not be read.
  std::vector<ForeignFile> cni_files;  // The files of conf_dir that runtimes load, sorted by name.
  PlaceFacts bin_dir;
  // The programs that may be executed there, and in the other directories that runtimes look into
  // (kPluginPaths), with the first of them that has each.
  std::map<std::string, std::string> cni_programs;
  PluginFacts plugin;
  PlaceFacts state_dir;
  absl::Status agent;   // Whether it answers at its socket.
  absl::Status server;  // Whether one of them takes connections; OK too when nobody tried.

  std::optional<CloudInitFacts> cloud_init;  // The facts; nullopt: not installed, or switched off.
  bool networkd_runs = false;
  std::vector<ForeignFile> networkd_conf;  // The files in the order in which later ones override.
  // The *.network files in the order in which they are tried.
  std::vector<ForeignFile> network_files;
  std::vector<ForeignFile> link_files;  // The *.link files, in the same order.
};

// The shortest path of Spoke's plugin there.
inline constexpr const char* kPluginName = "spoke";
// The directories where runtimes and distributions have plugins: containerd's default, Debian's,
// and Fedora's.
inline constexpr std::array<const char*, 3> kPluginPaths = {"/opt/cni/bin", "/usr/lib/cni",
                                                            "/usr/libexec/cni"};
// The metadata service of every Azure VM.
inline constexpr const char* kAzureMetadataUrl = "http://169.254.169.254";
// The beginning of the names of pods' links' host ends.
inline constexpr const char* kPodLinkPrefix = "spk";

}  // namespace spoke::node_checks
