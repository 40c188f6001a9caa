#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>

#include "admin-cli/output/list_form.h"
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

// The levels, those that weigh more later.
constexpr std::array<std::string_view, 3> kLevels = {"info", "warning", "error"};
// More than a server keeps: what is older than asked for is left out here.
constexpr uint32_t kAllKept = UINT32_MAX;
constexpr uint32_t kLastFew = 100;

// Which of the events that the server sends are wanted.
struct WantedEvents {
  absl::Time since = absl::InfinitePast();
  std::string level = "info";  // That and those above.

  bool Has(const v1::EventInfo& event) const {
    if (absl::FromUnixMillis(event.unix_ms()) < since) return false;
    const auto* const least = std::find(kLevels.begin(), kLevels.end(), level);
    // A level that is not known here is shown rather than lost.
    return std::find(kLevels.begin(), least, event.level()) == least;
  }
};

absl::StatusOr<WantedEvents> WantedOf(const Session& session) {
  WantedEvents wanted{.level = session.arguments.Text("level")};
  if (session.arguments.Has("since")) {
    ASSIGN_OR_RETURN(wanted.since, ParseTime(session.arguments.Text("since"), session.now()));
  }
  return wanted;
}

uint32_t LimitOf(const Arguments& arguments) {
  if (arguments.Has("limit")) return arguments.Count("limit");
  // What is not wanted is left out here, so that some of the last few would be less than they are.
  const bool filtered = arguments.Has("since") || arguments.Text("level") != kLevels.front();
  return filtered ? kAllKept : kLastFew;
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

absl::StatusOr<int> Events(Session& session) {
  ASSIGN_OR_RETURN(const WantedEvents wanted, WantedOf(session));
  v1::ListEventsRequest request;
  request.set_follow(session.arguments.Has("follow"));
  request.set_limit(LimitOf(session.arguments));
  request.set_node(session.arguments.Text("node"));
  if (session.format == Format::kName) return session.PrintValue({});
  Json values = Json::array();
  bool any = false;
  RETURN_IF_ERROR(session.client.Read(
      kListEvents, request,
      [&](const v1::ListEventsResponse& batch) {
        std::string text;
        for (const v1::EventInfo& event : batch.events()) {
          if (!wanted.Has(event)) continue;
          any = true;
          if (session.is_table()) {
            text += LineOf(event, session.colours);
          } else if (!request.follow()) {
            values.push_back(ToJson(event));
          } else if (session.format == Format::kJson) {
            // An endless list has no end bracket: one object a line instead.
            text += ToJson(event).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
          } else {
            text += "---\n" + FormatYaml(ToJson(event));
          }
        }
        session.Out(text);
        return session.world.console.written();  // A reader that has gone ends it.
      },
      request.follow()));
  // Those of a node that is gone are kept; where there are none, the name may be wrong.
  if (!any && !request.follow() && !request.node().empty()) {
    v1::GetNodeRequest node;
    node.set_name(request.node());
    RETURN_IF_ERROR(session.client.Ask(kGetNode, node).status());
  }
  if (!session.is_table() && !request.follow()) RETURN_IF_ERROR(session.PrintValue(values));
  if (session.is_table() && !any) session.Note("there are no events");
  return 0;
}

}  // namespace

Command EventsCommand() {
  return {
      .name = "events",
      .summary = "What has happened lately",
      .description =
          "The last events of the server's log that it keeps in memory, oldest first, "
          "and with --follow those to come. With --follow -o json, one object a line.",
      .examples = {"spokectl events", "spokectl events --follow --node node1",
                   "spokectl events --since 15m --level warning",
                   "spokectl events --limit 1000 -o json | jq '.[].event'"},
      .options = {{.name = "follow", .help = "Go on with those to come", .letter = 'f'},
                  {.name = "node",
                   .value = "NODE",
                   .help = "Only those about this node",
                   .values = Values::kNode},
                  {.name = "level",
                   .value = "LEVEL",
                   .help = "Only those of this level and above",
                   .choices = {"info", "warning", "error"},
                   .fallback = "info"},
                  {.name = "since",
                   .value = "TIME",
                   .help = "Only since then: 2024-05-01T12:00:00Z, or how long ago, such as 15m",
                   .values = Values::kTime},
                  {.name = "limit",
                   .value = "N",
                   .help =
                       "How many of the last to look at; 100, with --since or --level all, unless "
                       "said",
                   .values = Values::kCount}},
      .run = Events,
      .group = kGroupLook};
}

}  // namespace spoke::ctl
