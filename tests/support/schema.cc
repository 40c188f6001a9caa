#include "tests/support/schema.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/descriptor_database.h>
#include <google/protobuf/dynamic_message.h>

#include <memory>

#include "lib/base/check.h"
#include "lib/os/file.h"

namespace spoke::testing_support {
namespace {

// The order of files in a schema is not that of their imports, which a database does not mind.
class Schema {
 public:
  Schema() : pool_(&files_) {
    const auto bytes = os::ReadFile(SPOKE_SCHEMA);
    CHECK(bytes.ok(), "the build has made the schema");
    google::protobuf::FileDescriptorSet set;
    CHECK(set.ParseFromString(*bytes), "protoc has written it");
    for (const auto& file : set.file()) CHECK(files_.Add(file), "each file is there once");
  }

  const google::protobuf::DescriptorPool& pool() const { return pool_; }

 private:
  google::protobuf::SimpleDescriptorDatabase files_;
  google::protobuf::DescriptorPool pool_;
};

const google::protobuf::DescriptorPool& Pool() {
  static const Schema schema;
  return schema.pool();
}

}  // namespace

const google::protobuf::ServiceDescriptor& AdminServiceDescriptor() {
  const auto* const service = Pool().FindServiceByName("spoke.v1.AdminService");
  CHECK(service != nullptr, "operators have a service");
  return *service;
}

std::string ShortTextOf(const google::protobuf::MessageLite& message) {
  const auto* const type = Pool().FindMessageTypeByName(message.GetTypeName());
  CHECK(type != nullptr, "the message is one of ours");
  google::protobuf::DynamicMessageFactory factory;
  const std::unique_ptr<google::protobuf::Message> copy(factory.GetPrototype(type)->New());
  CHECK(copy->ParseFromString(message.SerializeAsString()), "a message is read as it is written");
  return copy->ShortDebugString();
}

}  // namespace spoke::testing_support
