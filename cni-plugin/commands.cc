#include "cni-plugin/commands.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "cni-plugin/agent/agent_client.h"
#include "cni-plugin/agent/request.h"
#include "cni-plugin/json/json.h"
#include "cni-plugin/result.h"
#include "lib/base/version.h"

namespace spoke::cni {
namespace {

// The number NS_GET_NSTYPE of linux/nsfs.h (ioctl_ns(2)), which the C library of releases has not.
constexpr unsigned kGetNamespaceType = 0xB703;

using Outcome = Response::Outcome;

// A DaemonSet starts the next agent within this time, as a rule.
constexpr int kReplacedMs = 10'000;

// The times for the verbs. A DEL is within the minute that containerd and CRI-O give it, a STATUS
// within what a runtime that asks every five seconds does not notice. Where no agent is, an ADD
// fails fast, except when one has just stopped in order: a failed ADD costs the runtime more than
// the wait for the next agent. A DEL need not wait, since it is noted down.
constexpr Patience kAddPatience{
    .absent_ms = 1000, .hung_up_ms = 5000, .replaced_ms = kReplacedMs, .grace_ms = 250};
constexpr Patience kDelPatience{.deadline_ms = 20'000, .absent_ms = 200, .hung_up_ms = 5000};
constexpr Patience kCheckPatience{
    .deadline_ms = 10'000, .absent_ms = 1000, .hung_up_ms = 5000, .replaced_ms = kReplacedMs};
constexpr Patience kGcPatience{.deadline_ms = 10'000, .absent_ms = 200, .hung_up_ms = 5000};
constexpr Patience kStatusPatience{.deadline_ms = 90};

constexpr std::string_view kAbout =
    "spoke: CNI plugin that gives pods cloud-native addresses; it is run by a container runtime\n"
    "CNI versions 0.3.0, 0.3.1, 0.4.0, 1.0.0 and 1.1.0\n";

int Fail(Process& process, const Error& error, const Invocation& request) {
  process.WriteOutput(FormatError(error, request.cni_version));
  return 1;
}

Error WrongAnswer(const char* verb) {
  return {kInternal, std::string("spoke-netagent answered ") + verb + " with another verb's answer",
          "do plugin and agent come from the same release?"};
}

// Returns the error; nullopt: the agent has done it.
std::optional<Error> ErrorOf(const Expected<Response>& response, const char* verb) {
  if (!response.ok()) return response.error();
  if (response->outcome == Outcome::kError) return response->error;
  if (response->outcome != Outcome::kDone) return WrongAnswer(verb);
  return std::nullopt;
}

// Returns the text without the words at which containerd takes an error of a DEL for success and
// forgets the attachment (https://github.com/containerd/go-cni, Remove()), which is then never
// freed.
std::string WithoutGone(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"not found", "unknown"}, {"no such file or directory", "missing"}};
  for (const auto& [gone, instead] : kWords) {
    for (size_t i = 0; i + gone.size() <= text.size();) {
      bool same = true;
      for (size_t k = 0; same && k < gone.size(); ++k) {
        same = (text[i + k] | ' ') == gone[k];  // The letters match in any case.
      }
      if (same) text.replace(i, gone.size(), instead);
      ++i;
    }
  }
  return text;
}

// Does a DEL; nullopt: what the attachment held is free, or will be. Where no agent answers, a note
// is left for it.
std::optional<Error> Delete(Process& process, const Invocation& request) {
  const auto response = Ask(request.socket, request, -1, kDelPatience);
  if (response.ok() && response->outcome == Outcome::kError) {
    return Error{response->error.code, WithoutGone(response->error.message),
                 WithoutGone(response->error.details)};
  }
  if (response.ok() && response->outcome == Outcome::kDone) return std::nullopt;
  if (const auto error = LeaveTombstone(request.socket, request)) {
    return Error{error->code, WithoutGone(error->message), WithoutGone(error->details)};
  }
  process.WriteNote("spoke: " + (response.ok() ? WrongAnswer("DEL") : response.error()).message +
                    "; noted down the deletion of " + request.container_id + " " + request.ifname +
                    " for it\n");
  return std::nullopt;
}

int Add(Process& process, Invocation& request) {
  const auto netns = OpenNetns(request.netns, process.OwnNetns());
  if (!netns.ok()) return Fail(process, netns.error(), request);
  Patience patience = kAddPatience;
  patience.deadline_ms = request.add_timeout_ms;
  const auto response = Ask(request.socket, request, netns->get(), patience);
  if (!response.ok()) return Fail(process, response.error(), request);
  if (response->outcome == Outcome::kError) return Fail(process, response->error, request);
  if (response->outcome != Outcome::kAttachment || response->attachment.addresses.empty()) {
    return Fail(process, WrongAnswer("ADD"), request);
  }
  if (process.WriteOutput(FormatResult(request, response->attachment))) return 0;
  // The runtime never heard of it, so it must not exist.
  request.verb = Verb::kDel;
  request.options = {};
  request.attempt = process.DrawNumber();
  const auto left = Delete(process, request);
  process.WriteNote(left ? "spoke: the result could not be written; the attachment remains: " +
                               left->message + "\n"
                         : "spoke: the result could not be written; the attachment was undone\n");
  return 1;
}

int Del(Process& process, const Invocation& request) {
  const auto error = Delete(process, request);
  return error ? Fail(process, *error, request) : 0;
}

int Check(Process& process, Invocation& request) {
  const auto netns = OpenNetns(request.netns, process.OwnNetns());
  if (!netns.ok()) return Fail(process, netns.error(), request);
  for (const Expectation& expectation : request.expectations) {
    if (IsSameNetns(netns->get(), expectation.sandbox)) request.expected = expectation.attachment;
  }
  if (!request.expected) {
    return Fail(
        process,
        {kInvalidConfig,
         "interface " + request.ifname +
             " of \"prevResult\" is in another sandbox: " + request.expectations.front().sandbox,
         "CNI_NETNS is " + ToUtf8(request.netns) + "; the runtime has mixed up two containers"},
        request);
  }
  const auto response = Ask(request.socket, request, netns->get(), kCheckPatience);
  const auto error = ErrorOf(response, "CHECK");
  return error ? Fail(process, *error, request) : 0;
}

int Gc(Process& process, const Invocation& request) {
  // Where the runtime does not say what is in use, nothing is known to be stale.
  if (!request.valid) return 0;
  const auto error = ErrorOf(Ask(request.socket, request, -1, kGcPatience), "GC");
  return error ? Fail(process, *error, request) : 0;
}

int Status(Process& process, const Invocation& request) {
  const auto response = Ask(request.socket, request, -1, kStatusPatience);
  auto error = ErrorOf(response, "STATUS");
  if (!error) return 0;
  // Without an agent, or with one of another release, no ADD would work.
  if (!response.ok() || response->outcome != Outcome::kError) error->code = kNotAvailable;
  return Fail(process, *error, request);
}

}  // namespace

Expected<os::UniqueFd> OpenNetns(const std::string& path, const char* own) {
  const auto bad = [&](const char* what) {
    return Error{kInvalidEnvironment,
                 "CNI_NETNS is no network namespace: " + ToUtf8(path) + ": " + what,
                 "the container is gone, or its runtime has lost its namespace"};
  };
  // Without O_NONBLOCK a pipe would hold us.
  os::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) return bad(errno == ENOENT ? "nothing is there" : std::strerror(errno));
  if (::ioctl(fd.get(), static_cast<int>(kGetNamespaceType)) != CLONE_NEWNET) {
    return bad("it is something else");
  }
  struct stat given {};
  struct stat ours {};
  if (::fstat(fd.get(), &given) != 0 || ::stat(own, &ours) != 0) return bad(std::strerror(errno));
  if (given.st_dev == ours.st_dev && given.st_ino == ours.st_ino) {
    return Error{kInvalidNetns, "CNI_NETNS is the node's own network namespace: " + ToUtf8(path),
                 "a pod on the host's network needs no attachment; correct the runtime's call"};
  }
  return fd;
}

bool IsSameNetns(int netns, const std::string& path) {
  struct stat a {};
  struct stat b {};
  return ::fstat(netns, &a) == 0 && ::stat(path.c_str(), &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

int RunCommand(Process& process) {
  const char* command = process.Variable("CNI_COMMAND");
  if (command == nullptr || *command == '\0') {
    process.WriteNote(kAbout);
    return 0;
  }
  auto request = ParseEnvironment([&](const char* name) { return process.Variable(name); });
  if (!request.ok()) return Fail(process, request.error(), {});
  // VERSION does not read its input: some callers never close it.
  if (request->verb == Verb::kVersion) return process.WriteOutput(FormatVersion()) ? 0 : 1;
  const auto input = process.Input();
  if (!input.ok()) return Fail(process, input.error(), *request);
  if (const auto error = ReadConfig(*input, *request)) return Fail(process, *error, *request);
  request->attempt = process.DrawNumber();
  request->plugin_version = base::kVersion;
  switch (request->verb) {
    case Verb::kAdd:
      return Add(process, *request);
    case Verb::kDel:
      return Del(process, *request);
    case Verb::kCheck:
      return Check(process, *request);
    case Verb::kGc:
      return Gc(process, *request);
    case Verb::kStatus:
      return Status(process, *request);
    case Verb::kVersion:
      break;
  }
  return 1;
}

}  // namespace spoke::cni
