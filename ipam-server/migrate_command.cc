#include "ipam-server/migrate_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "fmt/core.h"
#include "ipam-server/store/etcd/endpoint.h"
#include "ipam-server/store/etcd/etcd_store.h"
#include "ipam-server/store/migration.h"
#include "ipam-server/store/sqlite_store.h"
#include "lib/base/status.h"
#include "lib/daemon/daemon_main.h"
#include "lib/os/file.h"

namespace spoke::ipam {
namespace {

constexpr std::string_view kSqlite = "sqlite:";
constexpr size_t kMaxPasswordBytes = 4096;
constexpr int64_t kRecordsALine = 10'000;

// How a member of etcd is reached; for both ends, should both be etcd.
struct Credentials {
  std::string ca;
  std::string certificate;
  std::string key;
  std::string user;
  std::string password_file;
};

absl::StatusOr<std::unique_ptr<Store>> OpenPlace(StorePlace place, const Credentials& credentials) {
  if (!place.file.empty()) return OpenSqliteStore(place.file);
  EtcdOptions options{.access = std::move(place.access), .prefix = std::move(place.prefix)};
  options.access.ca = credentials.ca;
  options.access.certificate = credentials.certificate;
  options.access.key = credentials.key;
  options.access.user = credentials.user;
  if (!credentials.user.empty()) {
    ASSIGN_OR_RETURN(const std::string password,
                     os::ReadFile(credentials.password_file, kMaxPasswordBytes));
    options.access.password = std::string(absl::StripTrailingAsciiWhitespace(password));
  }
  options.leadership.name = "spokectl store migrate";
  options.leadership.on_lost = [](const absl::Status& why) {
    fmt::print(stderr, "the store was lost to another server: {}\n", base::MessageOf(why));
    ::_exit(daemon::kExitFailure);
  };
  ASSIGN_OR_RETURN(std::unique_ptr<EtcdStore> store, EtcdStore::Open(std::move(options)));
  return store;
}

absl::StatusOr<MigrationReport> Move(const std::string& from_text, const std::string& to_text,
                                     const Credentials& credentials) {
  ASSIGN_OR_RETURN(StorePlace from_place, ParseStorePlace(from_text));
  ASSIGN_OR_RETURN(StorePlace to_place, ParseStorePlace(to_text));
  // A file that is not there would be made, and be empty.
  if (!from_place.file.empty() && ::access(from_place.file.c_str(), F_OK) != 0) {
    return absl::NotFoundError(fmt::format("{}: no such file", from_place.file));
  }
  ASSIGN_OR_RETURN(const auto from, OpenPlace(std::move(from_place), credentials));
  ASSIGN_OR_RETURN(const auto to, OpenPlace(std::move(to_place), credentials));
  int64_t said = 0;
  return MigrateStore(*from, *to, absl::Now(), [&](std::string_view phase, int64_t records) {
    if (records >= said && records < said + kRecordsALine) return;
    said = records;
    fmt::print(stderr, "{}: {} records\n", phase, records);
  });
}

}  // namespace

absl::StatusOr<StorePlace> ParseStorePlace(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' names no store{}: write sqlite:/PATH, or etcd://HOST[:PORT][,HOST...]"
                    "[/PREFIX/], or etcds:// for TLS",
                    text, why));
  };
  StorePlace place;
  if (text.starts_with(kSqlite)) {
    place.file = text.substr(kSqlite.size());
    if (!place.file.starts_with('/')) return wrong(" (its path is not absolute)");
    return place;
  }
  const size_t colon = text.find("://");
  if (colon == std::string_view::npos) return wrong("");
  const std::string_view scheme = text.substr(0, colon);
  if (scheme != "etcd" && scheme != "etcds") return wrong("");
  std::string_view hosts = text.substr(colon + 3);
  if (const size_t slash = hosts.find('/'); slash != std::string_view::npos) {
    place.prefix = hosts.substr(slash);
    if (place.prefix == "/") place.prefix = StorePlace().prefix;
    if (!place.prefix.ends_with('/')) place.prefix += '/';
    hosts = hosts.substr(0, slash);
  }
  std::vector<std::string> endpoints;
  for (size_t at = 0; at <= hosts.size();) {
    const size_t comma = std::min(hosts.find(',', at), hosts.size());
    endpoints.push_back(
        fmt::format("{}://{}", scheme == "etcds" ? "https" : "http", hosts.substr(at, comma - at)));
    at = comma + 1;
  }
  auto parsed = etcd::ParseEndpoints(endpoints);
  if (!parsed.ok()) return wrong(fmt::format(" ({})", base::MessageOf(parsed.status())));
  place.access.endpoints = *std::move(parsed);
  return place;
}

int MigrateCommand(int argc, char** argv) {
  CLI::App app("Moves all records of the server's store to another store, while no server runs.");
  std::string from;
  std::string to;
  Credentials credentials;
  app.add_option("--from", from, "The store that has the records: sqlite:/PATH or etcd://HOST,...")
      ->required();
  app.add_option("--to", to, "An empty store, or one that an earlier run began to fill")
      ->required();
  app.add_option("--ca", credentials.ca, "File with the authority of etcd's certificates");
  app.add_option("--certificate", credentials.certificate, "File with our certificate for etcd");
  app.add_option("--key", credentials.key, "File with its key")->needs("--certificate");
  app.add_option("--user", credentials.user, "User of etcd");
  app.add_option("--password-file", credentials.password_file, "File with the user's password")
      ->needs("--user");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : daemon::kExitUsage;
  }
  daemon::ProtectProcess();
  const auto report = Move(from, to, credentials);
  if (!report.ok()) {
    fmt::print(stderr, "not moved: {}\n", base::MessageOf(report.status()));
    return absl::IsInvalidArgument(report.status()) ? daemon::kExitUsage : daemon::kExitFailure;
  }
  fmt::print("moved {} records from {} to {}, {} of them in this run; every one was read back\n",
             report->records, from, to, report->written);
  return 0;
}

}  // namespace spoke::ipam
