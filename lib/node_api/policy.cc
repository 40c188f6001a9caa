#include "lib/node_api/policy.h"

#include <algorithm>
#include <utility>

#include "lib/base/utf8.h"
#include "proto/spoke/v1/node.pb.h"

namespace spoke::node_api {
namespace {

using base::CutText;

void ToWire(const CutCount& in, v1::CutCount& out) {
  out.set_connections(in.connections);
  out.set_cut(in.cut);
}

CutCount FromWire(const v1::CutCount& in) {
  const uint64_t connections = std::min(in.connections(), kMaxTrackedConnections);
  return {.connections = connections, .cut = std::min(in.cut(), connections)};
}

void ToWire(const CutFlow& in, v1::CutFlow& out) {
  out.set_pod_namespace(in.pod_namespace);
  out.set_pod_name(in.pod_name);
  out.set_address(in.address.ToBytes());
  out.set_far_address(in.far_address.ToBytes());
  out.set_peer_spoke(in.peer_spoke);
}

// nullopt: an end is no address.
std::optional<CutFlow> FromWire(const v1::CutFlow& in) {
  const auto address = ip::Address::FromBytes(in.address());
  const auto far_address = ip::Address::FromBytes(in.far_address());
  if (!address.ok() || !far_address.ok()) return std::nullopt;
  return CutFlow{.pod_namespace = CutText(in.pod_namespace(), kMaxNameBytes),
                 .pod_name = CutText(in.pod_name(), kMaxNameBytes),
                 .address = *address,
                 .far_address = *far_address,
                 .peer_spoke = in.peer_spoke()};
}

}  // namespace

void ToWire(const PolicyUpdate& in, v1::PolicyBundle& out) {
  out = *in.bundle;
  if (in.max_cut_permille) out.mutable_cut_limit()->set_permille(*in.max_cut_permille);
}

PolicyUpdate FromWire(const v1::PolicyBundle& in) {
  PolicyUpdate update{.bundle = std::make_shared<const v1::PolicyBundle>(in)};
  if (in.has_cut_limit()) {
    update.max_cut_permille = std::min(in.cut_limit().permille(), kAllPermille);
  }
  return update;
}

void ToWire(const PolicyTrial& in, v1::PolicyTrial& out) {
  out.set_id(in.id);
  *out.mutable_policy() = *in.policy;
}

PolicyTrial FromWire(const v1::PolicyTrial& in) {
  return {.id = in.id(), .policy = std::make_shared<const v1::PolicyBundle>(in.policy())};
}

void ToWire(const PolicyAck& in, v1::PolicyAck& out) {
  out.set_version(in.version);
  out.set_error(in.error);
  if (in.cut) ToWire(*in.cut, *out.mutable_cut());
  out.set_held(in.held);
}

PolicyAck FromWire(const v1::PolicyAck& in) {
  return {.version = in.version(),
          .error = CutText(in.error(), kMaxPolicyErrorBytes),
          .cut = in.has_cut() ? std::optional(FromWire(in.cut())) : std::nullopt,
          .held = in.held()};
}

void ToWire(const PolicyTrialAnswer& in, v1::PolicyTrialResult& out) {
  out.set_id(in.id);
  ToWire(in.cut, *out.mutable_cut());
  out.set_error(in.error);
  for (const CutFlow& flow : in.flows) ToWire(flow, *out.add_flows());
}

PolicyTrialAnswer FromWire(const v1::PolicyTrialResult& in) {
  PolicyTrialAnswer out{
      .id = in.id(), .cut = FromWire(in.cut()), .error = CutText(in.error(), kMaxErrorBytes)};
  for (const v1::CutFlow& flow : in.flows()) {
    if (out.flows.size() >= kMaxCutFlows) break;
    if (auto taken = FromWire(flow)) out.flows.push_back(*std::move(taken));
  }
  return out;
}

}  // namespace spoke::node_api
