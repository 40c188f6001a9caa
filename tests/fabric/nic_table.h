// The NIC that holds each address: what a cloud's fabric knows. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/ip/address.h"
#include "lib/ip/prefix.h"

namespace spoke::fabric {

struct Nic {
  std::string name;
  std::string device;  // The fabric's end of its link.
  ip::MacAddress mac;
  std::vector<ip::Address> addresses;  // The primary one first; at least one.

  bool operator==(const Nic&) const = default;
};

// Reads "NAME=DEVICE,MAC,PRIMARY_ADDRESS[,ADDRESS...]", as on the command line. Errors:
// kInvalidArgument, with the text.
absl::StatusOr<Nic> ParseNic(std::string_view text);

// A line of the attachments file: `addresses` are on the NIC whose MAC is `mac`.
struct Attachment {
  int line = 0;  // The line where it was read, from 1.
  ip::Prefix addresses;
  ip::MacAddress mac;
  std::string node;

  bool operator==(const Attachment&) const = default;
};

// Text with a line for each attached address or block of addresses:
//   <address>/<prefix-length> TAB <MAC of the NIC> TAB <name of the node>
// Blank lines and lines that start with # are skipped.
// Errors: kInvalidArgument (names the first bad line).
absl::StatusOr<std::vector<Attachment>> ParseAttachments(std::string_view text);

// An immutable value: a change is a new table. Thread-safe.
class NicTable {
 public:
  // Builds a table. Attachments to a MAC that is none of `nics` are left out: the node is not
  // plugged in here. The same address twice on one NIC counts once. Errors: kInvalidArgument (an
  // address on two NICs: the message names both; a name, device or MAC used twice; a block that
  // partly covers what its NIC holds already).
  static absl::StatusOr<NicTable> Build(std::vector<Nic> nics,
                                        const std::vector<Attachment>& attachments);

  const std::vector<Nic>& nics() const { return nics_; }

  // Returns the index into nics(), or nullopt when no NIC holds `address`.
  std::optional<size_t> HolderOf(const ip::Address& address) const;

  // Returns how many addresses and blocks are held.
  size_t size() const { return held_.size(); }

  // The attachments that were left out.
  const std::vector<Attachment>& left_out() const { return left_out_; }

 private:
  struct Held {
    ip::Prefix addresses;
    size_t nic = 0;
    std::string where;  // The words for messages: what put it there.
  };

  explicit NicTable(std::vector<Nic> nics) : nics_(std::move(nics)) {}
  absl::Status CheckDistinct() const;
  absl::Status Add(const ip::Prefix& addresses, size_t nic, std::string where);

  std::vector<Nic> nics_;
  std::map<ip::Address, Held> held_;  // The holders by first address; no two overlap.
  std::vector<Attachment> left_out_;
};

}  // namespace spoke::fabric
