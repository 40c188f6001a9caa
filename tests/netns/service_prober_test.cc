// Tests of who asks resolvers and the metadata service, against small ones of the test's own, in a
// network namespace that has nothing else: some answer, some refuse, some say nothing, some say
// something wrong.
#include "lib/node_checks/services/service_prober.h"

#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <thread>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "lib/ip/socket_address.h"
#include "lib/node_checks/examine.h"
#include "lib/os/subprocess.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/temp_dir.h"

namespace spoke::node_checks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr ServiceProber::Patience kShort = {
    .dns = {.answer = absl::Milliseconds(200), .tries = 3},
    .metadata = {.answer = absl::Milliseconds(500), .tries = 2, .pause = absl::Milliseconds(10)}};
// For services that answer, however busy this machine is.
constexpr ServiceProber::Patience kLong = {
    .dns = {.answer = absl::Seconds(60), .tries = 3},
    .metadata = {.answer = absl::Seconds(60), .tries = 2, .pause = absl::Milliseconds(10)}};

// Serves a socket on a thread of its own until it goes.
class FakeService {
 public:
  // `serve` is called with the socket when something has come.
  FakeService(const std::string& address, uint16_t port, int type, std::function<void(int)> serve)
      : serve_(std::move(serve)) {
    const ip::SocketAddress at = ip::ToSocketAddress(ip::Address::Parse(address).value(), port);
    fd_ = os::UniqueFd(::socket(at.get()->sa_family, type | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(fd_.get(), at.get(), at.size), 0) << std::strerror(errno);
    if (type == SOCK_STREAM) {
      EXPECT_EQ(::listen(fd_.get(), 8), 0);
    }
    thread_ = std::thread([this] { Run(); });
  }
  ~FakeService() {
    stop_ = true;
    thread_.join();
  }
  FakeService(const FakeService&) = delete;
  FakeService& operator=(const FakeService&) = delete;

  int asked() const { return asked_; }

 private:
  void Run() {
    while (!stop_) {
      pollfd wanted{.fd = fd_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&wanted, 1, 10) <= 0) continue;
      ++asked_;
      serve_(fd_.get());
    }
  }

  const std::function<void(int)> serve_;
  os::UniqueFd fd_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> asked_ = 0;
  std::thread thread_;
};

// Makes an answer of a query; empty: none is sent.
using Answer = std::function<std::string(std::string query)>;

std::function<void(int)> Resolver(Answer answer) {
  return [answer = std::move(answer)](int fd) {
    std::array<char, 512> bytes{};
    ip::SocketAddress from;
    const ssize_t size = ::recvfrom(fd, bytes.data(), bytes.size(), 0, from.get(), &from.size);
    if (size <= 0) return;
    const std::string reply = answer(std::string(bytes.data(), static_cast<size_t>(size)));
    if (!reply.empty()) ::sendto(fd, reply.data(), reply.size(), 0, from.get(), from.size);
  };
}

// An answer with that response code.
std::string Coded(std::string query, int code) {
  query[2] = static_cast<char>(0x81);
  query[3] = static_cast<char>(0x80 | code);
  return query;
}
std::string Well(std::string query) { return Coded(std::move(query), 0); }
std::string Silent(const std::string& /*query*/) { return ""; }

// Answers every connection with `text`, and closes it.
std::function<void(int)> Http(const std::string& text) {
  return [text](int fd) {
    const os::UniqueFd connection(::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC));
    std::array<char, 1024> request{};
    if (::recv(connection.get(), request.data(), request.size(), 0) <= 0) return;
    const bool right =
        std::string_view(request.data()).find("Metadata: true") != std::string_view::npos;
    const std::string reply = right ? text : "HTTP/1.1 400 Bad Request\r\n\r\n";
    ::send(connection.get(), reply.data(), reply.size(), MSG_NOSIGNAL);
  };
}

constexpr const char* kVersions =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"apiVersions\":[\"2021-02-01\"]}";

class ServiceProberTest : public testing_support::NetnsTest {
 protected:
  void SetUp() override {
    NetnsTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const auto up = os::RunProgram({"/bin/sh", "-ec", "ip link set lo up"});
    ASSERT_TRUE(up.ok() && up->exit_code == 0) << up.status();
    std::filesystem::create_directories(dir_.File("etc"));
    Write("etc/resolv.conf", "");
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_.File(name)) << text;
  }
  ServiceAnswers Probe(NodeSettings settings, const ServiceProber::Patience& patience = kShort) {
    ServiceProber prober(dir_.path(), std::move(settings), patience);
    return prober.Probe();
  }
  static NodeSettings WithMetadata(const std::string& url) {
    NodeSettings settings;
    settings.metadata_url = url;
    return settings;
  }
  const testing_support::TempDir dir_;
};

TEST_F(ServiceProberTest, WhoIsNotNamedIsNotAsked) {
  const ServiceAnswers answers = Probe({});
  EXPECT_THAT(answers.node_resolvers, IsEmpty());
  EXPECT_THAT(answers.cluster_resolvers, IsEmpty());
  EXPECT_EQ(answers.metadata, std::nullopt);
}

TEST_F(ServiceProberTest, ResolversThatAnswerAreAskedOnce) {
  const FakeService of_node("127.0.0.1", 53, SOCK_DGRAM, Resolver([](const std::string& query) {
                              const bool right = query.find(
                                                     "ipam\x07"
                                                     "example") != std::string::npos;
                              return Coded(query, right ? 0 : 2);
                            }));
  const FakeService of_cluster("::1", 53, SOCK_DGRAM, Resolver(Well));
  Write("etc/resolv.conf", "search example\nnameserver 127.0.0.1\n");
  NodeSettings settings;
  settings.servers = {"ipam.example:7443"};
  settings.services.cluster_resolvers = {ip::Address::V6(0, 1)};
  const ServiceAnswers answers = Probe(settings, kLong);
  EXPECT_THAT(answers.node_resolvers,
              ElementsAre(ServiceAnswer{.service = "127.0.0.1", .question = "ipam.example"}));
  EXPECT_THAT(answers.cluster_resolvers,
              ElementsAre(ServiceAnswer{.service = "::1",
                                        .question = "kubernetes.default.svc.cluster.local"}));
  EXPECT_EQ(of_node.asked(), 1);
  EXPECT_EQ(of_cluster.asked(), 1);
}

TEST_F(ServiceProberTest, AnswersThatAreLostAreAskedForAgainAndAccuseNobody) {
  std::atomic<int> queries = 0;
  const FakeService service("127.0.0.1", 53, SOCK_DGRAM, Resolver([&](const std::string& query) {
                              return ++queries < 3 ? Silent(query) : Well(query);
                            }));
  Write("etc/resolv.conf", "nameserver 127.0.0.1\n");
  const ServiceAnswers answers = Probe({});
  ASSERT_EQ(answers.node_resolvers.size(), 1U);
  EXPECT_EQ(answers.node_resolvers[0].status, absl::OkStatus());
  EXPECT_EQ(queries, 3);
}

TEST_F(ServiceProberTest, EachFailureIsToldAndNoneHidesTheOthers) {
  const FakeService silent("127.0.0.1", 53, SOCK_DGRAM, Resolver(Silent));
  const FakeService failing("127.0.0.3", 53, SOCK_DGRAM,
                            Resolver([](const std::string& query) { return Coded(query, 2); }));
  const FakeService without("127.0.0.4", 53, SOCK_DGRAM,
                            Resolver([](const std::string& query) { return Coded(query, 3); }));
  const FakeService forging("127.0.0.5", 53, SOCK_DGRAM, Resolver([](std::string query) {
                              query[0] = static_cast<char>(query[0] + 1);
                              return Well(std::move(query));
                            }));
  const FakeService well("127.0.0.6", 53, SOCK_DGRAM, Resolver(Well));
  Write("etc/resolv.conf", "nameserver 127.0.0.1\nnameserver 127.0.0.2\nnameserver 127.0.0.3\n");
  NodeSettings settings;
  for (const uint32_t last : {4U, 5U, 6U}) {
    settings.services.cluster_resolvers.push_back(ip::Address::V4(0x7F000000 + last));
  }
  const ServiceAnswers answers = Probe(settings);
  ASSERT_EQ(answers.node_resolvers.size(), 3U);
  EXPECT_EQ(answers.node_resolvers[0].status, absl::DeadlineExceededError("does not answer"));
  EXPECT_EQ(answers.node_resolvers[1].status,
            absl::UnavailableError("refuses: nobody listens at its port 53"));
  EXPECT_EQ(answers.node_resolvers[2].status, absl::UnavailableError("answers SERVFAIL"));
  ASSERT_EQ(answers.cluster_resolvers.size(), 3U);
  EXPECT_EQ(answers.cluster_resolvers[0].status, absl::NotFoundError("answers NXDOMAIN"));
  EXPECT_EQ(answers.cluster_resolvers[1].status, absl::DeadlineExceededError("does not answer"));
  EXPECT_EQ(answers.cluster_resolvers[2].status, absl::OkStatus());
  EXPECT_EQ(silent.asked(), 3);
}

TEST_F(ServiceProberTest, ANodeWithoutAWayToItsResolverSaysSo) {
  Write("etc/resolv.conf", "nameserver 192.0.2.53\n");
  const ServiceAnswers answers = Probe({});
  ASSERT_EQ(answers.node_resolvers.size(), 1U);
  EXPECT_THAT(std::string(answers.node_resolvers[0].status.message()),
              HasSubstr("Network is unreachable"));
}

TEST_F(ServiceProberTest, TheNodesOwnFileIsReadWhereItsRootIsNotOurs) {
  // As systemd-resolved has it, by a path from the node's root.
  std::filesystem::remove(dir_.File("etc/resolv.conf"));
  std::filesystem::create_directories(dir_.File("run/resolved"));
  Write("run/resolved/stub", "nameserver 192.0.2.1\n");
  std::filesystem::create_symlink("/run/resolved/stub", dir_.File("etc/resolv.conf"));
  const ServiceAnswers answers = Probe({});
  ASSERT_EQ(answers.node_resolvers.size(), 1U);
  EXPECT_EQ(answers.node_resolvers[0].service, "192.0.2.1");
}

TEST_F(ServiceProberTest, TheMetadataServiceAnswersWithItsVersions) {
  const FakeService service("127.0.0.1", 8080, SOCK_STREAM, Http(kVersions));
  const auto answer = Probe(WithMetadata("http://127.0.0.1:8080"), kLong).metadata;
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, absl::OkStatus());
  EXPECT_EQ(answer->service, "http://127.0.0.1:8080");
  EXPECT_EQ(service.asked(), 1);
  EXPECT_EQ(Probe(WithMetadata("http://metadata.example")).metadata, std::nullopt);
}

TEST_F(ServiceProberTest, AMetadataServiceThatFailsIsToldByHow) {
  const auto status = [&](const std::string& url) {
    return Probe(WithMetadata(url)).metadata.value().status;
  };
  EXPECT_EQ(status("http://127.0.0.1:8081"), absl::UnavailableError("refuses the connection"));
  // A socket that listens and never accepts: the kernel takes the connection and the question.
  const FakeService silent("127.0.0.1", 8082, SOCK_STREAM,
                           [](int) { absl::SleepFor(absl::Milliseconds(1)); });
  EXPECT_EQ(status("http://127.0.0.1:8082"), absl::DeadlineExceededError("does not answer"));
  const FakeService failing("127.0.0.1", 8083, SOCK_STREAM, Http("HTTP/1.1 500 Oh\r\n\r\n"));
  EXPECT_EQ(status("http://127.0.0.1:8083"), absl::UnavailableError("answers HTTP 500"));
  EXPECT_EQ(failing.asked(), 2);
  const FakeService wrong("127.0.0.1", 8084, SOCK_STREAM, Http("HTTP/1.1 200 OK\r\n\r\n<html>"));
  EXPECT_THAT(std::string(status("http://127.0.0.1:8084").message()),
              HasSubstr("something else than the versions"));
  const FakeService closing("127.0.0.1", 8085, SOCK_STREAM, Http(""));
  EXPECT_TRUE(absl::IsUnavailable(status("http://127.0.0.1:8085")));
  const FakeService busy("127.0.0.1", 8086, SOCK_STREAM, Http("HTTP/1.1 429 Slow\r\n\r\n"));
  EXPECT_EQ(status("http://127.0.0.1:8086"), absl::OkStatus());
}

TEST_F(ServiceProberTest, AFindingTakesTwoLooksAndIsOverWithTheFirstAnswer) {
  std::atomic<bool> answers = false;
  const FakeService service("127.0.0.1", 53, SOCK_DGRAM, Resolver([&](const std::string& query) {
                              return answers ? Well(query) : Silent(query);
                            }));
  Write("etc/resolv.conf", "nameserver 127.0.0.1\n");
  ServiceProber prober(dir_.path(), {}, kShort);
  const auto found = [&] {
    NodeFacts facts;
    facts.services = prober.Probe();
    std::vector<std::string> objects;
    for (const Finding& finding : Examine(facts).findings) {
      if (finding.id == "dns-node") objects.push_back(finding.object);
    }
    return objects;
  };
  EXPECT_THAT(found(), IsEmpty());
  EXPECT_THAT(found(), ElementsAre("127.0.0.1"));
  answers = true;
  EXPECT_THAT(found(), IsEmpty());
}

// Returns the bytes that lo has sent, which are all that anybody has here.
uint64_t BytesOnTheWire() {
  std::ifstream file("/proc/thread-self/net/dev");
  for (std::string word; file >> word;) {
    if (word != "lo:") continue;
    uint64_t bytes = 0;
    file >> bytes;
    return bytes;
  }
  ADD_FAILURE() << "there is no lo";
  return 0;
}

absl::Duration ThreadTime() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return absl::DurationFromTimespec(used);
}

// All checks of a node may take 0.3 % of a processor, and 2 kbit/s, with a look a minute: 180 ms
// and 15,000 bytes. One look is held to a part of each, in a build with sanitizers too.
TEST_F(ServiceProberTest, ALookCostsLittle) {
  const FakeService resolver("127.0.0.1", 53, SOCK_DGRAM, Resolver(Well));
  const FakeService metadata("127.0.0.1", 8080, SOCK_STREAM, Http(kVersions));
  Write("etc/resolv.conf", "nameserver 127.0.0.1\n");
  NodeSettings settings = WithMetadata("http://127.0.0.1:8080");
  settings.services.cluster_resolvers = {ip::Address::V4(0x7F000001)};
  ServiceProber prober(dir_.path(), settings, kLong);
  constexpr int kLooks = 20;
  const uint64_t bytes = BytesOnTheWire();
  const absl::Duration used = ThreadTime();
  for (int look = 0; look < kLooks; ++look) {
    const ServiceAnswers answers = prober.Probe();
    EXPECT_FALSE(!answers.metadata->status.ok() || !answers.cluster_resolvers[0].status.ok());
  }
  const absl::Duration each = (ThreadTime() - used) / kLooks;
  const uint64_t sent = (BytesOnTheWire() - bytes) / kLooks;
  std::cout << "a look takes " << each << " and " << sent << " bytes\n";
  EXPECT_LE(each, absl::Milliseconds(18));
  EXPECT_GT(sent, 200U);
  EXPECT_LE(sent, 3000U);
}

TEST_F(ServiceProberTest, ALookCanBeInterrupted) {
  const FakeService silent("127.0.0.1", 53, SOCK_DGRAM, Resolver(Silent));
  const FakeService stuck("127.0.0.1", 8082, SOCK_STREAM,
                          [](int) { absl::SleepFor(absl::Milliseconds(1)); });
  Write("etc/resolv.conf", "nameserver 127.0.0.1\n");
  const ServiceProber::Patience endless = {
      .dns = {.answer = absl::Hours(1), .tries = 3},
      .metadata = {.answer = absl::Hours(1), .tries = 2, .pause = absl::Hours(1)}};
  ServiceProber prober(dir_.path(), WithMetadata("http://127.0.0.1:8082"), endless);
  std::thread interrupter([&] {
    while (silent.asked() == 0) absl::SleepFor(absl::Milliseconds(1));
    prober.Interrupt();
  });
  const ServiceAnswers answers = prober.Probe();
  interrupter.join();
  EXPECT_TRUE(absl::IsCancelled(answers.node_resolvers.at(0).status));
  EXPECT_TRUE(absl::IsCancelled(answers.metadata.value().status));
}

}  // namespace
}  // namespace spoke::node_checks
