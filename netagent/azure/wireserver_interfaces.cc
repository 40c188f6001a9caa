#include "netagent/azure/wireserver_interfaces.h"

#include <expat.h>

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "netagent/azure/cloud_text.h"

namespace spoke::netagent::azure {
namespace {

using Parser = std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)>;

// The attribute's text; nullptr: there is none.
const char* Attribute(const char** attributes, std::string_view name) {
  for (; *attributes != nullptr; attributes += 2) {
    if (name == *attributes) return attributes[1];
  }
  return nullptr;
}

absl::StatusOr<std::string_view> Required(const char** attributes, std::string_view name) {
  const char* text = Attribute(attributes, name);
  if (text == nullptr) return absl::InvalidArgumentError(fmt::format("no attribute {}", name));
  return std::string_view(text);
}

bool IsTrue(const char** attributes, std::string_view name) {
  const char* text = Attribute(attributes, name);
  return text != nullptr && absl::EqualsIgnoreCase(text, "true");
}

// Gathers what expat calls out. The C library must not be left by an exception; the only ones that
// could come are for want of memory, which ends the program anyway.
class Reader {
 public:
  explicit Reader(XML_Parser parser) : parser_(parser) {
    XML_SetUserData(parser, this);
    XML_SetElementHandler(parser, &Reader::OnStart, &Reader::OnEnd);
    XML_SetStartDoctypeDeclHandler(parser, &Reader::OnDoctype);
  }

  const absl::Status& status() const { return status_; }
  std::vector<HostInterface> TakeInterfaces() { return std::move(interfaces_); }

 private:
  static void OnStart(void* self, const XML_Char* name, const XML_Char** attributes) {
    static_cast<Reader*>(self)->Start(name, attributes);
  }
  static void OnEnd(void* self, const XML_Char* name) { static_cast<Reader*>(self)->End(name); }
  // Entities are declared in a document type; without one there are none but XML's own five.
  static void OnDoctype(void* self, const XML_Char*, const XML_Char*, const XML_Char*, int) {
    static_cast<Reader*>(self)->Fail(absl::InvalidArgumentError("has a document type declaration"));
  }

  void Fail(const absl::Status& status) {
    status_.Update(status);
    XML_StopParser(parser_, XML_FALSE);
  }

  void Start(std::string_view name, const char** attributes) {
    if (++elements_ > kMaxWireserverElements) {
      return Fail(absl::InvalidArgumentError(
          fmt::format("has more than {} elements", kMaxWireserverElements)));
    }
    const absl::Status taken = Take(name, attributes);
    if (!taken.ok()) return Fail(base::Annotate(taken, name));
  }

  void End(std::string_view name) {
    if (name == "Interface") in_interface_ = false;
    if (name == "IPSubnet") in_subnet_ = false;
  }

  absl::Status Take(std::string_view name, const char** attributes) {
    if (elements_ == 1 && name != "Interfaces") {
      return absl::InvalidArgumentError("is not what the document has to begin with");
    }
    if (name == "Interface") {
      if (in_interface_) return absl::InvalidArgumentError("is inside another one");
      ASSIGN_OR_RETURN(const std::string_view mac, Required(attributes, "MacAddress"));
      ASSIGN_OR_RETURN(const ip::MacAddress parsed, ParseCloudMac(mac));
      interfaces_.push_back({.mac = parsed, .is_primary = IsTrue(attributes, "IsPrimary")});
      in_interface_ = true;
    } else if (name == "IPSubnet") {
      if (!in_interface_ || in_subnet_) return absl::InvalidArgumentError("is out of its place");
      ASSIGN_OR_RETURN(const std::string_view prefix, Required(attributes, "Prefix"));
      ASSIGN_OR_RETURN(const ip::Prefix parsed, ParseCloudRange(prefix));
      interfaces_.back().subnets.push_back({.prefix = parsed, .addresses = {}});
      in_subnet_ = true;
    } else if (name == "IPAddress") {
      if (!in_subnet_) return absl::InvalidArgumentError("is out of its place");
      ASSIGN_OR_RETURN(const std::string_view address, Required(attributes, "Address"));
      ASSIGN_OR_RETURN(const ip::Prefix parsed, ParseCloudRange(address));
      interfaces_.back().subnets.back().addresses.push_back(
          {parsed, IsTrue(attributes, "IsPrimary")});
    }
    return absl::OkStatus();
  }

  XML_Parser parser_;
  absl::Status status_;
  size_t elements_ = 0;
  bool in_interface_ = false;
  bool in_subnet_ = false;
  std::vector<HostInterface> interfaces_;
};

}  // namespace

absl::StatusOr<std::vector<HostInterface>> ParseWireserverInterfaces(std::string_view text) {
  if (text.size() > kMaxWireserverBytes) {
    return absl::InvalidArgumentError(
        fmt::format("interfaces: more than {} bytes", kMaxWireserverBytes));
  }
  const Parser parser(XML_ParserCreate(nullptr), &XML_ParserFree);
  if (parser == nullptr) return absl::ResourceExhaustedError("interfaces: out of memory");
  Reader reader(parser.get());
  const auto parsed = XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), XML_TRUE);
  const auto line = static_cast<uint64_t>(XML_GetCurrentLineNumber(parser.get()));
  if (!reader.status().ok()) {
    return base::Annotate(reader.status(), fmt::format("interfaces, line {}", line));
  }
  if (parsed != XML_STATUS_OK) {
    return absl::InvalidArgumentError(fmt::format("interfaces, line {}: {}", line,
                                                  XML_ErrorString(XML_GetErrorCode(parser.get()))));
  }
  return reader.TakeInterfaces();
}

}  // namespace spoke::netagent::azure
