#include "absl/strings/str_join.h"
#include "admin-cli/client.h"
#include "admin-cli/output/views.h"
#include "admin-cli/session.h"
#include "admin-cli/verbs.h"
#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

Json ToJson(const v1::RecoveryInfo& recovery) {
  return {{"phase", recovery.phase()},
          {"reason", recovery.reason()},
          {"since", recovery.since_unix_ms() == 0 ? "" : TimeOf(recovery.since_unix_ms())},
          {"nodes_spoken", recovery.nodes_spoken()},
          {"nodes_silent", recovery.nodes_silent()},
          {"silent", JsonList(recovery.silent())},
          {"unverified", JsonList(recovery.unverified())},
          {"claimed", recovery.claimed()},
          {"store_id", recovery.store_id()},
          {"epoch", recovery.epoch()}};
}

std::string SilentOf(const v1::RecoveryInfo& recovery) {
  std::string text = absl::StrJoin(recovery.silent(), ", ");
  const auto named = static_cast<uint64_t>(recovery.silent_size());
  if (named < recovery.nodes_silent()) {
    text += fmt::format("{}{} more", text.empty() ? "" : " and ", recovery.nodes_silent() - named);
  }
  return text;
}

std::string TextOf(const v1::RecoveryInfo& recovery) {
  std::string text;
  if (recovery.phase() == "open") {
    text += "No recovery is under way: the store is the newest there is.\n";
  } else {
    text += fmt::format(
        "No node gets or gives back an address: {}.\n\n"
        "Nodes that have spoken: {}\n"
        "Nodes that have not:    {}{}\n",
        Printable(recovery.reason()), recovery.nodes_spoken(), recovery.nodes_silent(),
        recovery.nodes_silent() == 0 ? "" : " (" + Printable(SilentOf(recovery)) + ")");
    if (recovery.claimed() > 0) {
      text += fmt::format("Undecided between two:  {} addresses or blocks\n", recovery.claimed());
    }
    text += fmt::format(
        "\nIt goes on by itself once all have spoken. What a node that stays silent was given "
        "since "
        "this store was written is unknown, and would be given to another node: only when no pods "
        "run on those nodes, or you know that none was given anything:\n"
        "  spokectl recovery confirm --silent-nodes {}\n",
        recovery.nodes_silent());
  }
  if (recovery.unverified_size() > 0) {
    text += fmt::format(
        "\nRefused, since what they show was not signed by this server's key:\n  {}\n"
        "What their pods use is kept from others. Put back the file store.key that belongs to this "
        "cluster; if it is lost, take these nodes in:\n"
        "  spokectl recovery confirm --silent-nodes {}\n",
        Printable(absl::StrJoin(recovery.unverified(), "\n  ")), recovery.nodes_silent());
  }
  return text;
}

absl::Status Print(const Session& session, const v1::RecoveryInfo& recovery) {
  if (!session.is_table()) return session.PrintValue(ToJson(recovery));
  session.Out(TextOf(recovery));
  return absl::OkStatus();
}

absl::StatusOr<int> Show(Session& session) {
  ASSIGN_OR_RETURN(const v1::RecoveryInfo recovery, session.client.Ask(kGetRecovery));
  return Done(Print(session, recovery));
}

absl::StatusOr<int> Confirm(Session& session) {
  v1::ConfirmRecoveryRequest request;
  request.set_nodes_silent(session.arguments.Count("silent-nodes"));
  ASSIGN_OR_RETURN(const v1::RecoveryInfo recovery, session.client.Ask(kConfirmRecovery, request));
  return Done(Print(session, recovery));
}

}  // namespace

Command RecoveryCommand() {
  return {
      .name = "recovery",
      .summary = "After a restored, lost or second store",
      .description =
          "Nodes keep what a server last told them of its store. When one shows more than the "
          "store knows, the store is an old one, or another, and what it calls free may be in "
          "use: then nothing is assigned or taken back until every node has spoken, or an "
          "operator has confirmed. Pods go on, and new ones get addresses that their node has.",
      .commands = {{.name = "show",
                    .summary = "Whether one is under way, and what it waits for",
                    .examples = {"spokectl recovery show", "spokectl recovery show -o json"},
                    .run = Show,
                    .watchable = true},
                   {.name = "confirm",
                    .summary = "Take the store for the newest there is",
                    .description =
                        "Ends the wait for nodes that have not spoken, and takes in, for an "
                        "hour, nodes that are refused because this server's key has not "
                        "signed what they show. Look at `spokectl recovery show` first.",
                    .examples = {"spokectl recovery confirm --silent-nodes 2"},
                    .options = {{.name = "silent-nodes",
                                 .value = "N",
                                 .help = "How many have not spoken, as recovery show says: another "
                                         "number is refused",
                                 .values = Values::kCountOrNone,
                                 .required = true}},
                    .run = Confirm}},
      .group = kGroupCare};
}

}  // namespace spoke::ctl
