#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "admin-cli/dashboard/answers.h"
#include "admin-cli/dashboard/page_server.h"
#include "admin-cli/session.h"
#include "admin-cli/verbs.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/tls/message_code.h"
#include "nlohmann/json.hpp"

namespace spoke::ctl {
namespace {

constexpr size_t kTokenBytes = 32;
constexpr size_t kPlaceBytes = 8;
// How often it is asked whether it is to end.
constexpr absl::Duration kWait = absl::Seconds(10);
constexpr absl::Duration kShortestInterval = absl::Seconds(1);

absl::StatusOr<uint16_t> PortOf(const Arguments& arguments) {
  uint32_t port = 0;
  if (!absl::SimpleAtoi(arguments.Text("port"), &port) || port > UINT16_MAX) {
    return absl::InvalidArgumentError(
        fmt::format("--port: \"{}\" is no number from 0 to 65535", arguments.Text("port")));
  }
  return static_cast<uint16_t>(port);
}

absl::StatusOr<DashboardKeys> NewKeys() {
  ASSIGN_OR_RETURN(const std::string token, tls::RandomBytes(kTokenBytes));
  ASSIGN_OR_RETURN(const std::string place, tls::RandomBytes(kPlaceBytes));
  return DashboardKeys{.place = absl::BytesToHexString(place),
                       .token = absl::BytesToHexString(token)};
}

absl::StatusOr<int> Dashboard(Session& session) {
  ASSIGN_OR_RETURN(const uint16_t port, PortOf(session.arguments));
  const absl::Duration interval = session.arguments.Duration("interval");
  if (interval < kShortestInterval) {
    return absl::InvalidArgumentError("--interval: is shorter than 1s");
  }
  Answers answers(session.client, session.world.clock, interval);
  // A server that is away comes back, and the page says so until then. What is wrong with a context
  // or a role stays wrong.
  const absl::Status first = session.client.Ask(kGetStatus).status();
  const bool away =
      absl::IsUnavailable(first) || absl::IsAborted(first) || absl::IsDeadlineExceeded(first);
  if (!first.ok() && !away) return first;
  if (away) session.Note(base::MessageOf(first));

  ASSIGN_OR_RETURN(DashboardKeys keys, NewKeys());
  ASSIGN_OR_RETURN(const std::unique_ptr<PageServer> server,
                   PageServer::Open(port, std::move(keys), answers));
  RETURN_IF_ERROR(session.PrintOne(server->url(), {{"url", server->url()}}, server->url() + "\n"));
  if (session.is_table()) {
    session.Note(
        "open this URL in a browser of this machine; whoever has it sees what you may see. Ctrl-C "
        "ends it");
  }
  while (session.world.wait(kWait)) {
  }
  return 0;
}

}  // namespace

Command DashboardCommand() {
  return {
      .name = "dashboard",
      .summary = "Show the fleet on a page in the browser",
      .description =
          "Serves a page at a port of 127.0.0.1, prints its URL, and goes on until it is "
          "interrupted: the fleet at a glance, pools, nodes where pods wait and why, all nodes by "
          "free addresses, fitness or Internet use, what waits for the cloud, the namespaces with "
          "most traffic of the last hour, budgets, the rollout of policy, events, and the story of "
          "an address, a node or a pod.\n\n"
          "It only shows: nothing can be changed. It asks the server with your certificate and "
          "your role, and each answer is kept for the interval, or longer if it took long, so "
          "that ten who look cost the server as much as one. The URL has a token, and who has none "
          "is refused.\n\n"
          "Through ssh, forward a port to it: ssh -L 8080:127.0.0.1:8080 HOST, with --port 8080 "
          "there.",
      .examples = {"spokectl dashboard", "spokectl dashboard --port 8080 --interval 5s",
                   "spokectl --context prod dashboard -o json | jq -r .url"},
      .options = {{.name = "port",
                   .value = "PORT",
                   .help = "The port of 127.0.0.1; 0 is any that is free",
                   .values = Values::kCountOrNone,
                   .fallback = "0"},
                  {.name = "interval",
                   .value = "TIME",
                   .help = "How often the page asks, and how long an answer is kept",
                   .values = Values::kDuration,
                   .fallback = "10s"}},
      .run = Dashboard,
      .group = kGroupLook};
}

}  // namespace spoke::ctl
