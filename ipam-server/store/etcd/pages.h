// Reads a range of etcd's keys as one snapshot, some thousand keys a call.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "ipam-server/store/etcd/connection.h"
#include "ipam-server/store/store.h"

namespace spoke::ipam::etcd {

// Calls `visit` with each key of etcd's that `options` asks for; the range has an end. Returns the
// revision of the snapshot, 0 for an empty range.
// Errors: as Connection::Range(); kUnavailable when the snapshot was compacted on the way, after
// which some keys have been visited.
absl::StatusOr<int64_t> ReadPages(Connection& connection, const ListOptions& options,
                                  const std::function<void(const mvccpb::KeyValue& found)>& visit);

}  // namespace spoke::ipam::etcd
