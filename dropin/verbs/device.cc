#include "dropin/verbs/device.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "dropin/verbs/agreement.h"
#include "dropin/verbs/c_face.h"
#include "dropin/verbs/settings.h"
#include "iwarp/rdmap/work_request.h"

#undef ibv_get_device_list

namespace iwarp::dropin {
namespace {

constexpr const char* kName = "iwarp0";
constexpr const char* kPath = "/sys/class/infiniband/iwarp0";
constexpr const char* kFirmware = IWARP_DROPIN_VERSION;
constexpr std::uint32_t kVendor = 0x026977;  // of a locally administered range: no maker's

// Providers of other devices look behind ibv_device for a pointer of theirs: there are zeros.
struct Device {
  ibv_device c{};
  std::array<std::byte, 1024> zeros{};
};
IWARP_C_FIRST(Device, c);

struct Address {
  ibv_gid gid{};
  unsigned interface = 0;
};

ibv_gid mapped(const in_addr& a) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  std::memcpy(&gid.raw[12], &a, sizeof a);
  return gid;
}

ibv_gid gid_of(const sockaddr* a) {
  if (a->sa_family == AF_INET) return mapped(reinterpret_cast<const sockaddr_in*>(a)->sin_addr);
  ibv_gid gid{};
  std::memcpy(gid.raw, &reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr, sizeof gid.raw);
  return gid;
}

Address find_address() {
  Address found{.gid = mapped({htonl(INADDR_LOOPBACK)})};
  bool wanted = false;
  if (const auto& text = settings().address) {
    in_addr v4{};
    in6_addr v6{};
    if (::inet_pton(AF_INET, text->c_str(), &v4) == 1) {
      found.gid = mapped(v4);
      wanted = true;
    } else if (::inet_pton(AF_INET6, text->c_str(), &v6) == 1) {
      std::memcpy(found.gid.raw, &v6, sizeof v6);
      wanted = true;
    }
  }
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0) continue;
    const int family = i->ifa_addr->sa_family;
    if (family != AF_INET && !(wanted && family == AF_INET6)) continue;
    const ibv_gid gid = gid_of(i->ifa_addr);
    const bool fits = wanted ? std::memcmp(&gid, &found.gid, sizeof gid) == 0 : (i->ifa_flags & IFF_LOOPBACK) == 0;
    if (!fits) continue;
    found = {.gid = gid, .interface = ::if_nametoindex(i->ifa_name)};
    break;
  }
  ::freeifaddrs(all);
  return found;
}

const Address& address() {
  static const Address kAddress = find_address();
  return kAddress;
}

void put(char* to, std::size_t room, const char* text) {
  std::snprintf(to, room, "%s", text);
}

bool is_roce() {
  return settings().present == Present::kRoce;
}

std::string interface_name() {
  std::array<char, IF_NAMESIZE> name{};
  return ::if_indextoname(address().interface, name.data()) == nullptr ? std::string() : std::string(name.data());
}

// What programs read of the device in sysfs, where it is not: there is no kernel device.
std::string attribute(std::string_view file) {
  if (file == "fw_ver") return kFirmware;
  if (file == "board_id") return "iwarp";
  if (file == "hca_type") return "iwarp";
  if (file == "node_type") return is_roce() ? "1: CA" : "4: RNIC";
  if (is_roce() && file == "ports/1/gid_attrs/types/0") return "RoCE v2";
  if (is_roce() && file == "ports/1/gid_attrs/ndevs/0") return interface_name();
  if (file == "node_desc") return "user-space iWARP";
  if (file == "abi_version") return "1";
  return {};
}

}  // namespace

ibv_device* device() {
  static Device* const kDevice = [] {
    auto* const d = new Device;
    d->c.node_type = is_roce() ? IBV_NODE_CA : IBV_NODE_RNIC;
    d->c.transport_type = is_roce() ? IBV_TRANSPORT_IB : IBV_TRANSPORT_IWARP;
    put(d->c.name, sizeof d->c.name, kName);
    put(d->c.dev_name, sizeof d->c.dev_name, "uverbs0");
    put(d->c.dev_path, sizeof d->c.dev_path, "/sys/class/infiniband_verbs/uverbs0");
    put(d->c.ibdev_path, sizeof d->c.ibdev_path, kPath);
    return d;
  }();
  return &kDevice->c;
}

const ibv_gid& gid() {
  return address().gid;
}

// An EUI-64 of the locally administered kind with the last octets of the address.
__be64 guid() {
  std::array<std::uint8_t, 8> raw{0x02, 0x69, 0x77, 0xff};
  std::memcpy(&raw[4], &gid().raw[12], 4);
  __be64 out = 0;
  std::memcpy(&out, raw.data(), sizeof out);
  return out;
}

unsigned interface_index() {
  return address().interface;
}

ibv_device_attr device_attributes() {
  ibv_device_attr a{};
  put(a.fw_ver, sizeof a.fw_ver, kFirmware);
  a.node_guid = a.sys_image_guid = guid();
  a.max_mr_size = ~std::uint64_t{0};
  a.page_size_cap = 0xfffff000;
  a.vendor_id = kVendor;
  a.vendor_part_id = 1;
  a.hw_ver = 0;
  a.max_qp = 1 << 20;
  a.max_qp_wr = kMostRequests;
  a.device_cap_flags = IBV_DEVICE_MEM_MGT_EXTENSIONS;
  if (is_roce()) a.device_cap_flags |= IBV_DEVICE_RC_RNR_NAK_GEN;
  a.max_sge = static_cast<int>(rdmap::kMaxSge);
  a.max_sge_rd = 1;
  a.max_cq = 1 << 20;
  a.max_cqe = kMostCompletions;
  a.max_mr = (1 << 24) - 1;
  a.max_pd = 1 << 20;
  a.max_qp_rd_atom = a.max_qp_init_rd_atom = kMostReads;
  a.max_res_rd_atom = kMostReads << 10;
  // Atomics of peers are those of std::atomic in this process.
  a.atomic_cap = wanted(settings()).rfc7306 ? IBV_ATOMIC_GLOB : IBV_ATOMIC_NONE;
  a.max_srq = 1 << 20;
  a.max_srq_wr = kMostRequests;
  a.max_srq_sge = static_cast<int>(rdmap::kMaxSge);
  a.max_pkeys = 1;
  a.phys_port_cnt = 1;
  return a;
}

ibv_port_attr port_attributes() {
  ibv_port_attr a{};
  a.state = IBV_PORT_ACTIVE;
  a.max_mtu = a.active_mtu = IBV_MTU_4096;
  a.gid_tbl_len = 1;
  a.max_msg_sz = 0x7fffffff;
  a.pkey_tbl_len = 1;
  a.max_vl_num = 1;
  a.active_width = 2;   // 4X
  a.active_speed = 32;  // EDR: of no meaning here, but a figure that programs know
  a.phys_state = 5;     // LinkUp
  a.link_layer = IBV_LINK_LAYER_ETHERNET;
  a.port_cap_flags = IBV_PORT_CM_SUP;
  if (is_roce()) a.flags = IBV_QPF_GRH_REQUIRED;
  return a;
}

}  // namespace iwarp::dropin

using namespace iwarp::dropin;

extern "C" {

ibv_device** ibv_get_device_list(int* num_devices) {
  // Of malloc(): whoever frees it may be anybody.
  return made<ibv_device*>([&](ibv_device**& out) {
    out = static_cast<ibv_device**>(std::calloc(2, sizeof(ibv_device*)));
    if (out == nullptr) return ENOMEM;
    out[0] = device();
    if (num_devices != nullptr) *num_devices = 1;
    return 0;
  });
}

void ibv_free_device_list(ibv_device** list) {
  std::free(list);
}

const char* ibv_get_device_name(ibv_device* device) {
  return device->name;
}

int ibv_get_device_index(ibv_device*) {
  return 0;
}

__be64 ibv_get_device_guid(ibv_device*) {
  return guid();
}

const char* ibv_get_sysfs_path() {
  return "/sys";
}

int ibv_read_sysfs_file(const char* dir, const char* file, char* buf, std::size_t size) {
  const Uncancelled whole;
  return [&]() noexcept {
    try {
      std::string text;
      if (std::string_view(dir) == kPath) {
        text = attribute(file);
      } else {
        std::ifstream in(std::string(dir) + "/" + file);
        std::getline(in, text);
      }
      if (text.empty() || size == 0) return -1;
      put(buf, size, text.c_str());
      return static_cast<int>(std::strlen(buf));
    } catch (...) {
      return -1;
    }
  }();
}

int ibv_fork_init() {
  return 0;
}

// Nothing is pinned, so nothing is lost when a child writes; what was made before fork() is dead in the child.
ibv_fork_status ibv_is_fork_initialized() {
  return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void*, std::size_t) {
  return 0;
}

int ibv_dofork_range(void*, std::size_t) {
  return 0;
}
}
