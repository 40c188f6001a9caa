#include "lib/nft/connection.h"

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include <cerrno>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/netlink/message.h"
#include "lib/netlink/socket.h"
#include "lib/nft/dump.h"
#include "lib/nft/encode.h"

namespace spoke::nft {
namespace {

// The bytes for which a socket has room without being asked (net.core.wmem_default is 208 KiB, of
// which the kernel's bookkeeping takes a part).
constexpr size_t kUsualRoom = 128UL << 10;
// The number of times that the kernel may have to drop answers before we give up; once is more than
// a transaction should lead to, since it takes a thousand refused steps.
constexpr int kMaxOverruns = 8;

constexpr uint16_t MessageType(int message) {
  return static_cast<uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | message);
}

netlink::Request Ask(std::string what, int message, Family family) {
  nfgenmsg fixed{};
  fixed.nfgen_family = FamilyNumber(family);
  fixed.version = NFNETLINK_V0;
  return {std::move(what), MessageType(message), 0, fixed};
}

absl::Status Refusal(const netlink::Acknowledgement& ack, std::string what) {
  if (!ack.text.empty()) what += fmt::format(" (kernel: {})", ack.text);
  switch (ack.error) {
    case EBUSY:
      return absl::FailedPreconditionError(what + ": a rule or an element still uses it");
    case ENFILE:
      return absl::ResourceExhaustedError(what + ": the set is full");
    case ENOTEMPTY:  // This was so before Linux 5.7 or so; later ones say EEXIST.
      return absl::AlreadyExistsError(what + ": overlaps with what is there");
    case ERESTART:
      return absl::UnavailableError(what + ": the tables changed at the same time");
    case E2BIG:
    case EFBIG:
    case ERANGE:
    case EOVERFLOW:
    case EMLINK:
    case ELOOP:
      return absl::InvalidArgumentError(base::ErrnoToStatus(ack.error, what).message());
    default:
      return base::ErrnoToStatus(ack.error, what);
  }
}

// Reads what the kernel says about a batch, until it has spoken about the last step.
class Verdicts {
 public:
  Verdicts(const Transaction& transaction, const Batch& batch)
      : transaction_(transaction), batch_(batch) {}

  // Returns OK, or why the answers did not come.
  absl::Status Read(netlink::Socket& socket) {
    int overruns = 0;
    while (!done_) {
      const auto datagram = socket.Receive();
      if (absl::IsResourceExhausted(datagram.status()) && ++overruns < kMaxOverruns) {
        continue;  // What was queued before the queue was full can still be read, the first first.
      }
      if (!datagram.ok()) return datagram.status();
      netlink::MessageReader reader(*datagram);
      while (const auto message = reader.Next()) RETURN_IF_ERROR(Take(*message, socket.port_id()));
      if (reader.malformed()) return absl::DataLossError("malformed netlink datagram");
      // The last answer may be among those that were dropped, but nothing was done for certain.
      if (overruns > 0 && refused()) break;
    }
    if (overruns > 0) socket.Discard();
    return absl::OkStatus();
  }

  bool refused() const { return !refusal_.ok(); }
  const absl::Status& refusal() const { return refusal_; }

 private:
  absl::Status Take(const netlink::Message& message, uint32_t port) {
    const uint32_t index = message.sequence - batch_.first_sequence;
    if (message.port_id != port || message.type != NLMSG_ERROR || index > batch_.steps.size()) {
      return absl::OkStatus();  // It answers an older exchange, or is not about a step.
    }
    const auto ack = netlink::ParseAcknowledgement(message);
    if (!ack.ok()) return ack.status();
    // This is about the first message, when the whole could not be done: no answer about steps may
    // follow.
    if (index == 0 && ack->error != 0) {
      done_ = true;
      if (refusal_.ok()) refusal_ = Refusal(*ack, "commit");
      return absl::OkStatus();
    }
    if (index == 0) return absl::OkStatus();
    if (ack->error != 0 && refusal_.ok()) {
      refusal_ = Refusal(*ack, TitleOf(transaction_, batch_.steps[index - 1]));
    }
    done_ = done_ || index == batch_.steps.size();
    return absl::OkStatus();
  }

  const Transaction& transaction_;
  const Batch& batch_;
  bool done_ = false;
  absl::Status refusal_;  // The first refusal.
};

std::string Name(const TableKey& table, const std::string& set) {
  return fmt::format("read set {} of table {}", set, table.name);
}

}  // namespace

absl::StatusOr<Connection> Connection::Open() {
  auto socket = netlink::Socket::Open(netlink::Protocol::kNetfilter);
  if (!socket.ok()) return socket.status();
  return Connection(*std::move(socket));
}

absl::Status Connection::Apply(const Transaction& transaction) {
  const uint32_t first_sequence = socket_.NextSequence();
  const absl::StatusOr<Batch> batch = Encode(transaction, first_sequence);
  if (!batch.ok()) return batch.status();
  if (batch->steps.empty()) return absl::OkStatus();
  if (batch->bytes.size() > kMaxTransactionBytes) {
    return absl::ResourceExhaustedError(
        fmt::format("a transaction of {} bytes is too large", batch->bytes.size()));
  }
  // The first one has its number; the steps and the end have none.
  socket_.SkipSequences(static_cast<uint32_t>(batch->steps.size()) + 1);
  if (batch->bytes.size() > kUsualRoom && batch->bytes.size() > send_room_) {
    RETURN_IF_ERROR(socket_.ReserveToSend(batch->bytes.size()));
    send_room_ = batch->bytes.size();
  }

  RETURN_IF_ERROR(socket_.Send(batch->bytes));
  Verdicts verdicts(transaction, *batch);
  const absl::Status read = verdicts.Read(socket_);
  if (!read.ok()) {
    socket_.Discard();
    // A refusal that did arrive says more.
    if (!verdicts.refused()) return base::Annotate(read, "nf_tables transaction");
  }
  return verdicts.refusal();
}

absl::StatusOr<std::vector<ElementReading>> Connection::ReadSet(const TableKey& table,
                                                                const std::string& set) {
  RETURN_IF_ERROR(CheckName(table.name));
  RETURN_IF_ERROR(CheckName(set));
  netlink::Request description = Ask(Name(table, set), NFT_MSG_GETSET, table.family);
  description.PutText(NFTA_SET_TABLE, table.name).PutText(NFTA_SET_NAME, set);
  const auto found = netlink::GetOne(socket_, description, MessageType(NFT_MSG_NEWSET));
  if (!found.ok()) return found.status();
  const auto flags = ParseSetFlags(*found);
  if (!flags.ok()) return flags.status();

  netlink::Request request = Ask(Name(table, set), NFT_MSG_GETSETELEM, table.family);
  request.PutText(NFTA_SET_ELEM_LIST_TABLE, table.name).PutText(NFTA_SET_ELEM_LIST_SET, set);
  std::vector<ElementReading> elements;
  std::vector<Bytes> ends;
  const absl::Status status = netlink::Dump(
      socket_, request,
      [&] {
        elements.clear();
        ends.clear();
      },
      [&](const netlink::Message& message) -> absl::Status {
        if (message.type != MessageType(NFT_MSG_NEWSETELEM)) return absl::OkStatus();
        return AppendElements(message.payload, elements, ends);
      });
  if (!status.ok()) return status;
  if ((*flags & NFT_SET_INTERVAL) != 0) CloseIntervals(elements, std::move(ends));
  if ((*flags & NFT_SET_EVAL) != 0) DropRepeated(elements);
  return elements;
}

absl::StatusOr<std::vector<CounterReading>> Connection::ReadCounters(const TableKey& table) {
  RETURN_IF_ERROR(FindTable(table));
  netlink::Request request =
      Ask(fmt::format("read counters of table {}", table.name), NFT_MSG_GETOBJ, table.family);
  request.PutText(NFTA_OBJ_TABLE, table.name);
  return netlink::DumpAs<CounterReading>(
      socket_, request, MessageType(NFT_MSG_NEWOBJ),
      [&](std::span<const uint8_t> payload) { return ParseCounter(payload, table.name); });
}

absl::StatusOr<std::vector<RuleReading>> Connection::ReadRules(const TableKey& table) {
  RETURN_IF_ERROR(FindTable(table));
  netlink::Request request =
      Ask(fmt::format("read rules of table {}", table.name), NFT_MSG_GETRULE, table.family);
  request.PutText(NFTA_RULE_TABLE, table.name);
  return netlink::DumpAs<RuleReading>(
      socket_, request, MessageType(NFT_MSG_NEWRULE),
      [&](std::span<const uint8_t> payload) { return ParseRule(payload, table.name); });
}

absl::StatusOr<uint32_t> Connection::Generation() {
  const netlink::Request request = Ask("read nf_tables generation", NFT_MSG_GETGEN, Family::kInet);
  const auto found = netlink::GetOne(socket_, request, MessageType(NFT_MSG_NEWGEN));
  if (!found.ok()) return found.status();
  return ParseGeneration(*found);
}

absl::Status Connection::FindTable(const TableKey& table) {
  RETURN_IF_ERROR(CheckName(table.name));
  netlink::Request request =
      Ask(fmt::format("read table {}", table.name), NFT_MSG_GETTABLE, table.family);
  request.PutText(NFTA_TABLE_NAME, table.name);
  // A dump of what is in it would be empty, and no error.
  return netlink::GetOne(socket_, request, MessageType(NFT_MSG_NEWTABLE)).status();
}

}  // namespace spoke::nft
