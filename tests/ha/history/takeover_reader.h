// Reads what one leader has left to the next: the store as it was when the next one took the
// leadership, from etcd's history. By then nothing of the former leader can be written any more,
// and nothing of the next one is yet, so what the former one has acknowledged has to be there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ipam-server/store/etcd/connection.h"
#include "ipam-server/store/etcd/layout.h"
#include "tests/ha/history/history_check.h"

namespace spoke::ha {

// Not thread-safe.
class TakeoverReader {
 public:
  // Returns the number of a node in a history; nullopt: it has no part in it.
  using NodeOf = std::function<std::optional<uint32_t>(std::string_view name)>;

  // Connects. Errors: as etcd::Connection::Open().
  static absl::StatusOr<std::unique_ptr<TakeoverReader>> Open(ipam::etcd::Access access,
                                                              std::string prefix, NodeOf node_of);

  // Remembers who leads. Errors: kUnavailable (nobody does, or etcd does not answer).
  absl::Status Remember();

  // The records of nodes, as the store has them.
  using Records = std::vector<std::string>;

  // Reads what the leader that was remembered has left. Call it within ten seconds: then etcd's
  // history is gone. Errors: kUnavailable (no other server has taken over yet); kOutOfRange (the
  // history is gone).
  absl::StatusOr<Records> Read();
  // Decodes that, which takes half a second of a processor for 7,500 nodes: not while something is
  // measured. The caller sets the reading's times. Errors: kDataLoss (a record is damaged).
  absl::StatusOr<Reading> Decode(const Records& records) const;

 private:
  struct Leader {
    int64_t lease = 0;
    int64_t revision = 0;  // When its key was written last.
  };

  TakeoverReader(std::unique_ptr<ipam::etcd::Connection> connection, std::string prefix,
                 NodeOf node_of)
      : connection_(std::move(connection)),
        layout_{std::move(prefix)},
        node_of_(std::move(node_of)) {}

  // Who led at `revision`; 0: now. Nullopt: nobody did.
  absl::StatusOr<std::optional<Leader>> LeaderAt(int64_t revision);
  // The revision before that in which the present leader took over.
  absl::StatusOr<int64_t> BeforeTakeover();
  absl::Status Add(std::string_view record, Reading& reading) const;

  const std::unique_ptr<ipam::etcd::Connection> connection_;
  const ipam::etcd::Layout layout_;
  const NodeOf node_of_;
  int64_t former_lease_ = 0;
};

}  // namespace spoke::ha
