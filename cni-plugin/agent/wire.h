// The messages of plugin and agent to each other (proto/spoke/v1/cni.proto), in protobuf's
// encoding. Pure.
//
// The codec is our own, since protobuf's library costs an exec more than its work (ADR 11). What
// the proto file gains is added here; wire_test.cc compares each field with the generated classes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cni-plugin/cni_error.h"
#include "lib/cni_api/pod_options.h"

namespace spoke::cni {

// The structs are the messages of the proto file, where their fields are explained. Text is UTF-8:
// the agent refuses a request with anything else.
// VERSION is answered without the agent, and has no number there.
enum class Verb : uint8_t { kVersion = 0, kAdd = 1, kDel = 2, kCheck = 3, kGc = 4, kStatus = 5 };

struct Options {
  std::string mac;
  std::vector<std::string> addresses;
  uint32_t mtu = 0;
  Bandwidth bandwidth;
  InternetOptions internet;

  bool operator==(const Options&) const = default;
};

struct AttachmentRef {
  std::string container_id;
  std::string ifname;

  bool operator==(const AttachmentRef&) const = default;
};

struct PodAddress {
  std::string address;  // The address in CIDR notation.
  std::string gateway;  // The gateway; empty: this interface has no default route.

  bool operator==(const PodAddress&) const = default;
};

struct Attachment {
  std::string host_link;
  std::string host_mac;
  std::string pod_mac;
  uint32_t mtu = 0;
  std::vector<PodAddress> addresses;

  bool operator==(const Attachment&) const = default;
};

// The answers of plugins before this one in the chain, as JSON in the shape that
// `Request::cni_version` has: the elements of the three lists, separated by commas.
struct ChainedResult {
  unsigned interface_count = 0;
  std::string interfaces;
  std::string ips;
  std::string routes;
};

// An interface of prevResult that may be the one to check: the name is CNI_IFNAME.
struct Expectation {
  std::string sandbox;
  Attachment attachment;
};

// The request of the runtime, from its environment and the configuration; and the part of it that
// the agent is asked.
struct Request {
  Verb verb = Verb::kVersion;
  std::string container_id;
  std::string ifname;
  std::string network_name;
  PodReference pod;
  int64_t deadline_monotonic_ms = 0;
  uint64_t attempt = 0;
  std::string netns;                   // The path; may be empty for DEL.
  std::string trace_parent;            // The trace parent, well-formed or empty.
  Options options;                     // The options of an ADD.
  std::optional<Attachment> expected;  // The attachment of a CHECK: the one of `expectations`.
  // The attachments of a GC; nullopt: the runtime does not say.
  std::optional<std::vector<AttachmentRef>> valid;
  std::string plugin_version;

  // The fields from here on stay in the plugin.
  std::string args_mac;  // The MAC and IP of CNI_ARGS, as they are.
  std::string args_ip;
  std::string cni_version;  // The version; empty until it is known to be supported.
  std::string socket = "/run/spoke/cni.sock";  // The agent's socket.
  int add_timeout_ms = 20'000;  // The time for an ADD, below what containerd and CRI-O give it.
  ChainedResult chained;        // The result of an ADD before this plugin.
  std::string dns = "{}";       // The DNS settings of an ADD: an object of JSON.
  std::vector<Expectation> expectations;  // The expectations of a CHECK: at least one.
};

struct AgentResponse {
  enum class Outcome : uint8_t { kNone = 0, kAttachment = 1, kError = 2, kDone = 3 };
  Outcome outcome = Outcome::kNone;
  Attachment attachment;  // The value of kAttachment.
  Error error;            // The value of kError.
};

// Encodes the request. A path that is not UTF-8 is left out: the agent could not find it in its
// journal again.
std::string EncodeRequest(const Request& request);

// Decodes a response; nullopt: not a CniResponse. Fields it does not know are passed over. What it
// takes, protobuf takes for the same; it refuses groups, and varints longer than they may be, which
// protobuf takes.
std::optional<AgentResponse> DecodeResponse(std::string_view bytes);

}  // namespace spoke::cni
