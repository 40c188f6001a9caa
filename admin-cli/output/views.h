// The looks of nodes, addresses and pools, wherever they are printed. Pure except for the session's
// clock.
#pragma once

#include "admin-cli/output/list_form.h"
#include "proto/spoke/v1/admin.pb.h"

namespace spoke::ctl {

ListForm<v1::NodeInfo> NodeForm(const Session& session);
ListForm<v1::AddressInfo> AddressForm(const Session& session);
ListForm<v1::PoolInfo> PoolForm();

Json ToJson(const v1::NodeInfo& node);
Json ToJson(const v1::MaintenanceEvent& event);
Json ToJson(const v1::AddressInfo& address);
Json ToJson(const v1::PoolInfo& pool);

// Returns "a=1,b=2", sorted.
std::string LabelsOf(const google::protobuf::Map<std::string, std::string>& labels);

// Returns "namespace/name", or what there is of it.
std::string PodOf(const std::string& pod_namespace, const std::string& name);

}  // namespace spoke::ctl
