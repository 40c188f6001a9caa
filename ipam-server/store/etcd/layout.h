// Where things are below the prefix, in etcd. Pure.
#pragma once

#include <string>
#include <string_view>

#include "ipam-server/store/store.h"

namespace spoke::ipam::etcd {

struct Layout {
  std::string prefix;

  std::string data() const { return prefix + "data/"; }
  std::string KeyOf(std::string_view record) const { return data().append(record); }
  std::string leader() const { return prefix + "leader"; }
  std::string ReceiptKey(size_t way) const { return prefix + "receipt/" + std::to_string(way); }

  // etcd's keys for a range of records.
  KeyRange Records(const KeyRange& range) const {
    return {.first = KeyOf(range.first),
            .end = range.end.empty() ? KeyRange::WithPrefix(data()).end : KeyOf(range.end)};
  }
  // The records and the leader's key, without receipts: "data/" comes before "leader".
  KeyRange Mirrored() const { return {.first = data(), .end = leader() + '\0'}; }
};

}  // namespace spoke::ipam::etcd
