// Netlink requests: one message under construction, and a batch of them.
#pragma once

#include <linux/netlink.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "lib/ip/address.h"

namespace spoke::netlink {

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
