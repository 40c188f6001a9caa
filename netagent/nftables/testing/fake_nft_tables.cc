#include "netagent/nftables/testing/fake_nft_tables.h"

#include <algorithm>
#include <iterator>
#include <variant>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/nft/ruleset.h"

namespace spoke::netagent {
namespace {

absl::Status Missing(std::string_view what, const std::string& name) {
  return absl::NotFoundError(fmt::format("no {} {}", what, name));
}

absl::Status InUse(std::string_view what, const std::string& name) {
  return absl::FailedPreconditionError(fmt::format("{} {} is in use", what, name));
}

absl::Status Differs(std::string_view what, const std::string& name) {
  return absl::AlreadyExistsError(fmt::format("{} {} is there, and is another", what, name));
}

// Returns whether the expression names the chain to jump to, the set to look at or the counter to
// count in.
bool Names(const nft::Expression& expression, std::string_view chain, std::string_view set,
           std::string_view counter) {
  if (const auto* e = std::get_if<nft::Verdict>(&expression)) {
    return !chain.empty() && e->chain == chain;
  }
  if (const auto* e = std::get_if<nft::LookUp>(&expression)) return !set.empty() && e->set == set;
  if (const auto* e = std::get_if<nft::PutInSet>(&expression)) return !set.empty() && e->set == set;
  if (const auto* e = std::get_if<nft::CountIn>(&expression)) {
    return !counter.empty() && e->counter == counter;
  }
  return false;
}

}  // namespace

// Carries out one transaction on a copy of the tables.
class FakeNftTables::Editor {
 public:
  explicit Editor(Tables& tables) : tables_(tables) {}

  absl::Status Do(const nft::Step& step) {
    RETURN_IF_ERROR(nft::CheckName(step.table.name));
    key_ = step.table;
    const auto found = tables_.find(step.table);
    table_ = found == tables_.end() ? nullptr : &found->second;
    const bool needs_table = !std::holds_alternative<nft::AddTable>(step.change) &&
                             !std::holds_alternative<nft::DeleteTable>(step.change);
    if (needs_table && table_ == nullptr) return Missing("table", step.table.name);
    return std::visit([this](const auto& change) { return Do(change); }, step.change);
  }

 private:
  absl::Status Do(const nft::AddTable& /*none*/) {
    tables_.try_emplace(key_);
    return absl::OkStatus();
  }

  absl::Status Do(const nft::DeleteTable& /*none*/) {
    tables_.erase(key_);
    return absl::OkStatus();
  }

  absl::Status Do(const nft::AddChain& change) {
    const nft::Chain& wanted = change.chain;
    RETURN_IF_ERROR(nft::CheckName(wanted.name));
    const auto [found, added] = table_->chains.try_emplace(wanted.name);
    nft::Chain& chain = found->second.chain;
    if (added) chain = wanted;
    if (wanted.base && chain.base != wanted.base) return Differs("chain", wanted.name);
    return absl::OkStatus();
  }

  absl::Status Do(const nft::FlushChain& change) {
    const auto found = table_->chains.find(change.chain);
    if (found == table_->chains.end()) return Missing("chain", change.chain);
    found->second.rules.clear();
    return absl::OkStatus();
  }

  absl::Status Do(const nft::DeleteChain& change) {
    const auto found = table_->chains.find(change.chain);
    if (found == table_->chains.end()) return Missing("chain", change.chain);
    // Its own rules go with it.
    const ChainState removed = std::move(found->second);
    table_->chains.erase(found);
    if (IsNamed(change.chain, {}, {})) return InUse("chain", change.chain);
    return absl::OkStatus();
  }

  absl::Status Do(const nft::DeleteRule& change) {
    if (change.handle == 0) return absl::InvalidArgumentError("a rule has no handle 0");
    const auto found = table_->chains.find(change.chain);
    if (found == table_->chains.end()) return Missing("chain", change.chain);
    const size_t erased = std::erase_if(
        found->second.rules, [&](const RuleState& rule) { return rule.handle == change.handle; });
    return erased == 0 ? Missing("rule of", change.chain) : absl::OkStatus();
  }

  absl::Status Do(const nft::AddRule& change) {
    const nft::Rule& rule = change.rule;
    RETURN_IF_ERROR(nft::CheckRule(rule));
    const auto found = table_->chains.find(rule.chain);
    if (found == table_->chains.end()) return Missing("chain", rule.chain);
    RuleState state{.rule = rule, .handle = ++table_->handles};
    bool counted = false;
    for (const nft::Expression& expression : rule.expressions) {
      RETURN_IF_ERROR(CheckTarget(expression));
      const auto* count = std::get_if<nft::CountHere>(&expression);
      if (count == nullptr || std::exchange(counted, true)) continue;
      state.packets = count->packets;
      state.bytes = count->bytes;
    }
    found->second.rules.push_back(std::move(state));
    return absl::OkStatus();
  }

  absl::Status Do(const nft::AddSet& change) {
    RETURN_IF_ERROR(nft::CheckName(change.set.name));
    RETURN_IF_ERROR(nft::CheckSet(change.set));
    const auto [found, added] = table_->sets.try_emplace(change.set.name);
    if (added) found->second.set = change.set;
    return found->second.set == change.set ? absl::OkStatus() : Differs("set", change.set.name);
  }

  absl::Status Do(const nft::DeleteSet& change) {
    if (table_->sets.count(change.set) == 0) return Missing("set", change.set);
    if (IsNamed({}, change.set, {})) return InUse("set", change.set);
    table_->sets.erase(change.set);
    return absl::OkStatus();
  }

  absl::Status Do(const nft::AddElements& change) {
    const auto found = table_->sets.find(change.set);
    if (found == table_->sets.end()) return Missing("set", change.set);
    for (const nft::Element& element : change.elements) {
      RETURN_IF_ERROR(nft::CheckElement(element));
      RETURN_IF_ERROR(nft::CheckFits(element, found->second.set));
      RETURN_IF_ERROR(AddElement(element, found->second));
    }
    return absl::OkStatus();
  }

  absl::Status Do(const nft::DeleteElements& change) {
    const auto found = table_->sets.find(change.set);
    if (found == table_->sets.end()) return Missing("set", change.set);
    for (const nft::Element& element : change.elements) {
      const auto there = found->second.elements.find(element.key);
      if (there == found->second.elements.end() || there->second.element.last != element.last) {
        return Missing("element in set", change.set);
      }
      found->second.elements.erase(there);
    }
    return absl::OkStatus();
  }

  absl::Status Do(const nft::FlushSet& change) {
    const auto found = table_->sets.find(change.set);
    if (found == table_->sets.end()) return Missing("set", change.set);
    found->second.elements.clear();
    return absl::OkStatus();
  }

  absl::Status Do(const nft::AddCounter& change) {
    RETURN_IF_ERROR(nft::CheckName(change.name));
    table_->counters.try_emplace(change.name, change.seed);
    return absl::OkStatus();
  }

  absl::Status Do(const nft::DeleteCounter& change) {
    if (table_->counters.count(change.name) == 0) return Missing("counter", change.name);
    if (IsNamed({}, {}, change.name)) return InUse("counter", change.name);
    table_->counters.erase(change.name);
    return absl::OkStatus();
  }

  absl::Status AddElement(const nft::Element& element, SetState& state) {
    if (element.verdict) RETURN_IF_ERROR(CheckTarget(*element.verdict));
    const auto found = state.elements.find(element.key);
    if (found != state.elements.end()) {
      const nft::Element& there = found->second.element;
      const bool same = there.last == element.last && there.value == element.value &&
                        there.verdict == element.verdict;
      return same ? absl::OkStatus() : Differs("element in set", state.set.name);
    }
    if (state.set.intervals && Overlaps(element, state)) {
      return absl::AlreadyExistsError(fmt::format("overlaps in set {}", state.set.name));
    }
    if (state.set.size != 0 && state.elements.size() >= state.set.size) {
      return absl::ResourceExhaustedError(fmt::format("set {} is full", state.set.name));
    }
    ElementState& added = state.elements[element.key];
    added.element = element;
    added.element.seed = {};
    added.packets = element.seed.packets;
    added.bytes = element.seed.bytes;
    return absl::OkStatus();
  }

  static bool Overlaps(const nft::Element& element, const SetState& state) {
    const auto next = state.elements.upper_bound(element.key);
    if (next != state.elements.end() && next->first <= element.last) return true;
    return next != state.elements.begin() && std::prev(next)->second.element.last >= element.key;
  }

  // Returns whether any rule or element of the table names the chain, set or counter ("": none).
  bool IsNamed(std::string_view chain, std::string_view set, std::string_view counter) const {
    for (const auto& [name, state] : table_->chains) {
      for (const RuleState& rule : state.rules) {
        for (const nft::Expression& expression : rule.rule.expressions) {
          if (Names(expression, chain, set, counter)) return true;
        }
      }
    }
    for (const auto& [name, state] : table_->sets) {
      for (const auto& [key, element] : state.elements) {
        if (!chain.empty() && element.element.verdict && element.element.verdict->chain == chain) {
          return true;
        }
      }
    }
    return false;
  }

  absl::Status CheckSetUse(const std::string& name, bool puts, bool value, bool verdict) const {
    const auto found = table_->sets.find(name);
    if (found == table_->sets.end()) return Missing("set", name);
    const nft::Set& set = found->second.set;
    if ((puts && !set.dynamic) || (value && !set.value) || (verdict && !set.verdicts)) {
      return absl::InvalidArgumentError(fmt::format("set {} is of another kind", name));
    }
    return absl::OkStatus();
  }

  // Checks that what an expression names is there, and is of the right kind.
  absl::Status CheckTarget(const nft::Expression& expression) const {
    if (const auto* e = std::get_if<nft::LookUp>(&expression)) {
      return CheckSetUse(e->set, false, e->to.has_value(), e->verdict);
    }
    if (const auto* e = std::get_if<nft::PutInSet>(&expression)) {
      return CheckSetUse(e->set, true, false, false);
    }
    if (const auto* e = std::get_if<nft::CountIn>(&expression)) {
      return table_->counters.count(e->counter) != 0 ? absl::OkStatus()
                                                     : Missing("counter", e->counter);
    }
    if (const auto* e = std::get_if<nft::Verdict>(&expression)) {
      return e->chain.empty() || table_->chains.count(e->chain) != 0 ? absl::OkStatus()
                                                                     : Missing("chain", e->chain);
    }
    return absl::OkStatus();
  }

  Tables& tables_;
  nft::TableKey key_;
  Table* table_ = nullptr;
};

absl::Status FakeNftTables::Apply(const nft::Transaction& transaction) {
  RETURN_IF_ERROR(apply_fault_);
  if (transaction.empty()) return absl::OkStatus();
  Tables next = tables_;
  Editor editor(next);
  for (size_t i = 0; i < transaction.steps.size(); ++i) {
    const absl::Status status = editor.Do(transaction.steps[i]);
    if (!status.ok()) return base::Annotate(status, nft::TitleOf(transaction, i));
  }
  tables_ = std::move(next);
  ++generation_;
  applied_.push_back(transaction);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<nft::ElementReading>> FakeNftTables::ReadSet(const nft::TableKey& table,
                                                                        const std::string& set) {
  const auto read = Read(table);
  if (!read.ok()) return read.status();
  const auto found = (*read)->sets.find(set);
  if (found == (*read)->sets.end()) return Missing("set", set);
  std::vector<nft::ElementReading> elements;
  for (const auto& [key, state] : found->second.elements) {
    elements.push_back({state.element, state.packets, state.bytes});
  }
  return elements;
}

absl::StatusOr<std::vector<nft::CounterReading>> FakeNftTables::ReadCounters(
    const nft::TableKey& table) {
  const auto read = Read(table);
  if (!read.ok()) return read.status();
  std::vector<nft::CounterReading> counters;
  for (const auto& [name, count] : (*read)->counters) {
    counters.push_back({name, count.packets, count.bytes});
  }
  return counters;
}

absl::StatusOr<std::vector<nft::RuleReading>> FakeNftTables::ReadRules(const nft::TableKey& table) {
  const auto read = Read(table);
  if (!read.ok()) return read.status();
  std::vector<nft::RuleReading> rules;
  for (const auto& [name, state] : (*read)->chains) {
    for (const RuleState& rule : state.rules) {
      rules.push_back({name, rule.handle, rule.rule.comment, rule.packets, rule.bytes});
    }
  }
  return rules;
}

absl::StatusOr<uint32_t> FakeNftTables::Generation() {
  RETURN_IF_ERROR(read_fault_);
  return generation_;
}

bool FakeNftTables::Count(const nft::TableKey& table, const std::string& set, const nft::Bytes& key,
                          uint64_t packets, uint64_t bytes) {
  const auto state = TableOf(table).sets.find(set);
  CHECK(state != TableOf(table).sets.end(), "a test counts in a set that is there");
  auto& elements = state->second.elements;
  auto element = elements.find(key);
  if (element == elements.end()) {
    CHECK(state->second.set.dynamic, "only in a dynamic set does an element appear by itself");
    if (elements.size() >= state->second.set.size) return false;
    element = elements.try_emplace(key).first;
    element->second.element.key = key;
  }
  element->second.packets += packets;
  element->second.bytes += bytes;
  return true;
}

void FakeNftTables::CountIn(const nft::TableKey& table, const std::string& counter,
                            uint64_t packets, uint64_t bytes) {
  const auto found = TableOf(table).counters.find(counter);
  CHECK(found != TableOf(table).counters.end(), "a test counts in a counter that is there");
  found->second.packets += packets;
  found->second.bytes += bytes;
}

void FakeNftTables::CountRule(const nft::TableKey& table, const std::string& chain,
                              const std::string& comment,
                              std::pair<uint64_t, uint64_t> packets_and_bytes) {
  const auto found = TableOf(table).chains.find(chain);
  CHECK(found != TableOf(table).chains.end(), "a test counts in a chain that is there");
  auto& rules = found->second.rules;
  const auto rule = std::find_if(rules.begin(), rules.end(), [&](const RuleState& state) {
    return state.rule.comment == comment;
  });
  CHECK(rule != rules.end(), "a test counts in a rule that is there");
  rule->packets += packets_and_bytes.first;
  rule->bytes += packets_and_bytes.second;
}

void FakeNftTables::Wipe() {
  tables_.clear();
  ++generation_;
}

std::optional<nft::Chain> FakeNftTables::FindChain(const nft::TableKey& table,
                                                   const std::string& chain) const {
  const auto found = tables_.find(table);
  if (found == tables_.end()) return std::nullopt;
  const auto state = found->second.chains.find(chain);
  if (state == found->second.chains.end()) return std::nullopt;
  return state->second.chain;
}

std::optional<nft::Set> FakeNftTables::FindSet(const nft::TableKey& table,
                                               const std::string& set) const {
  const auto found = tables_.find(table);
  if (found == tables_.end()) return std::nullopt;
  const auto state = found->second.sets.find(set);
  if (state == found->second.sets.end()) return std::nullopt;
  return state->second.set;
}

std::vector<nft::Rule> FakeNftTables::Rules(const nft::TableKey& table,
                                            const std::string& chain) const {
  std::vector<nft::Rule> rules;
  const auto found = tables_.find(table);
  if (found == tables_.end()) return rules;
  const auto state = found->second.chains.find(chain);
  if (state == found->second.chains.end()) return rules;
  for (const RuleState& rule : state->second.rules) rules.push_back(rule.rule);
  return rules;
}

FakeNftTables::Table& FakeNftTables::TableOf(const nft::TableKey& table) {
  const auto found = tables_.find(table);
  CHECK(found != tables_.end(), "a test counts in a table that is there");
  return found->second;
}

absl::StatusOr<const FakeNftTables::Table*> FakeNftTables::Read(const nft::TableKey& table) const {
  RETURN_IF_ERROR(read_fault_);
  const auto found = tables_.find(table);
  if (found == tables_.end()) return Missing("table", table.name);
  return &found->second;
}

}  // namespace spoke::netagent
