// Connections on which nothing is said, between a leader and its standbys.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace spoke::ipam {

// Has the kernel ask the far end of the connection `fd` whether it is there, after 10 s of silence
// and then every 2 s, and end the connection after the third question without an answer (tcp(7)).
// So the connection of a machine that lost its power does not stay for ever, and devices on the way
// that forget idle connections remember this one. What fails is left as it is: the lease decides
// then.
inline void KeepAlive(int fd) {
  const auto set = [fd](int level, int option, int value) {
    ::setsockopt(fd, level, option, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace spoke::ipam
