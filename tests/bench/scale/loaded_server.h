// The server's loop over its real store, with as many addresses as wanted and no network: what an
// operation costs once a message has been read and before its answer is written.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include "absl/status/statusor.h"

namespace spoke::scale {

struct Cost {
  double cpu_seconds = 0;  // The CPU time of the whole process: the store has threads of its own.
  double wall_seconds = 0;
  uint64_t operations = 0;
};

// The server. Not thread-safe.
class LoadedServer {
 public:
  // Makes a store in the new file `database`, and nodes with 27 addresses each that hold
  // `addresses` in all, rounded down. Errors: those of the store; kInternal (the loop did not do as
  // it was asked).
  static absl::StatusOr<std::unique_ptr<LoadedServer>> Create(const std::string& database,
                                                              uint64_t addresses);
  virtual ~LoadedServer() = default;

  virtual uint64_t addresses() const = 0;

  // Assigns one address of each of `nodes` nodes drawn at random, as one commit; then gives them
  // back, as another. That is 2 * `nodes` operations, each in a report of its own. Errors:
  // kInternal (not every report was acknowledged).
  virtual absl::StatusOr<Cost> AssignAndRelease(uint32_t nodes, std::mt19937_64& random) = 0;
};

}  // namespace spoke::scale
