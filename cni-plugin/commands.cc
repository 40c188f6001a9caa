#include "cni-plugin/commands.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "cni-plugin/agent_client.h"
#include "cni-plugin/result.h"
#include "lib/os/unique_fd.h"

namespace spoke::cni {
namespace {

// Below the one minute that containerd and CRI-O give a DEL, and far below what they give an ADD.
constexpr int kDeadlineMs = 20'000;

constexpr const char* kAbout =
    "spoke: CNI plugin that gives pods cloud-native addresses; it is run by a container runtime\n"
    "CNI versions 0.3.0, 0.3.1, 0.4.0 and 1.0.0\n";

int Fail(const Process& process, const Error& error, const std::string& cni_version) {
  process.write_stdout(FormatError(error, cni_version));
  return 1;
}

int Add(const Process& process, const Request& request) {
  const os::UniqueFd netns(::open(request.netns.c_str(), O_RDONLY | O_CLOEXEC));
  if (!netns.valid()) {
    return Fail(
        process,
        {kInvalidEnvironment, "cannot open CNI_NETNS " + request.netns, std::strerror(errno)},
        request.cni_version);
  }
  const auto attachment = AskToAdd(request, netns.get(), kDeadlineMs);
  if (!attachment.ok()) return Fail(process, attachment.error(), request.cni_version);
  if (process.write_stdout(FormatResult(request, *attachment))) return 0;
  // The runtime never heard of it, so it must not exist.
  AskToDel(request, kDeadlineMs);
  process.write_stderr("spoke: the result could not be written; the attachment was undone\n");
  return 1;
}

int Del(const Process& process, const Request& request) {
  const auto done = AskToDel(request, kDeadlineMs);
  return done.ok() ? 0 : Fail(process, done.error(), request.cni_version);
}

}  // namespace

int RunCommand(const Process& process) {
  if (!process.environment("CNI_COMMAND")) {
    process.write_stderr(kAbout);
    return 0;
  }
  auto request = ParseEnvironment(process.environment);
  if (!request.ok()) return Fail(process, request.error(), "");
  // VERSION does not read its input: some callers never close it.
  if (request->command == Command::kVersion) return process.write_stdout(FormatVersion()) ? 0 : 1;
  std::string text;
  if (!process.read_stdin(text)) {
    return Fail(process,
                {kIoFailure, "cannot read the network configuration from standard input",
                 "it is unreadable, or longer than 4 MiB"},
                "");
  }
  request = ParseConfig(*request, text);
  if (!request.ok()) return Fail(process, request.error(), "");
  return request->command == Command::kAdd ? Add(process, *request) : Del(process, *request);
}

}  // namespace spoke::cni
