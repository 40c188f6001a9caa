#include "netagent/nftables/kernel_nft_tables.h"

namespace spoke::netagent {

absl::StatusOr<std::unique_ptr<KernelNftTables>> KernelNftTables::Open() {
  auto connection = nft::Connection::Open();
  if (!connection.ok()) return connection.status();
  return std::unique_ptr<KernelNftTables>(new KernelNftTables(*std::move(connection)));
}

absl::Status KernelNftTables::Apply(const nft::Transaction& transaction) {
  return connection_.Apply(transaction);
}

absl::StatusOr<std::vector<nft::ElementReading>> KernelNftTables::ReadSet(
    const nft::TableKey& table, const std::string& set) {
  return connection_.ReadSet(table, set);
}

absl::StatusOr<std::vector<nft::CounterReading>> KernelNftTables::ReadCounters(
    const nft::TableKey& table) {
  return connection_.ReadCounters(table);
}

absl::StatusOr<std::vector<nft::RuleReading>> KernelNftTables::ReadRules(
    const nft::TableKey& table) {
  return connection_.ReadRules(table);
}

absl::StatusOr<uint32_t> KernelNftTables::Generation() { return connection_.Generation(); }

}  // namespace spoke::netagent
