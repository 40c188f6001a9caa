#include "ipam-server/store/etcd/pages.h"

#include <algorithm>

#include "lib/base/status.h"

namespace spoke::ipam::etcd {
namespace {

namespace pb = etcdserverpb;

// etcd counts the rest of the range for every page, so small pages cost more than they save.
constexpr size_t kPage = 8192;
constexpr CallTime kPageTime{.attempt = absl::Seconds(5), .patience = absl::Seconds(10)};

}  // namespace

absl::StatusOr<int64_t> ReadPages(Connection& connection, const ListOptions& options,
                                  const std::function<void(const mvccpb::KeyValue& found)>& visit) {
  // etcd would take such a range for another one.
  if (options.range.end <= options.range.first) return 0;
  pb::RangeRequest request;
  request.set_key(options.range.first);
  request.set_range_end(options.range.end);
  if (options.descending) request.set_sort_order(pb::RangeRequest::DESCEND);
  size_t left = options.limit;
  while (true) {
    request.set_limit(static_cast<int64_t>(options.limit == 0 ? kPage : std::min(left, kPage)));
    pb::RangeResponse response;
    const absl::Status read = connection.Range(request, response, kPageTime);
    if (absl::IsOutOfRange(read)) {
      return absl::UnavailableError("the records changed faster than they were read: read again");
    }
    RETURN_IF_ERROR(read);
    if (request.revision() == 0) request.set_revision(response.header().revision());
    for (const mvccpb::KeyValue& found : response.kvs()) visit(found);
    left -= std::min(left, static_cast<size_t>(response.kvs_size()));
    if (!response.more() || response.kvs_size() == 0 || (options.limit != 0 && left == 0)) {
      return request.revision();
    }
    const std::string& last = response.kvs(response.kvs_size() - 1).key();
    if (options.descending) {
      request.set_range_end(last);
    } else {
      request.set_key(last + '\0');
    }
  }
}

}  // namespace spoke::ipam::etcd
