#include "netagent/iptables/legacy_iptables.h"

#include <sys/stat.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "tests/support/temp_dir.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using Command = std::vector<std::string>;

class LegacyIptablesTest : public testing::Test {
 protected:
  // Makes a program that can be run, as far as anybody looks.
  void Install(const std::string& name) {
    std::filesystem::create_directories(dir_.path() + "/usr/sbin");
    const std::string path = dir_.path() + "/usr/sbin/" + name;
    ASSERT_TRUE(os::WriteFileAtomic(path, "", os::Durability::kVisible).ok());
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  }
  RunIptables Run() {
    return [this](const Command& command) -> absl::StatusOr<os::ProgramResult> {
      commands_.push_back(command);
      return result_;
    };
  }
  LegacyIptables Make(const std::string& names) {
    EXPECT_TRUE(os::WriteFileAtomic(dir_.File("names"), names, os::Durability::kVisible).ok());
    return LegacyIptables({.programs = programs_,
                           .run = Run(),
                           .names_v4 = dir_.File("names"),
                           .names_v6 = dir_.File("absent")});
  }

  const testing_support::TempDir dir_;
  std::optional<LegacyPrograms> programs_ =
      LegacyPrograms{.iptables = "ipt", .save_v4 = "save4", .save_v6 = "save6"};
  os::ProgramResult result_;
  std::vector<Command> commands_;
};

TEST_F(LegacyIptablesTest, WithoutTablesNothingIsRun) {
  LegacyIptables iptables = Make("");
  EXPECT_THAT(iptables.Read(ip::Family::kV4, {"mangle"}).value(), IsEmpty());
  EXPECT_THAT(iptables.Read(ip::Family::kV6, {"mangle"}).value(), IsEmpty());
  EXPECT_THAT(commands_, IsEmpty());
}

TEST_F(LegacyIptablesTest, OnlyTablesThatAreThereAreAskedFor) {
  result_.output = "*mangle\n[1:2] -A INPUT -j ACCEPT\nCOMMIT\n";
  LegacyIptables iptables = Make("filter\nmangle\n");
  const auto tables = iptables.Read(ip::Family::kV4, {"mangle", "nat"});
  ASSERT_TRUE(tables.ok()) << tables.status();
  EXPECT_THAT(*tables, SizeIs(1));
  EXPECT_THAT(commands_, ElementsAre(Command{"save4", "-c", "-t", "mangle"}));
}

TEST_F(LegacyIptablesTest, TablesThatNobodyCanReadAreNoEmptyTables) {
  programs_.reset();
  LegacyIptables iptables = Make("mangle\n");
  EXPECT_EQ(iptables.Read(ip::Family::kV4, {"mangle"}).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST_F(LegacyIptablesTest, ALockThatSomebodyHasIsNotFailureForGood) {
  result_ = {.exit_code = 4, .errors = "Another app is currently holding the xtables lock.\n"};
  LegacyIptables iptables = Make("mangle\n");
  const absl::Status status =
      iptables.Append(PublishedRules(ip::Prefix::Parse("10.0.0.0/8").value()));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("holding the xtables lock"));
  EXPECT_THAT(commands_, SizeIs(1));
}

TEST_F(LegacyIptablesTest, RulesAreAppendedWordForWord) {
  LegacyIptables iptables = Make("");
  ASSERT_TRUE(iptables.Append({PublishedRules(ip::Prefix::Parse("10.0.0.0/8").value())[0]}).ok());
  EXPECT_THAT(commands_, ElementsAre(Command{"ipt", "-w", "2", "-t", "mangle", "-A", "INPUT", "!",
                                             "-s", "10.0.0.0/8", "-m", "comment", "--comment",
                                             "iptables-exporter openai traffic=internet-in"}));
}

TEST_F(LegacyIptablesTest, ProgramsAreFoundBesideNft) {
  for (const char* name : {"iptables", "iptables-legacy", "iptables-legacy-save"}) Install(name);
  result_.output = "iptables v1.8.9 (nf_tables)\n";
  const auto found = FindLegacyPrograms(dir_.path(), Run());
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->is_default);
  EXPECT_EQ(found->iptables, dir_.path() + "/usr/sbin/iptables-legacy");
  EXPECT_EQ(found->save_v4, dir_.path() + "/usr/sbin/iptables-legacy-save");
  EXPECT_EQ(found->save_v6, "");
}

TEST_F(LegacyIptablesTest, ProgramsAreFoundWhereThereIsNothingElse) {
  for (const char* name : {"iptables", "iptables-save", "ip6tables-save"}) Install(name);
  result_.output = "iptables v1.6.1\n";
  const auto found = FindLegacyPrograms(dir_.path(), Run());
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_default);
  EXPECT_EQ(found->iptables, dir_.path() + "/usr/sbin/iptables");
  EXPECT_EQ(found->save_v6, dir_.path() + "/usr/sbin/ip6tables-save");
}

TEST_F(LegacyIptablesTest, AHostWithoutIptablesHasNone) {
  EXPECT_FALSE(FindLegacyPrograms(dir_.path(), Run()));
  EXPECT_THAT(commands_, IsEmpty());
}

}  // namespace
}  // namespace spoke::netagent
