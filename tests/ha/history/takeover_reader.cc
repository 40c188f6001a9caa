#include "tests/ha/history/takeover_reader.h"

#include "fmt/core.h"
#include "ipam-server/store/record_codec.h"
#include "lib/base/status.h"

namespace spoke::ha {
namespace {

namespace pb = etcdserverpb;

// etcd counts the rest of the range for every page.
constexpr int64_t kPage = 8192;
constexpr ipam::etcd::CallTime kPageTime{.attempt = absl::Seconds(5),
                                         .patience = absl::Seconds(10)};

}  // namespace

absl::StatusOr<std::unique_ptr<TakeoverReader>> TakeoverReader::Open(ipam::etcd::Access access,
                                                                     std::string prefix,
                                                                     NodeOf node_of) {
  ASSIGN_OR_RETURN(auto connection, ipam::etcd::Connection::Open(std::move(access)));
  return std::unique_ptr<TakeoverReader>(
      new TakeoverReader(std::move(connection), std::move(prefix), std::move(node_of)));
}

absl::StatusOr<std::optional<TakeoverReader::Leader>> TakeoverReader::LeaderAt(int64_t revision) {
  pb::RangeRequest request;
  request.set_key(layout_.leader());
  request.set_revision(revision);
  pb::RangeResponse found;
  RETURN_IF_ERROR(connection_->Range(request, found, kPageTime));
  if (found.kvs().empty()) return std::nullopt;
  return Leader{.lease = found.kvs(0).lease(), .revision = found.kvs(0).mod_revision()};
}

absl::Status TakeoverReader::Remember() {
  ASSIGN_OR_RETURN(const std::optional<Leader> leader, LeaderAt(0));
  if (!leader) return absl::UnavailableError("no server leads");
  former_lease_ = leader->lease;
  return absl::OkStatus();
}

// A leader may have written its key again since (Leadership::RaiseFence()).
absl::StatusOr<int64_t> TakeoverReader::BeforeTakeover() {
  ASSIGN_OR_RETURN(std::optional<Leader> leader, LeaderAt(0));
  if (!leader || leader->lease == former_lease_) {
    return absl::UnavailableError("no other server has taken over yet");
  }
  const int64_t lease = leader->lease;
  int64_t before = 0;
  while (leader && leader->lease == lease) {
    before = leader->revision - 1;
    ASSIGN_OR_RETURN(leader, LeaderAt(before));
  }
  return before;
}

absl::StatusOr<TakeoverReader::Records> TakeoverReader::Read() {
  ASSIGN_OR_RETURN(const int64_t revision, BeforeTakeover());
  const ipam::KeyRange range = layout_.Records(ipam::KeyRange::WithPrefix(ipam::kNodeKeyPrefix));
  pb::RangeRequest request;
  request.set_key(range.first);
  request.set_range_end(range.end);
  request.set_revision(revision);
  request.set_limit(kPage);
  Records records;
  while (true) {
    pb::RangeResponse page;
    RETURN_IF_ERROR(connection_->Range(request, page, kPageTime));
    for (mvccpb::KeyValue& found : *page.mutable_kvs()) {
      records.push_back(std::move(*found.mutable_value()));
    }
    if (!page.more() || page.kvs().empty()) return records;
    request.set_key(page.kvs(page.kvs_size() - 1).key() + '\0');
  }
}

absl::StatusOr<Reading> TakeoverReader::Decode(const Records& records) const {
  Reading reading;
  for (const std::string& record : records) RETURN_IF_ERROR(Add(record, reading));
  return reading;
}

absl::Status TakeoverReader::Add(std::string_view record, Reading& reading) const {
  ASSIGN_OR_RETURN(const ipam::NodeRecord node, ipam::DecodeNode(record));
  const std::optional<uint32_t> number = node_of_(node.key.name);
  if (!number) return absl::OkStatus();
  for (const auto& [base, configuration] : node.configurations) {
    for (size_t i = 0; i < configuration.slots.size(); ++i) {
      const ipam::Slot& slot = configuration.slots[i];
      const Stored stored{.node = *number,
                          .generation = slot.use == ipam::Use::kInUse ? slot.generation : 0};
      const ip::Address address = configuration.AddressAt(i);
      if (!reading.addresses.emplace(address, stored).second) reading.doubled.push_back(address);
    }
  }
  return absl::OkStatus();
}

}  // namespace spoke::ha
