// What a stream of WRITEs reaches with losses: tests/sim/loss_table.txt, next to what ideal
// go-back-N would. URXE_UPDATE_GOLDEN=1 writes it anew; docs/loss.md explains it.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/sim/pair_world.h"

namespace urxe::test {
namespace {

using emulator::WorkOpcode;

constexpr std::size_t kMessage = 64 * 1024;
constexpr std::size_t kOutstanding = 32;
constexpr double kLineRate = 10e9;  // bit/s
constexpr double kMtu = 4096;
constexpr double kFrame = kMtu + 12 + 4 + 28 + net::kEthernetOverhead;  // of a middle packet
constexpr double kTolerance = 0.1;

struct Cell {
  double loss;  // of each packet, both ways
  Duration round_trip;
};

std::vector<Cell> cells() {
  std::vector<Cell> all;
  for (const double loss : {0.0, 0.0001, 0.001, 0.01, 0.05}) {
    for (const Duration round_trip :
         {Duration(10us), Duration(100us), Duration(1ms), Duration(10ms)}) {
      all.push_back({loss, round_trip});
    }
  }
  return all;
}

// Go-back-N that learns of each loss one round trip later and never guesses wrong: a lost packet
// costs all that was sent in that time. With the same largest window.
double ideal(const Cell& cell) {
  const double seconds = std::chrono::duration<double>(cell.round_trip).count();
  const double window = emulator::DeviceOptions{}.max_window;
  const double most = std::min(kLineRate * kMtu / kFrame, window * 8 / seconds);
  const double in_a_round_trip = 1 + most * seconds / 8 / kMtu;
  return most * (1 - cell.loss) / (1 - cell.loss + cell.loss * in_a_round_trip);
}

double measure(const Cell& cell) {
  WorldOptions options;
  options.mtu = emulator::Mtu::bytes4096;
  options.timeout = 14;
  options.signal_all = true;
  options.link.latency = cell.round_trip / 2;
  options.link.queue_limit = 4 * 1024 * 1024;
  if (cell.loss > 0) {
    options.rules = {{.effect = {.action = net::Action::drop},
                      .match = {.probability = cell.loss},
                      .text = "drop"}};
  }
  PairWorld world(options);
  const Buffer local = world.client().buffer(kMessage);
  const Buffer remote = world.server().buffer(kMessage);
  std::size_t completed = 0;
  std::size_t posted = 0;
  world.client().sent.after_push = [&] { ++completed; };
  net::Simulation& simulation = world.network().simulation();
  const Duration warm_up = 20ms + 40 * cell.round_trip;
  const Duration measured = 100ms + 200 * cell.round_trip;
  std::size_t before = 0;
  bool warm = false;
  while (simulation.now().time_since_epoch() < warm_up + measured) {
    for (; posted < completed + kOutstanding; ++posted) {
      REQUIRE(
          world.client().post(PairWorld::request(WorkOpcode::rdma_write, local, kMessage, remote)));
    }
    if (!warm && simulation.now().time_since_epoch() >= warm_up) {
      warm = true;
      before = completed;
    }
    REQUIRE(simulation.step());
  }
  CHECK(world.client().qp->state() == emulator::QpState::ready_to_send);
  return static_cast<double>((completed - before) * kMessage * 8) /
         std::chrono::duration<double>(measured).count();
}

std::string row(const Cell& cell, double reached) {
  const double best = ideal(cell);
  return fmt::format("{:>6.2f} {:>8} {:>9.0f} {:>9.0f} {:>6.0f}\n", cell.loss * 100,
                     cell.round_trip / 1us, reached / 1e6, best / 1e6, 100 * reached / best);
}

TEST_CASE("goodput by loss and round trip is what the table says") {
  const std::string path = URXE_LOSS_TABLE;
  std::string table =
      "# loss %, round trip us, goodput Mb/s, ideal go-back-N Mb/s, percent of it\n";
  std::ifstream golden(path);
  std::string line;
  std::getline(golden, line);
  const bool updates = std::getenv("URXE_UPDATE_GOLDEN") != nullptr;
  for (const Cell& cell : cells()) {
    const double reached = measure(cell);
    table += row(cell, reached);
    if (cell.loss == 0.01 && cell.round_trip == 100us) CHECK(reached >= 0.8 * ideal(cell));
    if (updates) continue;
    REQUIRE(std::getline(golden, line));
    std::istringstream words(line);
    double loss = 0;
    double round_trip = 0;
    double expected = 0;
    words >> loss >> round_trip >> expected;
    CAPTURE(line);
    CHECK(reached / 1e6 == Approx(expected).epsilon(kTolerance));
  }
  if (updates) std::ofstream(path) << table;
}

}  // namespace
}  // namespace urxe::test
