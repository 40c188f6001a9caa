// The program spoke-azure-sim: Azure for tests and the demo. arm_model.h, imds_model.h and
// wireserver_model.h say which parts of it.
#include <atomic>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/time/clock.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/clock.h"
#include "lib/os/file.h"
#include "lib/os/signals.h"
#include "tests/azure-sim/http_server.h"
#include "tests/azure-sim/node_listeners.h"
#include "tests/azure-sim/sim_service.h"

namespace spoke::azure_sim {
namespace {

constexpr int kBadArguments = 2;
constexpr absl::Duration kTick = absl::Milliseconds(100);

constexpr const char* kFooter =
    R"(Example: two instances, ARM on any free port, a metadata service in one namespace
  cat >spec.json <<'END'
  {"subnets": [{"id": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/pods",
                "prefix": "10.20.0.0/16"}],
   "scale_sets": [{"subscription": "s", "resource_group": "g", "name": "pool", "instances": 2,
     "subnet_id": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/pods",
     "first": [{"node": "node1", "mac": "02:00:00:00:00:01", "address": "10.20.0.4"}]}]}
  END
  spoke-azure-sim --spec spec.json --fabric-attachments /run/fabric/attachments \
    --node /run/netns/node1=/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/pool/virtualMachines/0

Prints "listening=127.0.0.1:PORT", then "ready". While it runs:
  curl localhost:PORT/sim/state                          who has which addresses, on the wire
  curl localhost:PORT/sim/counters                       calls by kind and status
  curl localhost:PORT/sim/faults                         all knobs; POST sets some:
  curl -d '{"latency_least_s": 1, "latency_most_s": 2, "failed_operations": 0.1}' localhost:PORT/sim/faults
  curl -d '{"id": "/subscriptions/...", "action": "delete"}' localhost:PORT/sim/instances
                                                         or remove, reimage, upgrade, foreign-write
  curl -d '{"id": "/subscriptions/...", "add": 2}' localhost:PORT/sim/scale
  curl -d '{"method": "PUT", "path": "virtualMachines/0", "count": 3, "fault": "reset"}' localhost:PORT/sim/transport
                                                         or stall, drop, truncate, malformed, html, redirect
  curl -d '{"type": "Reboot", "resources": ["pool_0"], "notice_s": 60, "over_after_s": 5}' localhost:PORT/sim/events

SIGTERM or SIGINT ends it.)";

struct Arguments {
  std::string listen = "127.0.0.1:0";
  std::string spec;
  std::string knobs;
  std::string attachments;
  std::string tls_cert;
  std::string tls_key;
  bool open = false;
  int threads = 64;
  std::vector<std::string> nodes;
};

int Fail(int code, const absl::Status& status) {
  fmt::print(stderr, "spoke-azure-sim: {}\n", base::MessageOf(status));
  return code;
}

absl::StatusOr<ListenOptions> ParseListen(const Arguments& arguments) {
  ListenOptions options;
  const size_t colon = arguments.listen.rfind(':');
  const std::string port = colon == std::string::npos ? "" : arguments.listen.substr(colon + 1);
  if (port.empty() || port.size() > 5 ||
      port.find_first_not_of("0123456789") != std::string::npos || std::stoi(port) > 65535) {
    return absl::InvalidArgumentError(fmt::format("{}: not ADDRESS:PORT", arguments.listen));
  }
  if (arguments.tls_cert.empty() != arguments.tls_key.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key go together");
  }
  options.host = arguments.listen.substr(0, colon);
  options.port = std::stoi(port);
  options.tls_cert = arguments.tls_cert;
  options.tls_key = arguments.tls_key;
  options.threads = arguments.threads;
  return options;
}

absl::StatusOr<std::unique_ptr<ArmModel>> BuildModel(const Arguments& arguments) {
  ASSIGN_OR_RETURN(const std::string text, os::ReadFile(arguments.spec));
  absl::StatusOr<SimSpec> spec = ParseSpec(text);
  if (!spec.ok()) return base::Annotate(spec.status(), arguments.spec);
  Knobs knobs;
  knobs.require_token = !arguments.open;
  if (!arguments.knobs.empty()) {
    RETURN_IF_ERROR(base::Annotate(MergeKnobs(arguments.knobs, &knobs), "--knobs"));
  }
  return ArmModel::Build(*spec, absl::Now(), std::move(knobs));
}

absl::Status Serve(const Arguments& arguments, const os::SignalWaiter& signals) {
  ASSIGN_OR_RETURN(const ListenOptions options, ParseListen(arguments));
  ASSIGN_OR_RETURN(auto model, BuildModel(arguments));
  const os::RealClock clock;
  SimService service(std::move(model), clock, arguments.attachments);
  RETURN_IF_ERROR(service.Tick());
  std::vector<std::unique_ptr<HttpServer>> servers;
  for (const std::string& node : arguments.nodes) {
    const size_t equals = node.find('=');
    if (equals == std::string::npos) {
      return absl::InvalidArgumentError(fmt::format("{}: not NETNS=INSTANCE_ID", node));
    }
    ASSIGN_OR_RETURN(auto both,
                     ListenOnNode(service, node.substr(0, equals), node.substr(equals + 1)));
    for (auto& each : both) servers.push_back(std::move(each));
  }
  ASSIGN_OR_RETURN(auto server, HttpServer::Open(options, [&service](const http::Request& request) {
                     return service.Handle(request);
                   }));
  fmt::print("listening={}:{}\nready\n", options.host, server->port());
  (void)std::fflush(stdout);

  std::atomic<bool> stopping{false};
  std::thread ticker([&] {
    std::string last;  // The last error: what is wrong is said once.
    while (!stopping) {
      const absl::Status status = service.Tick();
      const std::string problem(base::MessageOf(status));
      if (!status.ok() && problem != last) fmt::print(stderr, "spoke-azure-sim: {}\n", problem);
      last = problem;
      absl::SleepFor(kTick);
    }
  });
  signals.Wait();
  stopping = true;
  ticker.join();
  return absl::OkStatus();
}

int RunMain(int argc, char** argv) {
  Arguments arguments;
  CLI::App app(
      "Answers as Azure Resource Manager, the instance metadata service and the wireserver.",
      "spoke-azure-sim");
  app.footer(kFooter);
  app.add_option("--spec", arguments.spec, "What there is at the start, as JSON")
      ->type_name("FILE")
      ->required();
  app.add_option("--listen", arguments.listen, "Where ARM is; port 0: any")->capture_default_str();
  app.add_option("--knobs", arguments.knobs, "Knobs to start with, as /sim/faults takes them")
      ->type_name("JSON");
  app.add_option("--fabric-attachments", arguments.attachments,
                 "What is on which NIC, for spoke-fabric")
      ->type_name("FILE");
  app.add_option("--node", arguments.nodes, "Metadata service and wireserver in a namespace")
      ->type_name("NETNS=INSTANCE_ID")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--tls-cert", arguments.tls_cert, "Certificate chain: then ARM speaks TLS")
      ->type_name("FILE");
  app.add_option("--tls-key", arguments.tls_key, "Its key")->type_name("FILE");
  app.add_flag("--open", arguments.open, "Take requests without tokens");
  app.add_option("--threads", arguments.threads, "Connections that are served at once")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadArguments;
  }
  const os::SignalWaiter signals{SIGTERM, SIGINT};
  const absl::Status status = Serve(arguments, signals);
  if (status.ok()) return 0;
  return Fail(absl::IsInvalidArgument(status) ? kBadArguments : 1, status);
}

}  // namespace
}  // namespace spoke::azure_sim

int main(int argc, char** argv) {
  try {
    return spoke::azure_sim::RunMain(argc, argv);
  } catch (const std::exception& error) {  // Out of memory, or a bug.
    std::fprintf(stderr, "spoke-azure-sim: %s\n", error.what());
    return 1;
  }
}
