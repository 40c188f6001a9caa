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
#include "lib/nft/tables.h"

namespace spoke::nft {

// The most bytes of a transaction. It is far more than 1,000 blocks and 4,000 pods take (some 600
// KiB); the kernel holds a copy of it.
inline constexpr size_t kMaxTransactionBytes = 32UL << 20;

class Connection final : public Tables {
 public:
  // Errors: kPermissionDenied (sandboxed); kResourceExhausted (out of descriptors or memory).
  static absl::StatusOr<Connection> Open();
  // Works over a socket of the caller's, which in a test something else than the kernel answers.
  explicit Connection(netlink::Socket socket) : socket_(std::move(socket)) {}

  // Errors: those of Tables, of which kResourceExhausted is also a transaction of more than
  // kMaxTransactionBytes; and kPermissionDenied.
  absl::Status Apply(const Transaction& transaction) override;
  absl::StatusOr<std::vector<ElementReading>> ReadSet(const TableKey& table,
                                                      const std::string& set) override;
  absl::StatusOr<std::vector<CounterReading>> ReadCounters(const TableKey& table) override;
  absl::StatusOr<std::vector<RuleReading>> ReadRules(const TableKey& table) override;
  absl::StatusOr<uint32_t> Generation() override;

  // Returns the socket's port, by which notifications name who made a change.
  uint32_t port_id() const { return socket_.port_id(); }

 private:
  // Errors: kNotFound.
  absl::Status FindTable(const TableKey& table);

  netlink::Socket socket_;
  size_t send_room_ = 0;  // The room that Socket::ReserveToSend() was asked for.
};

}  // namespace spoke::nft
