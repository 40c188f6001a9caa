# add_proto(<name> PROTOS ... [GRPC | SERVICE] [COLD] [PURE] [DEPS ...])
#
# Generated code is an OBJECT-like static library of its own, compiled as one unit without our
# warnings: its headers are costly, so only edges (rpc/, store codecs, journal) may link it.
# GRPC: messages and services. SERVICE: services alone, of messages in DEPS; those may be PURE, so
# that a codec of values may link them too.
# COLD: see Precompiled.cmake.
#
# All code is for protobuf's lite runtime: no program looks at messages by their descriptors, and the
# full runtime takes each of them 1.5 MiB of memory. Tests have descriptors from tests/support/schema.h.
function(add_proto name)
  cmake_parse_arguments(ARG "GRPC;SERVICE;COLD;PURE" "" "PROTOS;DEPS" ${ARGN})
  set(out ${PROJECT_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${out})
  set(sources)
  foreach(proto IN LISTS ARG_PROTOS)
    file(RELATIVE_PATH rel ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${proto})
    string(REGEX REPLACE "\\.proto$" "" stem ${rel})
    set(products)
    set(command)
    if(NOT ARG_SERVICE)
      set(products ${out}/${stem}.pb.cc ${out}/${stem}.pb.h)
      set(command COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR} --cpp_out=lite:${out} ${rel})
    endif()
    if(ARG_GRPC OR ARG_SERVICE)
      list(APPEND products ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h)
      list(APPEND command COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR}
           --grpc_out=${out} --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin> ${rel})
    endif()
    add_custom_command(OUTPUT ${products} ${command} DEPENDS ${PROJECT_SOURCE_DIR}/${rel}
                       WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)
    foreach(product IN LISTS products)
      if(product MATCHES "\\.cc$")
        list(APPEND sources ${product})
      endif()
    endforeach()
  endforeach()
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} SYSTEM PUBLIC ${out})
  set_property(TARGET ${name} PROPERTY COMPONENT_PURE ${ARG_PURE})
  if(ARG_COLD)
    optimize_less(${name})
  endif()
  # protoc's mistakes would not be ours. The thread sanitizer has to see each access, whoever wrote it.
  if(SPOKE_SANITIZE AND NOT SPOKE_SANITIZE STREQUAL "thread")
    target_compile_options(${name} PRIVATE -fno-sanitize=all)
  endif()
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf-lite ${ARG_DEPS})
  if(ARG_GRPC OR ARG_SERVICE)
    target_link_libraries(${name} PUBLIC gRPC::grpc++)
  endif()
endfunction()
