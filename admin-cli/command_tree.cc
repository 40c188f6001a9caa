#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "admin-cli/verbs.h"

namespace spoke::ctl {
namespace {

std::vector<Parameter> RootOptions() {
  return {{.name = "output",
           .value = "FORM",
           .help = "How to print",
           .choices = {"table", "wide", "json", "yaml", "name"},
           .fallback = "table",
           .letter = 'o'},
          {.name = "no-headers", .help = "Tables without their first line"},
          {.name = "sort-by",
           .value = "KEY",
           .help = "Lists in the order of this key of their JSON; KEY:desc is the other way round"},
          {.name = "server",
           .value = "TARGET",
           .help = "The server: its socket, or HOST:PORT with the certificate of the context; "
                   "without a context unix:/run/spoke/ipam-admin.sock",
           .variable = "SPOKE_SERVER"},
          {.name = "context",
           .value = "NAME",
           .help = "Which of several Spokes, as spokectl context list has them",
           .variable = "SPOKE_CONTEXT"},
          {.name = "timeout",
           .value = "TIME",
           .help = "How long to wait for an answer, and for more of it: 30s, 5m",
           .values = Values::kDuration,
           .fallback = "15s"},
          {.name = "color",
           .value = "WHEN",
           .help = "Colours; auto is on a terminal, unless NO_COLOR is set",
           .choices = {"auto", "always", "never"},
           .fallback = "auto"},
          {.name = "version", .help = "The version of spokectl"}};
}

constexpr const char* kExitCodes =
    "0 done; 1 failed; 2 wrong usage or invalid input; 3 no server answers; 4 no such thing; "
    "5 refused because of the present state, such as an address in use. For status, audit, diff, "
    "whatif, policy verify, connectivity test, doctor and rollout status --watch, 1 is an answer: "
    "their help says which.";

size_t PlaceOf(const Command& command) {
  constexpr std::array<std::string_view, 5> kGroups = {kGroupLook, kGroupNouns, kGroupPolicy,
                                                       kGroupCare, kGroupSelf};
  return static_cast<size_t>(std::find(kGroups.begin(), kGroups.end(), command.group) -
                             kGroups.begin());
}

}  // namespace

Command CommandTree() {
  Command root = {
      .name = "spokectl",
      .summary = "the operator's hand on spoke-ipam-server",
      .description =
          "spokectl shows and changes what spoke-ipam-server does: which node has which "
          "addresses, why, and by which policy. It talks to the server's admin socket, which root "
          "may open, or to its port for operators, with a certificate: see spokectl login and "
          "spokectl context.",
      .examples = {"spokectl status                        # is all well?",
                   "spokectl explain pod web/frontend-1    # why has this pod no address?",
                   "spokectl ip list --node node1 --state in_use -o wide",
                   "spokectl diff -f policies/ ; spokectl apply -f policies/",
                   "source <(spokectl completion bash)     # complete words with the tab key"},
      .options = RootOptions(),
      .exit_codes = kExitCodes};
  std::vector<Command> all;
  const auto add = [&](std::vector<Command> commands) {
    all.insert(all.end(), std::make_move_iterator(commands.begin()),
               std::make_move_iterator(commands.end()));
  };
  add(StatusCommands());
  add(ExplainCommands());
  add({ReachabilityCommand(), CheckCommand(), ConnectivityCommand()});
  add({DashboardCommand(), BudgetCommand(), EventsCommand(), LogsCommand(), AuditCommand(),
       AuditLogCommand()});
  add({PoolCommand(), NodeCommand(), MaintenanceCommand(), IpCommand(), ReserveCommand()});
  add(ObjectCommands());
  add({RolloutCommand(), PolicyCommand()});
  add({DoctorCommand(), BackupCommand(), StoreCommand(), RecoveryCommand(), AuthorityCommand(),
       SupportBundleCommand(), AzureCommand()});
  add({LoginCommand(), ContextCommand()});
  add(ShellCommands());
  // The order is that of the first screen: a file's commands may belong under several headings.
  std::stable_sort(all.begin(), all.end(),
                   [](const Command& a, const Command& b) { return PlaceOf(a) < PlaceOf(b); });
  root.commands = CommandList(std::move(all));
  return root;
}

}  // namespace spoke::ctl
