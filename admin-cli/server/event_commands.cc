#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "admin-cli/output/list_form.h"
#include "admin-cli/pod/wanted_pods.h"
#include "admin-cli/verbs.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

Json ToJson(const v1::EventInfo& event) {
  Json fields = Json::object();
  for (const auto& [key, value] :
       std::map<std::string, std::string>(event.fields().begin(), event.fields().end())) {
    fields[key] = value;
  }
  return {{"time", TimeOf(event.unix_ms())},
          {"level", event.level()},
          {"event", event.event()},
          {"fields", fields}};
}

Tone ToneOf(const std::string& level) {
  if (level == "error") return Tone::kBad;
  return level == "warning" ? Tone::kWarning : Tone::kPlain;
}

// More than a server keeps.
constexpr uint32_t kAllKept = UINT32_MAX;
constexpr uint32_t kLastFew = 100;

std::string FieldOf(const v1::EventInfo& event, const std::string& key) {
  const auto found = event.fields().find(key);
  return found == event.fields().end() ? "" : found->second;
}

// Returns whether an event is about one of the pods, or their namespace: it says which in `pod`,
// which may be NAMESPACE/NAME, and in `namespace`.
bool IsAbout(const v1::EventInfo& event, const WantedPods& pods) {
  std::string of_namespace = FieldOf(event, "namespace");
  std::string name = FieldOf(event, "pod");
  if (const size_t slash = name.find('/'); slash != std::string::npos) {
    of_namespace = name.substr(0, slash);
    name.erase(0, slash + 1);
  }
  return !(of_namespace.empty() && name.empty()) && pods.Has(of_namespace, name);
}

// Which of the events that the server sends are wanted.
struct WantedEvents {
  WantedPods pods;
  absl::Time since = absl::InfinitePast();
  std::string level;  // That and those above.
  uint32_t last = kLastFew;

  bool all() const {
    return level == kLevels.front() && since == absl::InfinitePast() && pods.all();
  }
  bool Has(const v1::EventInfo& event) const {
    if (!pods.all() && !IsAbout(event, pods)) return false;
    return absl::FromUnixMillis(event.unix_ms()) >= since && IsOfLevel(event.level(), level);
  }
};

absl::StatusOr<WantedEvents> WantedOf(const Session& session) {
  WantedEvents wanted{.level = session.arguments.Text("level")};
  ASSIGN_OR_RETURN(wanted.pods, WantedPodsOf(session));
  if (session.arguments.Has("since")) {
    ASSIGN_OR_RETURN(wanted.since, ParseTime(session.arguments.Text("since"), session.now()));
    wanted.last = kAllKept;
  }
  for (const char* option : {"limit", "tail"}) {
    if (session.arguments.Has(option)) wanted.last = session.arguments.Count(option);
  }
  return wanted;
}

// Prints a line as in a log. The columns are fixed, since nobody knows what will come.
std::string LineOf(const v1::EventInfo& event, bool colours) {
  std::string fields;
  for (const auto& [key, value] :
       std::map<std::string, std::string>(event.fields().begin(), event.fields().end())) {
    const bool quote = value.empty() || value.find_first_of(" \"=") != std::string::npos;
    fields += fmt::format(
        " {}={}", key,
        quote ? Json(value).dump(-1, ' ', false, Json::error_handler_t::replace) : value);
  }
  return fmt::format(
      "{:<24}  {}  {:<24} {}\n", TimeOf(event.unix_ms()),
      Coloured(fmt::format("{:<7}", Printable(event.level())), ToneOf(event.level()), colours),
      Printable(event.event()), Printable(fields));
}

// Returns an event in the session's format, as a part of an endless list: that has no end bracket,
// so that JSON is one object a line.
std::string FollowedText(const Session& session, const v1::EventInfo& event) {
  if (session.is_table()) return LineOf(event, session.colours);
  if (session.format == Format::kYaml) return "---\n" + FormatYaml(ToJson(event));
  return ToJson(event).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::Status Follow(Session& session, const WantedEvents& wanted,
                    const v1::ListEventsRequest& request) {
  return session.client.Read(
      kListEvents, request,
      [&](const v1::ListEventsResponse& batch) {
        std::string text;
        for (const v1::EventInfo& event : batch.events()) {
          if (wanted.Has(event)) text += FollowedText(session, event);
        }
        session.Out(text);
        return session.world.console.written();  // A reader that has gone ends it.
      },
      /*patient=*/true);
}

// Returns the last ones that are wanted, oldest first.
absl::StatusOr<std::deque<v1::EventInfo>> LastOf(const Session& session, const WantedEvents& wanted,
                                                 const v1::ListEventsRequest& request) {
  std::deque<v1::EventInfo> events;
  RETURN_IF_ERROR(
      session.client.Read(kListEvents, request, [&](const v1::ListEventsResponse& batch) {
        for (const v1::EventInfo& event : batch.events()) {
          if (!wanted.Has(event)) continue;
          events.push_back(event);
          if (events.size() > wanted.last) events.pop_front();
        }
        return absl::OkStatus();
      }));
  return events;
}

absl::StatusOr<int> Events(Session& session) {
  if (session.format == Format::kName) return session.PrintValue({});
  ASSIGN_OR_RETURN(const WantedEvents wanted, WantedOf(session));
  v1::ListEventsRequest request;
  request.set_follow(session.arguments.Has("follow"));
  // The server knows of no filter but the node.
  request.set_limit(wanted.all() ? wanted.last : kAllKept);
  request.set_node(session.arguments.Text("node"));
  if (request.follow()) return Done(Follow(session, wanted, request));
  ASSIGN_OR_RETURN(const auto events, LastOf(session, wanted, request));
  // Those of a node that is gone are kept; where there are none, the name may be wrong.
  if (events.empty() && !request.node().empty()) {
    v1::GetNodeRequest node;
    node.set_name(request.node());
    RETURN_IF_ERROR(session.client.Ask(kGetNode, node).status());
  }
  if (!session.is_table()) return Done(session.PrintValue(JsonList(events, ToJson)));
  for (const v1::EventInfo& event : events) session.Out(LineOf(event, session.colours));
  if (events.empty()) {
    session.Note(wanted.all() ? "there are no events" : "there are no such events");
  }
  return 0;
}

}  // namespace

Command EventsCommand() {
  std::vector<Parameter> options = {
      {.name = "follow", .help = "Go on with those to come", .letter = 'f'},
      {.name = "node",
       .value = "NODE",
       .help = "Only those about this node",
       .values = Values::kNode},
      LevelOption(),
      {.name = "since",
       .value = "TIME",
       .help = "Only since then: 2024-05-01T12:00:00Z, or how long ago, such as 15m",
       .values = Values::kTime},
      {.name = "limit",
       .value = "N",
       .help = "How many of the last; 100, with --since all, unless said",
       .values = Values::kCount},
      {.name = "tail",
       .value = "N",
       .help = "The same as --limit, as spokectl logs has it",
       .values = Values::kCount}};
  for (Parameter& option : PodOptions("those that name")) options.push_back(std::move(option));
  return {.name = "events",
          .summary = "What has happened lately",
          .description =
              "The last events of the server's log that it keeps in memory, oldest first, "
              "and with --follow those to come. With --follow -o json, one object a line. Most are "
              "about nodes; those about pods say so in their fields.",
          .examples = {"spokectl events", "spokectl events --follow --node node1",
                       "spokectl events --since 15m --level warning",
                       "spokectl events --limit 1000 -o json | jq '.[].event'"},
          .options = std::move(options),
          .run = Events,
          .group = kGroupLook};
}

}  // namespace spoke::ctl
