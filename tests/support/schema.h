// What our messages and services are, for tests: the programs have them without descriptors.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message_lite.h>

#include <string>

namespace spoke::testing_support {

// Aborts where there is none. It lives as long as the process.
const google::protobuf::ServiceDescriptor& AdminServiceDescriptor();

// Returns the message in protobuf's text format, in one line.
std::string ShortTextOf(const google::protobuf::MessageLite& message);

}  // namespace spoke::testing_support
