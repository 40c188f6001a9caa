#include "lib/node_checks/facts/kernel_probe.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/status.h"
#include "lib/netlink/link.h"
#include "lib/netlink/queueing/filter.h"
#include "lib/netlink/queueing/htb.h"
#include "lib/netlink/queueing/qdisc.h"
#include "lib/netlink/socket.h"
#include "lib/nft/connection.h"
#include "lib/os/unique_fd.h"

namespace spoke::node_checks {
namespace {

using Answer = FeatureState::Answer;

// The numbers of devices. They are free in a namespace that has nothing but lo.
constexpr int32_t kOuter = 100;
constexpr int32_t kInner = 101;
constexpr uint32_t kHandle = 0x0001'0000;
constexpr uint32_t kMtu = 1500;

// Returns the state for a status. Not being allowed, and having no memory, say nothing about the
// kernel.
FeatureState StateOf(const absl::Status& status) {
  if (status.ok()) return {Answer::kPresent, ""};
  const bool unknown = absl::IsPermissionDenied(status) || absl::IsResourceExhausted(status) ||
                       absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status);
  return {unknown ? Answer::kUnknown : Answer::kMissing, std::string(base::MessageOf(status))};
}

absl::Status Do(netlink::Socket& socket, const netlink::Request& request) {
  return netlink::SendBatch(socket, {&request, 1}).status;
}

absl::Status MakeVeth(netlink::Socket& socket, int here) {
  const netlink::VethEnd outer{"probe0", kOuter, ip::MacAddress{{2, 0, 0, 0, 0, 1}}};
  const netlink::VethEnd inner{"probe1", kInner, ip::MacAddress{{2, 0, 0, 0, 0, 2}}};
  return Do(socket, netlink::CreateVeth(outer, inner, here, kMtu, /*outer_up=*/false));
}

// A program that lets every packet pass: r0 = TC_ACT_OK; exit.
absl::StatusOr<os::UniqueFd> LoadProgram() {
  std::array<bpf_insn, 2> instructions{};
  instructions[0].code = BPF_ALU64 | BPF_MOV | BPF_K;
  instructions[1].code = BPF_JMP | BPF_EXIT;
  const std::array<char, 4> license = {'G', 'P', 'L', 0};
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_SCHED_CLS;
  attributes.insn_cnt = instructions.size();
  attributes.insns = reinterpret_cast<uint64_t>(instructions.data());
  attributes.license = reinterpret_cast<uint64_t>(license.data());
  const auto fd =
      static_cast<int>(::syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof(attributes)));
  if (fd < 0) return base::ErrnoToStatus(errno, "load a BPF program of type sched_cls");
  return os::UniqueFd(fd);
}

absl::Status MakeClassifier(netlink::Socket& socket) {
  RETURN_IF_ERROR(Do(socket, netlink::AddClsact(kOuter)));
  ASSIGN_OR_RETURN(const os::UniqueFd program, LoadProgram());
  const netlink::BpfFilter filter{.link = kOuter, .priority = 1, .name = "probe", .direct = true};
  return Do(socket, netlink::SetBpfFilter(filter, netlink::HookOf(netlink::Direction::kIngress),
                                          program.get()));
}

absl::Status MakeTable() {
  ASSIGN_OR_RETURN(nft::Connection connection, nft::Connection::Open());
  const nft::TableKey table{nft::Family::kInet, "probe"};
  const nft::LoadPayload source{nft::Header::kNetwork, 12, 4, 0};
  nft::Transaction trial;
  trial.Add(table, nft::AddTable{});
  trial.Add(table,
            nft::AddChain{{.name = "probe",
                           .base = nft::BaseHook{.hook = nft::Hook::kForward, .priority = 0}}});
  trial.Add(table, nft::AddSet{{.name = "set", .key = {nft::Field::kIpv4}, .counts = true}});
  trial.Add(table,
            nft::AddRule{{.chain = "probe", .expressions = {source, nft::LookUp{.set = "set"}}}});
  return connection.Apply(trial);
}

std::map<KernelFeature, FeatureState> All(const FeatureState& state) {
  return {{KernelFeature::kVeth, state},        {KernelFeature::kNftables, state},
          {KernelFeature::kTokenBucket, state}, {KernelFeature::kClassifiers, state},
          {KernelFeature::kIfb, state},         {KernelFeature::kHtb, state}};
}

// Tries the features in the namespace of the calling thread, and does not clean up.
std::map<KernelFeature, FeatureState> ProbeHere() {
  const os::UniqueFd here(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  auto socket = netlink::Socket::Open();
  if (!socket.ok()) return All(StateOf(socket.status()));
  auto states = All({});
  const FeatureState veth = StateOf(MakeVeth(*socket, here.get()));
  states[KernelFeature::kVeth] = veth;
  states[KernelFeature::kNftables] = StateOf(MakeTable());
  states[KernelFeature::kIfb] = StateOf(Do(*socket, netlink::CreateIfb("probe2", 1)));
  if (veth.answer != Answer::kPresent) {
    const FeatureState untried{Answer::kUnknown, "not tried: there is no link to try it on"};
    states[KernelFeature::kTokenBucket] = untried;
    states[KernelFeature::kHtb] = untried;
    states[KernelFeature::kClassifiers] = untried;
    return states;
  }
  const netlink::TokenBucket bucket{.rate = 125'000, .burst = 10'000, .limit = 100'000};
  states[KernelFeature::kTokenBucket] =
      StateOf(Do(*socket, netlink::AddTokenBucket(kInner, kHandle, bucket)));
  states[KernelFeature::kHtb] = StateOf(Do(*socket, netlink::AddHtb(kOuter, kHandle)));
  states[KernelFeature::kClassifiers] = StateOf(MakeClassifier(*socket));
  return states;
}

}  // namespace

std::map<KernelFeature, FeatureState> ProbeKernel() {
  std::map<KernelFeature, FeatureState> states;
  // The thread is one of its own, since the namespace ends with the thread that is in it.
  std::thread prober([&] {
    if (::unshare(CLONE_NEWNET) < 0) {
      states = All({Answer::kUnknown, std::string(base::MessageOf(base::ErrnoToStatus(
                                          errno, "make a network namespace to try it in")))});
      return;
    }
    states = ProbeHere();
  });
  prober.join();
  return states;
}

}  // namespace spoke::node_checks
