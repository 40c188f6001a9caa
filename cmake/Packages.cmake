# What is installed where, as components that are Debian packages at the same time: `cmake --install
# build/release --component spokectl --prefix DIR`, or scripts/packages.sh for the packages.
include(GNUInstallDirs)

# Only what a component holds is built for it; scripts/packages.sh says what that is.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(packages spoke-cni spoke-netagent spoke-ipam-server spokectl)
# Where systemd looks below /usr/local as well.
set(unit_folder lib/systemd/system)

install(TARGETS spoke RUNTIME DESTINATION lib/cni COMPONENT spoke-cni)
install(FILES conf/10-spoke.conflist DESTINATION share/spoke COMPONENT spoke-cni)

install(TARGETS spoke-netagent RUNTIME DESTINATION bin COMPONENT spoke-netagent)
install(FILES conf/systemd/spoke-netagent.service DESTINATION ${unit_folder}
        COMPONENT spoke-netagent)
install(FILES conf/netagent.yaml DESTINATION share/doc/spoke-netagent/examples
        COMPONENT spoke-netagent)

install(TARGETS spoke-ipam-server RUNTIME DESTINATION bin COMPONENT spoke-ipam-server)
# Beside the server's unit that of a member of its etcd, which nobody enables but an administrator.
install(FILES conf/systemd/spoke-ipam-server.service conf/systemd/spoke-etcd.service
        DESTINATION ${unit_folder} COMPONENT spoke-ipam-server)
install(FILES conf/systemd/spoke-ipam-server.tmpfiles DESTINATION lib/tmpfiles.d
        RENAME spoke-ipam-server.conf COMPONENT spoke-ipam-server)
install(FILES conf/ipam-server.yaml conf/ipam-server-azure.yaml conf/ipam-server-etcd.yaml
        DESTINATION share/doc/spoke-ipam-server/examples COMPONENT spoke-ipam-server)
install(PROGRAMS scripts/etcd_files.sh DESTINATION share/doc/spoke-ipam-server/examples
        COMPONENT spoke-ipam-server)
install(DIRECTORY conf/policies DESTINATION share/doc/spoke-ipam-server/examples
        COMPONENT spoke-ipam-server)

install(TARGETS spokectl RUNTIME DESTINATION bin COMPONENT spokectl)
# kubectl finds it by this name, for "kubectl spoke".
file(CREATE_LINK spokectl ${PROJECT_BINARY_DIR}/kubectl-spoke SYMBOLIC)
install(FILES ${PROJECT_BINARY_DIR}/kubectl-spoke DESTINATION bin COMPONENT spokectl)
install(DIRECTORY ${PROJECT_BINARY_DIR}/share/man ${PROJECT_BINARY_DIR}/share/bash-completion
        DESTINATION share COMPONENT spokectl)
install(DIRECTORY ${PROJECT_BINARY_DIR}/share/zsh/site-functions/
        DESTINATION share/zsh/vendor-completions COMPONENT spokectl)
install(DIRECTORY ${PROJECT_BINARY_DIR}/share/fish/vendor_completions.d
        DESTINATION share/fish COMPONENT spokectl)

foreach(package IN LISTS packages)
  install(FILES LICENSE DESTINATION share/doc/${package} RENAME copyright COMPONENT ${package})
  # scripts/packages.sh writes it, as only a finished build can tell what is in it.
  string(REGEX REPLACE "-cni$" "" program ${package})
  install(FILES ${PROJECT_BINARY_DIR}/sbom/${program}.cdx.json DESTINATION share/doc/${package}
          RENAME sbom.cdx.json COMPONENT ${package} OPTIONAL)
endforeach()

foreach(daemon spoke-netagent spoke-ipam-server)
  install(FILES conf/systemd/${daemon}.default DESTINATION /etc/default RENAME ${daemon}
          COMPONENT ${daemon})
  # For certificates: an empty folder.
  install(DIRECTORY DESTINATION /etc/spoke/tls COMPONENT ${daemon})
endforeach()
# Where the agent puts a file must exist before its unit starts, for it may not make folders there.
install(DIRECTORY DESTINATION /etc/cni/net.d COMPONENT spoke-netagent)

# The packages: one a component. `cpack -D CPACK_PACKAGE_VERSION=...` gives them another version.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME spoke)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR "the Spoke project")
set(CPACK_PACKAGE_CONTACT "the Spoke project <packages@localhost>")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
# Absolute destinations are below the staging folder, not in this machine's /etc.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL ${packages})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
if(CMAKE_CROSSCOMPILING)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${SPOKE_DEBIAN_ARCHITECTURE})
endif()
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

# debian_package(<component> DESCRIPTION ... [SHLIBDEPS] [DEPENDS ...] [RECOMMENDS ...] [SUGGESTS
# ...]): with the maintainer scripts in conf/debian/<component>, if it has any.
macro(debian_package component)
  cmake_parse_arguments(ARG "SHLIBDEPS" "DESCRIPTION;DEPENDS;RECOMMENDS;SUGGESTS" "" ${ARGN})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${component})
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${ARG_DESCRIPTION}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_SHLIBDEPS ${ARG_SHLIBDEPS})
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${ARG_DEPENDS}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_RECOMMENDS "${ARG_RECOMMENDS}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_SUGGESTS "${ARG_SUGGESTS}")
  foreach(file conffiles postinst prerm postrm)
    if(EXISTS ${PROJECT_SOURCE_DIR}/conf/debian/${component}/${file})
      list(APPEND CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA
           ${PROJECT_SOURCE_DIR}/conf/debian/${component}/${file})
    endif()
  endforeach()
endmacro()

debian_package(spoke-cni
  DESCRIPTION "CNI plugin that gives pods cloud-native addresses
 Container runtimes run it for each pod, and it asks spoke-netagent, which does the work."
  RECOMMENDS "spoke-netagent")
debian_package(spoke-netagent SHLIBDEPS
  DESCRIPTION "Spoke's agent on each node
 Assigns the node's addresses to pods and owns their links, counters, limits and egress."
  DEPENDS "spoke-cni, init-system-helpers (>= 1.54~)"
  RECOMMENDS "spokectl")
debian_package(spoke-ipam-server SHLIBDEPS
  DESCRIPTION "Spoke's server
 Decides which node has which pod addresses, and compiles policy for the nodes."
  DEPENDS "adduser, init-system-helpers (>= 1.54~), ca-certificates"
  RECOMMENDS "spokectl"
  SUGGESTS "etcd-server, openssl")
debian_package(spokectl SHLIBDEPS
  DESCRIPTION "Command line of Spoke for operators
 Shows and changes addresses, pools and policy by asking spoke-ipam-server.")
include(CPack)
