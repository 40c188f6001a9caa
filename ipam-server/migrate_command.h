// The command `spoke-ipam-server migrate-store`: moves all records from one store to another, while
// no server runs. `spokectl store migrate` runs it.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ipam-server/store/etcd/connection.h"

namespace spoke::ipam {

inline constexpr std::string_view kMigrateCommand = "migrate-store";

// A store as operators name it: "sqlite:/var/lib/spoke/ipam.db", or
// "etcd://HOST[:PORT],...[/PREFIX]" with etcds:// for TLS.
struct StorePlace {
  std::string file;     // The file of SQLite; empty: it is etcd.
  etcd::Access access;  // The members of etcd; credentials are the caller's to add.
  std::string prefix = "/spoke/";
};

// Reads such a name. Errors: kInvalidArgument (anything else; the message shows the text and what
// it may be).
absl::StatusOr<StorePlace> ParseStorePlace(std::string_view text);

// Runs the command with the words behind its name. Returns the exit code: 0 the move is whole, 1 it
// is not, 2 wrong usage; standard error says what to do.
int MigrateCommand(int argc, char** argv);

}  // namespace spoke::ipam
