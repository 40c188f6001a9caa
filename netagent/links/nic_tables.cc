#include "netagent/links/nic_tables.h"

#include <set>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::netagent {

void NicTables::Prepare(const ip::MacAddress& first, const std::vector<Holding>& holdings) {
  first_ = first;
  std::set<ip::MacAddress> nics;
  for (const Holding& holding : holdings) {
    if (holding.nic && holding.nic != first_) nics.insert(*holding.nic);
  }
  std::erase_if(tables_, [&](const auto& entry) { return !nics.contains(entry.first); });
  for (const ip::MacAddress& nic : nics) {
    absl::StatusOr<uint32_t> table = links_.SetNicTable(nic);
    const auto known = tables_.find(nic);
    if (!table.ok() && (known == tables_.end() || known->second.ok())) {
      log_.Warn("nic_table_failed", {{"nic", nic.ToString()}, {"error", table.status()}});
    }
    tables_.insert_or_assign(nic, std::move(table));
  }
}

absl::StatusOr<std::vector<SourceTable>> NicTables::Of(const std::vector<ip::Address>& addresses,
                                                       const Assignments& assignments) const {
  std::vector<SourceTable> sources;
  for (const ip::Address& address : addresses) {
    const std::optional<ip::MacAddress> nic = assignments.NicOf(address);
    if (!nic || nic == first_) continue;
    const auto table = tables_.find(*nic);
    if (table == tables_.end() || !table->second.ok()) {
      return absl::UnavailableError(
          fmt::format("{} is on NIC {}, which has no way out of its own yet: {}",
                      address.ToString(), nic->ToString(),
                      table == tables_.end() ? "it was not looked at"
                                             : base::MessageOf(table->second.status())));
    }
    sources.push_back({address, *table->second});
  }
  return sources;
}

std::set<ip::MacAddress> NicTables::Missing() const {
  std::set<ip::MacAddress> missing;
  for (const auto& [nic, table] : tables_) {
    if (!table.ok()) missing.insert(nic);
  }
  return missing;
}

std::string NicTables::ExplainMissing() const {
  std::string text;
  for (const auto& [nic, table] : tables_) {
    if (table.ok()) continue;
    text += fmt::format("{}NIC {} has no way out of its own yet: {}", text.empty() ? "" : ", ",
                        nic.ToString(), base::MessageOf(table.status()));
  }
  return text;
}

}  // namespace spoke::netagent
