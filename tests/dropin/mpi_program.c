/* What MPI libraries ask of the verbs, with the data checked: ping-pong, messages before their Receives, all-reduce, all-to-all
 * and one-sided. With two or more ranks; the exit status of mpirun says whether all was right. With "bench": figures instead. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pattern.h"

static int rank, ranks;

static void check(int right, const char *what) {
  if (right) return;
  fprintf(stderr, "rank %d: %s: wrong data\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *memory(size_t octets) {
  void *at = malloc(octets);
  if (at == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  return at;
}

/* Ranks 0 and 1; the others wait in the barrier, which must not starve them. */
static void ping_pong(void) {
  static const int sizes[] = {0, 1, 8, 2048, 12288, 65536, 1 << 20, (4 << 20) + 3};
  unsigned char *const data = memory((4 << 20) + 3);
  for (size_t which = 0; which < sizeof sizes / sizeof *sizes && rank < 2; ++which) {
    const int size = sizes[which];
    for (int round = 0; round < 20; ++round) {
      if (rank == 0) {
        fill(data, (size_t)size, round);
        MPI_Send(data, size, MPI_BYTE, 1, round, MPI_COMM_WORLD);
      }
      memset(data, 0, (size_t)size);
      MPI_Recv(data, size, MPI_BYTE, 1 - rank, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      check(filled(data, (size_t)size, round), "ping-pong");
      if (rank == 1) MPI_Send(data, size, MPI_BYTE, 0, round, MPI_COMM_WORLD);
    }
  }
  free(data);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* A thousand messages that nobody has asked for yet, from every rank to the next. */
static void unexpected(void) {
  enum { kMessages = 1000, kOctets = 512 };
  unsigned char(*const out)[kOctets] = memory(kMessages * kOctets), (*const in)[kOctets] = memory(kMessages * kOctets);
  MPI_Request *const sent = memory(kMessages * sizeof *sent);
  const int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
  for (int at = 0; at < kMessages; ++at) {
    fill(out[at], kOctets, at + rank);
    MPI_Isend(out[at], kOctets, MPI_BYTE, next, at, MPI_COMM_WORLD, &sent[at]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int at = kMessages - 1; at >= 0; --at) {
    MPI_Recv(in[at], kOctets, MPI_BYTE, last, at, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(filled(in[at], kOctets, at + last), "messages that were not expected");
  }
  MPI_Waitall(kMessages, sent, MPI_STATUSES_IGNORE);
  free(out);
  free(in);
  free(sent);
}

static void all_reduce(void) {
  for (int count = 1; count <= 1 << 18; count *= 8) {
    double *const mine = memory((size_t)count * sizeof *mine), *const sum = memory((size_t)count * sizeof *sum);
    for (int at = 0; at < count; ++at) mine[at] = at + rank;
    MPI_Allreduce(mine, sum, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int at = 0; at < count; ++at) check(sum[at] == (double)at * ranks + ranks * (ranks - 1) / 2, "all-reduce");
    free(mine);
    free(sum);
  }
}

static void all_to_all(void) {
  enum { kOctets = 100000 };
  unsigned char *const out = memory((size_t)ranks * kOctets), *const in = memory((size_t)ranks * kOctets);
  for (int to = 0; to < ranks; ++to) fill(out + to * kOctets, kOctets, rank * 16 + to);
  MPI_Alltoall(out, kOctets, MPI_BYTE, in, kOctets, MPI_BYTE, MPI_COMM_WORLD);
  for (int from = 0; from < ranks; ++from) check(filled(in + from * kOctets, kOctets, from * 16 + rank), "all-to-all");
  free(out);
  free(in);
}

static void one_sided(void) {
  enum { kWords = 4096 };
  long *window = NULL;
  MPI_Win win;
  MPI_Win_allocate(kWords * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
  for (int at = 0; at < kWords; ++at) window[at] = -1;
  const int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
  long *const data = memory(kWords * sizeof *data);
  for (int at = 0; at < kWords; ++at) data[at] = rank * 100000L + at;
  MPI_Win_fence(0, win);
  MPI_Put(data, kWords, MPI_LONG, next, 0, kWords, MPI_LONG, win);
  MPI_Win_fence(0, win);
  for (int at = 0; at < kWords; ++at) check(window[at] == last * 100000L + at, "put");
  MPI_Win_fence(0, win);
  memset(data, 0, kWords * sizeof *data);
  MPI_Get(data, kWords, MPI_LONG, next, 0, kWords, MPI_LONG, win);
  MPI_Win_fence(0, win);
  for (int at = 0; at < kWords; ++at) check(data[at] == rank * 100000L + at, "get");
  MPI_Win_fence(0, win);
  if (rank == 0) window[0] = 0;
  MPI_Win_fence(0, win);
  for (int times = 0; times < 50; ++times) {
    const long one = 1;
    MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win);
  }
  MPI_Win_fence(0, win);
  if (rank == 0) check(window[0] == 50L * ranks, "accumulate");
  free(data);
  MPI_Win_free(&win);
}

/* "octets latency-us octets/s" a line, of ranks 0 and 1. */
static void bench(void) {
  static const int sizes[] = {8, 2048, 65536, 1 << 20};
  unsigned char *const data = memory(1 << 20);
  memset(data, 1, 1 << 20);
  for (size_t which = 0; which < sizeof sizes / sizeof *sizes && rank < 2; ++which) {
    const int size = sizes[which], rounds = size > 10000 ? 400 : 4000;
    double began = 0;
    for (int round = -rounds / 10; round < rounds; ++round) {
      if (round == 0) began = MPI_Wtime();
      if (rank == 0) MPI_Send(data, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(data, size, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank == 1) MPI_Send(data, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    const double one_way = (MPI_Wtime() - began) / rounds / 2;
    MPI_Request all[16];
    began = MPI_Wtime();
    for (int round = 0; round < rounds / 16; ++round) {
      for (int at = 0; at < 16; ++at) {
        if (rank == 0) MPI_Isend(data, size, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &all[at]);
        if (rank == 1) MPI_Irecv(data, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &all[at]);
      }
      MPI_Waitall(16, all, MPI_STATUSES_IGNORE);
    }
    char done = 0;
    if (rank == 0) MPI_Recv(&done, 1, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(&done, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    const double rate = (double)(rounds / 16) * 16 * size / (MPI_Wtime() - began);
    if (rank == 0) printf("%d %.2f %.0f\n", size, one_way * 1e6, rate);
  }
  free(data);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks < 2) MPI_Abort(MPI_COMM_WORLD, 2);
  if (argc > 1 && strcmp(argv[1], "bench") == 0) {
    bench();
  } else {
    ping_pong();
    unexpected();
    all_reduce();
    all_to_all();
    one_sided();
    if (rank == 0) printf("%d ranks: right\n", ranks);
  }
  MPI_Finalize();
  return 0;
}
