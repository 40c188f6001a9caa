// A job of MPI for job.sh: all ranks sum a vector over all ranks, and each checks every element.
//
// Each rank prints "rank N ADDRESS", the address by which others reach its pod; rank 0 then prints
// "sum of N ranks: S". Exit code 1 when an element is wrong anywhere.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <mpi.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>

enum { kElements = 1 << 17 };  // A MiB, so that ranks send more than what one segment holds.

// The first IPv4 address that is not the loopback device's.
static void PrintAddress(int rank) {
  struct ifaddrs* all = NULL;
  char text[INET_ADDRSTRLEN] = "-";
  if (getifaddrs(&all) != 0) return;
  for (const struct ifaddrs* one = all; one != NULL; one = one->ifa_next) {
    if (one->ifa_addr == NULL || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    inet_ntop(AF_INET, &((const struct sockaddr_in*)one->ifa_addr)->sin_addr, text, sizeof(text));
    break;
  }
  freeifaddrs(all);
  printf("rank %d %s\n", rank, text);
}

// Element `i` of rank `rank`: no two ranks and no two neighbours have the same.
static long Element(int rank, int i) { return (long)(rank + 1) * (i + 1); }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  PrintAddress(rank);
  long* own = malloc(kElements * sizeof(long));
  long* sums = malloc(kElements * sizeof(long));
  if (own == NULL || sums == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int i = 0; i < kElements; ++i) own[i] = Element(rank, i);
  MPI_Allreduce(own, sums, kElements, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  const long of_ranks = (long)ranks * (ranks + 1) / 2;
  int wrong = 0;
  for (int i = 0; i < kElements; ++i) wrong += sums[i] != of_ranks * (i + 1);
  int all_wrong = 0;
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("sum of %d ranks: %ld, %d elements wrong\n", ranks, sums[0], all_wrong);
  free(own);
  free(sums);
  MPI_Finalize();
  return all_wrong == 0 ? 0 : 1;
}
