// Tests of status, top, unfreeze, version; and of what all verbs have in common: forms, errors,
// exit codes.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "admin-cli/testing/command_fixture.h"
#include "lib/base/version.h"

namespace spoke::ctl {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(CommandTest, StatusShowsCountsProblemsAndAFreeze) {
  Change([](FakeState& state) {
    state.status.set_version("1.2.3");
    state.status.set_nodes(2);
    state.status.set_addresses_in_use(7);
    state.status.add_problems("nothing can be stored: disk full");
    state.frozen = "one pass would have released 40 % of the addresses";
  });
  const Outcome outcome = Run("status");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("2 known, 0 connected"));
  EXPECT_THAT(outcome.out, HasSubstr("frozen: one pass would have released 40 %"));
  EXPECT_THAT(outcome.out, HasSubstr("  nothing can be stored: disk full\n"));
  EXPECT_EQ(Json("status")["addresses_in_use"], 7);
  EXPECT_THAT(Run("status -o yaml").out,
              HasSubstr("problems:\n  - \"nothing can be stored: disk full\"\n"));
}

TEST_F(CommandTest, StatusIsOneWithProblemsAndNeverEndsAWatch) {
  EXPECT_EQ(Run("status").code, 0);
  Change([](FakeState& state) { state.status.add_problems("10.1.0.5 is in two places"); });
  const Outcome outcome = Run("status -o json");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "");
  between_ = {[&] { Change([](FakeState& state) { state.status.set_nodes(99); }); }};
  const Outcome watched = Run("status --watch");
  EXPECT_EQ(watched.code, 1);
  EXPECT_THAT(watched.out, HasSubstr("99 known"));
  Refuse("GetStatus", absl::InternalError("no"));
  EXPECT_EQ(Run("status").code, 2);
}

TEST_F(CommandTest, StatusCountsOneAddressAsOne) {
  Change([](FakeState& state) { state.status.set_addresses_quarantined(1); });
  EXPECT_THAT(Run("status").out, HasSubstr("1 address; see: spokectl ip list"));
  Change([](FakeState& state) { state.status.set_addresses_quarantined(2); });
  EXPECT_THAT(Run("status").out, HasSubstr("2 addresses; see: spokectl ip list"));
  Change([](FakeState& state) {
    state.status.set_pods_waiting(1);
    state.status.set_nodes_waiting(1);
  });
  EXPECT_THAT(Run("status").out, HasSubstr("1 pod on 1 node; see: spokectl node list"));
}

TEST_F(CommandTest, StatusDoesNotAddUpFamilies) {
  Change([](FakeState& state) {
    state.status.set_addresses_usable(251);
    state.status.mutable_ipv4()->set_usable(251);
    state.status.mutable_ipv4()->set_available(16);
  });
  EXPECT_THAT(Run("status").out, HasSubstr("Addresses:   251 usable, 0 free, 16 attached"));
  EXPECT_EQ(Json("status")["addresses_usable"], 251);
  Change([](FakeState& state) {
    state.status.mutable_ipv6()->set_usable(4'611'686'018'427'486'161);
    state.status.mutable_ipv6()->set_available(8);
  });
  const Outcome outcome = Run("status");
  EXPECT_THAT(outcome.out, HasSubstr("IPv4:        251 usable, 0 free, 16 attached"));
  EXPECT_THAT(outcome.out, HasSubstr("IPv6:        4.6e+18 usable, 0 free, 8 attached"));
  EXPECT_EQ(Json("status")["ipv6"]["usable"], 4'611'686'018'427'486'161);
  EXPECT_EQ(Json("status")["ipv4"]["usable"], 251);
  EXPECT_FALSE(Json("status").contains("addresses_usable")) << "a sum of two families";
}

TEST_F(CommandTest, AShortOptionMayHaveAnEqualsSign) {
  EXPECT_EQ(Json("status"), nlohmann::json::parse(Run("status -o=json").out, nullptr, false));
  EXPECT_EQ(Run("status -o=").code, 2);
}

TEST_F(CommandTest, StatusHasNoNames) {
  const Outcome outcome = Run("status -o name");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("has no names"));
}

TEST_F(CommandTest, UnfreezeSaysWhatItWasFrozenForAndThenThatItWasNot) {
  Change([](FakeState& state) { state.frozen = "too many at once"; });
  EXPECT_EQ(Run("unfreeze").out, "releases go on; they were frozen: too many at once\n");
  EXPECT_EQ(Run("unfreeze").out, "releases were not frozen\n");
  EXPECT_EQ(Json("unfreeze")["was_frozen_for"], "");
  Refuse("Unfreeze", absl::FailedPreconditionError("the alarm goes on; see: spokectl status"));
  const Outcome refused = Run("unfreeze");
  EXPECT_EQ(refused.code, 5);
  EXPECT_EQ(refused.err, "spokectl: the alarm goes on; see: spokectl status\n");
}

TEST_F(CommandTest, TopListsNodesAndNamespaces) {
  Change([](FakeState& state) {
    v1::TopEntry& node = *state.top.add_nodes();
    node.set_name("node1");
    node.set_in_use(20);
    node.set_held(27);
    v1::TopEntry& one = *state.top.add_namespaces();
    one.set_name("training");
    one.set_in_use(19);
    state.top.set_assignments_per_second(2.5);
  });
  const Outcome outcome = Run("top --limit 3");
  EXPECT_THAT(outcome.out, HasSubstr("2.5 assigned"));
  EXPECT_THAT(outcome.out, HasSubstr("node1  20      27\n"));
  EXPECT_THAT(outcome.out, HasSubstr("training   19\n"));
  EXPECT_THAT(server_.last_request(), HasSubstr("limit: 3"));
  EXPECT_EQ(Json("top")["nodes"][0]["held"], 27);
  EXPECT_EQ(Run("top --limit none").code, 2);
}

TEST_F(CommandTest, VersionShowsBothAndTheClientEvenWithoutAServer) {
  Change([](FakeState& state) { state.status.set_version("9.9.9"); });
  EXPECT_THAT(Run("version").out, HasSubstr("Server: 9.9.9\n"));
  EXPECT_EQ(Json("version")["server"], "9.9.9");
  EXPECT_EQ(Json("version --client").count("server"), 0U);
  const Outcome away = Run("version --server unix:/nonexistent/admin.sock");
  EXPECT_EQ(away.code, 3);
  EXPECT_THAT(away.out, HasSubstr("Client: "));
}

TEST_F(CommandTest, VersionSaysASkewAndWhatToUpgrade) {
  Change([](FakeState& state) { state.status.set_version("99.0.0"); });
  EXPECT_THAT(Run("version").out, HasSubstr("Skew: spokectl "));
  EXPECT_THAT(Run("version").out, HasSubstr("upgrade spokectl first, to 99.0\n"));
  EXPECT_THAT(Json("version")["skew"].get<std::string>(), HasSubstr("do not work together"));
  Change([](FakeState& state) { state.status.set_version(base::kVersion); });
  EXPECT_EQ(Json("version").count("skew"), 0U);
}

TEST_F(CommandTest, AnAbsentServerIsCode3AndTheMessageSaysWhere) {
  for (const char* verb : {"status", "node list", "events", "pool delete x"}) {
    const Outcome outcome = Run(std::string(verb) + " --server unix:/nonexistent/admin.sock");
    EXPECT_EQ(outcome.code, 3) << verb;
    EXPECT_THAT(outcome.err, HasSubstr("no server answers at unix:/nonexistent/admin.sock"))
        << verb;
  }
}

TEST_F(CommandTest, WhoMayNotOpenTheSocketIsToldSo) {
  if (::geteuid() != 0) {
    ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr);
    GTEST_SKIP() << "needs root, to be somebody else";
  }
  ASSERT_EQ(::chmod(dir_.File("admin.sock").c_str(), 0600), 0);
  ASSERT_EQ(::seteuid(65534), 0);
  const Outcome outcome = Run("status");
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_EQ(outcome.code, 5);
  EXPECT_THAT(outcome.err, HasSubstr("you may not open unix:"));
}

TEST_F(CommandTest, AServerThatSaysItCannotIsNotAnAbsentOne) {
  for (const char* method : {"Unfreeze", "ListNodes"}) {
    Refuse(method, absl::UnavailableError("nothing can be stored: disk full; free some space"));
  }
  for (const char* verb : {"unfreeze", "node list"}) {
    const Outcome outcome = Run(verb);
    EXPECT_EQ(outcome.code, 5) << verb;
    EXPECT_EQ(outcome.err, "spokectl: nothing can be stored: disk full; free some space\n") << verb;
  }
}

TEST_F(CommandTest, ASilentServerIsCode3AfterTheTimeout) {
  Change([](FakeState& state) { state.silent_method = "GetStatus"; });
  const Outcome outcome = Run("status --timeout 1s");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("did not answer within 1s"));
}

TEST_F(CommandTest, AStreamThatFallsSilentIsCode3AfterTheTimeout) {
  Change([](FakeState& state) { state.silent_method = "ListNodes"; });
  const Outcome outcome = Run("node list --timeout 1s");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("said nothing for 1s"));
}

TEST_F(CommandTest, TimesMayBePartsOfASecond) {
  Change([](FakeState& state) { state.silent_method = "GetStatus"; });
  EXPECT_THAT(Run("status --timeout 100ms").err, HasSubstr("did not answer within 100ms"));
  EXPECT_EQ(Run("status --timeout 0.1s").code, 3);
}

TEST_F(CommandTest, AnOlderServerIsNamedAsSuch) {
  Refuse("GetTop", absl::UnimplementedError(""));
  const Outcome outcome = Run("top");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("older than this spokectl"));
}

TEST_F(CommandTest, APortThatIsNotForOperatorsIsNamedAsSuch) {
  Refuse("GetStatus", absl::UnimplementedError(""));
  Refuse("GetTop", absl::UnimplementedError(""));
  Refuse("ListNodes", absl::UnimplementedError(""));
  for (const char* line : {"top", "node list", "version"}) {
    const Outcome outcome = Run(line);
    EXPECT_EQ(outcome.code, 1) << line;
    EXPECT_THAT(outcome.err, HasSubstr("is no port for operators")) << line;
    EXPECT_THAT(outcome.err, HasSubstr("listen.operators")) << line;
    EXPECT_THAT(outcome.err, Not(HasSubstr("older"))) << line;
  }
  EXPECT_EQ(Run("status").code, 2);
  Refuse("GetStatus", absl::UnavailableError("the server stops"));
  EXPECT_EQ(Run("top").code, 5) << "nobody knows what it is";
}

TEST(ExitCode, EachRefusalHasItsCode) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), 1);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), 2);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), 3);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("")), 3);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), 4);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("")), 5);
  EXPECT_EQ(ExitCodeOf(absl::ResourceExhaustedError("")), 5);
  EXPECT_EQ(ExitCodeOf(absl::AlreadyExistsError("")), 5);
}

TEST_F(CommandTest, ColoursAreForTerminalsAndNeverAgainstNoColor) {
  Change(FillCluster);
  EXPECT_THAT(Run("node list").out, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(Run("node list --color always").out, HasSubstr("\x1b[32mconnected"));
  terminal_ = true;
  EXPECT_THAT(Run("node list").out, HasSubstr("\x1b[32mconnected"));
  EXPECT_THAT(Run("node list --color never").out, Not(HasSubstr("\x1b[")));
  variables_["NO_COLOR"] = "1";
  EXPECT_THAT(Run("node list").out, Not(HasSubstr("\x1b[")));
}

TEST_F(CommandTest, WatchRedrawsOnATerminalAndAppendsElsewhere) {
  const auto change = [&] { Change([](FakeState& state) { state.status.set_nodes(99); }); };
  between_ = {change};
  const Outcome appended = Run("status --watch --interval 1s");
  EXPECT_EQ(appended.code, 0);
  EXPECT_THAT(appended.out, testing::StartsWith("2023-11-14T22:23:20Z, every 1s\n\nServer:"));
  EXPECT_THAT(appended.out,
              HasSubstr("Problems:    none\n\n2023-11-14T22:23:21Z, every 1s\n\nServer:"));
  EXPECT_THAT(appended.out, HasSubstr("99 known"));
  terminal_ = true;
  EXPECT_THAT(Run("status --watch").out, HasSubstr("\x1b[H\x1b[2J"));
}

TEST_F(CommandTest, WatchWithoutHeadersOrInJsonHasNoLineWithTheTime) {
  Change(FillCluster);
  EXPECT_THAT(Run("node list --watch --no-headers").out, testing::StartsWith("node1"));
  EXPECT_THAT(Run("node list --watch -o json").out, testing::StartsWith("["));
  EXPECT_THAT(Run("node list --watch -o name").out, testing::StartsWith("node1\n"));
}

TEST_F(CommandTest, WatchMarksWhatHasChangedOnATerminal) {
  Change(FillCluster);
  const auto use = [&] { Change([](FakeState& state) { state.nodes["node1"].set_in_use(7); }); };
  between_ = {use, [] {}};
  terminal_ = true;
  const std::string out = Run("node list --watch").out;
  const std::vector<std::string> pictures = absl::StrSplit(out, "\x1b[H");
  ASSERT_EQ(pictures.size(), 4U);
  EXPECT_THAT(pictures[1], Not(HasSubstr("\x1b[7m"))) << "the first has nothing to differ from";
  EXPECT_THAT(pictures[2], HasSubstr("\x1b[7m7\x1b[0m"));
  EXPECT_EQ(pictures[2].find("\x1b[7m"), pictures[2].rfind("\x1b[7m")) << "nothing else";
  EXPECT_THAT(pictures[3], Not(HasSubstr("\x1b[7m"))) << "it is as it was by now";
  between_ = {[&] { Change([](FakeState& state) { state.status.set_nodes(99); }); }};
  EXPECT_THAT(Run("status --watch").out, HasSubstr("\x1b[7m\x1b[33m99 known"));
  between_ = {use};
  EXPECT_THAT(Run("node list --watch --color never").out, Not(HasSubstr("\x1b[7m")));
  terminal_ = false;
  between_ = {use};
  EXPECT_THAT(Run("node list --watch --color always").out, Not(HasSubstr("\x1b[7m")));
}

TEST_F(CommandTest, WatchOutlivesAServerThatIsAwayForAWhile) {
  between_ = {[&] { Change([](FakeState& state) { state.silent_method = ""; }); }};
  Change([](FakeState& state) { state.silent_method = "GetStatus"; });
  const Outcome outcome = Run("status --watch --timeout 1s");
  EXPECT_THAT(outcome.err, HasSubstr("did not answer"));
  EXPECT_THAT(outcome.out, HasSubstr("0 known"));
}

TEST_F(CommandTest, AFullDiskBehindStandardOutputIsAFailure) {
  fail_after_bytes_ = 10;
  EXPECT_EQ(Run("status").code, 2);
  Change(FillCluster);
  const Outcome outcome = Run("node list");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("No space left on device"));
}

TEST_F(CommandTest, NamesFromElsewhereCannotDriveTheTerminal) {
  Change([](FakeState& state) { state.nodes["x"].set_name("x\x1b]0;owned\x07"); });
  EXPECT_THAT(Run("node list").out, HasSubstr("x?]0;owned?"));
  EXPECT_THAT(Run("node list -o name").out, HasSubstr("x?]0;owned?"));
}

}  // namespace
}  // namespace spoke::ctl
