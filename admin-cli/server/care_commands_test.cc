// Tests of audit, explain, whatif, events, backup and support-bundle.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "admin-cli/testing/command_fixture.h"
#include "lib/os/file.h"

namespace spoke::ctl {
namespace {

using testing::HasSubstr;
using testing::Not;

// Sets two messages: half way, and the end with one difference that can be repaired and one that
// cannot.
void SetAudit(FakeState& state, bool clean) {
  state.audit.assign(2, {});
  state.audit[0].set_nodes_done(1);
  state.audit[0].set_nodes_total(2);
  v1::AuditResponse& end = state.audit[1];
  end.set_nodes_done(2);
  end.set_nodes_total(2);
  end.set_agents_asked(2);
  end.set_done(true);
  if (clean) return;
  v1::AuditDifference& safe = *end.add_differences();
  safe.set_kind("not_on_nic");
  safe.set_node("node1");
  safe.set_address("10.1.0.5");
  safe.set_first_seen_unix_ms(1'700'000'000'000);
  safe.set_cause("the NIC was changed by hand");
  safe.set_repair("attach it again");
  v1::AuditDifference& unsafe = *end.add_differences();
  unsafe.set_kind("in_use_twice");
  unsafe.set_address("10.1.0.6");
}

TEST_F(CommandTest, AuditIsCleanWith0AndDiffersWith1) {
  Change([](FakeState& state) { SetAudit(state, true); });
  EXPECT_EQ(Run("audit").code, 0);
  EXPECT_EQ(Run("audit").out, "2 nodes compared: no differences\n");
  Change([](FakeState& state) { SetAudit(state, false); });
  const Outcome outcome = Run("audit");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out,
              HasSubstr("not_on_nic    node1  10.1.0.5  10m  the NIC was changed by hand"));
  EXPECT_THAT(outcome.out, HasSubstr("none is safe"));
  EXPECT_THAT(outcome.out, HasSubstr("2 nodes compared: 2 differences, 0 repaired\n"));
}

TEST_F(CommandTest, AuditSaysWhatItCouldNotCompare) {
  Change([](FakeState& state) {
    SetAudit(state, true);
    state.audit[1].set_agents_asked(1);
  });
  EXPECT_EQ(Run("audit").code, 0);
  EXPECT_EQ(Run("audit").out,
            "2 nodes compared: no differences; 1 of them without their agents, which are away or "
            "did not answer\n");
  Change([](FakeState& state) {
    state.audit[1].set_agents_silent(1);
    state.audit[1].set_cloud_error("429: too many requests");
  });
  const Outcome outcome = Run("audit");
  EXPECT_EQ(outcome.code, 2) << "nothing is known of NICs";
  EXPECT_THAT(outcome.out, HasSubstr("; 2 of them without their agents"));
  EXPECT_THAT(outcome.out, HasSubstr("could not be asked: 429: too many requests\n"));
  EXPECT_THAT(Run("audit -o json").out, HasSubstr("\"cloud_error\": \"429: too many requests\""));
  Change([](FakeState& state) { SetAudit(state, false); });
  EXPECT_EQ(Run("audit").code, 1);
}

TEST_F(CommandTest, AuditRepairLeavesWhatIsNotSafe) {
  Change([](FakeState& state) { SetAudit(state, false); });
  const Outcome outcome = Run("audit --repair -o json");
  EXPECT_EQ(outcome.code, 1);
  const auto value = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(value["differences"][0]["repaired"], true);
  EXPECT_EQ(value["differences"][1]["repaired"], false);
  Change([](FakeState& state) { state.audit[1].mutable_differences()->RemoveLast(); });
  EXPECT_EQ(Run("audit --repair").code, 0) << "all of them were repaired";
}

TEST_F(CommandTest, AuditSaysThatReleasesAreFrozen) {
  Change([](FakeState& state) {
    SetAudit(state, false);
    state.audit[1].set_releases_frozen("it would free 96 addresses");
  });
  EXPECT_THAT(Run("audit").out,
              HasSubstr("Releases are frozen, so that what they would mend stays: "
                        "it would free 96 addresses. See spokectl unfreeze\n"));
  EXPECT_EQ(Json("audit")["releases_frozen"], "it would free 96 addresses");
}

TEST_F(CommandTest, AuditThatCannotRunIs2WhateverTheReason) {
  EXPECT_EQ(Run("audit --server unix:/nonexistent").code, 2);
  Refuse("Audit", absl::FailedPreconditionError("one is running"));
  EXPECT_EQ(Run("audit").code, 2);
  Refuse("Audit", absl::OkStatus());
  Change([](FakeState& state) { state.audit.clear(); });
  EXPECT_EQ(Run("audit").code, 2) << "a stream without its end is no clean audit";
  EXPECT_EQ(Run("audit --nonsense").code, 2);
}

TEST_F(CommandTest, AuditShowsItsProgressOnATerminalOnly) {
  Change([](FakeState& state) { SetAudit(state, true); });
  EXPECT_EQ(Run("audit").err, "");
  terminal_ = true;
  EXPECT_THAT(Run("audit").err,
              HasSubstr("audit  [###############...............]  50%  1 of 2 nodes"));
}

TEST_F(CommandTest, ExplainAsksForOneThingAndSaysWhenItWillBeWell) {
  Change(FillCluster);
  Change([](FakeState& state) {
    state.explain.set_summary("ns/pod waits for an address");
    state.explain.add_details("pool default: 0 free");
    state.explain.set_eta_unix_ms(kNowMs + 30'000);
  });
  EXPECT_EQ(Run("explain pod ns/pod").out,
            "ns/pod waits for an address\n  pool default: 0 free\n"
            "Expected to be well in 30s\n");
  Change([](FakeState& state) {
    EXPECT_THAT(state.requests, testing::Contains("Explain pod: \"ns/pod\""));
  });
  EXPECT_EQ(Json("explain node node1")["details"][0], "pool default: 0 free");
  EXPECT_THAT(server_.last_request(), HasSubstr("node: \"node1\""));
  EXPECT_EQ(Run("explain ip 10.1.0.5").code, 0);
  EXPECT_THAT(server_.last_request(), HasSubstr("address: \"10.1.0.5\""));
  for (const char* wrong : {"explain", "explain pod", "explain pod pod", "explain pod a/b/c",
                            "explain pod /b", "explain house node1"}) {
    EXPECT_EQ(Run(wrong).code, 2) << wrong;
  }
}

TEST_F(CommandTest, ExplainPodSaysWhenThereIsNoSuchPod) {
  Change(FillCluster);
  Change([](FakeState& state) {
    state.explain.set_summary("no address is assigned to pod ns/pdo");
    state.explain.add_details(
        "the node the pod is scheduled to decides: spokectl explain node NAME, and for the steps "
        "of "
        "its ADD spokectl explain pod ns/pdo --node NAME; an agent that is away reports later");
  });
  const Outcome outcome = Run("explain pod ns/pdo");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.out, HasSubstr("no address is assigned to pod ns/pdo\n"));
  EXPECT_THAT(outcome.out, HasSubstr("explain pod ns/pdo --node NAME"));
  EXPECT_EQ(outcome.err, "spokectl: no pod ns/pdo has an address\n");
  EXPECT_EQ(Run("explain pod ns/podd").err,
            "spokectl: no pod ns/podd has an address; did you mean ns/pod?\n");
  EXPECT_EQ(Run("explain pod nss/pod -o json").code, 4);
  EXPECT_EQ(Run("explain pod ns/pod").code, 0);
  const std::string on_node = Run("explain pod ns/pdo --node node1").out;
  EXPECT_THAT(on_node, HasSubstr("spokectl explain node NAME; an agent"));
  EXPECT_THAT(on_node, Not(HasSubstr("--node NAME")));
  Change([](FakeState& state) { state.status.set_pods_waiting(1); });
  const Outcome waits = Run("explain pod ns/podd");
  EXPECT_EQ(waits.code, 0) << "it may be the one that waits";
  EXPECT_THAT(waits.err, HasSubstr("did you mean ns/pod?"));
}

void AddTraceTo(v1::ExplainResponse& explain, int64_t now_ms) {
  v1::AddTrace& add = *explain.add_adds();
  add.set_node("node1");
  add.set_pod_namespace("ns");
  add.set_pod_name("pod");
  add.set_container_id("c0ffee");
  add.set_ifname("eth0");
  add.add_addresses("10.1.0.5");
  add.add_addresses("fd00::5");
  add.set_trace_id("4bf92f35");
  add.set_since_unix_ms(now_ms - 60'000);
  const auto step = [&](const char* name, uint64_t begin_us, uint64_t took_us) {
    v1::AddTrace::Step& line = *add.add_steps();
    line.set_name(name);
    line.set_begin_us(begin_us);
    line.set_took_us(took_us);
  };
  step("assign", 0, 12);
  step("wait", 12, 2'500'000);
  step("kernel", 2'500'012, 1300);
}

TEST_F(CommandTest, ExplainPodShowsTheStepsOfItsLastAdd) {
  Change([](FakeState& state) {
    state.explain.set_summary("pod ns/pod has addresses");
    AddTraceTo(state.explain, kNowMs);
  });
  EXPECT_EQ(Run("explain pod ns/pod --node node1").out,
            "pod ns/pod has addresses\n"
            "\n"
            "Pod:        ns/pod\n"
            "Container:  c0ffee\n"
            "Interface:  eth0\n"
            "Address:    10.1.0.5, fd00::5\n"
            "Node:       node1\n"
            "Trace id:   4bf92f35\n"
            "Began:      60s ago\n"
            "Result:     succeeded after 2501.312 ms\n"
            "\n"
            "STEP    AT (ms)   TOOK (ms)\n"
            "assign     0.000     0.012\n"
            "wait       0.012  2500.000\n"
            "kernel  2500.012     1.300\n");
  EXPECT_THAT(server_.last_request(), HasSubstr("on_node: \"node1\""));
  const auto add = Json("explain pod ns/pod")["adds"][0];
  EXPECT_EQ(add["addresses"][1], "fd00::5");
  EXPECT_EQ(add["steps"][1]["took_us"], 2'500'000);
  EXPECT_EQ(add["succeeded"], true);
  EXPECT_THAT(Run("explain pod ns/pod -o yaml").out, HasSubstr("trace_id: \"4bf92f35\""));
  EXPECT_EQ(Run("explain ip 10.1.0.5 --node node1").code, 2);
}

TEST_F(CommandTest, ExplainPodSaysWhyAnAddFailedOrWhyItHasNoSteps) {
  Change([](FakeState& state) {
    AddTraceTo(state.explain, kNowMs);
    state.explain.mutable_adds(0)->set_error("no address: pool default is empty\x1b");
    state.explain.mutable_adds(0)->clear_steps();
    state.explain.add_without_adds("the agent of node node2 did not answer in time");
  });
  const std::string out = Run("explain pod ns/pod").out;
  EXPECT_THAT(out, HasSubstr("Result:     failed: no address: pool default is empty?\n"
                             "\nit ended before its first step\n"
                             "\nNo steps of an ADD: the agent of node node2 did not answer"));
  EXPECT_THAT(Json("explain pod ns/pod")["without_adds"][0].dump(), HasSubstr("node2"));
}

TEST_F(CommandTest, WhatIfSaysByItsCodeWhetherItFits) {
  Change([](FakeState& state) {
    state.what_if.set_fits(true);
    state.what_if.set_addresses_needed(270);
  });
  EXPECT_EQ(Run("whatif --nodes 10 --pods-per-node 27 --label a=b --vnet v").code, 0);
  EXPECT_THAT(server_.last_request(), HasSubstr("nodes: 10 pods_per_node: 27"));
  EXPECT_THAT(server_.last_request(), HasSubstr("key: \"a\" value: \"b\""));
  Change([](FakeState& state) {
    state.what_if.set_fits(false);
    v1::WhatIfLimit& limit = *state.what_if.add_limits();
    limit.set_what("VNet v: addresses");
    limit.set_needed(270);
    limit.set_available(100);
    limit.set_remedy("add a subnet");
  });
  const Outcome outcome = Run("whatif --nodes 10 --pods-per-node 27");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("10 nodes with 27 pods each do not fit: 270 more addresses"));
  EXPECT_THAT(outcome.out, HasSubstr("VNet v: addresses  270     100        no    add a subnet\n"));
  EXPECT_EQ(Run("whatif --nodes 10 --pods-per-node 27 -o json").code, 1);
  EXPECT_EQ(Run("whatif --nodes 10").code, 2);
  EXPECT_EQ(Run("whatif --nodes 0 --pods-per-node 27").code, 2);
  EXPECT_EQ(Run("whatif --nodes 1 --pods-per-node 1 --label x").code, 2);
  Refuse("WhatIf", absl::InternalError("a fault"));
  EXPECT_EQ(Run("whatif --nodes 10 --pods-per-node 27").code, 2) << "1 means that it does not fit";
}

void AddEvents(FakeState& state) {
  v1::EventInfo& first = state.events.emplace_back();
  first.set_unix_ms(1'700'000'000'123);
  first.set_level("info");
  first.set_event("node_connected");
  (*first.mutable_fields())["node"] = "node1";
  v1::EventInfo& second = state.events.emplace_back();
  second.set_unix_ms(1'700'000'001'000);
  second.set_level("error");
  second.set_event("store_commit_failed");
  (*second.mutable_fields())["error"] = "disk full";
}

TEST_F(CommandTest, EventsAreLinesOrAList) {
  Change(AddEvents);
  EXPECT_EQ(Run("events").out,
            "2023-11-14T22:13:20.123Z  info     node_connected            node=node1\n"
            "2023-11-14T22:13:21Z      error    store_commit_failed       error=\"disk full\"\n");
  const auto events = Json("events --limit 5 --node node1");
  EXPECT_EQ(events[1]["fields"]["error"], "disk full");
  EXPECT_EQ(server_.last_request(), "ListEvents limit: 5 node: \"node1\"");
  Change([](FakeState& state) { state.events.clear(); });
  EXPECT_EQ(Run("events").err, "spokectl: there are no events\n");
  EXPECT_EQ(Run("events -o name").code, 2);
}

TEST_F(CommandTest, EventsAreThoseOfPods) {
  Change(AddEvents);
  Change([](FakeState& state) {
    for (const char* pod : {"ns/a", "ns/b", "other/a"}) {
      v1::EventInfo& event = state.events.emplace_back();
      event.set_event("join_refused");
      (*event.mutable_fields())["pod"] = pod;
    }
    (*state.events.emplace_back().mutable_fields())["namespace"] = "ns";
    state.objects[{"Team", "vision"}] = "kind: Team";
    state.specs[{"Team", "vision"}] = R"({"namespaces": ["ns"]})";
  });
  EXPECT_EQ(Json("events --pod ns/a").size(), 1U);
  EXPECT_EQ(Json("events --pod a").size(), 2U);
  EXPECT_EQ(Json("events -n ns").size(), 3U);
  EXPECT_EQ(Json("events --team vision").size(), 3U);
  EXPECT_EQ(Json("events --namespace other --tail 5").size(), 1U);
  EXPECT_EQ(Json("events --tail 2").size(), 2U);
}

TEST_F(CommandTest, EventsAreThoseOfATimeAndALevel) {
  Change(AddEvents);
  const auto names = [&](const std::string& filter) {
    std::string names;
    for (const auto& event : Json("events " + filter)) {
      names += event["event"].get<std::string>() + " ";
    }
    return names;
  };
  EXPECT_EQ(names("--since 2023-11-14T22:13:21Z"), "store_commit_failed ");
  EXPECT_EQ(server_.last_request(), "ListEvents limit: 4294967295") << "all that are kept";
  EXPECT_EQ(names("--since 2023-11-14T22:13:20Z"), "node_connected store_commit_failed ");
  EXPECT_EQ(names("--since 2023-11-14T22:13:20Z --limit 1"), "store_commit_failed ");
  EXPECT_EQ(names("--level info --limit 7"), "node_connected store_commit_failed ");
  EXPECT_EQ(server_.last_request(), "ListEvents limit: 7");
  EXPECT_EQ(Run("events --since 2024-01-01T00:00:00Z").err, "spokectl: there are no such events\n");
  EXPECT_THAT(Run("events --follow --level error").out, Not(HasSubstr("node_connected")));
  EXPECT_EQ(names("--level error"), "store_commit_failed ");
  EXPECT_EQ(server_.last_request(), "ListEvents limit: 4294967295");
  EXPECT_EQ(names("--level info"), "node_connected store_commit_failed ");
  EXPECT_EQ(Run("events --level loud").code, 2);
  EXPECT_EQ(Run("events --since soon").code, 2);
  Change([](FakeState& state) { state.events[0].set_level("grave"); });
  EXPECT_EQ(names("--level warning"), "node_connected store_commit_failed ");
}

TEST_F(CommandTest, EventsThatAreFollowedAreOneObjectALine) {
  Change(AddEvents);
  const Outcome outcome = Run("events --follow -o json");
  EXPECT_THAT(outcome.out, HasSubstr("\"event\":\"node_connected\""));
  const std::vector<std::string> lines = absl::StrSplit(outcome.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(nlohmann::json::parse(lines[1])["level"], "error");
  EXPECT_THAT(Run("events --follow -o yaml").out, HasSubstr("---\ntime: "));
  Refuse("ListEvents", absl::NotFoundError("there is no node x"));
  EXPECT_EQ(Run("events --follow --node x").code, 4);
}

class BackupTest : public CommandTest {
 protected:
  BackupTest() { SetPieces({"first piece, ", "second piece"}); }

  void SetPieces(const std::vector<std::string>& pieces) {
    Change([&](FakeState& state) {
      state.backup.clear();
      content_.clear();
      for (const std::string& data : pieces) {
        v1::BackupResponse& piece = state.backup.emplace_back();
        piece.set_data(data);
        piece.set_offset(content_.size());
        content_ += data;
      }
      for (v1::BackupResponse& piece : state.backup) piece.set_total(content_.size());
    });
  }
  bool Exists(const std::string& name) const {
    return ::access(dir_.File(name).c_str(), F_OK) == 0;
  }

  std::string content_;
};

TEST_F(BackupTest, TheCopyIsWholeAndItsOwnersAlone) {
  const Outcome outcome = Run("backup " + dir_.File("ipam.db"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("25 B, complete and on the disk"));
  EXPECT_EQ(*os::ReadFile(dir_.File("ipam.db")), content_);
  struct stat info {};
  ASSERT_EQ(::stat(dir_.File("ipam.db").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_FALSE(Exists("ipam.db.partial"));
  EXPECT_EQ(Json("backup " + dir_.File("second.db"))["bytes"], 25);
}

TEST_F(BackupTest, WhatIsThereIsNeverOverwritten) {
  const std::string path = WriteFile("ipam.db", "precious");
  const Outcome outcome = Run("backup " + path);
  EXPECT_EQ(outcome.code, 5);
  EXPECT_THAT(outcome.err, HasSubstr("exists and is not overwritten"));
  EXPECT_EQ(*os::ReadFile(path), "precious");
}

TEST_F(BackupTest, ARestOfAKilledRunIsOverwritten) {
  WriteFile("ipam.db.partial", std::string(1000, 'x'));
  ASSERT_EQ(Run("backup " + dir_.File("ipam.db")).code, 0);
  EXPECT_EQ(*os::ReadFile(dir_.File("ipam.db")), content_);
}

TEST_F(BackupTest, AShortOrTornStreamLeavesNothing) {
  Change([](FakeState& state) { state.backup.pop_back(); });
  const Outcome shorter = Run("backup " + dir_.File("short.db"));
  EXPECT_EQ(shorter.code, 1);
  EXPECT_THAT(shorter.err, HasSubstr("ended after 13 of 25 bytes"));
  SetPieces({"first", "second"});
  Change([](FakeState& state) { state.backup.erase(state.backup.begin()); });
  EXPECT_THAT(Run("backup " + dir_.File("torn.db")).err, HasSubstr("byte 5 where byte 0 was due"));
  SetPieces({"first", "second"});
  Refuse("Backup", absl::DataLossError("the copy is damaged; see the server's log"));
  EXPECT_EQ(Run("backup " + dir_.File("bad.db")).code, 1);
  for (const char* name : {"short.db", "torn.db", "bad.db"}) {
    EXPECT_FALSE(Exists(name)) << name;
    EXPECT_FALSE(Exists(std::string(name) + ".partial")) << name;
  }
}

TEST_F(BackupTest, ToStandardOutputGoesTheCopyAndNothingElse) {
  for (const char* line : {"backup -", "backup - -o json"}) {
    const Outcome outcome = Run(line);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, content_);
    EXPECT_THAT(outcome.err, HasSubstr("standard output: 25 B, complete"));
  }
  EXPECT_NE(::access("-", F_OK), 0) << "no file of that name is made";
  Change([](FakeState& state) { state.backup.pop_back(); });
  EXPECT_EQ(Run("backup -").code, 1) << "a pipe cannot tell that it is short, and the code does";
  terminal_ = true;
  EXPECT_THAT(Run("backup -").err, HasSubstr("standard output is a terminal"));
}

TEST_F(BackupTest, WhatStandardOutputDoesNotTakeIsAFailure) {
  fail_after_bytes_ = 5;
  const Outcome outcome = Run("backup -");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("No space left on device"));
}

TEST_F(BackupTest, AFolderThatIsNotThereIsNamedBeforeTheServerIsAsked) {
  const Outcome outcome = Run("backup /nonexistent/ipam.db --server unix:/nonexistent");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("/nonexistent/ipam.db.partial"));
}

// Returns what tar makes of the file: names, or the content of one.
std::string Tar(const std::string& words) {
  std::string out;
  std::FILE* pipe = ::popen(("tar " + words).c_str(), "r");
  if (pipe == nullptr) return out;
  std::array<char, 4096> buffer{};
  while (const size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    out.append(buffer.data(), got);
  }
  EXPECT_EQ(::pclose(pipe), 0) << words;
  return out;
}

TEST_F(CommandTest, ABundleHasEachPartAndSaysThatItNamesPods) {
  Change(FillCluster);
  Change([](FakeState& state) { SetAudit(state, false); });
  Change(AddEvents);
  const std::string path = dir_.File("bundle.tar.gz");
  const Outcome outcome = Run("support-bundle " + path);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "") << "differences are no failure";
  EXPECT_THAT(outcome.out, HasSubstr("names pods"));
  const std::string names = Tar("tzf " + path);
  for (const char* name : {"version.json", "status.txt", "pools.json", "nodes.json", "events.txt",
                           "objects.yaml", "audit.json", "README.txt"}) {
    EXPECT_THAT(names, HasSubstr(std::string("spoke-support/") + name + "\n"));
  }
  EXPECT_THAT(names, Not(HasSubstr("errors.txt")));
  EXPECT_THAT(Tar("xOzf " + path + " spoke-support/nodes.json"), HasSubstr("\"node1\""));
  EXPECT_THAT(Tar("xOzf " + path + " spoke-support/README.txt"), HasSubstr("PODS"));
  EXPECT_EQ(Run("support-bundle " + path).code, 5) << "it is there";
  const Outcome piped = Run("support-bundle -");
  EXPECT_EQ(piped.code, 0) << piped.err;
  EXPECT_EQ(piped.out.substr(0, 2), "\x1f\x8b") << "gzip and nothing before it";
  EXPECT_THAT(piped.err, HasSubstr("It names pods"));
}

TEST_F(CommandTest, ABundleHasWhatAgentsOfNodesHaveKept) {
  Change(FillCluster);
  Change([](FakeState& state) {
    SetAudit(state, false);
    state.node_data = {{"log", "2026-11-27T12:00:00.000Z level=info event=ready\n"},
                       {"state", R"({"node": "node1"})"}};
  });
  const std::string path = dir_.File("bundle.tar.gz");
  const Outcome outcome = Run("support-bundle " + path + " --node node1 --node nobody");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("2 of 17 parts could not be had"));
  EXPECT_THAT(Tar("xOzf " + path + " spoke-support/node-node1-log.txt"), HasSubstr("event=ready"));
  EXPECT_THAT(Tar("xOzf " + path + " spoke-support/node-node1-state.json"), HasSubstr("node1"));
  EXPECT_THAT(Tar("xOzf " + path + " spoke-support/errors.txt"),
              HasSubstr("there is no node nobody"));
  const Outcome wrong = Run("support-bundle " + dir_.File("other") + " --node ../../etc/passwd");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("is no node's name"));
}

TEST_F(CommandTest, WhatABundleCannotHaveIsRecordedInIt) {
  Change([](FakeState& state) { SetAudit(state, true); });
  Refuse("GetTop", absl::InternalError("a fault in top"));
  const std::string path = dir_.File("bundle.tar.gz");
  const Outcome outcome = Run("support-bundle " + path + " -o json");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err,
            "spokectl: 1 of 13 parts could not be had; errors.txt in the bundle says why\n");
  EXPECT_EQ(nlohmann::json::parse(outcome.out)["parts_failed"], 1);
  EXPECT_THAT(Tar("xOzf " + path + " spoke-support/errors.txt"),
              HasSubstr("top.json (code 1): spokectl: a fault in top"));
}

TEST_F(CommandTest, ABundleIsMadeEvenWithoutAServer) {
  const std::string path = dir_.File("bundle.tar.gz");
  const Outcome outcome = Run("support-bundle " + path + " --server unix:/nonexistent");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(Run("support-bundle - --server unix:/nonexistent").code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("13 of 13 parts could not be had"));
  EXPECT_THAT(Tar("xOzf " + path + " spoke-support/errors.txt"), HasSubstr("no server answers"));
}

TEST_F(CommandTest, RecoverySaysWhatItWaitsForAndHowToEndIt) {
  server_.With([](FakeState& state) { state.recovery.set_phase("open"); });
  EXPECT_THAT(Run("recovery show").out, HasSubstr("No recovery is under way"));
  server_.With([](FakeState& state) {
    v1::RecoveryInfo& recovery = state.recovery;
    recovery.set_phase("recovering");
    recovery.set_reason("a backup was restored");
    recovery.set_nodes_spoken(5);
    recovery.set_nodes_silent(3);
    recovery.add_silent("node7");
    recovery.add_unverified("node9: signed by another key");
  });
  const std::string shown = Run("recovery show").out;
  EXPECT_THAT(shown, HasSubstr("No node gets or gives back an address: a backup was restored."));
  EXPECT_THAT(shown, HasSubstr("spoken: 5"));
  EXPECT_THAT(shown, HasSubstr("3 (node7 and 2 more)"));
  EXPECT_THAT(shown, HasSubstr("node9: signed by another key"));
  EXPECT_THAT(shown, HasSubstr("spokectl recovery confirm --silent-nodes 3"));
  EXPECT_EQ(Json("recovery show")["nodes_silent"], 3);
  EXPECT_EQ(Run("recovery confirm").code, 2) << "never without the number";
  EXPECT_THAT(Run("recovery confirm --silent-nodes 3").out, HasSubstr("No recovery is under way"));
  EXPECT_EQ(server_.last_request(), "ConfirmRecovery nodes_silent: 3");
  Refuse("ConfirmRecovery", absl::FailedPreconditionError("4 nodes have not spoken, not 3"));
  EXPECT_EQ(Run("recovery confirm --silent-nodes 3").code, 5);
}

}  // namespace
}  // namespace spoke::ctl
