// spoke-ipam-server: reads the configuration, opens the store or stands by until it may, and
// serves until a signal comes.
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "ipam-server/config.h"
#include "ipam-server/migrate_command.h"
#include "ipam-server/server.h"
#include "ipam-server/standby/standby.h"
#include "ipam-server/store/etcd/etcd_store.h"
#include "ipam-server/store/sqlite_store.h"
#include "lib/daemon/daemon_main.h"
#include "lib/daemon/probe.h"
#include "lib/daemon/served_health.h"
#include "lib/os/environment.h"
#include "lib/os/file.h"
#include "lib/os/signals.h"
#include "lib/tls/lean_connections.h"

namespace spoke::ipam {
namespace {

constexpr size_t kMaxPasswordBytes = 4096;

absl::StatusOr<EtcdOptions> OptionsOf(const EtcdConfig& config, const std::string& directory) {
  EtcdOptions options{.access = {.endpoints = config.endpoints,
                                 .ca = config.ca,
                                 .certificate = config.certificate,
                                 .key = config.key,
                                 .user = config.user},
                      .prefix = config.prefix,
                      .directory = directory};
  if (!config.user.empty()) {
    ASSIGN_OR_RETURN(const std::string password,
                     os::ReadFile(config.password_file, kMaxPasswordBytes));
    options.access.password = std::string(absl::StripTrailingAsciiWhitespace(password));
  }
  options.leadership.name = config.name;
  options.leadership.lease = config.lease;
  return options;
}

std::string NameOfThisMachine() {
  std::array<char, HOST_NAME_MAX + 1> machine{};
  ::gethostname(machine.data(), machine.size() - 1);
  return machine.data();
}

// Leads at once, or stands by until it may.
absl::Status ServeFromEtcd(ServerConfig config, const os::SignalWaiter& signals,
                           telemetry::Log& log) {
  if (config.etcd->name.empty()) config.etcd->name = NameOfThisMachine();
  daemon::ServedHealth health(HealthOf(config), log);
  ASSIGN_OR_RETURN(EtcdOptions options, OptionsOf(*config.etcd, os::DirectoryOf(config.sqlite)));
  options.leadership.alive = [&beat = health.heartbeat(kLoopHeartbeat)] {
    return beat.SilentFor() <= etcd::kLongestCommit;
  };
  // Another server decides from now on; nothing of what this one knows is to be carried out.
  options.leadership.on_lost = [&log](const absl::Status& why) {
    log.Error("leadership_lost", {{"error", why}});
    ::_exit(daemon::kExitFailure);
  };
  ASSIGN_OR_RETURN(const Led led, Lead(config, std::move(options),
                                       {.health = health, .signals = signals, .log = log}));
  if (led.store == nullptr) return absl::OkStatus();
  return RunServer(config, {.store = *led.store,
                            .health = health,
                            .signals = signals,
                            .log = log,
                            .margin = [&store = *led.store] { return store.LeadershipMargin(); },
                            .leadership = led.store->Leadership(),
                            .trusts_mark = led.store_proven,
                            .trouble = [&store = *led.store] { return store.Trouble(); }});
}

absl::Status Serve(const ServerConfig& config, telemetry::Log& log) {
  RETURN_IF_ERROR(tls::MakeConnectionsLean());
  const os::SignalWaiter signals({SIGINT, SIGTERM});
  if (config.etcd) return ServeFromEtcd(config, signals, log);
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, OpenSqliteStore(config.sqlite));
  daemon::ServedHealth health(HealthOf(config), log);
  return RunServer(config, {.store = *store, .health = health, .signals = signals, .log = log});
}

}  // namespace
}  // namespace spoke::ipam

int main(int argc, char** argv) {
  // What the loop makes for operators is freed on their threads. By default the allocator keeps
  // such small pieces apart and joins them all at once, on whatever thread: a listing of 200,000
  // addresses then held the loop for 130 ms.
  ::mallopt(M_MXFAST, 0);
  if (argc > 1 && argv[1] == spoke::ipam::kMigrateCommand) {
    return spoke::daemon::Guarded([&] { return spoke::ipam::MigrateCommand(argc - 1, argv + 1); });
  }
  const auto parse = [](std::string_view text, const std::string& file) {
    return spoke::ipam::ParseServerConfig(text, file, &spoke::os::CheckDirectory,
                                          &spoke::os::EnvironmentVariable);
  };
  return spoke::daemon::Main(
      argc, argv,
      {.about = "spoke-ipam-server decides which node has which pod addresses.",
       .config_path = "/etc/spoke/ipam-server.yaml",
       .check =
           [](std::string_view text, const std::string& file) {
             return spoke::ipam::ParseServerConfig(text, file, &spoke::daemon::NoteMissingDirectory,
                                                   &spoke::os::EnvironmentVariable)
                 .status();
           },
       .commands = {spoke::daemon::ProbeCommand("spoke-ipam-server", parse)}},
      parse, &spoke::ipam::Serve);
}
