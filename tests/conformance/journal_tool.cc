// The program spoke-journal writes an agent's journal as if a server had listed addresses, and
// shows one. With it a test needs no server: an agent assigns what its journal says it has.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <variant>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "netagent/attach/assignments.h"
#include "netagent/journal/journal.h"
#include "nlohmann/json.hpp"

namespace spoke::netagent {
namespace {

constexpr absl::Duration kAnyCooldown = absl::Seconds(30);

// Reads "10.1.0.5", or "10.1.0.5=gold" for one of a pool other than "default".
absl::StatusOr<Holding> ParseHolding(const std::string& text) {
  const size_t equals = text.find('=');
  ASSIGN_OR_RETURN(const ip::Address address, ip::Address::Parse(text.substr(0, equals)));
  return Holding{address, equals == std::string::npos ? "default" : text.substr(equals + 1)};
}

// Reads "gold=10.2.0.0/24=training,web": a pool for the pods of two namespaces.
absl::StatusOr<PoolRule> ParseRule(const std::string& text) {
  const size_t first = text.find('=');
  const size_t second = text.find('=', first + 1);
  if (first == std::string::npos || second == std::string::npos) {
    return absl::InvalidArgumentError("no rule: " + text);
  }
  PoolRule rule{text.substr(0, first), text.substr(first + 1, second - first - 1), {}};
  for (size_t begin = second + 1; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    rule.namespaces.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return rule;
}

absl::Status Seed(const std::string& path, const std::vector<std::string>& addresses,
                  const std::vector<std::string>& rules) {
  HoldingsReplaced event;
  for (const std::string& text : addresses) {
    ASSIGN_OR_RETURN(event.holdings.emplace_back(), ParseHolding(text));
  }
  for (const std::string& text : rules) {
    ASSIGN_OR_RETURN(event.rules.emplace_back(), ParseRule(text));
  }
  ASSIGN_OR_RETURN(const OpenedJournal opened, OpenJournal(path));
  return opened.journal->Append(event);
}

// Makes all assignments older, as if the agent had been away.
absl::Status Age(const std::string& path, int seconds) {
  ASSIGN_OR_RETURN(OpenedJournal opened, OpenJournal(path));
  for (Event& event : opened.events) {
    if (auto* begun = std::get_if<AssignmentBegun>(&event)) {
      begun->assignment.since -= absl::Seconds(seconds);
    }
  }
  return opened.journal->Compact(opened.events);
}

// Reads it beside a running agent, whose lock is left alone.
absl::Status Show(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, os::ReadFile(path));
  Assignments assignments(kAnyCooldown);
  for (const Event& event : ParseJournal(content).events) assignments.Apply(event);
  nlohmann::json shown{{"in_use", nlohmann::json::array()},
                       {"cooldown", assignments.Cooldown().size()},
                       {"unfinished", assignments.Unfinished().size()},
                       {"attached", assignments.Attached().size()}};
  for (const Assignment& assignment : assignments.Built()) {
    nlohmann::json addresses = nlohmann::json::array();
    for (const ip::Address& address : assignment.addresses) addresses.push_back(address.ToString());
    shown["in_use"].push_back({{"container", assignment.key.container_id},
                               {"ifname", assignment.key.ifname},
                               {"pod", assignment.pod.name},
                               {"addresses", addresses}});
  }
  std::printf("%s\n", shown.dump().c_str());
  return absl::OkStatus();
}

int RunMain(int argc, char** argv) {
  std::string path;
  std::vector<std::string> addresses;
  std::vector<std::string> rules;
  CLI::App app("Writes or shows the journal of spoke-netagent.");
  app.require_subcommand(1);
  CLI::App* seed = app.add_subcommand("seed", "as if a server had listed ADDRESS[=POOL]...");
  seed->add_option("path", path)->required();
  seed->add_option("addresses", addresses);
  seed->add_option("--rule", rules, "POOL=CIDR=NAMESPACE,...: who the pool is for");
  int seconds = 0;
  CLI::App* age = app.add_subcommand("age", "makes all assignments older by SECONDS");
  age->add_option("path", path)->required();
  age->add_option("seconds", seconds)->required();
  CLI::App* show = app.add_subcommand("show", "what is assigned, as JSON");
  show->add_option("path", path)->required();
  CLI11_PARSE(app, argc, argv);
  absl::Status status;
  if (seed->parsed()) status = Seed(path, addresses, rules);
  if (age->parsed()) status = Age(path, seconds);
  if (show->parsed()) status = Show(path);
  if (status.ok()) return 0;
  std::fprintf(stderr, "spoke-journal: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace spoke::netagent

int main(int argc, char** argv) {
  try {
    return spoke::netagent::RunMain(argc, argv);
  } catch (const std::exception& error) {  // Out of memory, or a bug.
    std::fprintf(stderr, "spoke-journal: %s\n", error.what());
    return 1;
  }
}
