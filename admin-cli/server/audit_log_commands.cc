// What operators have changed: the verb `audit-log`, and of policy alone `policy history`.
#include <algorithm>

#include "admin-cli/output/list_form.h"
#include "admin-cli/session.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

using Record = v1::OperatorRecord;

Json ToJson(const Record& record) {
  return {{"time", TimeOf(record.unix_ms())},
          {"who", record.who()},
          {"role", record.role()},
          {"from", record.from()},
          {"method", record.method()},
          {"what", record.what()},
          {"policy_before", record.policy_before()},
          {"policy_after", record.policy_after()}};
}

absl::StatusOr<v1::ListOperatorLogRequest> RequestOf(const Session& session) {
  v1::ListOperatorLogRequest request;
  request.set_limit(session.arguments.Count("limit"));
  request.set_who(session.arguments.Text("who"));
  if (session.arguments.Has("since")) {
    ASSIGN_OR_RETURN(const absl::Time since,
                     ParseTime(session.arguments.Text("since"), session.now()));
    request.set_since_unix_ms(absl::ToUnixMillis(since));
  }
  return request;
}

ListForm<Record> LogForm() {
  return {.what = "changes by operators",
          .name = [](const Record& record) { return record.who(); },
          .json = [](const Record& record) { return ToJson(record); },
          .columns = {{"TIME", [](const Record& record) { return Cell{TimeOf(record.unix_ms())}; }},
                      {"WHO", [](const Record& record) { return Cell{record.who()}; }},
                      {"ROLE", [](const Record& record) { return Cell{record.role()}; }, true},
                      {"FROM", [](const Record& record) { return Cell{record.from()}; }},
                      {"CALL", [](const Record& record) { return Cell{record.method()}; }},
                      {"WHAT", [](const Record& record) { return Cell{record.what()}; }, false,
                       Fit::kWidth}}};
}

absl::StatusOr<int> AuditLog(Session& session) {
  ASSIGN_OR_RETURN(const v1::ListOperatorLogRequest request, RequestOf(session));
  ASSIGN_OR_RETURN(const auto response, session.client.Ask(kListOperatorLog, request));
  return Done(PrintList(session, LogForm(), response.records()));
}

absl::StatusOr<int> History(Session& session) {
  ASSIGN_OR_RETURN(v1::ListOperatorLogRequest request, RequestOf(session));
  request.set_policy_only(true);
  ASSIGN_OR_RETURN(const auto response, session.client.Ask(kListOperatorLog, request));
  const auto& undo = response.undo_to();
  const auto can_go_back = [&](const Record& record) {
    return std::find(undo.begin(), undo.end(), record.policy_before()) != undo.end();
  };
  return Done(PrintList(
      session,
      ListForm<Record>{
          .what = "changes of policy on record",
          .name = [](const Record& record) { return std::to_string(record.policy_after()); },
          .json =
              [&](const Record& record) {
                Json value = ToJson(record);
                value["can_go_back"] = can_go_back(record);
                return value;
              },
          .columns = {{"VERSION",
                       [](const Record& record) { return NumberCell(record.policy_after()); }},
                      {"TIME", [](const Record& record) { return Cell{TimeOf(record.unix_ms())}; }},
                      {"WHO", [](const Record& record) { return Cell{record.who()}; }},
                      {"BEFORE",
                       [&](const Record& record) {
                         return can_go_back(record) ? NumberCell(record.policy_before())
                                                    : Cell{"not kept", Tone::kFaint};
                       }},
                      {"WHAT", [](const Record& record) { return Cell{record.what()}; }, false,
                       Fit::kWidth}}},
      response.records()));
}

std::vector<Parameter> LogOptions() {
  return {{.name = "since",
           .value = "TIME",
           .help = "Only since then: 2024-05-01T12:00:00Z, or how long ago, such as 2d",
           .values = Values::kTime},
          {.name = "who", .value = "NAME", .help = "Only what this one has changed"},
          {.name = "limit",
           .value = "N",
           .help = "At most so many, the newest",
           .values = Values::kCount,
           .fallback = "100"}};
}

}  // namespace

Command AuditLogCommand() {
  return {
      .name = "audit-log",
      .summary = "Who has changed what, newest first",
      .description =
          "Each change by an operator is recorded with the change itself: who, by which "
          "certificate's name or by the socket, from where, and what. The server keeps the last "
          "10,000, for 90 days. spokectl audit is another thing: it compares the store with the "
          "cloud.",
      .examples = {"spokectl audit-log --since 2d", "spokectl audit-log --who alice -o json"},
      .options = LogOptions(),
      .run = AuditLog,
      .group = kGroupLook,
      .watchable = true};
}

Command PolicyHistoryVerb() {
  return {.name = "history",
          .summary = "Who has changed policy objects, and the version before each change",
          .description =
              "BEFORE is the version that spokectl rollout undo --to goes back to; what was before "
              "the last 20 changes is kept.",
          .examples = {"spokectl policy history", "spokectl policy history --since 7d -o yaml"},
          .options = LogOptions(),
          .run = History};
}

}  // namespace spoke::ctl
