// `iwarp run`: a program of libibverbs and librdmacm over iwarp, in place of a device.
#include <arpa/inet.h>
#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/option_words.h"
#include "tools/profile_flag.h"

namespace iwarp::tools {
namespace {

namespace fs = std::filesystem;

// As env(1) and shells have it.
constexpr int kExitCannotRun = 126, kExitNotFound = 127;

// Preloaded: tells programs of the files of a device.
constexpr const char* kPaths = "libiwarp-paths.so";

struct Flags {
  std::vector<std::string> words;  // the program and its arguments
  std::optional<std::string> crc, present, fpdu;
  std::string address, trace;
  ProfileFlag profile;
  bool rfc7306 = false, preload = false, quiet = false;
};

int failed(int status, const std::string& why) {
  std::cerr << "iwarp run: " << why << '\n';
  return status;
}

// Beside this program, in a tree that was built and in one that was installed.
fs::path libraries() {
  std::error_code ec;
  const fs::path self = fs::read_symlink("/proc/self/exe", ec);
  return ec ? fs::path() : self.parent_path().parent_path() / "lib" / "iwarp";
}

// As execvp() finds it; empty: nowhere.
fs::path found(const std::string& program) {
  std::error_code ec;  // a folder without rights is as none
  if (program.find('/') != std::string::npos) return fs::exists(program, ec) ? fs::path(program) : fs::path();
  const char* const path = std::getenv("PATH");
  std::string rest = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  for (rest += ':'; !rest.empty();) {
    const std::size_t end = rest.find(':');
    const fs::path at = fs::path(end == 0 ? "." : rest.substr(0, end)) / program;
    if (::access(at.c_str(), X_OK) == 0 && !fs::is_directory(at, ec)) return at;
    rest.erase(0, end + 1);
  }
  return {};
}

// Whether the dynamic loader starts it. Scripts and what is no ELF file of this host's kind: their interpreters are
// asked for nothing here.
bool is_static(const fs::path& program) {
  std::ifstream file(program, std::ios::binary);
  Elf64_Ehdr head{};
  if (!file.read(reinterpret_cast<char*>(&head), sizeof head)) return false;
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64) return false;
  for (unsigned i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr part{};
    file.seekg(static_cast<std::streamoff>(head.e_phoff + std::uint64_t{i} * head.e_phentsize));
    if (!file.read(reinterpret_cast<char*>(&part), sizeof part)) return false;
    if (part.p_type == PT_INTERP) return false;
  }
  return true;
}

// With the rights of another user, or capabilities: the loader ignores where libraries are to be looked for.
bool changes_rights(const fs::path& program) {
  struct stat about {};
  if (::stat(program.c_str(), &about) != 0) return false;
  if (::geteuid() != 0 && ::getxattr(program.c_str(), "security.capability", nullptr, 0) > 0) return true;
  return ((about.st_mode & S_ISUID) != 0 && about.st_uid != ::geteuid()) ||
         ((about.st_mode & S_ISGID) != 0 && about.st_gid != ::getegid());
}

void put_before(const char* name, const std::string& value) {
  const char* const before = std::getenv(name);
  const std::string all = before == nullptr || *before == '\0' ? value : value + ":" + before;
  ::setenv(name, all.c_str(), 1);
}

bool presents_roce() {
  const char* const present = std::getenv("IWARP_PRESENT");
  return present != nullptr && std::string(present) == "roce";
}

void set_environment(const Flags& flags, const fs::path& from) {
  if (flags.preload) {
    put_before("LD_PRELOAD", (from / "librdmacm.so.1").string());
    put_before("LD_PRELOAD", (from / "libibverbs.so.1").string());
  }
  put_before("LD_LIBRARY_PATH", from.string());
  if (flags.crc) ::setenv("IWARP_CRC", flags.crc->c_str(), 1);
  if (flags.present) ::setenv("IWARP_PRESENT", flags.present->c_str(), 1);
  // UCX looks for the device's file before it asks for devices, and turns those of iWARP away.
  if (presents_roce() && !fs::exists("/dev/infiniband")) put_before("LD_PRELOAD", (from / kPaths).string());
  if (flags.rfc7306) ::setenv("IWARP_RFC7306", "on", 1);
  if (!flags.address.empty()) ::setenv("IWARP_ADDRESS", flags.address.c_str(), 1);
  if (flags.profile.name() != "generic") ::setenv("IWARP_PROFILE", flags.profile.name().c_str(), 1);
  if (flags.fpdu) ::setenv("IWARP_FPDU", flags.fpdu->c_str(), 1);
  if (!flags.trace.empty()) {
    ::setenv("IWARP_TRACE", fs::absolute(flags.trace).c_str(), 1);       // the program may go elsewhere
    ::setenv("IWARP_TRACE_PID", std::to_string(::getpid()).c_str(), 1);  // which it keeps
  }
}

int run(const Flags& flags) {
  const fs::path from = libraries();
  for (const char* name : {"libibverbs.so.1", "librdmacm.so.1", kPaths}) {
    if (!fs::exists(from / name)) {
      return failed(kExitFailed, "there is no " + (from / name).string() +
                                     ": this iwarp was built without the verbs libraries, or they are not installed");
    }
  }
  const fs::path program = found(flags.words.front());
  if (program.empty()) return failed(kExitNotFound, "there is no program '" + flags.words.front() + "'");
  if (changes_rights(program))
    return failed(kExitCannotRun, program.string() +
                                      " takes the rights of another user (setuid, setgid or file capabilities): the "
                                      "loader gives it no other libraries. Run it as that user, or a copy of it");
  if (is_static(program))
    return failed(kExitCannotRun, program.string() + " is linked statically: it loads no libraries");
  set_environment(flags, from);
  if (!flags.quiet) {
    const char* const address = std::getenv("IWARP_ADDRESS");
    std::cerr << "iwarp run: device iwarp0, "
              << (presents_roce() ? "presented as RoCE to programs that reach others of iwarp run --present roce only,"
                                  : "an RNIC of iWARP,")
              << " at " << (address == nullptr ? "this host's first address" : address) << '\n';
  }
  std::vector<char*> words;
  for (const std::string& word : flags.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execv(program.c_str(), words.data());
  return failed(kExitCannotRun, program.string() + ": " + std::strerror(errno));
}

}  // namespace

Run add_run(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* cmd = app.add_subcommand("run", "Run a program of libibverbs and librdmacm over iwarp, without a device");
  cmd->add_option("PROGRAM", flags->words, "The program and its arguments, behind --")->required();
  cmd->add_option("--crc", flags->crc, "MPA CRC: on asks for it, off prefers none; default: as the profile has it")
      ->check(CLI::IsMember({"on", "off"}));
  cmd->add_option("--present", flags->present,
                  "What the device presents itself as: iwarp, or roce for programs that connect by ibv_modify_qp. Both "
                  "ends of a connection have to be the same, and roce reaches no other device; default: iwarp")
      ->check(CLI::IsMember({"iwarp", "roce"}));
  cmd->add_option("--address", flags->address,
                  "Address of the device; default: the first IPv4 address of this host that is not loopback")
      ->check([](const std::string& text) {
        std::array<unsigned char, sizeof(in6_addr)> octets{};
        const bool ok = ::inet_pton(AF_INET, text.c_str(), octets.data()) == 1 ||
                        ::inet_pton(AF_INET6, text.c_str(), octets.data()) == 1;
        return ok ? std::string() : "'" + text + "' is no IPv4 or IPv6 address";
      });
  flags->profile.add(*cmd, "");
  cmd->add_option(
         "--fpdu", flags->fpdu,
         "Length of frames. emss: what fits a TCP segment, as hardware wants it; 16k: 16 KiB; max: 64 KiB, for "
         "programs on loopback; default: as the profile has it")
      ->check(CLI::IsMember({"emss", "16k", "max"}));
  cmd->add_option("--trace", flags->trace,
                  "Write a capture of the program's connections, for iwarp trace and Wireshark, to this file, which is "
                  "made with the first connection; processes that the program starts write to FILE.PID. Up to 1 GiB "
                  "each")
      ->type_name("FILE");
  cmd->add_flag("--rfc7306", flags->rfc7306,
                "Agree with the peer, which is to be run so as well, on Writes with immediate data and on Atomics");
  cmd->add_flag("--preload", flags->preload,
                "For programs that have the folder of their libraries built in: load the libraries before all others");
  cmd->add_flag("--quiet", flags->quiet, "Do not say what the program is given");
  cmd->footer(
      "The program is given the libraries of lib/iwarp by its environment, and so are the programs that it starts. "
      "What works is in docs/VERBS.md.\n"
      "Exit status: the program's; 1 without the libraries, 126 when the program cannot run over them, 127 when there "
      "is no such program.\n"
      "Examples:\n"
      "  iwarp run -- rping -s &\n"
      "  iwarp run -- rping -c -a 127.0.0.1 -C 10 -v\n"
      "  iwarp run --crc off -- ib_write_bw -R 10.0.0.2\n"
      "  iwarp run --trace ping.pcap -- rping -c -a 127.0.0.1 -C 10; iwarp trace ping.pcap");
  return [flags] { return run(*flags); };
}

}  // namespace iwarp::tools
