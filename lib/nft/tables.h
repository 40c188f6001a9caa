// The kernel's nf_tables, as far as the agent uses them. Implemented by Connection and, in tests,
// FakeNftTables; nft_tables_contract.h holds the promises below as tests for both.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/nft/ruleset.h"

namespace spoke::nft {

// The tables. Not thread-safe. Every call names its table: only those that claims.h lists are ever
// touched.
class Tables {
 public:
  virtual ~Tables() = default;

  // Does all of it or nothing; nothing for an empty one. Errors: kInvalidArgument (a step is
  // malformed); kNotFound (a step names what is not there, or a kind of expression or chain that
  // the kernel has not); kAlreadyExists (an element is there with another value or overlaps, or a
  // chain or set with another description; of a chain with another hook, newer kernels say
  // kUnimplemented); kFailedPrecondition (a rule still uses what is to be deleted);
  // kResourceExhausted (a set is full, or out of memory); kUnimplemented (the kernel cannot do that
  // there); kUnavailable (try again); kDeadlineExceeded and kDataLoss (no whole answer: it may have
  // happened); kInternal. The message names the step.
  virtual absl::Status Apply(const Transaction& transaction) = 0;

  // Returns all elements with their counters: those of a set with intervals sorted, others in no
  // order. Packets count and fill dynamic sets meanwhile, so an element that is just appearing may
  // be missing. Errors: kNotFound (no such table or set); kUnavailable (the dump kept being
  // interrupted); kDeadlineExceeded; kDataLoss.
  virtual absl::StatusOr<std::vector<ElementReading>> ReadSet(const TableKey& table,
                                                              const std::string& set) = 0;
  // Returns all named counters of the table. Errors: as ReadSet().
  virtual absl::StatusOr<std::vector<CounterReading>> ReadCounters(const TableKey& table) = 0;
  // Returns all rules, each chain's in its order. Errors: as ReadSet().
  virtual absl::StatusOr<std::vector<RuleReading>> ReadRules(const TableKey& table) = 0;

  // Returns a number that rises with every transaction that anybody makes in the namespace: what
  // was read before and after which it is the same has not changed in between, except by what
  // packets did. Wraps. Errors: kDeadlineExceeded; kDataLoss; kInternal.
  virtual absl::StatusOr<uint32_t> Generation() = 0;
};

}  // namespace spoke::nft
