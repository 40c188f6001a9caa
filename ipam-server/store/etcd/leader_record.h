// What the leader's key holds. Pure.
#pragma once

#include <string>
#include <string_view>

namespace spoke::ipam::etcd {

struct LeaderRecord {
  std::string name;  // The server's, for people: one line.
  // Where the leader holds connections of standbys (standby/line_port.h), as host:port with a
  // numeric host; empty: nowhere.
  std::string address;

  bool operator==(const LeaderRecord&) const = default;
};

// "name" or "name\naddress".
std::string EncodeLeader(const LeaderRecord& record);
// Takes any text: what follows the first line is the address.
LeaderRecord DecodeLeader(std::string_view text);

}  // namespace spoke::ipam::etcd
