// An MPI program: messages around a ring, all-reduce and all-to-all, of many sizes, every byte
// checked.
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include <mpi.h>

namespace {

constexpr int kSizes[] = {1, 8, 100, 1024, 4096, 10'000, 65'536, 1'000'000};
constexpr int kRounds = 5;

int rank = 0;
int ranks = 0;

std::uint8_t byte_of(int from, int to, int at, int round) {
  return static_cast<std::uint8_t>(from * 31 + to * 17 + at * 7 + at / 256 + round);
}

void check(bool right, const char* what, int size) {
  if (right) return;
  std::printf("rank %d: %s of %d bytes: wrong data\n", rank, what, size);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void ring(int size, int round) {
  const int to = (rank + 1) % ranks;
  const int from = (rank + ranks - 1) % ranks;
  std::vector<std::uint8_t> out(static_cast<std::size_t>(size));
  std::vector<std::uint8_t> in(out.size());
  for (int i = 0; i < size; ++i) out[static_cast<std::size_t>(i)] = byte_of(rank, to, i, round);
  MPI_Sendrecv(out.data(), size, MPI_BYTE, to, round, in.data(), size, MPI_BYTE, from, round,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < size; ++i) {
    check(in[static_cast<std::size_t>(i)] == byte_of(from, rank, i, round), "ring", size);
  }
}

void all_reduce(int size, int round) {
  const int count = size / 8 + 1;
  std::vector<std::int64_t> out(static_cast<std::size_t>(count));
  std::vector<std::int64_t> in(out.size());
  for (int i = 0; i < count; ++i) out[static_cast<std::size_t>(i)] = rank * 1000 + i + round;
  MPI_Allreduce(out.data(), in.data(), count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  const std::int64_t of_ranks = std::int64_t{ranks} * (ranks - 1) / 2 * 1000;
  for (int i = 0; i < count; ++i) {
    const std::int64_t sum = of_ranks + std::int64_t{ranks} * (i + round);
    check(in[static_cast<std::size_t>(i)] == sum, "all-reduce", size);
  }
}

void all_to_all(int size, int round) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(size) * static_cast<std::size_t>(ranks));
  std::vector<std::uint8_t> in(out.size());
  std::size_t at = 0;
  for (int to = 0; to < ranks; ++to) {
    for (int i = 0; i < size; ++i) out[at++] = byte_of(rank, to, i, round);
  }
  MPI_Alltoall(out.data(), size, MPI_BYTE, in.data(), size, MPI_BYTE, MPI_COMM_WORLD);
  at = 0;
  for (int from = 0; from < ranks; ++from) {
    for (int i = 0; i < size; ++i) {
      check(in[at++] == byte_of(from, rank, i, round), "all-to-all", size);
    }
  }
}

// How many hosts the ranks say that they are on.
std::size_t hosts() {
  std::vector<char> name(MPI_MAX_PROCESSOR_NAME);
  std::vector<char> all(name.size() * static_cast<std::size_t>(ranks));
  int length = 0;
  MPI_Get_processor_name(name.data(), &length);
  MPI_Allgather(name.data(), MPI_MAX_PROCESSOR_NAME, MPI_CHAR, all.data(), MPI_MAX_PROCESSOR_NAME,
                MPI_CHAR, MPI_COMM_WORLD);
  std::set<std::string> distinct;
  for (std::size_t at = 0; at < all.size(); at += name.size()) distinct.emplace(&all[at]);
  return distinct.size();
}

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (const int size : kSizes) {
    for (int round = 0; round < kRounds; ++round) {
      ring(size, round);
      all_reduce(size, round);
      all_to_all(size, round);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const std::size_t count_of_hosts = hosts();
  if (rank == 0) std::printf("%d ranks on %zu hosts: all data right\n", ranks, count_of_hosts);
  MPI_Finalize();
  return 0;
}
