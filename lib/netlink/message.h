// Netlink messages: what the kernel sends, taken apart (datagram into messages, message into
// attributes), and requests to it, put together.
//
// Reading is pure functions of a byte span, safe on any input: a length that lies ends the reading
// and is reported, and nothing is read through a pointer that might not be aligned. Formats: RFC
// 3549 and linux/netlink.h.
#pragma once

#include <linux/netlink.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "lib/ip/address.h"

namespace spoke::netlink {

// ---- Reading.

// Returns the fixed part in front of a message's attributes (ifinfomsg and its like), or nullopt
// when `bytes` is too short for one.
template <typename T>
std::optional<T> ReadStruct(std::span<const uint8_t> bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

// One attribute. Borrows the bytes it was read from.
struct Attribute {
  uint16_t type = 0;  // The type without the flag bits (NLA_F_NESTED, NLA_F_NET_BYTEORDER).
  std::span<const uint8_t> payload;

  // These return nullopt when the payload is too short. Longer is fine: newer kernels may append.
  std::optional<uint8_t> U8() const { return ReadStruct<uint8_t>(payload); }
  std::optional<uint32_t> U32() const { return ReadStruct<uint32_t>(payload); }
  std::optional<int32_t> I32() const { return ReadStruct<int32_t>(payload); }

  // Returns the text up to the first NUL or the end.
  std::string_view Text() const;
  // Returns nullopt unless the payload has exactly the family's length.
  std::optional<ip::Address> Address(ip::Family family) const;
  std::optional<ip::MacAddress> Mac() const;
};

// Walks a run of attributes:
//   AttributeReader reader(payload);
//   while (const auto attribute = reader.Next()) ...
//   if (reader.malformed()) ...
class AttributeReader {
 public:
  explicit AttributeReader(std::span<const uint8_t> bytes) : rest_(bytes) {}
  // Reads the attributes behind a fixed part of `header_size` bytes; `message` must be at least as
  // long.
  AttributeReader(std::span<const uint8_t> message, size_t header_size);

  // Returns the next attribute, or nullopt at the end and at the first one whose length cannot be
  // right.
  std::optional<Attribute> Next();
  bool malformed() const { return malformed_; }

 private:
  std::span<const uint8_t> rest_;
  bool malformed_ = false;
};

// A run's attributes by their types up to `kMaxType`. Where several have one type, the last counts.
// One that is not there is empty: it has no text, number or address.
template <size_t kMaxType>
class AttributeTable {
 public:
  explicit AttributeTable(AttributeReader reader) {
    while (const auto attribute = reader.Next()) {
      if (attribute->type <= kMaxType) by_type_[attribute->type] = *attribute;
    }
    malformed_ = reader.malformed();
  }
  explicit AttributeTable(std::span<const uint8_t> bytes)
      : AttributeTable(AttributeReader(bytes)) {}

  const Attribute& operator[](size_t type) const { return by_type_.at(type); }

  // Sets `value` from an attribute that is there; one that is too short makes the table malformed.
  template <typename T>
  void Read(size_t type, T& value) {
    const Attribute& attribute = by_type_.at(type);
    if (attribute.payload.data() == nullptr) return;
    const std::optional<T> read = ReadStruct<T>(attribute.payload);
    malformed_ = malformed_ || !read;
    value = read.value_or(value);
  }
  template <typename T>
  void Read(size_t type, std::optional<T>& value) {
    T read{};
    Read(type, read);
    if (by_type_.at(type).payload.data() != nullptr) value = read;
  }
  void Read(size_t type, ip::Family family, std::optional<ip::Address>& value) {
    const Attribute& attribute = by_type_.at(type);
    if (attribute.payload.data() == nullptr) return;
    value = attribute.Address(family);
    malformed_ = malformed_ || !value;
  }

  // Returns whether a length of an attribute, or of one that was read, cannot be right.
  bool malformed() const { return malformed_; }

 private:
  std::array<Attribute, kMaxType + 1> by_type_{};
  bool malformed_ = false;
};

// One netlink message. Borrows the datagram.
struct Message {
  uint16_t type = 0;
  uint16_t flags = 0;
  uint32_t sequence = 0;
  uint32_t port_id = 0;
  std::span<const uint8_t> payload;  // The fixed part and the attributes.
};

// Walks the messages of one datagram, as AttributeReader walks attributes.
class MessageReader {
 public:
  explicit MessageReader(std::span<const uint8_t> datagram) : rest_(datagram) {}

  std::optional<Message> Next();
  bool malformed() const { return malformed_; }

 private:
  std::span<const uint8_t> rest_;
  bool malformed_ = false;
};

// The content of an NLMSG_ERROR message about a request.
struct Acknowledgement {
  int error = 0;     // The errno of the refusal; 0: done.
  std::string text;  // The kernel's own words (extended ack); often empty.
};

// Errors: kDataLoss (not an NLMSG_ERROR message, or cut short).
absl::StatusOr<Acknowledgement> ParseAcknowledgement(const Message& message);

// ---- Writing.

// One request: header, fixed part, attributes. A value; holds no kernel resource, except that a
// descriptor put into it (PutU32) must stay open until it is sent. Not thread-safe.
//
// Put what fits: a request that outgrows kMaxBytes is a bug in the caller and a broken CHECK.
class Request {
 public:
  // The most bytes of a request. The longest one here, a veth pair with its peer, needs less than a
  // quarter.
  static constexpr size_t kMaxBytes = 1024;

  // `what` says in an error what was tried: "create link eth0". `flags` are added to
  // NLM_F_REQUEST. `fixed` is the type's own struct: ifinfomsg and its like.
  template <typename T>
  Request(std::string what, uint16_t type, uint16_t flags, const T& fixed)
      : Request(std::move(what), type, flags) {
    static_assert(std::is_trivially_copyable_v<T>);
    PutFixed({reinterpret_cast<const uint8_t*>(&fixed), sizeof(T)});
  }

  Request& PutU8(uint16_t type, uint8_t value);
  Request& PutU32(uint16_t type, uint32_t value);
  // Puts the bytes of a struct of the kernel's headers, or of a number.
  template <typename T>
  Request& PutValue(uint16_t type, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return PutBytes(type, {reinterpret_cast<const uint8_t*>(&value), sizeof(T)});
  }
  // Puts the bytes as they are: what the kernel said, sent back.
  Request& PutBytes(uint16_t type, std::span<const uint8_t> bytes);
  // Puts the text with the NUL behind it, as the kernel wants names.
  Request& PutText(uint16_t type, std::string_view text);
  Request& PutAddress(uint16_t type, const ip::Address& address);
  Request& PutMac(uint16_t type, const ip::MacAddress& mac);
  // Puts a fixed part inside a nest: VETH_INFO_PEER carries an ifinfomsg before its attributes.
  template <typename T>
  Request& PutInnerFixed(const T& fixed) {
    static_assert(std::is_trivially_copyable_v<T>);
    PutFixed({reinterpret_cast<const uint8_t*>(&fixed), sizeof(T)});
    return *this;
  }

  // What is put between the two calls becomes the content of one attribute. Nests may be nested,
  // and are ended innermost first.
  Request& BeginNest(uint16_t type);
  Request& EndNest();

  // Makes this errno as good as success: removing what is gone already.
  Request& Tolerate(int error) {
    tolerated_.push_back(error);
    return *this;
  }

  const std::string& what() const { return what_; }
  bool Tolerates(int error) const {
    return std::find(tolerated_.begin(), tolerated_.end(), error) != tolerated_.end();
  }
  // Returns the message, padded to the length the next one starts at. The sequence number is 0.
  std::span<const uint8_t> bytes() const;

 private:
  Request(std::string what, uint16_t type, uint16_t flags);
  nlmsghdr* header();
  void PutFixed(std::span<const uint8_t> fixed);

  std::string what_;
  absl::InlinedVector<int, 2> tolerated_;
  std::vector<size_t> nests_;  // The places in buffer_ where the open nests begin.
  alignas(nlmsghdr) std::array<uint8_t, kMaxBytes> buffer_{};
};

// Returns the sockaddr family of `family`: AF_INET or AF_INET6.
uint8_t FamilyNumber(ip::Family family);

}  // namespace spoke::netlink
