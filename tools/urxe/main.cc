// The `urxe` command.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tools/urxe/devices.h"
#include "tools/urxe/doctor.h"
#include "tools/urxe/event.h"
#include "tools/urxe/packets.h"
#include "tools/urxe/run.h"

namespace urxe::tools {
namespace {

constexpr const char* kDeviceHelp =
    "NAME=NETDEV[/ADDRESS], repeatable: which devices exist, for example rxe0=eth0 or "
    "rxe0=lo/127.0.0.2 (URXE_DEVICES)";

void add_run(CLI::App& app, int& status) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* run = app.add_subcommand(
      "run", "Run a program with emulated RDMA devices: urxe run [options] -- PROGRAM ARGS");
  run->add_option("--device", options->devices, kDeviceHelp)->allow_extra_args(false);
  run->add_option("--pcap", options->pcap, "Capture all RoCEv2 packets into this file (URXE_PCAP)");
  run->add_option("--log", options->log_level,
                  "off, error or info[:FILE]: info explains every refusal and failure (URXE_LOG)");
  run->add_option("--fault", options->faults,
                  "Do this to packets, repeatable: 'drop p=0.01' (docs/faults.md; URXE_FAULTS)")
      ->allow_extra_args(false);
  run->add_option("--seed", options->seed, "Of the faults' dice (URXE_FAULT_SEED)");
  run->add_flag("--single-packets", options->single_packets,
                "Give the kernel one packet at a time, for captures on the way "
                "(URXE_SINGLE_PACKETS)");
  run->add_flag("--ecn", options->ecn,
                "Send and obey congestion notifications (docs/congestion.md; URXE_ECN)");
  run->add_flag("--hide-real", options->hide_real,
                "Do not show the kernel's RDMA devices (URXE_HIDE_REAL)");
  run->add_option("command", options->command, "The program and its arguments")->required();
  run->positionals_at_end();
  run->callback([options, &status] { status = run_program(*options); });
}

void add_devices(CLI::App& app, int& status) {
  const auto options = std::make_shared<DevicesOptions>();
  CLI::App* devices = app.add_subcommand(
      "devices", "List the devices that a program would see: interface, state, MTU, GIDs");
  devices->add_option("--device", options->devices, kDeviceHelp)->allow_extra_args(false);
  devices->add_flag("--json", options->json, "For machines");
  devices->callback([options, &status] { status = show_devices(*options); });
}

void add_doctor(CLI::App& app, int& status) {
  const auto options = std::make_shared<DoctorOptions>();
  CLI::App* doctor =
      app.add_subcommand("doctor", "Say what will not work here and what to do about it");
  doctor->add_option("--device", options->devices, kDeviceHelp)->allow_extra_args(false);
  doctor->add_flag("--json", options->json, "For machines");
  doctor->callback([options, &status] { status = examine(*options); });
}

void add_event(CLI::App& app, int& status) {
  const auto options = std::make_shared<EventOptions>();
  CLI::App* event = app.add_subcommand(
      "event", "Make a device of a running program report an event, to test how it takes it");
  event->add_option("pid", options->pid, "The program's process id")->required();
  event->add_option("device", options->device, "Its device, for example rxe0")->required();
  event
      ->add_option("event", options->event,
                   "device_fatal (all queue pairs end in error), port_error, port_active, "
                   "gid_change, lid_change, pkey_change, sm_change, client_reregister")
      ->required();
  event->callback([options, &status] { status = raise_event(*options); });
}

void add_packets(CLI::App& app, int& status) {
  const auto options = std::make_shared<PacketsOptions>();
  CLI::App* packets = app.add_subcommand(
      "packets", "Show the RoCEv2 packets of a capture as a table, with the ICRC checked");
  packets->add_option("file", options->file, "A pcap or pcapng file")->required();
  packets->add_option("--qp", options->qpn, "Only the connection of this queue pair number");
  packets->add_flag("--first-connection", options->first_connection,
                    "Only the first RC connection in the file");
  packets->add_option("--limit", options->limit, "At most so many rows");
  packets->add_flag("--json", options->json, "For machines");
  packets->callback([options, &status] { status = show_packets(*options); });
}

int run_command_line(int argc, char** argv) {
  CLI::App app{"A RoCEv2 RDMA device in user space: unmodified RDMA programs without a NIC"};
  app.require_subcommand(1);
  int status = 0;
  add_run(app, status);
  add_devices(app, status);
  add_doctor(app, status);
  add_event(app, status);
  add_packets(app, status);
  app.add_subcommand("version", "Print the version")->callback([] {
    fmt::print("urxe {}\n", URXE_VERSION);
  });
  CLI11_PARSE(app, argc, argv);
  return status;
}

}  // namespace
}  // namespace urxe::tools

int main(int argc, char** argv) { return urxe::tools::run_command_line(argc, argv); }
