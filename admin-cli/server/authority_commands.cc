// The noun `authority`: whose signatures count, and how a new root takes the place of the present.

#include "admin-cli/output/list_form.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

Json ToJson(const v1::RootInfo& root) {
  return {{"name", root.name()},
          {"serial", root.serial()},
          {"state", root.state()},
          {"since", TimeOf(root.since_unix_ms())},
          {"state_ends", TimeOf(root.state_ends_unix_ms())},
          {"not_after", TimeOf(root.not_after_unix_ms())},
          {"certificate", root.certificate()}};
}

ListForm<v1::RootInfo> RootForm(const Session& session) {
  using Root = v1::RootInfo;
  return {.what = "roots",
          .name = [](const Root& root) { return root.name(); },
          .json = [](const Root& root) { return ToJson(root); },
          .columns =
              {{"NAME", [](const Root& root) { return Cell{root.name()}; }},
               {"STATE",
                [](const Root& root) {
                  return Cell{root.state(), root.state() == "signing" ? Tone::kGood : Tone::kPlain};
                }},
               {"AGE", [&](const Root& root) { return Cell{session.AgeOf(root.since_unix_ms())}; }},
               {"NEXT STEP",
                [&](const Root& root) {
                  return Cell{root.state_ends_unix_ms() == 0
                                  ? "none"
                                  : session.UntilOf(root.state_ends_unix_ms())};
                }},
               {"ENDS", [](const Root& root) { return Cell{TimeOf(root.not_after_unix_ms())}; }},
               {"SERIAL", [](const Root& root) { return Cell{root.serial()}; }, true}}};
}

absl::StatusOr<int> List(Session& session) {
  ASSIGN_OR_RETURN(const v1::ListRootsResponse response, session.client.Ask(kListRoots));
  return Done(PrintList(session, RootForm(session), response.roots()));
}

absl::StatusOr<int> Rotate(Session& session) {
  ASSIGN_OR_RETURN(const v1::ListRootsResponse response, session.client.Ask(kRotateAuthority));
  return Done(PrintList(session, RootForm(session), response.roots()));
}

}  // namespace

Command AuthorityCommand() {
  return {.name = "authority",
          .summary = "The authority that signs agents' certificates",
          .description =
              "Agents and server trust each other by its roots. A new root takes the "
              "place of the present one in stages, so that no agent is cut off.",
          .commands = {{.name = "list",
                        .summary = "The roots whose signatures count",
                        .description =
                            "STATE is next (trusted, and signs nothing yet), signing, or retired "
                            "(trusted until nothing that it has signed is good any more). NEXT "
                            "STEP says when the state ends by itself.",
                        .examples = {"spokectl authority list",
                                     "spokectl authority list -o json | jq -r '.[].certificate'"},
                        .run = List,
                        .watchable = true},
                       {.name = "rotate",
                        .summary = "Begin to replace the root by a new one",
                        .description =
                            "Makes a new root, which signs once every agent that may still renew "
                            "its certificate has heard of it; then the former one is retired. Each "
                            "of the two stages takes the life of a certificate and a week. Nothing "
                            "else is to be done.",
                        .examples = {"spokectl authority rotate"},
                        .run = Rotate}},
          .group = kGroupCare};
}

}  // namespace spoke::ctl
