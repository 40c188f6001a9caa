// The published rules in both back ends of iptables, as the programs of either see them.
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "gmock/gmock.h"
#include "lib/os/subprocess.h"
#include "netagent/exporters/iptables_series.h"
#include "netagent/iptables/legacy_iptables.h"
#include "netagent/iptables/nft_iptables.h"
#include "netagent/iptables/testing/iptables_contract.h"
#include "tests/support/netns_fixture.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing_support::FreshNetns;

absl::StatusOr<os::ProgramResult> Run(const std::vector<std::string>& command) {
  return os::RunProgram(command);
}

os::ProgramResult Sh(const std::string& line) {
  return os::RunProgram({"/bin/sh", "-c", "PATH=$PATH:/usr/sbin:/sbin; " + line}).value();
}

void BringUpLoopback() {
  const os::UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", IFNAMSIZ - 1);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  ASSERT_EQ(::ioctl(fd.get(), SIOCSIFFLAGS, &request), 0);
}

// Sends from 127.0.0.1 to itself; the packets need no listener.
void SendThroughLoopback(int count) {
  const os::UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(9);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < count; ++i) {
    // The answer that nobody listens may come as an error of the next one.
    static_cast<void>(::sendto(fd.get(), "0123456789", 10, 0,
                               reinterpret_cast<const sockaddr*>(&to), sizeof(to)));
  }
}

LegacyIptables Legacy() {
  return LegacyIptables({.programs = FindLegacyPrograms("", &Run), .run = &Run});
}

class KernelWorld : public IptablesWorld {
 public:
  KernelWorld(std::unique_ptr<FreshNetns> netns, std::string program)
      : netns_(std::move(netns)), program_(std::move(program)) {
    BringUpLoopback();
  }
  void AddTheirs() override {
    const auto result = Sh(program_ +
                           " -t mangle -A FORWARD -s 192.0.2.0/24 -m comment --comment theirs "
                           "-j ACCEPT");
    ASSERT_EQ(result.exit_code, 0) << result.errors;
  }
  bool SendFromOutside() override {
    SendThroughLoopback(10);
    return true;
  }

 private:
  const std::unique_ptr<FreshNetns> netns_;
  const std::string program_;
};

class NftWorld final : public KernelWorld {
 public:
  explicit NftWorld(std::unique_ptr<FreshNetns> netns)
      : KernelWorld(std::move(netns), "iptables-nft") {}
  Iptables& iptables() override { return iptables_; }

 private:
  NftIptables iptables_;
};

class LegacyWorld final : public KernelWorld {
 public:
  explicit LegacyWorld(std::unique_ptr<FreshNetns> netns)
      : KernelWorld(std::move(netns), "iptables-legacy") {}
  Iptables& iptables() override { return iptables_; }

 private:
  LegacyIptables iptables_ = Legacy();
};

template <typename World>
std::unique_ptr<IptablesWorld> MakeWorld() {
  auto netns = FreshNetns::Enter();
  if (netns == nullptr) return nullptr;
  return std::make_unique<World>(std::move(netns));
}

INSTANTIATE_TEST_SUITE_P(Kernel, IptablesContract,
                         testing::Values(IptablesWorldFactory{"Nft", &MakeWorld<NftWorld>},
                                         IptablesWorldFactory{"Legacy", &MakeWorld<LegacyWorld>}),
                         [](const auto& test) { return test.param.name; });

class IptablesTest : public testing_support::NetnsTest {
 protected:
  void SetUp() override {
    NetnsTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) BringUpLoopback();
  }
  const std::vector<PublishedRule> wanted_ =
      PublishedRules(ip::Prefix::Parse("10.0.0.0/8").value());
};

constexpr const char* kCommands =
    "iptables -t mangle -A INPUT   ! -s 10.0.0.0/8 -m comment --comment "
    "'iptables-exporter openai traffic=internet-in' && "
    "iptables -t mangle -A FORWARD ! -s 10.0.0.0/8 -m comment --comment "
    "'iptables-exporter openai traffic=internet-in' && "
    "iptables -t mangle -A OUTPUT  ! -d 10.0.0.0/8 -m comment --comment "
    "'iptables-exporter openai traffic=internet-out' && "
    "iptables -t mangle -A FORWARD ! -d 10.0.0.0/8 -m comment --comment "
    "'iptables-exporter openai traffic=internet-out'";

TEST_F(IptablesTest, NativeRulesAreIptablesOwnWordForWord) {
  ASSERT_TRUE(NftIptables().Append(wanted_).ok());
  const std::string ours = Sh("iptables-save -t mangle | grep -- -A").output;
  EXPECT_EQ(Sh("iptables -t mangle -F && " + std::string(kCommands)).errors, "");
  EXPECT_EQ(Sh("iptables-save -t mangle | grep -- -A").output, ours);
  EXPECT_THAT(ours, HasSubstr("-A FORWARD ! -s 10.0.0.0/8 -m comment --comment "
                              "\"iptables-exporter openai traffic=internet-in\""));
}

TEST_F(IptablesTest, ThePublishedCommandsFindThemThere) {
  ASSERT_TRUE(NftIptables().Append(wanted_).ok());
  for (const PublishedRule& rule : wanted_) {
    std::string check = "iptables -t mangle -C " + rule.chain;
    for (const std::string& argument : rule.Arguments()) check += " '" + argument + "'";
    EXPECT_EQ(Sh(check).exit_code, 0) << check;
  }
}

TEST_F(IptablesTest, BothProgramsShowCommentAndCounters) {
  ASSERT_TRUE(NftIptables().Append(wanted_).ok());
  SendThroughLoopback(10);
  const std::string saved = Sh("iptables-save -c").output;
  const auto tables = ParseIptablesSave(saved);
  ASSERT_TRUE(tables.ok()) << saved;
  // What the program says, the reader says.
  const auto read = NftIptables().Read(ip::Family::kV4, {"mangle"});
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_THAT(*tables, SizeIs(1));
  for (const IptablesRule& rule : (*read)[0].rules) {
    EXPECT_THAT((*tables)[0].rules, testing::Contains(rule));
  }
  const auto series = CommentSeries(*tables, {});
  ASSERT_THAT(series[0].series, SizeIs(4));
  const auto input = std::find_if(series[1].series.begin(), series[1].series.end(),
                                  [](const auto& s) { return s.labels[2] == "input"; });
  EXPECT_GE(input->value, 10);

  const std::string listed = Sh("iptables -t mangle -L -v -n -x").output;
  EXPECT_THAT(listed, HasSubstr("!10.0.0.0/8           0.0.0.0/0            /* iptables-exporter "
                                "openai traffic=internet-in */"));
  EXPECT_THAT(listed, HasSubstr("0.0.0.0/0           !10.0.0.0/8           /* iptables-exporter "
                                "openai traffic=internet-out */"));
}

TEST_F(IptablesTest, RulesThatThePublishedCommandsMadeAreNotMadeAgain) {
  ASSERT_EQ(Sh(kCommands).errors, "");
  const auto read = NftIptables().Read(ip::Family::kV4, {"mangle"});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(MissingRules(wanted_, *read), IsEmpty());
  EXPECT_EQ(CountForeignRules(wanted_, *read), 0U);
}

TEST_F(IptablesTest, AChainsPolicyIsNotOursToChange) {
  ASSERT_EQ(Sh("iptables -t mangle -P FORWARD DROP").errors, "");
  ASSERT_TRUE(NftIptables().Append(wanted_).ok());
  EXPECT_THAT(Sh("iptables-save -t mangle").output, HasSubstr(":FORWARD DROP"));
}

TEST_F(IptablesTest, RulesAreReadAsIptablesSavePrintsThem) {
  ASSERT_EQ(Sh("iptables -A FORWARD ! -s 10.1.2.3 -d 172.16.0.0/12 -i eth0 ! -o spk+ -p tcp "
               "-m comment --comment 'a \"b\" c\\d' -j ACCEPT; "
               "iptables -N own; iptables -A INPUT -s 10.0.0.0/25 -j own; "
               "iptables -A own -p udp -j RETURN; iptables -N own2; iptables -A own -g own2; "
               "iptables -A own -p 253 -j DROP")
                .exit_code,
            0);
  const auto saved = ParseIptablesSave(Sh("iptables-save -t filter").output).value();
  const auto read = NftIptables().Read(ip::Family::kV4, {"filter"});
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_THAT(*read, SizeIs(1));
  for (const IptablesRule& rule : (*read)[0].rules) {
    EXPECT_FALSE(rule.abridged) << rule.text;
  }
  EXPECT_THAT((*read)[0].rules, testing::UnorderedElementsAreArray(saved[0].rules));
}

TEST_F(IptablesTest, ARuleWithMoreThanTheReaderKnowsIsAbridged) {
  ASSERT_EQ(Sh("iptables -t mangle -A INPUT ! -s 10.0.0.0/8 -m conntrack --ctstate NEW "
               "-m comment --comment 'iptables-exporter openai traffic=internet-in'")
                .errors,
            "");
  const auto read = NftIptables().Read(ip::Family::kV4, {"mangle"});
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_THAT((*read)[0].rules, SizeIs(1));
  EXPECT_TRUE((*read)[0].rules[0].abridged);
  EXPECT_THAT(MissingRules(wanted_, *read), SizeIs(4));
}

TEST_F(IptablesTest, Ipv6IsReadToo) {
  ASSERT_EQ(
      Sh("ip6tables -A INPUT ! -s fd00::/8 -m comment --comment 'iptables-exporter six'").errors,
      "");
  const auto read = NftIptables().Read(ip::Family::kV6, {"filter", "mangle"});
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_THAT(*read, SizeIs(1));
  ASSERT_THAT((*read)[0].rules, SizeIs(1));
  EXPECT_EQ((*read)[0].rules[0].text,
            "! -s fd00::/8 -m comment --comment \"iptables-exporter six\"");
}

TEST_F(IptablesTest, ReadingLegacyTablesMakesNone) {
  LegacyIptables legacy = Legacy();
  EXPECT_THAT(legacy.Read(ip::Family::kV4, {"filter", "mangle"}).value(), IsEmpty());
  EXPECT_THAT(Sh("cat /proc/thread-self/net/ip_tables_names").output, IsEmpty());
  ASSERT_TRUE(legacy.Append({wanted_[0]}).ok());
  EXPECT_THAT(Sh("iptables-legacy-save -t mangle").output, HasSubstr(wanted_[0].Text()));
  EXPECT_THAT(Sh("iptables-nft-save").output, Not(HasSubstr("internet-in")));
}

}  // namespace
}  // namespace spoke::netagent
