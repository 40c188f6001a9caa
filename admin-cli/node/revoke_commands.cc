// The verbs about identities that are taken no more: revoke, unrevoke, revoked.
#include <string>
#include <utility>
#include <vector>

#include "admin-cli/output/list_form.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

// What the command line names.
struct Named {
  std::string kind;
  std::string value;
};

absl::StatusOr<Named> NamedBy(const Arguments& arguments) {
  std::vector<Named> named;
  for (const char* kind : {"node", "serial", "machine"}) {
    if (arguments.Has(kind)) named.push_back({kind, arguments.Text(kind)});
  }
  if (named.size() == 1) return named.front();
  return absl::InvalidArgumentError(
      "name one thing: a NODE, or a certificate with --serial, or a machine with --machine");
}

Json ToJson(const v1::RevokedIdentity& identity) {
  return {{"kind", identity.kind()},
          {"value", identity.value()},
          {"reason", identity.reason()},
          {"by", identity.by()},
          {"since", TimeOf(identity.since_unix_ms())},
          {"until", TimeOf(identity.until_unix_ms())}};
}

ListForm<v1::RevokedIdentity> RevokedForm(const Session& session) {
  using Identity = v1::RevokedIdentity;
  return {
      .what = "revoked identities",
      .name = [](const Identity& one) { return one.kind() + "/" + one.value(); },
      .json = [](const Identity& one) { return ToJson(one); },
      .columns = {{"KIND", [](const Identity& one) { return Cell{one.kind()}; }},
                  {"VALUE", [](const Identity& one) { return Cell{one.value()}; }},
                  {"AGE",
                   [&](const Identity& one) { return Cell{session.AgeOf(one.since_unix_ms())}; }},
                  {"LEFT",
                   [&](const Identity& one) {
                     return Cell{one.until_unix_ms() == 0 ? "for ever"
                                                          : session.UntilOf(one.until_unix_ms())};
                   }},
                  {"REASON", [](const Identity& one) { return Cell{one.reason()}; }},
                  {"BY", [](const Identity& one) { return Cell{one.by()}; }, true}}};
}

// Says that a node that was revoked is one the server has never seen: that is allowed, since a
// machine may be lost before it comes, but a name that was mistyped revokes nobody.
void NoteUnknownNode(Session& session, const std::string& name) {
  v1::GetNodeRequest request;
  request.set_name(name);
  const absl::Status status = session.client.Ask(kGetNode, request).status();
  if (!absl::IsNotFound(status)) return;
  session.Note(
      fmt::format("{}. It will not be taken if it comes; if the name is wrong: spokectl "
                  "node unrevoke {}",
                  base::MessageOf(status), name));
}

absl::StatusOr<int> Revoke(Session& session) {
  ASSIGN_OR_RETURN(const Named named, NamedBy(session.arguments));
  v1::RevokeIdentityRequest request;
  request.set_kind(named.kind);
  request.set_value(named.value);
  request.set_reason(session.arguments.Text("reason"));
  if (session.arguments.Has("for")) {
    request.set_ttl_ms(absl::ToInt64Milliseconds(session.arguments.Duration("for")));
  }
  ASSIGN_OR_RETURN(const v1::RevokeIdentityResponse response,
                   session.client.Ask(kRevokeIdentity, request));
  const v1::RevokedIdentity& identity = response.identity();
  if (named.kind == "node" && response.sessions_ended() == 0) NoteUnknownNode(session, named.value);
  Json value = ToJson(identity);
  value["sessions_ended"] = response.sessions_ended();
  return Done(
      session.PrintOne(identity.kind() + "/" + identity.value(), value,
                       fmt::format("{} {} is revoked; {} sessions ended\n", identity.kind(),
                                   Printable(identity.value()), response.sessions_ended())));
}

absl::StatusOr<int> Unrevoke(Session& session) {
  ASSIGN_OR_RETURN(const Named named, NamedBy(session.arguments));
  v1::UnrevokeIdentityRequest request;
  request.set_kind(named.kind);
  request.set_value(named.value);
  RETURN_IF_ERROR(session.client.Ask(kUnrevokeIdentity, request).status());
  return Done(session.PrintOne(
      named.kind + "/" + named.value, {{"kind", named.kind}, {"value", named.value}},
      fmt::format("{} {} is revoked no more\n", named.kind, Printable(named.value))));
}

absl::StatusOr<int> List(Session& session) {
  ASSIGN_OR_RETURN(const v1::ListRevokedResponse response, session.client.Ask(kListRevoked));
  return Done(PrintList(session, RevokedForm(session), response.identities()));
}

Parameter NodeParameter() {
  return {.name = "node", .value = "NODE", .help = "Name of a node", .values = Values::kNode};
}

std::vector<Parameter> OtherNames() {
  return {{.name = "serial",
           .value = "HEX",
           .help = "A certificate instead, by its serial number (event node_enrolled)"},
          {.name = "machine",
           .value = "ID",
           .help = "A machine instead, by its VM id or the cloud's name of it, whatever node it "
                   "says it is"}};
}

}  // namespace

Command RevokeCommand() {
  std::vector<Parameter> options = OtherNames();
  options.push_back(
      {.name = "reason", .value = "TEXT", .help = "Why, for other operators and the node's log"});
  options.push_back({.name = "for",
                     .value = "TIME",
                     .help = "How long: 12h, 30d. Without it: until it is lifted",
                     .values = Values::kDuration});
  return {.name = "revoke",
          .summary = "Take a node, a certificate or a machine no more",
          .description =
              "For a machine that was taken over or lost. Its sessions end at once, and it gets no "
              "certificate any more. Its pods keep their network, and the server keeps its "
              "addresses for it: when the machine is gone, end its record with spokectl node "
              "forget.",
          .examples = {"spokectl node revoke node1 --reason 'stolen disk'",
                       "spokectl node revoke --machine 8f2c1c5e-7d0b-4a11-9c5e-1f2e3d4c5b6a",
                       "spokectl node revoke --serial 7f3a00c1 --for 2d"},
          .positionals = {NodeParameter()},
          .options = std::move(options),
          .run = Revoke};
}

Command UnrevokeCommand() {
  return {.name = "unrevoke",
          .summary = "Take again what was revoked",
          .description =
              "The agent comes back by itself, with the certificate that it has or a "
              "new one.",
          .examples = {"spokectl node unrevoke node1", "spokectl node unrevoke --serial 7f3a00c1"},
          .positionals = {NodeParameter()},
          .options = OtherNames(),
          .run = Unrevoke};
}

Command RevokedCommand() {
  return {.name = "revoked",
          .summary = "What is revoked, why, and until when",
          .examples = {"spokectl node revoked", "spokectl node revoked -o json"},
          .run = List,
          .watchable = true};
}

}  // namespace spoke::ctl
