// The noun `store`: moves the server's records to another store. It is the server's own program
// that does it, since that is what knows its stores.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "admin-cli/session.h"
#include "admin-cli/verbs.h"
#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::ctl {
namespace {

constexpr const char* kServerProgram = "spoke-ipam-server";

// Returns the server's program: the one beside this program, or else a name to look up in PATH.
std::string FindServerProgram() {
  std::error_code failed;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (!failed) {
    const auto beside = self.parent_path() / kServerProgram;
    if (::access(beside.c_str(), X_OK) == 0) return beside;
  }
  return kServerProgram;
}

// Runs the program with our standard input and output, and returns its exit code. Errors: kNotFound
// (no such program); kInternal.
absl::StatusOr<int> Run(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, argv[0], nullptr, nullptr, argv.data(), environ);
  if (failed == ENOENT) {
    return absl::NotFoundError(fmt::format(
        "{} is neither beside spokectl nor in PATH: run this on a machine where the server is "
        "installed",
        kServerProgram));
  }
  if (failed != 0) return absl::ErrnoToStatus(failed, fmt::format("run {}", words[0]));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return absl::ErrnoToStatus(errno, "wait for the move");
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

absl::StatusOr<int> Migrate(Session& session) {
  std::vector<std::string> words = {FindServerProgram(), "migrate-store"};
  for (const char* option : {"from", "to", "ca", "certificate", "key", "user", "password-file"}) {
    if (!session.arguments.Has(option)) continue;
    words.push_back(fmt::format("--{}={}", option, session.arguments.Text(option)));
  }
  return Run(std::move(words));
}

}  // namespace

Command StoreCommand() {
  const Command migrate = {
      .name = "migrate",
      .summary = "Move all records to another store, while no server runs",
      .description =
          "Copies every record, reads both stores again and compares them, and only then puts the "
          "new one into service. A run that was cut short is continued by running it again. "
          "Afterwards no server starts on the old store, and nodes tell a server that runs on a "
          "copy of it that it is behind. Stop the servers first, name the new store in their "
          "configuration, and start them afterwards. It runs spoke-ipam-server, on this machine. "
          "A backup is a file of SQLite: to restore one into an empty etcd, name a copy of it as "
          "--from.",
      .examples =
          {"spokectl store migrate --from sqlite:/var/lib/spoke/ipam.db --to "
           "etcd://10.0.0.1,10.0.0.2,10.0.0.3",
           "spokectl store migrate --from etcds://etcd.example:2379/spoke/ --ca ca.pem --to "
           "sqlite:/var/lib/spoke/new.db"},
      .options = {{.name = "from",
                   .value = "STORE",
                   .help = "The store that has the records: sqlite:/PATH, etcd://HOST[:PORT],... "
                           "with a prefix such as /spoke/ behind it, or etcds:// for TLS",
                   .required = true},
                  {.name = "to",
                   .value = "STORE",
                   .help = "An empty one, or one that an earlier run began to fill",
                   .required = true},
                  {.name = "ca",
                   .value = "FILE",
                   .help = "The authority of etcd's certificates",
                   .values = Values::kFile},
                  {.name = "certificate",
                   .value = "FILE",
                   .help = "Our certificate for etcd",
                   .values = Values::kFile},
                  {.name = "key", .value = "FILE", .help = "Its key", .values = Values::kFile},
                  {.name = "user", .value = "NAME", .help = "The user of etcd"},
                  {.name = "password-file",
                   .value = "FILE",
                   .help = "The file with its password",
                   .values = Values::kFile}},
      .run = Migrate};
  return {.name = "store",
          .summary = "The server's store",
          .commands = CommandList({migrate}),
          .group = kGroupCare};
}

}  // namespace spoke::ctl
