#include "tools/man_text.h"

#include <algorithm>
#include <array>

namespace iwarp::tools {
namespace {

constexpr std::array kUsual{ManItem{"0", "Success."}, ManItem{"1", "The operation failed."},
                            ManItem{"2", "Wrong usage."}, ManItem{"130", "Interrupted."}};

constexpr std::array kOfGateway{
    ManItem{"0", "Ended by SIGTERM or SIGINT, after outstanding RPCs were answered or the time for that was over."},
    ManItem{"1", "It could not start, or failed."}, ManItem{"2", "Wrong usage."}};
constexpr std::array kFilesOfGateway{
    ManItem{"/etc/iwarp/gateway.toml", "What the service iwarp-gateway.service serves: see iwarp-gateway.toml(5)."},
    ManItem{"/var/lib/iwarp", "What that service keeps while it does not run."}};
constexpr std::array kFilesOfIwarp{kFilesOfGateway[0], ManItem{"/usr/share/bash-completion/completions/iwarp",
                                                               "Completes commands and flags in bash."}};
constexpr const char* kMadeAnew =
    "Made anew when the command starts. One that cannot be written is an error, at the start or when it is full.";
constexpr std::array kFilesWritten{ManItem{"FILE of --json, --trace and --pcap", kMadeAnew}};
constexpr std::array kFilesOfPerfRun{ManItem{"FILE of --json, --plot, --trace and --pcap", kMadeAnew}};
constexpr std::array kFilesOfServe{ManItem{"FILE of --trace and --pcap", kMadeAnew}};
constexpr std::array kFilesOfTop{ManItem{"FILE of --json", kMadeAnew}};
constexpr std::array kFilesOfTrace{
    ManItem{"FILE", "A capture, pcap or pcapng, as tcpdump and Wireshark write it. It is not changed."},
    ManItem{"FILE of --json and --html", kMadeAnew}};

const std::array kTexts{
    ManText{
        "iwarp",
        "RDMA over plain TCP, in user space: the protocols of iWARP, that is MPA (RFC 5044, RFC 6581), DDP (RFC 5041) "
        "and RDMAP (RFC 5040), and RPC-over-RDMA version 1 (RFC 8166) on top. It needs no RNIC, no kernel module and "
        "no privilege: sockets are enough.\n\n"
        "Each command has a page of its own.",
        kUsual, kFilesOfIwarp},
    ManText{
        "iwarp gateway",
        "Joins NFS or other ONC RPC clients and servers of which one side speaks RPC-over-RDMA and the other plain "
        "TCP. With --rdma-listen and --tcp, a TCP server gets a front for RPC-over-RDMA clients. With --tcp-listen "
        "and --rdma, TCP clients reach an RPC-over-RDMA server.\n\n"
        "The server sees the address of the gateway instead of those of its clients, so its export rules do not tell "
        "them apart: --allow says who is served at all. Nothing on the wire is encrypted or authenticated.",
        kOfGateway, kFilesOfGateway},
    ManText{"iwarp help", "Prints what iwarp COMMAND --help prints, or without COMMAND what iwarp --help does."},
    ManText{"iwarp perf",
            "Measures throughput, latency and rates of iWARP beside plain TCP that does the same work in the same run. "
            "Both ends run on this machine, or the other end runs iwarp perf serve."},
    ManText{"iwarp perf serve",
            "The other end of iwarp perf run and iwarp perf idle. Serves one client at a time. It does what any client "
            "asks for, so let only trusted hosts reach it.",
            kUsual, kFilesOfServe},
    ManText{
        "iwarp perf run",
        "Runs tests and prints a table, a row as soon as it is measured. Without PEER the other end is a process of "
        "its "
        "own on the loopback interface. A sample of iWARP and one of plain TCP alternate, so that both meet the same "
        "load of the machine.\n\n"
        "Tests and columns are named as in perftest (ib_write_bw and so on). Beside them stands plain TCP, with calls "
        "of "
        "64 KiB unless --baseline best looks for faster ones. Ctrl-C prints the rows measured so far, and the row "
        "under "
        "way with the pairs that it has.",
        kUsual, kFilesOfPerfRun},
    ManText{"iwarp perf idle",
            "Opens many connections, and tells how much memory, how many descriptors and how many wake-ups they cost "
            "while nothing is sent.",
            kUsual, kFilesWritten},
    ManText{"iwarp probe",
            "Examines an iWARP listener: connects to it in several ways, and tells what it negotiates and where it "
            "deviates from RFC 5044 and RFC 6581. Each question is a connection of its own, and its result is printed "
            "when it is there; what was not seen is not known.\n\n"
            "With --listen it examines an initiator in the same way: it takes its connections, answers each in another "
            "way, and tells what the initiator does then.",
            kUsual, kFilesWritten},
    ManText{
        "iwarp rping",
        "RDMA ping. Client and server advertise buffers to each other and move the data by RDMA Read and RDMA Write, "
        "as the rping of rdma-core does. The other end may be that program over any iWARP device. A client ends with "
        "the "
        "round-trip times of its pings, on standard error; a server that ends before its client is done is an "
        "error.",
        kUsual, kFilesWritten},
    ManText{"iwarp top",
            "Reads the metrics of a gateway that runs with --metrics, and shows what it does: in a terminal again and "
            "again, else once.",
            kUsual, kFilesOfTop},
    ManText{"iwarp trace",
            "Reads a capture of TCP packets, finds the iWARP connections in it, and prints a line for each message of "
            "MPA, RDMAP and RPC-over-RDMA, both directions, in the order of time.",
            kUsual, kFilesOfTrace}};

}  // namespace

const ManText* man_text(std::string_view command) {
  const auto* const found = std::ranges::find(kTexts, command, &ManText::command);
  return found == kTexts.end() ? nullptr : found;
}

std::span<const ManItem> usual_exit_statuses() {
  return kUsual;
}

}  // namespace iwarp::tools
