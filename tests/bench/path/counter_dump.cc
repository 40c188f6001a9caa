#include "tests/bench/path/counter_dump.h"

#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "lib/base/status.h"
#include "tests/bench/path/fast_map.h"
#include "tests/bench/path/flow.h"
#include "tests/bench/path/quantile.h"

namespace spoke::path_bench {
namespace {

// The size of a part of a dump for a reader that offers as much.
constexpr size_t kReceiveBytes = 64UL << 10U;

struct CloseSocket {
  void operator()(mnl_socket* socket) const { mnl_socket_close(socket); }
};

class Dumper {
 public:
  static absl::StatusOr<Dumper> Open(const netns::Netns& where) {
    Dumper dumper;
    RETURN_IF_ERROR(where.Run([&]() -> absl::Status {
      dumper.socket_.reset(mnl_socket_open(NETLINK_NETFILTER));
      if (!dumper.socket_) return base::ErrnoToStatus(errno, "open netlink socket");
      if (mnl_socket_bind(dumper.socket_.get(), 0, MNL_SOCKET_AUTOPID) < 0) {
        return base::ErrnoToStatus(errno, "bind netlink socket");
      }
      return absl::OkStatus();
    }));
    return dumper;
  }

  // Dumps all there is of one type, of one table, and of one set unless `set` is empty.
  absl::Status Dump(uint16_t type, const std::string& table, const std::string& set,
                    absl::FunctionRef<void(const nlmsghdr&)> each) {
    std::array<char, 512> request{};
    nlmsghdr* header = mnl_nlmsg_put_header(request.data());
    header->nlmsg_type = static_cast<uint16_t>(NFNL_SUBSYS_NFTABLES << 8U | type);
    header->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    header->nlmsg_seq = ++sequence_;
    auto* family = static_cast<nfgenmsg*>(mnl_nlmsg_put_extra_header(header, sizeof(nfgenmsg)));
    family->nfgen_family = NFPROTO_INET;
    family->version = NFNETLINK_V0;
    // The attribute with the table's name has the same number in all three.
    static_assert(NFTA_SET_TABLE == 1 && NFTA_SET_ELEM_LIST_TABLE == 1 && NFTA_OBJ_TABLE == 1);
    mnl_attr_put_strz(header, NFTA_SET_TABLE, table.c_str());
    if (!set.empty()) mnl_attr_put_strz(header, NFTA_SET_ELEM_LIST_SET, set.c_str());
    if (mnl_socket_sendto(socket_.get(), header, header->nlmsg_len) < 0) {
      return base::ErrnoToStatus(errno, "ask for a dump");
    }
    return Receive(each);
  }

 private:
  absl::Status Receive(absl::FunctionRef<void(const nlmsghdr&)> each) {
    while (true) {
      const ssize_t size = mnl_socket_recvfrom(socket_.get(), buffer_.data(), buffer_.size());
      if (size < 0) return base::ErrnoToStatus(errno, "receive a dump");
      auto left = static_cast<int>(size);
      const auto* header = reinterpret_cast<const nlmsghdr*>(buffer_.data());
      for (; mnl_nlmsg_ok(header, left); header = mnl_nlmsg_next(header, &left)) {
        if (header->nlmsg_type == NLMSG_DONE) return absl::OkStatus();
        if (header->nlmsg_type == NLMSG_ERROR) {
          const auto* error = static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(header));
          if (error->error != 0) return base::ErrnoToStatus(-error->error, "dump");
        }
        each(*header);
      }
    }
  }

  std::unique_ptr<mnl_socket, CloseSocket> socket_;
  uint32_t sequence_ = 0;
  std::vector<char> buffer_ = std::vector<char>(kReceiveBytes);
};

// Calls `each` with every attribute, outermost. libmnl's own macros for that are no C++.
void ForEachAttribute(const nlmsghdr& message, absl::FunctionRef<void(const nlattr&)> each) {
  mnl_attr_parse(
      &message, sizeof(nfgenmsg),
      [](const nlattr* attribute, void* data) {
        (*static_cast<absl::FunctionRef<void(const nlattr&)>*>(data))(*attribute);
        return MNL_CB_OK;
      },
      &each);
}

// Returns the names of those whose elements count.
absl::StatusOr<std::vector<std::string>> CountingSets(Dumper& dumper, const std::string& table) {
  std::vector<std::string> names;
  RETURN_IF_ERROR(dumper.Dump(NFT_MSG_GETSET, table, "", [&](const nlmsghdr& message) {
    std::string name;
    bool counts = false;
    ForEachAttribute(message, [&](const nlattr& attribute) {
      const uint16_t type = mnl_attr_get_type(&attribute);
      if (type == NFTA_SET_NAME) name = mnl_attr_get_str(&attribute);
      if (type == NFTA_SET_EXPR || type == NFTA_SET_EXPRESSIONS) counts = true;
    });
    if (counts) names.push_back(name);
  }));
  return names;
}

// Messages with elements hold as many as fit.
size_t ElementsIn(const nlmsghdr& message) {
  size_t elements = 0;
  ForEachAttribute(message, [&](const nlattr& attribute) {
    if (mnl_attr_get_type(&attribute) != NFTA_SET_ELEM_LIST_ELEMENTS) return;
    mnl_attr_parse_nested(
        &attribute,
        [](const nlattr* /*element*/, void* data) {
          ++*static_cast<size_t*>(data);
          return MNL_CB_OK;
        },
        &elements);
  });
  return elements;
}

}  // namespace

absl::StatusOr<nlohmann::json> MeasureDump(const netns::Netns& where, const DumpWhat& what) {
  ASSIGN_OR_RETURN(Dumper dumper, Dumper::Open(where));
  ASSIGN_OR_RETURN(const std::vector<std::string> sets, CountingSets(dumper, what.table));
  std::optional<FastMap> fast;
  if (what.fast_map != 0) {
    ASSIGN_OR_RETURN(fast, FastMap::Open(what.fast_map));
  }
  size_t elements = 0;
  size_t objects = 0;
  for (const std::string& set : sets) {
    RETURN_IF_ERROR(dumper.Dump(NFT_MSG_GETSETELEM, what.table, set,
                                [&](const nlmsghdr& message) { elements += ElementsIn(message); }));
  }
  RETURN_IF_ERROR(
      dumper.Dump(NFT_MSG_GETOBJ, what.table, "", [&](const nlmsghdr& /*message*/) { ++objects; }));
  if (elements + objects == 0)
    return absl::NotFoundError("table " + what.table + " counts nothing");

  std::vector<double> cpu;
  std::vector<double> wall;
  const auto ignore = [](const nlmsghdr& /*message*/) {};
  for (size_t i = 0; i < what.rounds; ++i) {
    const int64_t cpu_began = ThreadCpuNs();
    const int64_t wall_began = NowNs();
    for (const std::string& set : sets) {
      RETURN_IF_ERROR(dumper.Dump(NFT_MSG_GETSETELEM, what.table, set, ignore));
    }
    RETURN_IF_ERROR(dumper.Dump(NFT_MSG_GETOBJ, what.table, "", ignore));
    if (fast) RETURN_IF_ERROR(fast->Read());
    cpu.push_back(static_cast<double>(ThreadCpuNs() - cpu_began) / 1e6);
    wall.push_back(static_cast<double>(NowNs() - wall_began) / 1e6);
  }
  return nlohmann::json{{"sets", sets.size()},
                        {"elements", elements},
                        {"objects", objects},
                        {"fast", fast ? 2 * fast->entries() : 0},
                        {"cpu_p25_ms", Quantile(cpu, 0.25)},
                        {"cpu_median_ms", Quantile(cpu, 0.5)},
                        {"wall_median_ms", Quantile(wall, 0.5)}};
}

}  // namespace spoke::path_bench
