// The program spoke-fabric: a switch in user space that treats hosts as Azure's virtual network
// does, for tests and the demo. decide.h says how.
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "tests/fabric/gateways.h"
#include "tests/fabric/nic_table.h"
#include "tests/fabric/switch.h"

namespace spoke::fabric {
namespace {

constexpr int kBadArguments = 2;

constexpr const char* kFooter =
    R"(Example: two hosts, in a namespace that holds the far ends of their links
  spoke-fabric --nic node1=port1,02:00:00:00:00:01,10.20.0.4 \
               --nic node2=port2,02:00:00:00:00:02,10.20.0.5,10.20.64.7 \
               --gateway 10.20.0.1/16 \
               --attachments /run/fabric/attachments --stats /run/fabric/stats

The attachments file has a line for each address or block that is on a NIC besides its own:
  10.20.64.1/32<TAB>02:00:00:00:00:01<TAB>node1
Replace it with rename(2): it is read again at once.

Prints "ready" once it forwards. SIGUSR1 writes the counters; SIGTERM or SIGINT ends it.)";

int Fail(int code, const absl::Status& status) {
  fmt::print(stderr, "spoke-fabric: {}\n", base::MessageOf(status));
  return code;
}

absl::StatusOr<Gateways> ReadGateways(const std::vector<std::string>& texts) {
  std::vector<Gateway> all;
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(const Gateway gateway, ParseGateway(text));
    all.push_back(gateway);
  }
  return Gateways::Build(std::move(all));
}

int RunMain(int argc, char** argv) {
  SwitchOptions options;
  std::vector<std::string> nic_texts;
  std::vector<std::string> gateway_texts;
  CLI::App app("Behaves as the network of a cloud between the network devices it is given.",
               "spoke-fabric");
  app.footer(kFooter);
  app.add_option("--nic", nic_texts, "A host's NIC and the device of ours that leads to it")
      ->type_name("NAME=DEVICE,MAC,PRIMARY_ADDRESS[,ADDRESS...]")
      ->required()
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--attachments", options.attachments_path, "Addresses attached to the NICs")
      ->type_name("FILE");
  app.add_option("--stats", options.stats_path, "Where the counters are written, as key=value")
      ->type_name("FILE");
  app.add_option("--gateway", gateway_texts,
                 "The router of a subnet: it answers with ICMP errors, and packets between subnets "
                 "lose a hop")
      ->type_name("ADDRESS/LENGTH")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--mtu", options.rules.mtu, "The largest IP packet that passes; 0: any")
      ->type_name("BYTES");
  app.add_flag("--deliver-tags", options.rules.delivers_tags,
               "Frames with VLAN tags reach the NIC they are for, as they are");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadArguments;
  }

  for (const std::string& text : nic_texts) {
    absl::StatusOr<Nic> nic = ParseNic(text);
    if (!nic.ok()) return Fail(kBadArguments, nic.status());
    options.nics.push_back(*std::move(nic));
  }
  absl::StatusOr<Gateways> gateways = ReadGateways(gateway_texts);
  if (!gateways.ok()) return Fail(kBadArguments, gateways.status());
  options.rules.gateways = *std::move(gateways);
  absl::StatusOr<Switch> fabric = Switch::Open(std::move(options));
  if (!fabric.ok()) {
    return Fail(absl::IsInvalidArgument(fabric.status()) ? kBadArguments : 1, fabric.status());
  }
  fmt::print("ready\n");
  (void)std::fflush(stdout);
  const absl::Status status = fabric->Run();
  return status.ok() ? 0 : Fail(1, status);
}

}  // namespace
}  // namespace spoke::fabric

int main(int argc, char** argv) {
  try {
    return spoke::fabric::RunMain(argc, argv);
  } catch (const std::exception& error) {  // Out of memory, or a bug.
    std::fprintf(stderr, "spoke-fabric: %s\n", error.what());
    return 1;
  }
}
