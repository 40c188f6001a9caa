#include <algorithm>

#include "admin-cli/output/console.h"
#include "admin-cli/output/list_form.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

using Difference = v1::AuditDifference;

Json ToJson(const Difference& difference) {
  return {{"kind", difference.kind()},
          {"node", difference.node()},
          {"vm_id", difference.vm_id()},
          {"address", difference.address()},
          {"first_seen", TimeOf(difference.first_seen_unix_ms())},
          {"cause", difference.cause()},
          {"repair", difference.repair()},
          {"repaired", difference.repaired()}};
}

Cell RepairCell(const Difference& difference) {
  if (difference.repaired()) return {"done: " + difference.repair(), Tone::kGood};
  if (difference.repair().empty()) return {"none is safe", Tone::kBad};
  return {difference.repair()};
}

ListForm<Difference> DifferenceForm(const Session& session) {
  return {.what = "differences",
          .name = [](const Difference& difference) { return difference.address(); },
          .json = [](const Difference& difference) { return ToJson(difference); },
          .columns = {{"DIFFERENCE",
                       [](const Difference& one) {
                         return Cell{one.kind(), one.repaired() ? Tone::kGood : Tone::kWarning};
                       }},
                      {"NODE", [](const Difference& one) { return Cell{one.node()}; }},
                      {"ADDRESS", [](const Difference& one) { return Cell{one.address()}; }},
                      {"AGE",
                       [&](const Difference& one) {
                         return Cell{session.AgeOf(one.first_seen_unix_ms())};
                       }},
                      {"VM", [](const Difference& one) { return Cell{one.vm_id()}; }, true},
                      {"CAUSE", [](const Difference& one) { return Cell{one.cause()}; }},
                      {"REPAIR", RepairCell}}};
}

int CountOpen(const v1::AuditResponse& result) {
  int open = 0;
  for (const Difference& difference : result.differences()) open += difference.repaired() ? 0 : 1;
  return open;
}

std::string Verdict(const v1::AuditResponse& result) {
  const int all = result.differences_size();
  std::string text = Counted(result.nodes_total(), "node", "nodes") + " compared: ";
  if (all == 0) {
    text += "no differences";
  } else {
    text += fmt::format("{}, {} repaired",
                        Counted(static_cast<uint64_t>(all), "difference", "differences"),
                        all - CountOpen(result));
  }
  const uint64_t heard =
      result.agents_asked() - std::min(result.agents_asked(), result.agents_silent());
  if (heard < result.nodes_total()) {
    text += fmt::format("; {} of them without their agents, which are away or did not answer",
                        result.nodes_total() - heard);
  }
  return text;
}

absl::StatusOr<int> Audit(Session& session) {
  v1::AuditRequest request;
  request.set_repair(session.arguments.Has("repair"));
  // The last message has the count of nodes too, and all the differences; they may come in pieces.
  v1::AuditResponse result;
  {
    Progress progress(session.world.console, "audit");
    RETURN_IF_ERROR(session.client.Read(kAudit, request, [&](const v1::AuditResponse& message) {
      progress.Show(message.nodes_done(), message.nodes_total(),
                    fmt::format("{} of {} nodes", message.nodes_done(), message.nodes_total()));
      result.set_nodes_total(message.nodes_total());
      result.set_nodes_done(message.nodes_done());
      result.set_agents_asked(message.agents_asked());
      result.set_agents_silent(message.agents_silent());
      result.set_done(message.done());
      result.set_releases_frozen(message.releases_frozen());
      result.set_cloud_error(message.cloud_error());
      result.mutable_differences()->MergeFrom(message.differences());
      return absl::OkStatus();
    }));
  }
  if (!result.done()) {
    return absl::InternalError("the server ended the audit early; see its log");
  }
  if (session.is_table()) {
    if (!result.differences().empty()) {
      RETURN_IF_ERROR(PrintList(session, DifferenceForm(session), result.differences()));
      session.Out("\n");
    }
    session.Out(Coloured(Verdict(result), CountOpen(result) == 0 ? Tone::kGood : Tone::kBad,
                         session.colours) +
                "\n");
    if (!result.cloud_error().empty()) {
      session.Out(fmt::format("The cloud was not compared, since it could not be asked: {}\n",
                              Printable(result.cloud_error())));
    }
    if (!result.releases_frozen().empty()) {
      session.Out(fmt::format(
          "Releases are frozen, so that what they would mend stays: {}. See spokectl unfreeze\n",
          Printable(result.releases_frozen())));
    }
  } else {
    Json value = {{"nodes", result.nodes_total()},
                  {"agents_asked", result.agents_asked()},
                  {"agents_silent", result.agents_silent()},
                  {"cloud_error", result.cloud_error()},
                  {"releases_frozen", result.releases_frozen()},
                  {"differences", Json::array()}};
    for (const Difference& one : result.differences()) value["differences"].push_back(ToJson(one));
    RETURN_IF_ERROR(session.PrintValue(value));
  }
  if (CountOpen(result) > 0) return 1;
  return result.cloud_error().empty() ? 0 : 2;
}

}  // namespace

Command AuditCommand() {
  return {
      .name = "audit",
      .summary = "Compare the store, the cloud and the agents",
      .description =
          "Finds where the server's store, the cloud and the agents differ, with the "
          "age and the cause of each difference and its safe repair. Takes no lock; "
          "what changes meanwhile is looked at again before it counts.",
      .examples = {"spokectl audit", "spokectl audit --repair",
                   "spokectl audit -o json | jq '.differences[] | select(.repair == \"\")'"},
      .options = {{.name = "repair",
                   .help = "Make the repairs that are safe; those that are not stay differences"}},
      .run = Audit,
      .group = kGroupLook,
      .exit_codes =
          "0 clean (or all repaired), 1 differences, 2 could not run, whatever the "
          "reason, or could not ask the cloud and found nothing without it.",
      .failure_code = 2,
      .failure_code_for_all = true};
}

}  // namespace spoke::ctl
