// NftTables over netlink.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/nft/connection.h"
#include "netagent/nftables/nft_tables.h"

namespace spoke::netagent {

// Of the network namespace in which it was opened. Not thread-safe.
class KernelNftTables final : public NftTables {
 public:
  // Errors: kPermissionDenied (sandboxed); kResourceExhausted.
  static absl::StatusOr<std::unique_ptr<KernelNftTables>> Open();

  absl::Status Apply(const nft::Transaction& transaction) override;
  absl::StatusOr<std::vector<nft::ElementReading>> ReadSet(const nft::TableKey& table,
                                                           const std::string& set) override;
  absl::StatusOr<std::vector<nft::CounterReading>> ReadCounters(
      const nft::TableKey& table) override;
  absl::StatusOr<std::vector<nft::RuleReading>> ReadRules(const nft::TableKey& table) override;
  absl::StatusOr<uint32_t> Generation() override;

  // Whom the kernel names as the one who made a change of Apply() (nft_watch.h).
  uint32_t port_id() const { return connection_.port_id(); }

 private:
  explicit KernelNftTables(nft::Connection connection) : connection_(std::move(connection)) {}

  nft::Connection connection_;
};

}  // namespace spoke::netagent
