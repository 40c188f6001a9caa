// Makes DNS messages for tests, by hand: with no compression but where it is asked for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/ip/address.h"

namespace spoke::netagent {

class DnsMessageForTest {
 public:
  // The flags: a response; recursion was desired and available.
  static constexpr uint16_t kFlags = 0x8180;

  // Begins an answer to "what addresses has `question`?".
  explicit DnsMessageForTest(std::string_view question) {
    for (const uint16_t number :
         {uint16_t{0x1234}, kFlags, uint16_t{1}, uint16_t{0}, uint16_t{0}, uint16_t{0}}) {
      Short(number);
    }
    Name(question).Short(1).Short(1);
  }

  DnsMessageForTest& Address(std::string_view owner, std::string_view address, uint32_t ttl) {
    const ip::Address parsed = ip::Address::Parse(address).value();
    return Record(owner, parsed.is_v4() ? 1 : 28, ttl, parsed.ToBytes());
  }
  DnsMessageForTest& Alias(std::string_view owner, std::string_view target, uint32_t ttl = 300) {
    return Record(owner, 5, ttl, NameBytes(target));
  }
  DnsMessageForTest& Record(std::string_view owner, uint16_t type, uint32_t ttl,
                            std::string_view data) {
    Name(owner).Short(type).Short(1);
    return Tail(ttl, data);
  }
  // Adds a record whose owner is what was asked for, by a compression pointer.
  DnsMessageForTest& Compressed(uint16_t type, uint32_t ttl, std::string_view data) {
    Short(0xC00C).Short(type).Short(1);
    return Tail(ttl, data);
  }

  // Sets a 16-bit number of the header, by its index: 1 are the flags, 2 and 3 count questions and
  // answers.
  DnsMessageForTest& Set(size_t index, uint16_t number) {
    bytes_[2 * index] = static_cast<uint8_t>(number >> 8U);
    bytes_[2 * index + 1] = static_cast<uint8_t>(number & 0xFFU);
    return *this;
  }
  DnsMessageForTest& Short(uint16_t number) {
    bytes_.push_back(static_cast<uint8_t>(number >> 8U));
    bytes_.push_back(static_cast<uint8_t>(number & 0xFFU));
    return *this;
  }
  DnsMessageForTest& Name(std::string_view name) { return Append(NameBytes(name)); }
  DnsMessageForTest& Append(std::string_view bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }

  // Returns the bytes as on the wire, whatever the labels' lengths.
  static std::string NameBytes(std::string_view name) {
    std::string out;
    while (!name.empty()) {
      const std::string_view label = name.substr(0, name.find('.'));
      out.push_back(static_cast<char>(label.size()));
      out += label;
      name.remove_prefix(std::min(label.size() + 1, name.size()));
    }
    return out + '\0';
  }

  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  DnsMessageForTest& Tail(uint32_t ttl, std::string_view data) {
    Short(static_cast<uint16_t>(ttl >> 16U)).Short(static_cast<uint16_t>(ttl & 0xFFFFU));
    Short(static_cast<uint16_t>(data.size())).Append(data);
    ++answers_;
    return Set(3, answers_);
  }

  std::vector<uint8_t> bytes_;
  uint16_t answers_ = 0;
};

}  // namespace spoke::netagent
