// The program spoke-stalls: how long the turns of the server's loop are while a large fleet and its
// operators want something of it. Prints JSON.
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "tests/bench/scale/loop_edges.h"
#include "tests/bench/stalls/large_fleet.h"

namespace spoke::stalls {
namespace {

struct Options {
  std::string directory;
  uint32_t nodes = 7500;
  uint32_t reserved = 4096;
  uint32_t rounds = 3;
  double seconds = 10;
};

// The changes in one report; a node has no more addresses to assign.
constexpr uint32_t kMany = 12;

absl::Status From(const grpc::Status& status) {
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

// --- What operators do. ---

absl::Status ListAddresses(LargeFleet& fleet) {
  grpc::ClientContext context;
  const auto reader = fleet.operators().ListAddresses(&context, {});
  v1::ListAddressesResponse batch;
  while (reader->Read(&batch)) {
  }
  return From(reader->Finish());
}

absl::Status ListNodes(LargeFleet& fleet) {
  grpc::ClientContext context;
  const auto reader = fleet.operators().ListNodes(&context, {});
  v1::ListNodesResponse batch;
  while (reader->Read(&batch)) {
  }
  return From(reader->Finish());
}

absl::Status Apply(LargeFleet& fleet, std::string text) {
  v1::ApplyRequest request;
  v1::PolicyFile& file = *request.add_files();
  file.set_name("bench");
  file.set_text(std::move(text));
  v1::ApplyResponse response;
  grpc::ClientContext context;
  return From(fleet.operators().Apply(&context, request, &response));
}

// Applies another team each time.
absl::Status ApplyTeam(LargeFleet& fleet, uint32_t number) {
  return Apply(fleet,
               fmt::format("apiVersion: spoke/v1\nkind: Team\nmetadata:\n  name: team-{}\nspec:\n  "
                           "namespaces: [space-{}]\n",
                           number, number));
}

// Applies pools in turns: the pool that all addresses are of grows, shrinks, and another one comes.
absl::Status ApplyPool(LargeFleet& fleet, uint32_t number) {
  const auto pool = [](std::string_view name, std::string_view cidr) {
    return fmt::format(
        "apiVersion: spoke/v1\nkind: Pool\nmetadata:\n  name: {}\nspec:\n  cidr: {}\n", name, cidr);
  };
  switch (number % 3) {
    case 0:
      return Apply(fleet, pool("default", "10.0.0.0/11"));
    case 1:
      return Apply(fleet, pool("default", "10.0.0.0/12"));
    default:
      return Apply(fleet, pool(fmt::format("pool-{}", number % 250),
                               fmt::format("10.64.{}.0/24", number % 250)));
  }
}

absl::Status Reserve(LargeFleet& fleet, const std::string& name, uint32_t from, uint32_t nodes) {
  v1::CreateReservationRequest request;
  request.set_name(name);
  request.set_addresses_per_node(LargeFleet::kAddressesANode);
  request.set_ttl_ms(3'600'000);
  for (uint32_t node = from; node < from + nodes; ++node) {
    request.add_nodes(scale::KeyOf(node).name);
  }
  v1::ReservationInfo made;
  grpc::ClientContext context;
  return From(fleet.operators().CreateReservation(&context, request, &made));
}

// --- What is measured. ---

class Phases {
 public:
  explicit Phases(LargeFleet& fleet) : fleet_(fleet) {}

  absl::Status Measure(const std::string& name, const std::function<absl::Status()>& work) {
    auto turns = fleet_.Measure(work);
    if (!turns.ok()) return base::Annotate(turns.status(), name);
    fmt::print(stderr, "spoke-stalls: {}: longest {:.1f} ms, {} turns\n", name,
               absl::ToDoubleMilliseconds(turns->longest), turns->count);
    out_[name].push_back({{"longest_ms", absl::ToDoubleMilliseconds(turns->longest)},
                          {"longest_cpu_ms", absl::ToDoubleMilliseconds(turns->longest_cpu)},
                          {"all_ms", absl::ToDoubleMilliseconds(turns->all)},
                          {"turns", turns->count}});
    return absl::OkStatus();
  }

  const nlohmann::ordered_json& out() const { return out_; }

 private:
  LargeFleet& fleet_;
  nlohmann::ordered_json out_;
};

// Measures one after the other, each alone.
absl::Status MeasureEach(LargeFleet& fleet, Phases& phases, const Options& options) {
  for (uint32_t round = 0; round < options.rounds; ++round) {
    RETURN_IF_ERROR(phases.Measure("list addresses", [&] { return ListAddresses(fleet); }));
    RETURN_IF_ERROR(phases.Measure("list nodes", [&] { return ListNodes(fleet); }));
    RETURN_IF_ERROR(phases.Measure("apply a team", [&] { return ApplyTeam(fleet, round); }));
    for (uint32_t i = 0; i < 3; ++i) {
      RETURN_IF_ERROR(
          phases.Measure("apply a pool", [&] { return ApplyPool(fleet, 3 * round + i); }));
    }
    for (const uint32_t changes : {1U, kMany}) {
      const std::string name = fmt::format("all report {}", changes);
      RETURN_IF_ERROR(phases.Measure(name, [&] { return fleet.ReportAll(changes); }));
      RETURN_IF_ERROR(phases.Measure(name, [&] { return fleet.ReportAll(changes); }));
    }
    RETURN_IF_ERROR(phases.Measure("the cloud lists", [&] { return fleet.ListNics(); }));
    RETURN_IF_ERROR(
        phases.Measure("all reconnect", [&] { return fleet.ReconnectSome(options.nodes); }));
    RETURN_IF_ERROR(phases.Measure("the store fails", [&] { return fleet.FailStore(); }));
  }
  return phases.Measure("reserve", [&] { return Reserve(fleet, "job", 0, options.reserved); });
}

// Measures all of it at the same time.
absl::Status MeasureTogether(LargeFleet& fleet, Phases& phases, const Options& options) {
  return phases.Measure("all together", [&]() -> absl::Status {
    const absl::Time until = absl::Now() + absl::Seconds(options.seconds);
    std::atomic<bool> over = false;
    std::vector<absl::Status> results(3);
    std::vector<std::thread> operators;
    operators.emplace_back([&] {
      while (!over && results[0].ok()) results[0] = ListAddresses(fleet);
    });
    operators.emplace_back([&] {
      while (!over && results[1].ok()) results[1] = ListNodes(fleet);
    });
    operators.emplace_back([&] {
      results[2] = Reserve(fleet, "second", options.reserved, options.nodes - options.reserved);
      for (uint32_t i = 100; !over && results[2].ok(); ++i) {
        results[2] = ApplyTeam(fleet, i);
        if (results[2].ok()) results[2] = ApplyPool(fleet, i);
      }
    });
    absl::Status status;
    while (status.ok() && absl::Now() < until) {
      status = fleet.ListNics();
      if (status.ok()) status = fleet.ReportAll(1);
      if (status.ok()) status = fleet.ReconnectSome(options.nodes / 8);
    }
    over = true;
    for (std::thread& thread : operators) thread.join();
    for (const absl::Status& result : results) status.Update(result);
    return status;
  });
}

absl::StatusOr<nlohmann::ordered_json> Run(const Options& options) {
  fmt::print(stderr, "spoke-stalls: setting up {} nodes\n", options.nodes);
  ASSIGN_OR_RETURN(const auto fleet,
                   LargeFleet::Create(options.directory + "/stalls.db", options.nodes));
  Phases phases(*fleet);
  RETURN_IF_ERROR(MeasureEach(*fleet, phases, options));
  RETURN_IF_ERROR(MeasureTogether(*fleet, phases, options));
  return nlohmann::ordered_json{{"nodes", options.nodes},
                                {"addresses", options.nodes * LargeFleet::kAddressesANode},
                                {"reserved_nodes", options.reserved},
                                {"phases", phases.out()}};
}

int RunMain(int argc, char** argv) {
  Options options;
  CLI::App app("Measures the turns of the server's loop with a large fleet.", "spoke-stalls");
  app.footer("The store is a new file in DIR and stays there.");
  app.add_option("--directory", options.directory, "An empty directory on a disk")
      ->type_name("DIR")
      ->required();
  app.add_option("--nodes", options.nodes, "Connected nodes, with 27 addresses each")
      ->check(CLI::Range(16, 20'000))
      ->capture_default_str();
  app.add_option("--reserved", options.reserved, "Of these, how many a reservation is for")
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "How often each thing is done")
      ->check(CLI::Range(1, 30))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "How long all is done at the same time")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.reserved >= options.nodes) {
    fmt::print(stderr, "spoke-stalls: --reserved must be below --nodes\n");
    return 2;
  }
  const auto result = Run(options);
  if (!result.ok()) {
    fmt::print(stderr, "spoke-stalls: {}\n", base::MessageOf(result.status()));
    return 1;
  }
  fmt::print("{}\n", result->dump());
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace spoke::stalls

int main(int argc, char** argv) {
  ::mallopt(M_MXFAST, 0);  // The server does this too.
  try {
    return spoke::stalls::RunMain(argc, argv);
  } catch (const std::exception& error) {  // Out of memory, or a bug.
    std::fprintf(stderr, "spoke-stalls: %s\n", error.what());
    return 1;
  }
}
