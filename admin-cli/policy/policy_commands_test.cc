// Tests of apply, diff, get, delete and rollout: against files and the tests' server.
#include <filesystem>
#include <tuple>

#include "admin-cli/testing/command_fixture.h"

namespace spoke::ctl {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Team(const std::string& name, const std::string& member) {
  return "apiVersion: spoke/v1\nkind: Team\nmetadata:\n  name: " + name +
         "\nspec:\n  namespaces: [" + member + "]\n";
}

TEST_F(CommandTest, ApplySaysWhatItDidWithEachObject) {
  const std::string file = WriteFile("team.yaml", Team("a", "one"));
  EXPECT_EQ(Run("apply -f " + file + " --dry-run").out, "Team/a created (dry run)\n");
  EXPECT_EQ(Run("apply -f " + file).out, "Team/a created\n");
  EXPECT_EQ(Run("apply -f " + file).out, "Team/a unchanged\n");
  EXPECT_EQ(Json("apply -f " + file)[0]["action"], "unchanged");
  EXPECT_EQ(Run("apply -f " + file + " -o name").out, "Team/a\n");
}

TEST_F(CommandTest, ApplyReadsFoldersInOrderAndStandardInput) {
  WriteFile("b.yml", Team("b", "one"));
  WriteFile("a.yaml", Team("a", "one"));
  WriteFile("notes.txt", "no object");
  std::filesystem::create_directory(dir_.File("below"));
  WriteFile("below/c.yaml", Team("c", "one"));
  input_ = Team("d", "one");
  EXPECT_EQ(Run("apply -f " + dir_.path() + " -f -").out,
            "Team/a created\nTeam/b created\nTeam/d created\n");
  EXPECT_THAT(server_.last_request(), HasSubstr("name: \"stdin\""));
  EXPECT_THAT(Run("apply -R -f " + dir_.path()).out, HasSubstr("Team/c created\n"));
}

TEST_F(CommandTest, MistakesArePrintedAsTheServerFoundThem) {
  const std::string file = WriteFile("bad.yaml", "nonsense: true\n");
  const Outcome outcome = Run("apply -f " + file);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, file + ":1: kind: is missing\n" + file +
                             ":2: metadata.name: is missing\n"
                             "spokectl: nothing was changed; correct the above\n");
}

TEST_F(CommandTest, ApplyNamesWhatItCannotRead) {
  EXPECT_EQ(Run("apply").code, 2);
  EXPECT_EQ(Run("apply -f /nonexistent.yaml").code, 4);
  EXPECT_EQ(Run("apply -f - -f -").code, 2);
  std::filesystem::create_directory(dir_.File("empty"));
  EXPECT_THAT(Run("apply -f " + dir_.File("empty")).err, HasSubstr("no *.yaml or *.yml"));
  const Outcome large = Run("apply -f " + WriteFile("large.yaml", std::string(4 << 20, '#')));
  EXPECT_EQ(large.code, 2);
  EXPECT_THAT(large.err, HasSubstr("do it in parts"));
}

TEST_F(CommandTest, ApplyOfAnotherVersionThanThePresentOneIsRefusedWithBoth) {
  const std::string file = WriteFile("team.yaml", Team("a", "one"));
  const Outcome stale = Run("apply --expect-version 7 -f " + file);
  EXPECT_EQ(stale.code, 5);
  EXPECT_THAT(stale.err, HasSubstr("of version 1789034112345 now, not of version 7"));
  EXPECT_EQ(Run("apply --expect-version 1789034112345 -f " + file).out, "Team/a created\n");
  EXPECT_EQ(Run("apply --expect-version 0 -f " + file).code, 2);
  EXPECT_EQ(Run("apply --expect-version new -f " + file).code, 2);
}

TEST_F(CommandTest, DiffIsAUnifiedDiffAndSaysByItsCodeWhetherThereIsOne) {
  const std::string file = WriteFile("team.yaml", Team("a", "one"));
  const Outcome created = Run("diff -f " + file);
  EXPECT_EQ(created.code, 1);
  EXPECT_THAT(created.out, HasSubstr("--- /dev/null\n+++ file/Team/a\n@@ -0,0 +1,6 @@\n"));
  ASSERT_EQ(Run("apply -f " + file).code, 0);
  const Outcome same = Run("diff -f " + file);
  EXPECT_EQ(same.code, 0);
  EXPECT_EQ(same.out, "");
  WriteFile("team.yaml", Team("a", "two"));
  const Outcome changed = Run("diff -f " + file);
  EXPECT_EQ(changed.code, 1);
  EXPECT_THAT(changed.out, HasSubstr("--- server/Team/a\n+++ file/Team/a\n"));
  EXPECT_THAT(changed.out, HasSubstr("-  namespaces: [one]\n+  namespaces: [two]\n"));
  EXPECT_THAT(Run("diff --color always -f " + file).out, HasSubstr("\x1b[32m+  namespaces: [two]"));
  EXPECT_EQ(Run("diff -o json -f " + file).code, 1);
  Change([](FakeState& state) {
    EXPECT_THAT((state.objects[{"Team", "a"}]), HasSubstr("[one]")) << "a diff changes nothing";
  });
}

TEST_F(CommandTest, DiffThatFailsIsNotADifference) {
  const std::string file = WriteFile("team.yaml", Team("a", "one"));
  Refuse("Apply", absl::InternalError("a fault"));
  EXPECT_EQ(Run("diff -f " + file).code, 2);
  EXPECT_EQ(Run("diff -f " + file + " --server unix:/nonexistent").code, 3);
}

TEST_F(CommandTest, GetGivesWhatApplyTakes) {
  const std::string text = Team("a", "one");
  ASSERT_EQ(Run("apply -f " + WriteFile("team.yaml", text)).code, 0);
  EXPECT_EQ(Run("get team a -o yaml").out, text);
  EXPECT_EQ(Run("get teams -o name").out, "Team/a\n");
  EXPECT_THAT(Run("get all").out, HasSubstr("Team  a     7"));
  EXPECT_EQ(Json("get Team a")["metadata"]["name"], "a");
  EXPECT_EQ(Json("get Team").size(), 1U);
  EXPECT_EQ(Run("get Team b").code, 4);
  EXPECT_EQ(Json("get Team/a")["metadata"]["name"], "a");
  EXPECT_EQ(Run("get teams/a -o name").out, "Team/a\n");
  EXPECT_EQ(Run("get Team/a a").code, 2);
  Change([](FakeState& state) { state.objects[{"Pool", "default"}] = "kind: Pool"; });
  EXPECT_EQ(Run("get Team/a Pool/default -o name").out, "Team/a\nPool/default\n");
  EXPECT_EQ(Run("get team,pool -o name").out, "Team/a\nPool/default\n");
  EXPECT_EQ(Json("get Team/a Pool/default").size(), 2U);
  EXPECT_EQ(Run("get Team/a Pool/nope").code, 4);
  EXPECT_EQ(Run("get team,").code, 4) << "an empty word is no kind";
  Change([](FakeState& state) { state.objects.erase({"Pool", "default"}); });
  EXPECT_EQ(Run("get Team/b").err, "spokectl: there is no Team b\n");
  const Outcome unknown = Run("get tems");
  EXPECT_EQ(unknown.code, 4);
  EXPECT_EQ(unknown.err, "spokectl: there is no kind \"tems\"; did you mean Team?\n");
  for (const char* noun : {"nodes", "node"}) {
    const Outcome other = Run(std::string("get ") + noun);
    EXPECT_EQ(other.code, 4);
    EXPECT_THAT(other.err, HasSubstr("did you mean: spokectl node list"));
  }
  EXPECT_EQ(Run("get all a").code, 2);
  EXPECT_EQ(Run("get").code, 2);
}

TEST_F(CommandTest, SeveralObjectsAreSeveralDocuments) {
  ASSERT_EQ(Run("apply -f " + WriteFile("a.yaml", Team("a", "one"))).code, 0);
  ASSERT_EQ(Run("apply -f " + WriteFile("b.yaml", Team("b", "one"))).code, 0);
  EXPECT_EQ(Run("get Team -o yaml").out, Team("a", "one") + "---\n" + Team("b", "one"));
}

TEST_F(CommandTest, DeleteTakesNamesOrFiles) {
  const std::string file = WriteFile("team.yaml", Team("a", "one"));
  ASSERT_EQ(Run("apply -f " + file).code, 0);
  EXPECT_EQ(Run("delete team a --dry-run").out, "Team/a deleted (dry run)\n");
  EXPECT_EQ(Run("delete Team/a --dry-run").out, "Team/a deleted (dry run)\n");
  EXPECT_EQ(Run("delete Team/a a").code, 2);
  EXPECT_EQ(Run("delete Team a Team/b").code, 2);
  EXPECT_EQ(Json("delete team a --dry-run")[0]["action"], "deleted");
  EXPECT_EQ(Run("delete -f " + file).out, "Team/a deleted\n");
  EXPECT_EQ(Run("delete team a").code, 4);
  EXPECT_EQ(Run("delete").code, 2);
  EXPECT_EQ(Run("delete Team").code, 2);
  EXPECT_EQ(Run("delete Team a -f " + file).code, 2);
}

void SetRollout(FakeState& state, uint64_t current, uint64_t refused) {
  state.rollout.Clear();
  state.rollout.set_version(4);
  state.rollout.set_nodes(3);
  state.rollout.set_nodes_current(current);
  state.rollout.set_nodes_refused(refused);
  state.rollout.set_nodes_away(1);
  if (current + refused + 1 < 3) state.rollout.add_behind()->set_name("node2");
}

TEST_F(CommandTest, RolloutStatusNamesTheNodesBehind) {
  Change([](FakeState& state) { SetRollout(state, 1, 0); });
  const Outcome outcome = Run("rollout status");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("1 of 3 nodes have version 4; 0 refused it, 1 are away"));
  EXPECT_THAT(outcome.out, HasSubstr("node2  0       on its way"));
  EXPECT_EQ(Json("rollout status")["behind"][0]["name"], "node2");
}

TEST_F(CommandTest, RolloutWatchWaitsUntilAllThatAreHereHaveIt) {
  Change([](FakeState& state) { SetRollout(state, 1, 0); });
  between_ = {[] {}, [&] { Change([](FakeState& state) { SetRollout(state, 2, 0); }); }};
  const Outcome outcome = Run("rollout status --watch");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(between_.empty());
  EXPECT_THAT(outcome.out, HasSubstr("2 of 3 nodes"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("1 of 3 nodes"))) << "progress is for terminals";
}

TEST_F(CommandTest, RolloutWatchIsAFailureWhenRefusedOrTooLate) {
  Change([](FakeState& state) { SetRollout(state, 1, 1); });
  EXPECT_EQ(Run("rollout status --watch").code, 1);
  Change([](FakeState& state) { SetRollout(state, 1, 0); });
  between_ = {[] {}, [] {}, [] {}, [] {}};
  const Outcome late = Run("rollout status --watch --timeout 3s");
  EXPECT_EQ(late.code, 1);
  EXPECT_EQ(between_.size(), 1U) << "three seconds, one second each";
  EXPECT_THAT(late.err, HasSubstr("after 3s not all nodes have version 4"));
  EXPECT_EQ(Run("rollout status --watch --server unix:/nonexistent").code, 3);
}

TEST_F(CommandTest, RolloutWatchShowsItsProgressOnATerminal) {
  terminal_ = true;
  Change([](FakeState& state) { SetRollout(state, 1, 0); });
  between_ = {[&] { Change([](FakeState& state) { SetRollout(state, 2, 0); }); }};
  const Outcome outcome = Run("rollout status --watch");
  EXPECT_THAT(outcome.err, HasSubstr("rollout  [###############...............]  50%"));
  EXPECT_TRUE(outcome.err.ends_with("\r\x1b[K")) << "the line goes away";
}

TEST_F(CommandTest, RolloutStatusSaysWhereItHasStoppedAndHowItGoesOn) {
  Change([](FakeState& state) {
    SetRollout(state, 1, 1);
    state.rollout.set_nodes_held(1);
    state.rollout.set_connections(500);
    state.rollout.set_connections_cut(3);
    state.rollout.set_held_connections(90);
    state.rollout.set_held_connections_cut(40);
    state.resumed.set_nodes(1);
    state.resumed.set_connections(90);
    state.resumed.set_connections_cut(40);
  });
  const Outcome status = Run("rollout status");
  EXPECT_THAT(status.out, HasSubstr("it has cut 3 of 500 connections\n"));
  EXPECT_THAT(status.out,
              HasSubstr("stopped on 1 node, of whose 90 connections it would cut 40; to go on "
                        "there: spokectl rollout resume 4\n"));
  EXPECT_EQ(Json("rollout status")["nodes_held"], 1);
  const Outcome resumed = Run("rollout resume 4");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("1 node takes version 4 now; it ends 40 of their 90"));
  EXPECT_EQ(Run("rollout resume").code, 2) << "which version is not guessed";
}

TEST_F(CommandTest, DiffSaysHowManyConnectionsItWouldCut) {
  const std::string file = WriteFile("team.yaml", Team("a", "one"));
  Change([](FakeState& state) {
    state.cuts.set_nodes(7500);
    state.cuts.set_nodes_asked(20);
    state.cuts.set_nodes_answered(19);
    state.cuts.set_connections(4310);
    state.cuts.set_connections_cut(12);
    state.cuts.set_error("n3: busy");
    v1::CutConnection& cut = *state.cuts.add_examples();
    cut.set_node("n1");
    cut.set_pod_namespace("team-a");
    cut.set_pod_name("web\nspokectl: all is well");
    cut.set_address("10.1.0.5");
    cut.set_far_address("10.32.0.1");
    cut.set_reason("peer-spoke");
  });
  const Outcome outcome = Run("diff -f " + file);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("would cut 12 of 4310 connections on 19 nodes that were "
                                     "asked, of 7500"));
  EXPECT_THAT(outcome.err, HasSubstr("such as 10.1.0.5 to 10.32.0.1 of pod team-a/web"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("\nspokectl: all is well")));
  EXPECT_THAT(outcome.err, HasSubstr("on node n1 (peer-spoke)\n"));
  EXPECT_THAT(outcome.err, HasSubstr("1 node did not say; the first: n3: busy"));
  Refuse("EstimateCuts", absl::UnimplementedError("an earlier version"));
  const Outcome older = Run("diff -f " + file);
  EXPECT_EQ(older.code, 1);
  EXPECT_THAT(older.err, HasSubstr("it is not known how many connections this would cut"));
}

// Two changes, of which what was before the newer is kept.
void SetLog(FakeState& state) {
  for (const auto& [who, before, after] :
       {std::tuple<const char*, uint64_t, uint64_t>{"alice", 200, 300}, {"uid 0", 100, 200}}) {
    v1::OperatorRecord& record = *state.operator_log.add_records();
    record.set_unix_ms(1'700'000'000'000);
    record.set_who(who);
    record.set_role("admin");
    record.set_from("10.0.0.7");
    record.set_method("Apply");
    record.set_what("Pool/blue changed");
    record.set_policy_before(before);
    record.set_policy_after(after);
  }
  state.operator_log.add_undo_to(200);
}

TEST_F(CommandTest, AuditLogSaysWhoHasChangedWhat) {
  EXPECT_THAT(Run("audit-log").err, HasSubstr("there are no changes by operators"));
  Change(SetLog);
  EXPECT_THAT(Run("audit-log --no-headers").out,
              HasSubstr("2023-11-14T22:13:20Z  alice  10.0.0.7  Apply  Pool/blue changed"));
  EXPECT_EQ(Json("audit-log")[1]["policy_before"], 100);
  Run("audit-log --since 1h --who alice --limit 7");
  EXPECT_EQ(server_.last_request(),
            "ListOperatorLog since_unix_ms: 1699997000000 who: \"alice\" limit: 7");
  EXPECT_EQ(Run("audit-log --since never").code, 2);
  Refuse("ListOperatorLog", absl::PermissionDeniedError("no"));
  EXPECT_EQ(Run("audit-log").code, 5);
}

TEST_F(CommandTest, PolicyHistorySaysToWhatOneCanGoBack) {
  Change(SetLog);
  const std::string out = Run("policy history").out;
  EXPECT_THAT(out, HasSubstr("300      2023-11-14T22:13:20Z  alice  200       Pool/blue changed"));
  EXPECT_THAT(out, HasSubstr("uid 0  not kept  Pool/blue changed"));
  EXPECT_EQ(Json("policy history")[0]["can_go_back"], true);
  EXPECT_EQ(Json("policy history")[1]["can_go_back"], false);
  EXPECT_THAT(server_.last_request(), HasSubstr("policy_only: true"));
}

TEST_F(CommandTest, RolloutUndoPrintsWhatChanges) {
  Change([](FakeState& state) {
    v1::ObjectChange& change = *state.undone.add_changes();
    change.set_kind("Pool");
    change.set_name("blue");
    change.set_action("changed");
  });
  EXPECT_EQ(Run("rollout undo --to 200").out, "Pool/blue changed\n");
  EXPECT_EQ(server_.last_request(), "UndoRollout to_version: 200");
  EXPECT_THAT(Run("rollout undo --dry-run").out, HasSubstr("Pool/blue"));
  EXPECT_EQ(server_.last_request(), "UndoRollout dry_run: true");
  EXPECT_EQ(Run("rollout undo --to x").code, 2);
}

}  // namespace
}  // namespace spoke::ctl
