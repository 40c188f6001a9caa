// Runs command lines against the tests' server: words in; output, errors and exit code out.
#pragma once

#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "admin-cli/run.h"
#include "admin-cli/testing/fake_admin_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/clock.h"
#include "tests/support/temp_dir.h"

namespace spoke::ctl {

class FakeConsole final : public Console {
 public:
  void Out(std::string_view text) override {
    out += text;
    if (fail_after_bytes != 0 && out.size() > fail_after_bytes) {
      failure = absl::InternalError("write to standard output: No space left on device");
    }
  }
  void Err(std::string_view text) override { err += text; }
  absl::StatusOr<std::string> ReadInput(size_t max_bytes) override {
    if (input.size() > max_bytes) return absl::ResourceExhaustedError("too much");
    return input;
  }
  bool out_is_terminal() const override { return terminal; }
  bool err_is_terminal() const override { return terminal; }
  absl::Status written() const override { return failure; }

  std::string input;
  bool terminal = false;
  size_t fail_after_bytes = 0;
  std::string out;
  std::string err;
  absl::Status failure;
};

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

class CommandTest : public testing::Test {
 protected:
  // The time, ten minutes after what the server has.
  static constexpr int64_t kNowMs = 1'700'000'600'000;

  // Runs `line`, which has no quotes or escapes: words are apart by blanks.
  Outcome Run(const std::string& line) {
    return RunWords(absl::StrSplit(line, ' ', absl::SkipEmpty()));
  }
  Outcome RunWords(const std::vector<std::string>& words) {
    FakeConsole console;
    console.terminal = terminal_;
    console.input = input_;
    console.fail_after_bytes = fail_after_bytes_;
    os::SimClock clock(absl::FromUnixMillis(kNowMs));
    const World world{console, clock,
                      [&](absl::Duration duration) {
                        clock.Advance(duration);
                        if (between_.empty()) return false;
                        between_.front()();
                        between_.pop_front();
                        return true;
                      },
                      [&](const std::string& name) { return variables_[name]; }};
    const int code = ctl::Run(words, world);
    return {code, console.out, console.err};
  }
  nlohmann::json Json(const std::string& line) {
    const Outcome outcome = Run(line + " -o json");
    EXPECT_EQ(outcome.err, "");
    return nlohmann::json::parse(outcome.out, nullptr, false);
  }
  void Change(const std::function<void(FakeState&)>& change) { server_.With(change); }
  void Refuse(const std::string& method, const absl::Status& status) {
    Change([&](FakeState& state) { state.refusals[method] = status; });
  }
  std::string WriteFile(const std::string& name, const std::string& text);

  const testing_support::TempDir dir_;
  const std::string target_ = "unix:" + dir_.File("admin.sock");
  FakeAdminServer server_{target_};
  std::map<std::string, std::string> variables_ = {{"SPOKE_SERVER", target_}};
  // The things that happen while a verb waits: one a wait. When none is left, it is interrupted.
  std::deque<std::function<void()>> between_;
  bool terminal_ = false;
  std::string input_;
  size_t fail_after_bytes_ = 0;
};

inline std::string CommandTest::WriteFile(const std::string& name, const std::string& text) {
  const std::string path = dir_.File(name);
  std::FILE* file = std::fopen(path.c_str(), "w");
  EXPECT_NE(file, nullptr) << path;
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
  return path;
}

// A small cluster: node1 with a pod, node2 away, one pool.
inline void FillCluster(FakeState& state) {
  v1::NodeInfo& node1 = state.nodes["node1"];
  node1.set_name("node1");
  node1.set_vm_id("vm-1");
  node1.set_mode("active");
  node1.set_connected(true);
  node1.set_target(16);
  node1.set_attached(16);
  node1.set_in_use(1);
  node1.set_last_seen_unix_ms(1'700'000'000'000);
  (*node1.mutable_labels())["zone"] = "1";
  v1::NodeInfo& node2 = state.nodes["node2"];
  node2.set_name("node2");
  node2.set_mode("draining");
  node2.set_shortage("pool default is exhausted");
  v1::PoolInfo& pool = state.pools["default"];
  pool.set_name("default");
  pool.set_cidr("10.1.0.0/24");
  pool.set_usable(251);
  pool.set_free(235);
  pool.set_source("file");
  v1::AddressInfo& in_use = state.addresses["10.1.0.5"];
  in_use.set_address("10.1.0.5");
  in_use.set_state("in_use");
  in_use.set_pool("default");
  in_use.set_node("node1");
  in_use.set_pod_namespace("ns");
  in_use.set_pod_name("pod");
  in_use.set_container_id("c0ffeec0ffeec0ffee");
  in_use.set_since_unix_ms(1'700'000'000'000);
  v1::AddressInfo& available = state.addresses["10.1.0.6"];
  available.set_address("10.1.0.6");
  available.set_state("available");
  available.set_pool("default");
  available.set_node("node1");
}

}  // namespace spoke::ctl
