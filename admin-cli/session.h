// The things that a verb works with: the command line's words, the server, the console and the
// time. Not thread-safe. Everything is borrowed and outlives it.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "admin-cli/client.h"
#include "admin-cli/command.h"
#include "admin-cli/output/change_marks.h"
#include "admin-cli/output/console.h"
#include "admin-cli/output/table.h"
#include "lib/os/clock.h"

namespace spoke::ctl {

// The things that the process gives a command line to run in.
struct World {
  Console& console;
  const os::Clock& clock;
  // Waits that long; false: stop now.
  std::function<bool(absl::Duration)> wait;
  // Returns the environment variable; empty when unset.
  std::function<std::string(const std::string&)> variable;
  // The words that call this program, for its help: "spokectl", or "kubectl spoke".
  std::string program = "spokectl";
};

class Session {
 public:
  Session(const Command& command_tree, const Arguments& command_line, const World& around,
          const Client& server)
      : root(command_tree), arguments(command_line), world(around), client(server) {}

  const Command& root;
  const Arguments& arguments;
  const World& world;
  const Client& client;
  Format format = Format::kTable;
  bool header = true;
  bool colours = false;
  ChangeMarks* marks = nullptr;  // Where --watch marks what has changed; else nullptr.

  void Out(std::string_view text) const { world.console.Out(text); }
  // Prints "spokectl: ..." on standard error, for what is not an error either.
  void Note(std::string_view text) const;
  absl::Time now() const { return world.clock.Now(); }
  bool is_table() const { return format == Format::kTable || format == Format::kWide; }

  // Prints `value` as JSON or YAML. Errors: kInvalidArgument (-o name, where nothing has a name).
  absl::Status PrintValue(const nlohmann::ordered_json& value) const;

  // Prints one thing in each form: its name, `value`, or for people `text`.
  absl::Status PrintOne(std::string_view name, const nlohmann::ordered_json& value,
                        std::string_view text) const;

  // Returns a table, and one "Name:  value" a line, as FormatTable() and FormatFields() do, with
  // what has changed since the picture before marked. `names` are those of the rows.
  std::string Table(const std::vector<std::string>& titles, std::vector<Row> rows,
                    const std::vector<std::string>& names) const;
  std::string Fields(std::vector<std::pair<std::string, Cell>> fields) const;

  // Returns "5m" since then; empty for 0.
  std::string AgeOf(int64_t unix_ms) const;
  // Returns "5m ago"; "never" for 0.
  std::string AgoOf(int64_t unix_ms) const;
  // Returns "40s" for what comes 40 s from now; "now" for what is due; empty for 0.
  std::string UntilOf(int64_t unix_ms) const;
};

// Ends a verb: with exit code 0, or with what went wrong.
inline absl::StatusOr<int> Done(const absl::Status& status) {
  if (!status.ok()) return status;
  return 0;
}

// Returns RFC 3339 in UTC; empty for 0.
std::string TimeOf(int64_t unix_ms);

}  // namespace spoke::ctl
