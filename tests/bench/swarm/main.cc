// The program spoke-swarm: thousands of simulated agents, to measure a server with and to catch it
// lying.
#include <malloc.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <map>
#include <string>

#include "absl/synchronization/mutex.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/clock.h"
#include "tests/bench/swarm/certificates.h"
#include "tests/bench/swarm/modes.h"

namespace spoke::swarm {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr rlim_t kSpareDescriptors = 256;

constexpr const char* kFooter =
    R"(The last line of standard output is the result as JSON; progress goes to standard error.
All agents live in this one process, each with a TCP connection of its own. Whatever the server says
that it must not say counts as a violation.

Exit status: 0 done and no violation, 1 failed or violations, 2 wrong usage)";

struct CommandLine {
  CLI::App app{"Simulates agents of nodes, each with its own gRPC connection.", "spoke-swarm"};
  Swarm::Options options{.agents = 100};
  Plan plan;
  double spread_s = 0;
  double agent_timeout_s = 20;
  double deadline_s = 180;
  double duration_s = 10;
  double warm_up_s = 2;
  double budget_refresh_s = 0;
  double dead_nic_after_s = 0;
  bool coalesce = false;
  std::string certificates;  // The directory for them.
  absl::StatusOr<Json> (*run)(Swarm&, const Plan&) = nullptr;
  std::string mode;

  CommandLine() {
    app.footer(kFooter);
    app.require_subcommand(1);
    app.fallthrough();
    app.add_option("--servers", options.target.servers,
                   "The agents' ports, as gRPC names them; one serves at a time, and who is not\n"
                   "welcome at one tries the next at once")
        ->type_name("ipv4:HOST:PORT,...")
        ->delimiter(',');
    app.add_option("--agents", options.agents, "How many")
        ->check(CLI::Range(1, 100'000))
        ->capture_default_str();
    app.add_option("--first", options.first,
                   "The number of the first node, where several swarms are agents of one cluster")
        ->check(CLI::Range(0, 99'999))
        ->capture_default_str();
    app.add_option("--addresses", options.target.addresses, "How many each waits for")
        ->capture_default_str();
    app.add_option("--spread", spread_s,
                   "Seconds over which the first attempts are spread; all at once is right\n"
                   "for nodes that start together, and as hard as it gets")
        ->capture_default_str();
    app.add_option("--seed", options.seed, "Of the spread and of the backoff's jitter")
        ->capture_default_str();
    app.add_option("--agent-timeout", agent_timeout_s, "Seconds after which an agent has timed out")
        ->capture_default_str();
    app.add_option("--deadline", deadline_s, "Seconds each step may take")->capture_default_str();
    AddBehaviour();
    app.add_option("--ca", options.target.tls.ca, "PEM file; {} stands for the node's name")
        ->type_name("FILE");
    app.add_option("--certificate", options.target.tls.certificate, "As --ca")->type_name("FILE");
    app.add_option("--key", options.target.tls.key, "As --ca; without the three, no TLS")
        ->type_name("FILE");
    AddMode("storm", "Connects all and waits until each has its addresses", &RunStorm);
    CLI::App& steady = AddMode("steady", "Then keeps still", &RunSteady);
    CLI::App& churn = AddMode("churn", "Then assigns and releases in a closed loop", &RunChurn);
    CLI::App& recover =
        AddMode("recover", "Then assigns, and obeys standard input (tests/bench/swarm/modes.h)",
                &RunRecover);
    CLI::App& ha = AddMode("ha",
                           "Then assigns, and obeys standard input while servers are killed\n"
                           "(tests/bench/swarm/modes.h); wrong answers are counted, and make the "
                           "exit status 1\nas in every mode",
                           &RunHa);
    ha.add_option("--etcd", plan.etcd, "Where the servers keep their records, to be read as well")
        ->type_name("http://HOST:PORT,...")
        ->delimiter(',');
    CLI::App& files =
        AddMode("certificates", "Writes certificates for --agents and a server, and ends", nullptr);
    files.add_option("--directory", certificates, "Where")->required();
    for (CLI::App* command : {&steady, &churn}) {
      command->add_option("--seconds", duration_s, "How long")->capture_default_str();
    }
    churn.add_option("--warm-up", warm_up_s, "Seconds before it counts")->capture_default_str();
    for (CLI::App* command : {&steady, &churn, &recover, &ha}) {
      command->add_option("--assign", plan.assign, "Addresses assigned first, in all")
          ->capture_default_str();
    }
    for (CLI::App* command : {&churn, &recover}) {
      command->add_option("--pods", plan.pods, "Pods of a node that come and go")
          ->capture_default_str();
      command->add_flag("--coalesce", coalesce,
                        "One report at a time, with all that has come up meanwhile; else one "
                        "operation a report, and a report for each pod at a time");
    }
  }

  void Complete() {
    plan.agent_timeout = absl::Seconds(agent_timeout_s);
    plan.deadline = absl::Seconds(deadline_s);
    plan.duration = absl::Seconds(duration_s);
    plan.warm_up = absl::Seconds(warm_up_s);
    options.dead_nic.from =
        os::MonotonicMs() * 1'000'000 + absl::ToInt64Nanoseconds(absl::Seconds(dead_nic_after_s));
    options.budget_refresh = absl::Seconds(budget_refresh_s);
    options.reconnect.first_connect = absl::Seconds(spread_s);
    options.target.tls.insecure = options.target.tls.ca.empty();
    const bool ha = mode == "ha";
    plan.count_faults = ha;
    options.memory = ha ? Ledger::Memory::kAll : Ledger::Memory::kNone;
    // What is assigned before anything is measured goes in one report in either case.
    options.reporting = coalesce || ha || plan.pods == 0
                            ? SimNode::Reporting{.operations = 1000, .window = 1}
                            : SimNode::Reporting{.operations = 1, .window = plan.pods};
  }

 private:
  void AddBehaviour() {
    app.add_option("--budget-refresh", budget_refresh_s,
                   "How often each reports what it uses of the policy's budgets; 0: never")
        ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"ms", 0.001}, {"s", 1}}))
        ->type_name("DURATION")
        ->capture_default_str();
    app.add_option("--dead-nic", options.dead_nic.node,
                   "The number of a node that no probe reaches")
        ->type_name("NODE");
    app.add_option("--dead-nic-after", dead_nic_after_s, "From so many seconds on")
        ->capture_default_str();
  }

  CLI::App& AddMode(const std::string& name, const std::string& about,
                    absl::StatusOr<Json> (*function)(Swarm&, const Plan&)) {
    CLI::App& command = *app.add_subcommand(name, about);
    command.fallthrough();
    command.callback([this, name, function] {
      mode = name;
      run = function;
    });
    return command;
  }
};

// Each agent takes a descriptor, where the system lets us.
absl::Status RaiseDescriptorLimit(uint32_t agents) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t wanted = agents + kSpareDescriptors;
  if (limit.rlim_cur >= wanted) return absl::OkStatus();
  limit.rlim_cur = wanted;
  if (limit.rlim_max < wanted) limit.rlim_max = wanted;
  if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) return absl::OkStatus();
  return base::ErrnoToStatus(errno, fmt::format("raise the limit of open files to {}", wanted));
}

int Fail(const absl::Status& status) {
  fmt::print(stderr, "spoke-swarm: {}\n", base::MessageOf(status));
  return kExitFailure;
}

int RunMain(int argc, char** argv) {
  CommandLine line;
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return line.app.exit(error) == 0 ? 0 : kExitUsage;
  }
  line.Complete();
  if (line.run == nullptr) {
    const absl::Status written = WriteCertificates(line.certificates, line.options.agents);
    return written.ok() ? 0 : Fail(written);
  }
  if (line.options.target.servers.empty()) {
    fmt::print(stderr, "spoke-swarm: --servers is required\n");
    return kExitUsage;
  }
  if (const auto status = line.options.target.tls.Validate(); !status.ok()) return Fail(status);
  if (const auto status = RaiseDescriptorLimit(line.options.agents); !status.ok()) {
    return Fail(status);
  }
  // Debian's absl watches every lock for deadlocks: a third of this program's time, with thousands
  // of channels. The tests run the same code with it.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  ::mallopt(M_MXFAST, 0);  // The server does this too.
  ShareAuthority(line.options.target.tls.ca);
  Swarm swarm(line.options);
  const absl::StatusOr<Json> result = line.run(swarm, line.plan);
  const Ledger::Complaints complaints = swarm.ledger().complaints();
  for (const std::string& text : complaints.first) fmt::print(stderr, "spoke-swarm: {}\n", text);
  if (!result.ok()) return Fail(result.status());
  Json out = {{"event", "result"}, {"mode", line.mode}, {"spread_s", line.spread_s}};
  out.update(*result);
  fmt::print("{}\n", out.dump());
  return std::fflush(stdout) == 0 && complaints.total == 0 ? 0 : kExitFailure;
}

}  // namespace
}  // namespace spoke::swarm

int main(int argc, char** argv) {
  try {
    return spoke::swarm::RunMain(argc, argv);
  } catch (const std::exception& error) {  // Out of memory, or a bug.
    std::fprintf(stderr, "spoke-swarm: %s\n", error.what());
    return 1;
  }
}
