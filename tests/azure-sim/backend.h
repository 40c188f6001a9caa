// The state that all simulated providers share: the world, the knobs, limits, operations and
// counters. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "lib/http/message.h"
#include "tests/azure-sim/knobs.h"
#include "tests/azure-sim/resources/operations.h"
#include "tests/azure-sim/resources/render.h"
#include "tests/azure-sim/resources/responses.h"
#include "tests/azure-sim/target.h"
#include "tests/azure-sim/throttle.h"
#include "tests/azure-sim/timeline.h"
#include "tests/azure-sim/world.h"

namespace spoke::azure_sim {

enum class Provider : uint8_t { kGateway, kCompute, kNetwork };

// A request on its way through the model, and what is learned about it there.
struct Call {
  const http::Request& request;
  const Target& target;
  absl::Time now;
  std::string principal = "anonymous";
  std::string_view kind = "gateway";  // The kind for counters: "instance.put".
  Provider provider = Provider::kGateway;
  const ApiOperation* operation = nullptr;  // The operation that is asked for.
  // The remainder of the provider's limits.
  std::vector<std::pair<std::string, int64_t>> remaining = {};
  std::optional<int64_t> charge = {};  // The value of x-ms-request-charge.

  Direction direction() const;
  // Returns the header If-Match, without "etag" parameters and the like; empty: none.
  std::string_view if_match() const;
  // Returns whether "If-None-Match: *" asks that what is there stays as it is.
  bool wants_new() const;
};

struct Operation {
  enum class Status : uint8_t { kInProgress, kSucceeded, kFailed, kCanceled };

  std::string id;
  Provider provider = Provider::kCompute;
  std::string subscription;
  std::string location;
  Status status = Status::kInProgress;
  absl::Time started;
  absl::Time ended;
  std::string code;
  std::string message;
  // The status that the URL under Location answers at the end. The SDKs take 204 for a DELETE only.
  int end_status = 200;

  bool running() const { return status == Status::kInProgress; }
};

// The counts of what was asked of the model.
struct Counters {
  // The calls by kind ("instance.put") and status; 0 is an answer that was lost.
  std::map<std::pair<std::string, int>, uint64_t> calls;
  // The calls before the Retry-After that had been given had passed.
  uint64_t sent_into_closed_gate = 0;
  uint64_t throttled = 0;
  uint64_t foreign_writes = 0;       // The writes by another writer than the caller.
  uint64_t foreign_writes_lost = 0;  // The number of those that the caller has overwritten.
  uint64_t operations_failed = 0;
  uint64_t operations_succeeded = 0;

  uint64_t Total() const;
  uint64_t Of(std::string_view kind) const;
  uint64_t Of(std::string_view kind, int status) const;
};

class Backend {
 public:
  Backend(std::unique_ptr<World> world, uint64_t seed, Knobs knobs);

  World& world() { return *world_; }
  const World& world() const { return *world_; }
  Knobs& knobs() { return knobs_; }
  const Knobs& knobs() const { return knobs_; }
  Timeline& timeline() { return timeline_; }
  const Timeline& timeline() const { return timeline_; }
  Throttle& throttle() { return throttle_; }
  Counters& counters() { return counters_; }
  SeededRandom& random() { return random_; }
  Renderer RendererFor(const Call& call);

  // -- Limits.
  // Takes from a provider's limits, and keeps what is left for the headers. A response: refused.
  std::optional<http::Response> Ask(Call& call, Policy policy, const Throttle::Scope& scope,
                                    double units = 1);

  // -- Operations.
  Operation& Start(const Call& call, Provider provider, std::string_view subscription,
                   std::string_view location);
  Operation* Find(std::string_view id);
  void End(Operation& operation, absl::Time when, Operation::Status status,
           std::string_view code = {}, std::string_view message = {});
  // The end of the operation that starts now, and its time.
  struct Fate {
    Operation::Status status = Operation::Status::kSucceeded;
    absl::Time when;
    bool nic_written = false;  // Whether the NIC is written though the operation fails.
  };
  Fate Draw(const Latency& latency, absl::Time now);
  // Answers Azure-AsyncOperation, with or without Location beside it.
  void AddAsyncHeaders(const Call& call, const Operation& operation, bool with_location,
                       http::Response* response);
  http::Response OperationStatus(Call& call);
  // Answers at the URL under Location.
  http::Response OperationResult(Call& call);

  // -- Addresses.
  // What `nic` will hold with these IP configurations: addresses stay where the name stays; the
  // others are taken from the subnets. nullopt: a subnet is full, or an address is taken; then
  // nothing has been taken, and `error` says what the cloud says.
  struct AssignError {
    std::string code;
    std::string message;
  };
  std::optional<std::vector<NicEntry>> Plan(const Nic& nic, const std::vector<IpConfig>& wanted,
                                            AssignError* error);
  // Gives back what Plan() took and Commit() did not get.
  static void Undo(const Nic& nic, const std::vector<NicEntry>& planned);
  // Puts them on the wire at `when`.
  void Commit(Nic& nic, std::vector<NicEntry> planned, absl::Time when);
  // Takes everything off the wire, for good.
  void TakeDown(Nic& nic, absl::Time when);

  // -- Paging: "{value, nextLink}".
  // The page that the request asks for of a list of `size` entries; `show` gives one of them.
  http::Response Page(const Call& call, size_t size, const std::function<Json(size_t)>& show);
  // Returns the cursor of the request's $skiptoken, for lists whose pages are cut otherwise: 0 for
  // the first page; nullopt: not one of ours.
  static std::optional<uint64_t> CursorOf(const Call& call);
  static std::string NextLink(const Call& call, uint64_t cursor);

 private:
  void Release(const NicEntry& entry, absl::Time when, absl::Duration delay);

  std::unique_ptr<World> world_;
  Knobs knobs_;
  SeededRandom random_;
  Timeline timeline_;
  Throttle throttle_;
  Counters counters_;
  std::unordered_map<std::string, Operation> operations_;
};

}  // namespace spoke::azure_sim
