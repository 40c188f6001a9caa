// Frames written out byte by byte, so that the tests do not lean on the code they test.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ip/address.h"

namespace spoke::fabric {

using FrameBytes = std::vector<uint8_t>;

inline ip::MacAddress Mac(std::string_view text) { return ip::MacAddress::Parse(text).value(); }
inline ip::Address Ip(std::string_view text) { return ip::Address::Parse(text).value(); }

// Returns the bytes that hexadecimal `text` spells; blanks are skipped.
inline FrameBytes Hex(std::string_view text) {
  FrameBytes bytes;
  std::string digits;
  for (const char c : text) {
    if (c == ' ') continue;
    digits += c;
    if (digits.size() < 2) continue;
    bytes.push_back(static_cast<uint8_t>(std::stoul(digits, nullptr, 16)));
    digits.clear();
  }
  return bytes;
}

inline FrameBytes operator+(FrameBytes one, const FrameBytes& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

inline FrameBytes Wire(const ip::Address& address) {
  const std::string bytes = address.ToBytes();
  return {bytes.begin(), bytes.end()};
}

inline FrameBytes Wire(const ip::MacAddress& mac) { return {mac.octets.begin(), mac.octets.end()}; }

inline FrameBytes Ethernet(std::string_view destination, std::string_view source,
                           std::string_view ethertype) {
  return Wire(Mac(destination)) + Wire(Mac(source)) + Hex(ethertype);
}

// Returns an ARP frame. In `operation`, "0001" asks, "0002" answers. The target MAC is left zero.
inline FrameBytes Arp(std::string_view operation, std::string_view sender_mac,
                      std::string_view sender, std::string_view target) {
  return Hex("0001 0800 06 04") + Hex(operation) + Wire(Mac(sender_mac)) + Wire(Ip(sender)) +
         Hex("000000000000") + Wire(Ip(target));
}

// Returns a packet with 8 bytes of UDP, TTL 64.
inline FrameBytes Ipv4(std::string_view source, std::string_view destination) {
  return Hex("45 00 001c 0001 0000 40 11 0000") + Wire(Ip(source)) + Wire(Ip(destination)) +
         Hex("0035 0035 0008 0000");
}

inline FrameBytes Ipv6(std::string_view source, std::string_view destination) {
  return Hex("60000000 0008 11 40") + Wire(Ip(source)) + Wire(Ip(destination)) +
         Hex("0035 0035 0008 0000");
}

// Returns a solicitation with the source link-layer address option, as Linux sends it.
inline FrameBytes Solicitation(std::string_view source, std::string_view target,
                               std::string_view hop_limit) {
  return Hex("60000000 0020 3a") + Hex(hop_limit) + Wire(Ip(source)) + Wire(Ip("ff02::1:ff00:1")) +
         Hex("87 00 0000 00000000") + Wire(Ip(target)) + Hex("01 01 020000000001");
}

}  // namespace spoke::fabric
