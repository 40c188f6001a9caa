// What plugin and agent say to each other (proto/spoke/v1/cni.proto), as values with one codec for
// both sides, in protobuf's encoding. Pure, and safe on any bytes.
//
// The codec is our own, since protobuf's library costs an exec of the plugin more than its work
// (ADR 11). What the proto file gains is added here; wire_test.cc compares each field with the
// generated classes. Decoding takes what protobuf takes, for the same values, except groups and
// varints longer than they may be, which it refuses. Fields that it does not know are passed over,
// and text that is not UTF-8 makes a message malformed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/cni_api/error.h"
#include "lib/cni_api/pod_options.h"

namespace spoke::cni {

// The structs are the messages of the proto file, where their fields are explained.
// VERSION is answered without the agent, and has no number there. A newer plugin may have others.
enum class Verb : int32_t { kVersion = 0, kAdd = 1, kDel = 2, kCheck = 3, kGc = 4, kStatus = 5 };

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
  std::vector<PodAddress> addresses = {};

  bool operator==(const Attachment&) const = default;
};

struct Request {
  Verb verb = Verb::kVersion;
  std::string container_id;
  std::string ifname;
  std::string network_name;
  PodReference pod;
  int64_t deadline_monotonic_ms = 0;
  uint64_t attempt = 0;
  std::string netns;                   // The path; may be empty for DEL.
  std::string trace_parent;            // The trace parent; the plugin leaves out a malformed one.
  Options options;                     // The options of an ADD.
  std::optional<Attachment> expected;  // The attachment of a CHECK.
  // The attachments of a GC. Encoded, nullopt (the runtime does not say) is the same as none.
  std::optional<std::vector<AttachmentRef>> valid;
  std::string plugin_version;

  bool operator==(const Request&) const = default;
};

struct Response {
  enum class Outcome : uint8_t { kNone = 0, kAttachment = 1, kError = 2, kDone = 3 };
  Outcome outcome = Outcome::kNone;
  Attachment attachment = {};  // The value of kAttachment.
  Error error = {};            // The value of kError.

  bool operator==(const Response&) const = default;
};

// Encodes the request. A path that is not UTF-8 is left out: the agent could not find it in its
// journal again. Other text is the caller's to keep UTF-8.
std::string EncodeRequest(const Request& request);
std::string EncodeResponse(const Response& response);

// Returns the file beside the agent's socket that an agent leaves when it stops in order and that
// the next one takes away: an upgrade, as a rule. Its time of modification says when.
inline std::string StoppedMark(std::string_view socket) { return std::string(socket) + ".stopped"; }

// These return nullopt for what is no such message.
std::optional<Request> DecodeRequest(std::string_view bytes);
std::optional<Response> DecodeResponse(std::string_view bytes);

}  // namespace spoke::cni
