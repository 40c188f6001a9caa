// Finds what a change of our messages would break for programs of the version before. Pure.
#pragma once

#include <string>
#include <vector>

#include "google/protobuf/descriptor.pb.h"

namespace spoke::compat {

// Returns a line for each thing of `before` that `now` has not, or has differently: messages,
// fields (number, name, type, repeated or not, oneof), values of enums, methods and what they
// carry. What is only in `now` is an addition, and no break.
std::vector<std::string> SchemaBreaks(const google::protobuf::FileDescriptorSet& before,
                                      const google::protobuf::FileDescriptorSet& now);

}  // namespace spoke::compat
