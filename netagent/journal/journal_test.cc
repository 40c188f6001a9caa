#include "netagent/journal/journal.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

const absl::Time kNow = absl::FromUnixMillis(1'700'000'000'123);
const AttachmentKey kKey{"c0ffee", "eth0"};

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

Assignment Sample() {
  return {
      .key = kKey,
      .pod = {"ns", "pod", "uid"},
      .addresses = {A("10.1.0.5"), A("fd00::5")},
      .generation = 42,
      .since = kNow,
      .attempt = 7,
      .netns_path = "/run/netns/cni-1",
      .network = "spoke",
      .options = {.pod_mac = ip::MacAddress::Parse("02:00:5e:00:53:01").value(),
                  .mtu = 1400,
                  .ordinal = 1,
                  .bandwidth = {units::BitRate(1'000'000), units::BitCount(2'000'000),
                                units::BitRate(3'000'000), units::BitCount(4'000'000)}},
      .netns_trace = {
          .inode = 4'026'532'000, .cookie = 17, .directory_device = 24, .directory_inode = 1'234}};
}

std::vector<Event> SampleEvents() {
  const ip::MacAddress mac = ip::MacAddress::Parse("00:0d:3a:01:02:03").value();
  return {HoldingsReplaced{{{A("10.1.0.5"), "default"}, {A("fd00::5"), "six", mac}},
                           {{"six", "fd00::/64", {"web", "batch"}}}},
          AssignmentBegun{Sample()},
          AssignmentBuilt{kKey},
          AssignmentReleased{kKey, kNow},
          CooldownSet{A("10.1.0.5"), kNow},
          WithdrawnSet{{A("10.1.0.5"), A("fd00::5")}},
          WithdrawnSet{{A("10.1.0.5")}, /*withdrawn=*/false},
          ConflictNoted{A("10.1.0.5"), mac},
          ConflictNoted{A("10.1.0.5"), std::nullopt},
          AddressesProven{{A("10.1.0.5"), A("fd00::5")}},
          ConflictOver{A("10.1.0.5")}};
}

Assignments Replay(const std::vector<Event>& events) {
  Assignments assignments(absl::Seconds(30));
  for (const Event& event : events) assignments.Apply(event);
  return assignments;
}

TEST(Journal, WhatWasAppendedIsReplayed) {
  const testing_support::TempDir dir;
  {
    const auto opened = OpenJournal(dir.File("journal")).value();
    for (size_t i = 0; i < 3; ++i) ASSERT_TRUE(opened.journal->Append(SampleEvents()[i]).ok());
  }
  const auto opened = OpenJournal(dir.File("journal")).value();
  EXPECT_EQ(opened.dropped_bytes, 0U);
  const Assignments assignments = Replay(opened.events);
  ASSERT_EQ(assignments.Built().size(), 1U);
  EXPECT_EQ(assignments.Built()[0], Sample());
  EXPECT_EQ(assignments.Attached().size(), 2U);
}

TEST(Journal, EveryKindOfEventComesBackAsItWas) {
  std::string bytes;
  for (const Event& event : SampleEvents()) bytes += EncodeFrame(event);
  const ParsedJournal parsed = ParseJournal(bytes);
  EXPECT_EQ(parsed.valid_bytes, bytes.size());
  ASSERT_EQ(parsed.events.size(), SampleEvents().size());
  std::string again;
  for (const Event& event : parsed.events) again += EncodeFrame(event);
  EXPECT_EQ(again, bytes);
}

TEST(Journal, ProofsAreReplayed) {
  const Assignments assignments = Replay({SampleEvents()[0], SampleEvents()[9]});
  std::string bytes;
  for (const Event& event : assignments.Snapshot()) bytes += EncodeFrame(event);
  EXPECT_EQ(Replay(ParseJournal(bytes).events).Proven(), assignments.Proven());
  EXPECT_EQ(assignments.Proven().size(), 2U);
}

TEST(Journal, PoolsWithdrawalsAndConflictsAreReplayed) {
  Assignments assignments = Replay({SampleEvents()[0], SampleEvents()[5], SampleEvents()[7]});
  std::string bytes;
  for (const Event& event : assignments.Snapshot()) bytes += EncodeFrame(event);
  const Assignments replayed = Replay(ParseJournal(bytes).events);
  EXPECT_EQ(replayed.Rules(), assignments.Rules());
  EXPECT_EQ(replayed.Rules().size(), 1U);
  EXPECT_EQ(replayed.Withdrawn(), assignments.Withdrawn());
  EXPECT_EQ(replayed.Withdrawn().size(), 2U);
  EXPECT_EQ(replayed.Conflicts(), assignments.Conflicts());
  EXPECT_EQ(replayed.Conflicts().size(), 1U);
  assignments.Apply(SampleEvents()[10]);
  EXPECT_TRUE(assignments.Conflicts().empty());
}

TEST(Journal, ATornTailIsCutOffWhereverItWasTorn) {
  std::string whole;
  for (const Event& event : SampleEvents()) whole += EncodeFrame(event);
  const std::string first = EncodeFrame(SampleEvents()[0]);
  for (size_t length = 0; length < whole.size(); ++length) {
    const ParsedJournal parsed = ParseJournal(std::string_view(whole).substr(0, length));
    EXPECT_LE(parsed.valid_bytes, length);
    EXPECT_EQ(parsed.events.empty(), length < first.size());
    EXPECT_LT(parsed.events.size(), SampleEvents().size());
  }
}

TEST(Journal, DamageEndsTheReplayAndLaterAppendsAreReadable) {
  const testing_support::TempDir dir;
  const std::string path = dir.File("journal");
  std::string content = EncodeFrame(SampleEvents()[0]) + EncodeFrame(SampleEvents()[1]);
  content[content.size() - 1] = static_cast<char>(content.back() ^ 1);
  std::ofstream(path, std::ios::binary) << content;
  {
    const auto opened = OpenJournal(path).value();
    EXPECT_EQ(opened.events.size(), 1U);
    EXPECT_GT(opened.dropped_bytes, 0U);
    ASSERT_TRUE(opened.journal->Append(SampleEvents()[1]).ok());
  }
  EXPECT_EQ(OpenJournal(path).value().events.size(), 2U);
}

TEST(Journal, CompactingReplacesEverythingAndGoesOn) {
  const testing_support::TempDir dir;
  {
    const auto opened = OpenJournal(dir.File("journal")).value();
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(opened.journal->Append(SampleEvents()[0]).ok());
    }
    const size_t before = opened.journal->size();
    ASSERT_TRUE(opened.journal->Compact({SampleEvents()[0]}).ok());
    EXPECT_LT(opened.journal->size(), before);
    EXPECT_EQ(opened.journal->size(), std::filesystem::file_size(dir.File("journal")));
    ASSERT_TRUE(opened.journal->Append(SampleEvents()[1]).ok());
  }
  EXPECT_EQ(OpenJournal(dir.File("journal")).value().events.size(), 2U);
}

TEST(Journal, TwoAgentsCannotShareIt) {
  const testing_support::TempDir dir;
  const auto first = OpenJournal(dir.File("journal"));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(OpenJournal(dir.File("journal")).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(Journal, AMissingDirectoryIsNamed) {
  const auto opened = OpenJournal("/nonexistent/journal");
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace spoke::netagent
