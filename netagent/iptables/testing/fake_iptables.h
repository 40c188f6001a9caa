// A back end of iptables in memory, for tests.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "netagent/iptables/iptables.h"

namespace spoke::netagent {

// The fake is thread-safe.
class FakeIptables final : public Iptables {
 public:
  absl::StatusOr<std::vector<IptablesTable>> Read(ip::Family family,
                                                  const std::vector<std::string>& names) override {
    const absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
    std::vector<IptablesTable> found;
    for (const std::string& name : names) {
      const IptablesTable* table = FindTable(TablesOf(family), name);
      if (table != nullptr) found.push_back(*table);
    }
    return found;
  }

  absl::Status Append(const std::vector<PublishedRule>& rules) override {
    const absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
    for (const PublishedRule& rule : rules) {
      AddTo(v4_, std::string(kPublishedTable),
            {.chain = rule.chain, .text = rule.Text(), .comment = rule.comment});
    }
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> Erase(const std::vector<PublishedRule>& rules) override {
    const absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
    size_t erased = 0;
    for (const PublishedRule& rule : rules) {
      for (IptablesTable& table : v4_) {
        if (table.name != kPublishedTable) continue;
        const auto found =
            std::find_if(table.rules.begin(), table.rules.end(), [&](const IptablesRule& held) {
              return held.chain == rule.chain && held.text == rule.Text();
            });
        if (found == table.rules.end()) continue;
        table.rules.erase(found);
        ++erased;
      }
    }
    return erased;
  }

  // Adds a rule as somebody else would.
  void Add(ip::Family family, const std::string& table, IptablesRule rule) {
    const absl::MutexLock lock(&mutex_);
    AddTo(TablesOf(family), table, std::move(rule));
  }
  void Remove(const std::string& chain, const std::string& text) {
    const absl::MutexLock lock(&mutex_);
    for (IptablesTable& table : v4_) {
      std::erase_if(table.rules, [&](const IptablesRule& rule) {
        return rule.chain == chain && rule.text == text;
      });
    }
  }
  // Counts packets that meet each rule of that wording in the chain.
  void Count(const std::string& chain, const std::string& text, uint64_t packets, uint64_t bytes) {
    const absl::MutexLock lock(&mutex_);
    for (IptablesTable& table : v4_) {
      for (IptablesRule& rule : table.rules) {
        if (rule.chain != chain || rule.text != text) continue;
        rule.packets += packets;
        rule.bytes += bytes;
      }
    }
  }
  // Sets what every call answers from now on; OK ends it.
  void FailWith(absl::Status failure) {
    const absl::MutexLock lock(&mutex_);
    failure_ = std::move(failure);
  }

 private:
  std::vector<IptablesTable>& TablesOf(ip::Family family) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return family == ip::Family::kV4 ? v4_ : v6_;
  }
  static void AddTo(std::vector<IptablesTable>& tables, const std::string& name,
                    IptablesRule rule) {
    if (FindTable(tables, name) == nullptr) tables.push_back({.name = name});
    const auto table = std::find_if(tables.begin(), tables.end(),
                                    [&](const IptablesTable& t) { return t.name == name; });
    const bool known =
        std::any_of(table->chains.begin(), table->chains.end(),
                    [&](const IptablesChain& chain) { return chain.name == rule.chain; });
    if (!known) table->chains.push_back({.name = rule.chain, .policy = "ACCEPT"});
    table->rules.push_back(std::move(rule));
  }

  absl::Mutex mutex_;
  std::vector<IptablesTable> v4_ ABSL_GUARDED_BY(mutex_);
  std::vector<IptablesTable> v6_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::netagent
