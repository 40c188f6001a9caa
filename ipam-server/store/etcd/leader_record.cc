#include "ipam-server/store/etcd/leader_record.h"

#include <algorithm>

namespace spoke::ipam::etcd {

std::string EncodeLeader(const LeaderRecord& record) {
  std::string text = record.name;
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (!record.address.empty()) text.append("\n").append(record.address);
  return text;
}

LeaderRecord DecodeLeader(std::string_view text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return {.name = std::string(text), .address = ""};
  return {.name = std::string(text.substr(0, end)), .address = std::string(text.substr(end + 1))};
}

}  // namespace spoke::ipam::etcd
