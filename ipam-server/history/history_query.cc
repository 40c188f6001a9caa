#include "ipam-server/history/history_query.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/history/history_codec.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

constexpr uint32_t kDefaultLimit = 100;

struct Past {
  std::vector<HistoryEntry> entries;  // The one address's, oldest first.
  int64_t kept_since_unix_ms = 0;
};

absl::StatusOr<Past> ReadPast(Store& store, const ip::Address& address) {
  Past past;
  absl::Status first_error;
  RETURN_IF_ERROR(store.List(kHistoryPrefix, [&](std::string_view key, const StoredRecord& record) {
    if (past.kept_since_unix_ms == 0) {
      past.kept_since_unix_ms = ParseHistoryKey(key).value_or(HistoryKeyParts()).unix_ms;
    }
    if (!MayMention(record.value, address)) return;
    auto entries = DecodeHistory(record.value);
    first_error.Update(base::Annotate(entries.status(), fmt::format("store key {}", key)));
    if (!entries.ok()) return;
    for (HistoryEntry& entry : *entries) {
      if (entry.address == address) past.entries.push_back(std::move(entry));
    }
  }));
  RETURN_IF_ERROR(first_error);
  return past;
}

void Fill(const HistoryEntry& in, v1::HistoryEntry& out) {
  out.set_unix_ms(absl::ToUnixMillis(in.at));
  out.set_event(std::string(NameOf(in.event)));
  out.set_node(in.node);
  out.set_vm_id(in.vm_id);
  out.set_pod_namespace(in.pod_namespace);
  out.set_pod_name(in.pod_name);
  out.set_pod_uid(in.pod_uid);
  out.set_container_id(in.container_id);
  out.set_ifname(in.ifname);
}

// What the rows say, with the end of each assignment beside its beginning.
void FillAll(const Past& past, uint32_t limit, v1::GetAddressHistoryResponse& response) {
  const std::vector<AssignmentSpan> assignments = AssignmentsOf(past.entries);
  for (auto it = past.entries.rbegin(); it != past.entries.rend(); ++it) {
    if (static_cast<uint32_t>(response.entries_size()) >= limit) return;
    v1::HistoryEntry& out = *response.add_entries();
    Fill(*it, out);
    if (it->event != HistoryEvent::kInUse) continue;
    const auto span =
        std::find_if(assignments.begin(), assignments.end(), [&](const AssignmentSpan& s) {
          return s.start == it->at && s.lessee.container_id == it->container_id;
        });
    if (span != assignments.end() && span->end) {
      out.set_until_unix_ms(absl::ToUnixMillis(*span->end));
    }
  }
}

void FillHolder(const AddressHolder& holder, v1::HistoryEntry& out) {
  if (!holder.assignment) {
    out.set_event("held");
    out.set_node(holder.node);
    out.set_vm_id(holder.vm_id);
    return;
  }
  Fill(holder.assignment->lessee, out);
  out.set_event("in_use");
  out.set_unix_ms(holder.assignment->start ? absl::ToUnixMillis(*holder.assignment->start) : 0);
  if (holder.assignment->end) out.set_until_unix_ms(absl::ToUnixMillis(*holder.assignment->end));
}

}  // namespace

absl::Status QueryHistory(Store& store, const v1::GetAddressHistoryRequest& request,
                          v1::GetAddressHistoryResponse& response) {
  ASSIGN_OR_RETURN(const ip::Address address, ip::Address::Parse(request.address()));
  ASSIGN_OR_RETURN(const Past past, ReadPast(store, address));
  response.set_kept_since_unix_ms(past.kept_since_unix_ms);
  if (request.at_unix_ms() == 0) {
    FillAll(past, request.limit() == 0 ? kDefaultLimit : request.limit(), response);
    return absl::OkStatus();
  }
  const auto holder = HolderAt(past.entries, absl::FromUnixMillis(request.at_unix_ms()));
  if (holder) FillHolder(*holder, *response.add_entries());
  return absl::OkStatus();
}

absl::StatusOr<std::optional<HistoryEntry>> LastAssignmentTo(Store& store,
                                                             const std::string& pod_namespace,
                                                             const std::string& pod_name) {
  std::optional<HistoryEntry> last;
  absl::Status first_error;
  RETURN_IF_ERROR(store.List(kHistoryPrefix, [&](std::string_view key, const StoredRecord& record) {
    // A search for the bytes of the name, which most chunks do not hold, instead of decoding.
    if (record.value.find(pod_name) == std::string::npos) return;
    auto entries = DecodeHistory(record.value);
    first_error.Update(base::Annotate(entries.status(), fmt::format("store key {}", key)));
    if (!entries.ok()) return;
    for (HistoryEntry& entry : *entries) {
      if (entry.event != HistoryEvent::kInUse || entry.pod_name != pod_name ||
          entry.pod_namespace != pod_namespace) {
        continue;
      }
      if (!last || entry.at >= last->at) last = std::move(entry);
    }
  }));
  RETURN_IF_ERROR(first_error);
  return last;
}

}  // namespace spoke::ipam
