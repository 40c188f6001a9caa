#include "lib/cni_api/wire.h"

#include <algorithm>
#include <utility>

#include "lib/base/utf8.h"

namespace spoke::cni {
namespace {

// The wire types of https://protobuf.dev/programming-guides/encoding/
constexpr uint32_t kVarint = 0;
constexpr uint32_t kFixed64 = 1;
constexpr uint32_t kBytes = 2;
constexpr uint32_t kFixed32 = 5;

// ---- Writing. Proto3 leaves out what is empty or 0.

void PutVarint(uint64_t value, std::string& out) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>((value & 0x7FU) | 0x80U));
    value >>= 7U;
  }
  out.push_back(static_cast<char>(value));
}

void PutNumber(uint32_t field, uint64_t value, std::string& out) {
  if (value == 0) return;
  PutVarint(field << 3U | kVarint, out);
  PutVarint(value, out);
}

void PutMessage(uint32_t field, std::string_view bytes, std::string& out) {
  PutVarint(field << 3U | kBytes, out);
  PutVarint(bytes.size(), out);
  out += bytes;
}

void PutText(uint32_t field, std::string_view text, std::string& out) {
  if (!text.empty()) PutMessage(field, text, out);
}

// Writes a message, which is left out when it would be empty.
void PutIfAny(uint32_t field, std::string_view bytes, std::string& out) {
  PutText(field, bytes, out);
}

std::string Encode(const PodReference& pod) {
  std::string out;
  PutText(1, pod.pod_namespace, out);
  PutText(2, pod.name, out);
  PutText(3, pod.uid, out);
  return out;
}

std::string Encode(const Bandwidth& bandwidth) {
  std::string out;
  PutNumber(1, bandwidth.ingress_rate.count(), out);
  PutNumber(2, bandwidth.ingress_burst.count(), out);
  PutNumber(3, bandwidth.egress_rate.count(), out);
  PutNumber(4, bandwidth.egress_burst.count(), out);
  return out;
}

std::string Encode(const InternetOptions& internet) {
  std::string out;
  PutNumber(1, internet.ingress.count(), out);
  PutNumber(2, internet.egress.count(), out);
  // A weight of 1 is what is read where none is said.
  PutNumber(3, internet.weight == 1 ? 0 : internet.weight, out);
  return out;
}

std::string Encode(const Options& options) {
  std::string out;
  PutText(1, options.mac, out);
  for (const std::string& address : options.addresses) PutMessage(2, address, out);
  PutNumber(3, options.mtu, out);
  PutIfAny(4, Encode(options.bandwidth), out);
  PutIfAny(5, Encode(options.internet), out);
  return out;
}

std::string Encode(const PodAddress& address) {
  std::string out;
  PutText(1, address.address, out);
  PutText(2, address.gateway, out);
  return out;
}

std::string Encode(const Attachment& attachment) {
  std::string out;
  PutText(1, attachment.host_link, out);
  PutText(2, attachment.host_mac, out);
  PutText(3, attachment.pod_mac, out);
  PutNumber(4, attachment.mtu, out);
  for (const PodAddress& address : attachment.addresses) PutMessage(5, Encode(address), out);
  return out;
}

std::string Encode(const AttachmentRef& ref) {
  std::string out;
  PutText(1, ref.container_id, out);
  PutText(2, ref.ifname, out);
  return out;
}

std::string Encode(const Error& error) {
  std::string out;
  PutNumber(1, error.code, out);
  PutText(2, error.message, out);
  PutText(3, error.details, out);
  return out;
}

// ---- Reading. A message that comes twice is merged, and of a number or text the last one counts.

struct Field {
  uint32_t number = 0;
  uint32_t type = 0;
  uint64_t value = 0;      // The value of kVarint.
  std::string_view bytes;  // The bytes of kBytes.

  bool IsNumber(uint32_t wanted) const { return number == wanted && type == kVarint; }
  bool IsBytes(uint32_t wanted) const { return number == wanted && type == kBytes; }
};

// Tags and lengths have at most 32 bits, and protobuf takes no more bytes for them than those need.
constexpr unsigned kShortBits = 32;
constexpr unsigned kLongBits = 64;

bool TakeVarint(std::string_view& in, unsigned most_bits, uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < most_bits && !in.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(in.front());
    in.remove_prefix(1);
    if (shift == 63 && byte > 1) return false;
    value |= static_cast<uint64_t>(byte & 0x7FU) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool Skip(std::string_view& in, uint64_t count) {
  if (count > in.size()) return false;
  in.remove_prefix(static_cast<size_t>(count));
  return true;
}

// Reads the next field of a message that is not over.
bool TakeField(std::string_view& in, Field& field) {
  uint64_t tag = 0;
  if (!TakeVarint(in, kShortBits, tag) || tag > UINT32_MAX || tag >> 3U == 0) return false;
  field.number = static_cast<uint32_t>(tag >> 3U);
  field.type = static_cast<uint32_t>(tag & 7U);
  switch (field.type) {
    case kVarint:
      return TakeVarint(in, kLongBits, field.value);
    case kFixed64:
      return Skip(in, 8);
    case kFixed32:
      return Skip(in, 4);
    case kBytes: {
      uint64_t length = 0;
      if (!TakeVarint(in, kShortBits, length) || length > in.size()) return false;
      field.bytes = in.substr(0, static_cast<size_t>(length));
      return Skip(in, length);
    }
    default:
      return false;
  }
}

bool ReadText(const Field& field, std::string& text) {
  text = field.bytes;
  return base::IsUtf8(field.bytes);
}

bool ReadNothing(const Field& /*field*/) { return true; }

// Calls `read` for each field; returns false as soon as one is malformed.
template <typename Read>
bool ReadFields(std::string_view in, Read read) {
  Field field;
  while (!in.empty()) {
    if (!TakeField(in, field) || !read(field)) return false;
  }
  return true;
}

bool ReadPod(std::string_view in, PodReference& pod) {
  return ReadFields(in, [&](const Field& field) {
    if (field.IsBytes(1)) return ReadText(field, pod.pod_namespace);
    if (field.IsBytes(2)) return ReadText(field, pod.name);
    if (field.IsBytes(3)) return ReadText(field, pod.uid);
    return true;
  });
}

bool ReadBandwidth(std::string_view in, Bandwidth& bandwidth) {
  return ReadFields(in, [&](const Field& field) {
    if (field.IsNumber(1)) bandwidth.ingress_rate = units::BitRate(field.value);
    if (field.IsNumber(2)) bandwidth.ingress_burst = units::BitCount(field.value);
    if (field.IsNumber(3)) bandwidth.egress_rate = units::BitRate(field.value);
    if (field.IsNumber(4)) bandwidth.egress_burst = units::BitCount(field.value);
    return true;
  });
}

bool ReadInternet(std::string_view in, InternetOptions& internet) {
  return ReadFields(in, [&](const Field& field) {
    if (field.IsNumber(1)) internet.ingress = units::BitRate(field.value);
    if (field.IsNumber(2)) internet.egress = units::BitRate(field.value);
    if (field.IsNumber(3)) internet.weight = std::max(static_cast<uint32_t>(field.value), 1U);
    return true;
  });
}

bool ReadOptions(std::string_view in, Options& options) {
  return ReadFields(in, [&](const Field& field) {
    if (field.IsBytes(1)) return ReadText(field, options.mac);
    if (field.IsBytes(2)) return ReadText(field, options.addresses.emplace_back());
    if (field.IsNumber(3)) options.mtu = static_cast<uint32_t>(field.value);
    if (field.IsBytes(4)) return ReadBandwidth(field.bytes, options.bandwidth);
    if (field.IsBytes(5)) return ReadInternet(field.bytes, options.internet);
    return true;
  });
}

bool ReadRef(std::string_view in, AttachmentRef& ref) {
  return ReadFields(in, [&](const Field& field) {
    if (field.IsBytes(1)) return ReadText(field, ref.container_id);
    if (field.IsBytes(2)) return ReadText(field, ref.ifname);
    return true;
  });
}

bool ReadAddress(std::string_view in, PodAddress& address) {
  return ReadFields(in, [&](const Field& field) {
    if (field.IsBytes(1)) return ReadText(field, address.address);
    if (field.IsBytes(2)) return ReadText(field, address.gateway);
    return true;
  });
}

bool ReadAttachment(std::string_view in, Attachment& attachment) {
  return ReadFields(in, [&](const Field& field) {
    if (field.IsBytes(1)) return ReadText(field, attachment.host_link);
    if (field.IsBytes(2)) return ReadText(field, attachment.host_mac);
    if (field.IsBytes(3)) return ReadText(field, attachment.pod_mac);
    if (field.IsNumber(4)) attachment.mtu = static_cast<uint32_t>(field.value);
    if (field.IsBytes(5)) return ReadAddress(field.bytes, attachment.addresses.emplace_back());
    return true;
  });
}

bool ReadError(std::string_view in, Error& error) {
  return ReadFields(in, [&](const Field& field) {
    if (field.IsNumber(1)) error.code = static_cast<uint32_t>(field.value);
    if (field.IsBytes(2)) return ReadText(field, error.message);
    if (field.IsBytes(3)) return ReadText(field, error.details);
    return true;
  });
}

}  // namespace

std::string EncodeRequest(const Request& request) {
  std::string out;
  out.reserve(512);  // Most requests are smaller.
  PutNumber(1, static_cast<uint64_t>(request.verb), out);
  PutText(2, request.container_id, out);
  PutText(3, request.ifname, out);
  PutText(4, request.network_name, out);
  PutIfAny(5, Encode(request.pod), out);
  PutNumber(6, static_cast<uint64_t>(request.deadline_monotonic_ms), out);
  PutNumber(7, request.attempt, out);
  if (base::IsUtf8(request.netns)) PutText(8, request.netns, out);
  PutText(9, request.trace_parent, out);
  PutIfAny(10, Encode(request.options), out);
  if (request.expected) PutMessage(11, Encode(*request.expected), out);
  for (const AttachmentRef& ref : request.valid.value_or(std::vector<AttachmentRef>())) {
    PutMessage(12, Encode(ref), out);
  }
  PutText(13, request.plugin_version, out);
  return out;
}

std::optional<Request> DecodeRequest(std::string_view bytes) {
  Request request;
  const bool whole = ReadFields(bytes, [&](const Field& field) {
    if (field.IsNumber(1)) request.verb = static_cast<Verb>(field.value);
    if (field.IsBytes(2)) return ReadText(field, request.container_id);
    if (field.IsBytes(3)) return ReadText(field, request.ifname);
    if (field.IsBytes(4)) return ReadText(field, request.network_name);
    if (field.IsBytes(5)) return ReadPod(field.bytes, request.pod);
    if (field.IsNumber(6)) request.deadline_monotonic_ms = static_cast<int64_t>(field.value);
    if (field.IsNumber(7)) request.attempt = field.value;
    if (field.IsBytes(8)) return ReadText(field, request.netns);
    if (field.IsBytes(9)) return ReadText(field, request.trace_parent);
    if (field.IsBytes(10)) return ReadOptions(field.bytes, request.options);
    if (field.IsBytes(11)) {
      if (!request.expected) request.expected.emplace();
      return ReadAttachment(field.bytes, *request.expected);
    }
    if (field.IsBytes(12)) {
      if (!request.valid) request.valid.emplace();
      return ReadRef(field.bytes, request.valid->emplace_back());
    }
    if (field.IsBytes(13)) return ReadText(field, request.plugin_version);
    return true;
  });
  if (!whole) return std::nullopt;
  return request;
}

std::string EncodeResponse(const Response& response) {
  using Outcome = Response::Outcome;
  std::string out;
  out.reserve(256);  // Most responses are smaller.
  if (response.outcome == Outcome::kAttachment) PutMessage(1, Encode(response.attachment), out);
  if (response.outcome == Outcome::kError) PutMessage(2, Encode(response.error), out);
  if (response.outcome == Outcome::kDone) PutMessage(3, "", out);
  return out;
}

std::optional<Response> DecodeResponse(std::string_view bytes) {
  using Outcome = Response::Outcome;
  Response response;
  // This is a oneof: the last outcome counts, and one that comes twice is merged.
  const auto choose = [&](Outcome outcome) {
    if (response.outcome == outcome) return;
    response = Response{.outcome = outcome};
    response.error.code = 0;
  };
  const bool whole = ReadFields(bytes, [&](const Field& field) {
    if (field.IsBytes(1)) {
      choose(Outcome::kAttachment);
      return ReadAttachment(field.bytes, response.attachment);
    }
    if (field.IsBytes(2)) {
      choose(Outcome::kError);
      return ReadError(field.bytes, response.error);
    }
    if (field.IsBytes(3)) {
      choose(Outcome::kDone);
      return ReadFields(field.bytes, &ReadNothing);
    }
    return true;
  });
  if (!whole) return std::nullopt;
  return response;
}

}  // namespace spoke::cni
