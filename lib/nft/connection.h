// The kernel's nf_tables, over one netlink socket.
//
// Not thread-safe. Bound to the network namespace it was opened in, whatever thread uses it later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/netlink/socket.h"
#include "lib/nft/ruleset.h"

namespace spoke::nft {

// Far more than 1,000 blocks and 4,000 pods take (some 600 KiB); the kernel holds a copy of it.
inline constexpr size_t kMaxTransactionBytes = 32UL << 20;

class Connection {
 public:
  // Errors: kPermissionDenied (sandboxed); kResourceExhausted (out of descriptors or memory).
  static absl::StatusOr<Connection> Open();
  // Over a socket of the caller's, which in a test something else than the kernel answers.
  explicit Connection(netlink::Socket socket) : socket_(std::move(socket)) {}

  // All of it or nothing; nothing for an empty one. Errors, which name the step: kInvalidArgument
  // (malformed, or the kernel says so); kNotFound (what it names is not there, or is a kind of
  // expression or chain that the kernel has no module for); kAlreadyExists; kFailedPrecondition (a
  // rule still uses what is to be deleted); kResourceExhausted (a set is full, the transaction too
  // large, no memory); kUnimplemented (the kernel cannot do that there); kPermissionDenied;
  // kUnavailable (try again); kDeadlineExceeded and kDataLoss (no whole answer came: it may have
  // happened); kInternal.
  absl::Status Apply(const Transaction& transaction);

  // All elements of the set with their counters, those of one with intervals sorted. Packets fill
  // and count in sets meanwhile, so the numbers are not of one moment, and an element that is being
  // added may be missing. Errors: kNotFound; kUnavailable (somebody changed tables all the time);
  // kDeadlineExceeded; kDataLoss.
  absl::StatusOr<std::vector<ElementReading>> ReadSet(const TableKey& table,
                                                      const std::string& set);
  // All named counters of the table, in no order. Errors: as ReadSet().
  absl::StatusOr<std::vector<CounterReading>> ReadCounters(const TableKey& table);
  // All rules of the table, each chain's in order. Errors: as ReadSet().
  absl::StatusOr<std::vector<RuleReading>> ReadRules(const TableKey& table);
  // The namespace's, of all tables: it rises with each transaction, anybody's. Wraps. Errors:
  // kDeadlineExceeded; kDataLoss.
  absl::StatusOr<uint32_t> Generation();

  // The socket's: whom notifications name as the one who made a change.
  uint32_t port_id() const { return socket_.port_id(); }

 private:
  // Errors: kNotFound.
  absl::Status FindTable(const TableKey& table);

  netlink::Socket socket_;
  size_t send_room_ = 0;  // What Socket::ReserveToSend() was asked for.
};

}  // namespace spoke::nft
