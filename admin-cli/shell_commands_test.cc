// Tests of the command line as such, help, manual pages and completion, the bash script by asking
// bash.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "admin-cli/testing/command_fixture.h"
#include "admin-cli/verbs.h"
#include "lib/os/file.h"

namespace spoke::ctl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Returns what a shell command prints on both outputs, and its code.
Outcome Shell(const std::string& command) {
  Outcome outcome;
  std::FILE* pipe = ::popen(("exec 2>&1; " + command).c_str(), "r");
  if (pipe == nullptr) return {.code = -1, .out = "no pipe", .err = ""};
  std::array<char, 4096> buffer{};
  while (const size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    outcome.out.append(buffer.data(), got);
  }
  outcome.code = ::pclose(pipe);
  return outcome;
}

// Calls `visit` with each command that has no others below it, and its words.
void VisitVerbs(const Command& command, const std::string& words,
                const std::function<void(const Command&, const std::string&)>& visit) {
  if (command.commands.empty()) visit(command, words);
  for (const Command& one : command.commands) VisitVerbs(one, words + " " + one.name, visit);
}

TEST_F(CommandTest, EveryVerbHasHelpWithExamplesThatParse) {
  int verbs = 0;
  VisitVerbs(CommandTree(), "", [&](const Command& command, const std::string& words) {
    ++verbs;
    const Outcome outcome = Run(words + " --help");
    EXPECT_EQ(outcome.code, 0) << words;
    EXPECT_THAT(outcome.out, HasSubstr("Usage: spokectl" + words));
    EXPECT_THAT(outcome.out, HasSubstr("Examples:")) << words;
    EXPECT_FALSE(command.summary.empty()) << words;
    EXPECT_TRUE(command.run) << words;
  });
  EXPECT_EQ(verbs, 73);
}

TEST_F(CommandTest, TheFirstScreenHasEachCommandUnderAHeading) {
  const Outcome outcome = Run("--help");
  EXPECT_EQ(outcome.code, 0);
  for (const Command& command : CommandTree().commands) {
    EXPECT_THAT(outcome.out, HasSubstr("\n  " + command.name + "  "));
  }
  for (const char* part : {kGroupLook, kGroupNouns, kGroupPolicy, kGroupCare, kGroupSelf,
                           "list, show, drain, undrain", "Exit codes: 0 done;", "Examples:"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
  for (const absl::string_view line : absl::StrSplit(outcome.out, '\n')) {
    EXPECT_LE(line.size(), 100U) << line;
  }
  EXPECT_EQ(Run("help").out, outcome.out);
  EXPECT_EQ(Run("help node drain").out, Run("node drain --help").out);
  EXPECT_EQ(Run("").code, 2) << "nothing was asked";
  EXPECT_EQ(Run("").err, outcome.out);
}

TEST_F(CommandTest, WrongWordsAreNamedWithWhatMayHaveBeenMeant) {
  const auto err = [&](const std::string& line) {
    const Outcome outcome = Run(line);
    EXPECT_EQ(outcome.code, 2) << line;
    EXPECT_EQ(outcome.out, "") << line;
    return outcome.err;
  };
  EXPECT_EQ(err("nodez list"),
            "spokectl: there is no command \"nodez\"; is it node?\nTry: spokectl --help\n");
  EXPECT_THAT(err("node lst"), HasSubstr("node: there is no command \"lst\"; is it list?"));
  EXPECT_THAT(err("ip list --stat assigned"),
              HasSubstr("ip list: there is no option --stat; is it --state?"));
  EXPECT_THAT(err("node"), HasSubstr("node: which of list, show, drain"));
  EXPECT_THAT(err("node drain"), HasSubstr("node drain: NODE is missing"));
  EXPECT_THAT(err("explain 10.1.0.4"), HasSubstr("WHAT: \"10.1.0.4\" is none of pod, node, ip"));
  EXPECT_THAT(err("status now"), HasSubstr("status: \"now\" is one word too many"));
  EXPECT_THAT(err("pool resize x"), HasSubstr("--cidr CIDR is missing"));
  EXPECT_THAT(err("status -o csv"), HasSubstr("--output: \"csv\" is none of table, wide, json"));
  EXPECT_THAT(err("status --timeout soon"), HasSubstr("\"soon\" is not a time such as"));
  EXPECT_THAT(err("ip show 10.1.0.5 10.1.0.6"), HasSubstr("one word too many"));
  EXPECT_THAT(err("reserve what"), HasSubstr("; there are create, hosts, list, release"));
  EXPECT_THAT(err("status --server a:1 --server b:1"),
              HasSubstr("status: --server is given more than once"));
  EXPECT_THAT(err("node list -o"), HasSubstr("needs a value behind it"));
  EXPECT_THAT(err("node list --watch --interval soon"),
              HasSubstr("--interval: \"soon\" is not a time such as"));
}

TEST_F(CommandTest, OptionsOfEveryCommandMayStandAnywhere) {
  Change(FillCluster);
  const std::string want = Run("node list -o name").out;
  EXPECT_EQ(Run("-o name node list").out, want);
  EXPECT_EQ(Run("node -o name list").out, want);
  EXPECT_EQ(Run("node list --output=name --server " + target_).out, want);
  variables_["SPOKE_SERVER"] = "unix:/nonexistent";
  EXPECT_EQ(Run("node list --server " + target_ + " -o name").out, want);
}

TEST_F(CommandTest, ANameThatIsAlsoACommandIsAName) {
  Change([](FakeState& state) { state.nodes["pool"].set_name("pool"); });
  EXPECT_EQ(Run("node show pool -o name").out, "pool\n");
  EXPECT_EQ(Run("node show status").code, 4);
}

TEST_F(CommandTest, VersionFlag) {
  EXPECT_THAT(Run("--version").out, testing::StartsWith("spokectl "));
}

TEST_F(CommandTest, ManualPagesAreOneACommandAndGoodRoff) {
  const std::string dir = dir_.File("man1");
  std::filesystem::create_directory(dir);
  ASSERT_EQ(Run("man --dir " + dir).code, 0);
  size_t pages = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    ++pages;
    const std::string text = *os::ReadFile(entry.path());
    for (const char* part : {".TH \"SPOKECTL", ".SH NAME\n", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n",
                             ".SH EXIT STATUS\n", ".SH SEE ALSO\n"}) {
      EXPECT_THAT(text, HasSubstr(part)) << entry.path();
    }
    // If groff is installed, it checks the page too; the above holds everywhere.
    const Outcome groff = Shell("if command -v groff >/dev/null; then groff -man -ww -Tutf8 -z " +
                                entry.path().string() + "; fi");
    EXPECT_EQ(groff.out, "") << entry.path();
    EXPECT_EQ(groff.code, 0) << entry.path();
  }
  EXPECT_EQ(pages, CommandTree().commands.size() + 1);
  EXPECT_THAT(Run("man node").out, HasSubstr("spokectl node drain"));
  EXPECT_THAT(Run("man node").out, HasSubstr("\\-\\-interval"));
  EXPECT_EQ(Run("man house").code, 4);
  EXPECT_EQ(Run("man --dir /nonexistent").code, 4);
}

TEST_F(CommandTest, CompletionAsksTheServerForNames) {
  Change(FillCluster);
  const auto complete = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"__complete", "--"});
    return RunWords(words).out;
  };
  EXPECT_EQ(complete({"node", "show", ""}), "node1\nnode2\n:\n");
  EXPECT_EQ(complete({"ip", "list", "--node=node1", "--pool", "d"}), "default\n:\n");
  EXPECT_EQ(complete({"ip", "list", "--node=node2"}), "--node=node2\n:\n");
  EXPECT_EQ(complete({"ip", "show", "10.1.0.6"}), "10.1.0.6\n:\n");
  EXPECT_EQ(complete({"explain", "pod", "ns/"}), "ns/pod\n:\n");
  EXPECT_EQ(complete({"explain", "node", "node2"}), "node2\n:\n");
  EXPECT_EQ(complete({"get", "T"}), "Team\n:\n");
  EXPECT_EQ(complete({"apply", "-f", ""}), ":files\n");
  variables_["SPOKE_SERVER"] = "unix:/nonexistent";
  EXPECT_EQ(complete({"node", "show", ""}), ":\n") << "an absent server is no error here";
  EXPECT_EQ(complete({"--server", target_, "node", "show", "node2"}), "node2\n:\n");
}

// Sources the script in bash, and asks it as readline would with the cursor at the end of `line`.
std::string AskBash(const std::string& script, const std::string& target, const std::string& line) {
  const std::string program = SPOKE_SPOKECTL;
  const std::string folder = program.substr(0, program.rfind('/'));
  const Outcome outcome = Shell(
      "PATH=" + folder + ":$PATH SPOKE_SERVER=" + target + " bash --norc --noprofile -c '" +
      "source " + script + "; complete -p spokectl >/dev/null || exit 1; COMP_LINE=\"" + line +
      "\"; COMP_POINT=${#COMP_LINE}; _spokectl; printf \"%s\\n\" \"${COMPREPLY[@]}\"'");
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  return outcome.out;
}

TEST_F(CommandTest, BashCompletesCommandsOptionsValuesAndNames) {
  Change(FillCluster);
  const std::string script = WriteFile("completion.bash", Run("completion bash").out);
  const auto ask = [&](const std::string& line) { return AskBash(script, target_, line); };
  EXPECT_EQ(ask("spokectl sta"), "status\n");
  EXPECT_EQ(ask("spokectl node d"), "drain\n");
  EXPECT_EQ(ask("spokectl ip list --st"), "--state\n");
  EXPECT_EQ(ask("spokectl ip list --state=qu"), "quarantined\n") << "bash breaks words at =";
  EXPECT_EQ(ask("spokectl node show "), "node1\nnode2\n");
  EXPECT_EQ(ask("spokectl -o j"), "json\n");
  EXPECT_EQ(ask("spokectl completion "), "bash\nzsh\nfish\n");
  EXPECT_EQ(ask("spokectl apply -f /nonexist"), "\n") << "files are readline's";
  EXPECT_EQ(ask("spokectl nonsense "), "\n");
}

TEST_F(CommandTest, BashCompletesAddressesThatHaveColons) {
  Change([](FakeState& state) { state.addresses["fd00::5"].set_address("fd00::5"); });
  const std::string script = WriteFile("completion.bash", Run("completion bash").out);
  EXPECT_EQ(AskBash(script, target_, "spokectl ip show fd00::"), "5\n");
}

// zsh and fish are not asked, since the tests do not need them installed: only what must stand in
// their scripts is looked at. They were asked by hand in zsh 5.9 and fish 3.6.
TEST_F(CommandTest, ZshAndFishScriptsAskTheHiddenVerb) {
  const std::string zsh = Run("completion zsh").out;
  EXPECT_TRUE(zsh.starts_with("#compdef spokectl\n"));
  EXPECT_THAT(zsh, HasSubstr("__complete -- \"${(@)words[2,CURRENT]}\""));
  EXPECT_THAT(zsh, HasSubstr("compdef _spokectl spokectl"));
  const std::string fish = Run("completion fish").out;
  EXPECT_THAT(fish, HasSubstr("$program __complete -- $words \"$current\""));
  EXPECT_THAT(fish, HasSubstr("complete -c spokectl -f -a '(__spokectl_complete)'"));
  const Outcome wrong = Run("completion tcsh");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("is none of bash, zsh, fish"));
}

TEST(Program, IsCalledAsItWasStarted) {
  EXPECT_EQ(ProgramOf("/usr/bin/kubectl-spoke"), "kubectl spoke");
  EXPECT_EQ(ProgramOf("kubectl-spoke"), "kubectl spoke");
  for (const char* name : {"spokectl", "/usr/bin/spokectl", "", "/x/kubectl-spoke-2"}) {
    EXPECT_EQ(ProgramOf(name), "spokectl") << name;
  }
  FakeConsole console;
  const os::SimClock clock;
  const World world{console, clock, [](absl::Duration) { return false; },
                    [](const std::string&) { return std::string(); }, "kubectl spoke"};
  EXPECT_EQ(ctl::Run({"node", "drain", "--help"}, world), 0);
  EXPECT_THAT(console.out, testing::HasSubstr("Usage: kubectl spoke node drain [OPTION]... NODE"));
}

}  // namespace
}  // namespace spoke::ctl
