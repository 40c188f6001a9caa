#include "ipam-server/store/etcd/testing/etcd_cluster.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/os/subprocess.h"
#include "lib/os/unique_fd.h"

namespace spoke::ipam::etcd {
namespace {

constexpr const char* kEtcd = "/usr/bin/etcd";
constexpr const char* kEtcdctl = "/usr/bin/etcdctl";
constexpr absl::Duration kStartTime = absl::Seconds(60);

// Below the ports that the kernel hands out, and of this process's own, so that a member that was
// killed finds its port again.
uint16_t FreePort() {
  constexpr uint16_t kFirst = 12'000;
  constexpr uint32_t kPorts = 8'000;
  static uint32_t next = static_cast<uint32_t>(::getpid()) * 7;
  for (uint32_t i = 0; i < kPorts; ++i) {
    const auto port = static_cast<uint16_t>(kFirst + next++ % kPorts);
    const os::UniqueFd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    if (::bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      return port;
    }
  }
  CHECK(false, "one of eight thousand ports is free");
}

}  // namespace

EtcdCluster::EtcdCluster(ClusterOptions options) : options_(std::move(options)) {
  members_.resize(options_.members);
  for (Member& member : members_) member = {FreePort(), FreePort(), FreePort(), std::nullopt};
  for (size_t i = 0; i < members_.size(); ++i) Start(i);
  AwaitHealth();
}

std::vector<std::string> EtcdCluster::endpoints() const {
  std::vector<std::string> endpoints;
  for (const Member& member : members_) {
    endpoints.push_back(fmt::format("{}://127.0.0.1:{}", options_.scheme, member.client_port));
  }
  return endpoints;
}

Access EtcdCluster::access() const { return {.endpoints = ParseEndpoints(endpoints()).value()}; }

void EtcdCluster::Start(size_t member) {
  std::vector<std::string> peers;
  for (size_t i = 0; i < members_.size(); ++i) {
    peers.push_back(fmt::format("m{}=http://127.0.0.1:{}", i, members_[i].peer_port));
  }
  const Member& it = members_[member];
  const std::string client = fmt::format("{}://127.0.0.1:{}", options_.scheme, it.client_port);
  const std::string peer = fmt::format("http://127.0.0.1:{}", it.peer_port);
  std::vector<std::string> arguments = {
      kEtcd,
      "--name",
      fmt::format("m{}", member),
      "--data-dir",
      directory_.File(fmt::format("m{}-{}", member, generation_)),
      "--listen-client-urls",
      client,
      "--advertise-client-urls",
      client,
      "--listen-peer-urls",
      peer,
      "--initial-advertise-peer-urls",
      peer,
      "--initial-cluster",
      absl::StrJoin(peers, ","),
      "--initial-cluster-token",
      fmt::format("spoke-test-{}-{}", members_[0].peer_port, generation_),
      "--heartbeat-interval",
      "100",
      "--election-timeout",
      "1000",
      "--logger",
      "zap"};
  if (options_.quota_bytes > 0) {
    arguments.insert(arguments.end(),
                     {"--quota-backend-bytes", std::to_string(options_.quota_bytes)});
  }
  arguments.insert(arguments.end(), options_.flags.begin(), options_.flags.end());
  auto process = crash::ChildProcess::Start(arguments, directory_.File("log"));
  CHECK(process.ok(), "etcd can be started");
  members_[member].process.emplace(*std::move(process));
}

void EtcdCluster::Kill(size_t member) { members_[member].process.reset(); }

void EtcdCluster::SwapPort(size_t member) {
  std::swap(members_[member].client_port, members_[member].spare_port);
}

void EtcdCluster::Forget(size_t member) {
  CHECK(!members_[member].process, "a member that runs forgets nothing");
  ++generation_;
}

void EtcdCluster::Stop(size_t member) { members_[member].process->Signal(SIGSTOP); }

void EtcdCluster::Continue(size_t member) { members_[member].process->Signal(SIGCONT); }

void EtcdCluster::AwaitHealth() const {
  const absl::Time end = absl::Now() + kStartTime;
  while (absl::Now() < end) {
    const auto asked =
        os::RunProgram({kEtcdctl, "--endpoints", absl::StrJoin(endpoints(), ","),
                        "--insecure-skip-tls-verify", "--command-timeout=1s", "endpoint", "status"},
                       {.variables = {"ETCDCTL_API=3"}});
    // With TLS, whether it listens is enough: who may ask is what those tests are about.
    if (asked.ok() && asked->exit_code == 0) break;
    if (options_.scheme == "https" && asked.ok() &&
        asked->errors.find("connection refused") == std::string::npos) {
      break;
    }
    for (const Member& member : members_) {
      CHECK(!member.process || const_cast<crash::ChildProcess&>(*member.process).HasEnded().empty(),
            "etcd runs: /usr/bin/etcd is from the package etcd-server");
    }
    absl::SleepFor(absl::Milliseconds(50));
  }
  CHECK(absl::Now() < end, "the cluster becomes healthy");
  if (options_.scheme == "http") Ctl({"get", "x"});  // Needs a leader.
}

size_t EtcdCluster::Leader() const {
  const auto connection = Connection::Open(access());
  CHECK(connection.ok(), "a member answers");
  for (const absl::Time end = absl::Now() + kStartTime; absl::Now() < end;) {
    for (size_t i = 0; i < members_.size(); ++i) {
      const auto status = (*connection)->StatusOf(i);
      if (status.ok() && status->leader() == status->header().member_id()) return i;
    }
    absl::SleepFor(absl::Milliseconds(50));
  }
  CHECK(false, "a member leads");
}

std::string EtcdCluster::Ctl(const std::vector<std::string>& arguments) const {
  std::vector<std::string> command = {kEtcdctl, "--endpoints", absl::StrJoin(endpoints(), ","),
                                      "--command-timeout=20s"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const auto result =
      os::RunProgram(command, {.time = absl::Seconds(30), .variables = {"ETCDCTL_API=3"}});
  CHECK(result.ok(), "etcdctl runs");
  if (result->exit_code != 0) fmt::print(stderr, "etcdctl: {}\n", result->errors);
  CHECK(result->exit_code == 0, "etcdctl succeeds");
  return result->output;
}

}  // namespace spoke::ipam::etcd
