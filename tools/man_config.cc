#include "tools/man_config.h"

#include "tools/gateway_config.h"
#include "tools/roff.h"

namespace iwarp::tools {
namespace {

constexpr const char* kDescription =
    "What iwarp gateway --config FILE serves, and the service iwarp-gateway.service: a table [process], which may be "
    "left out, and a table [[listener]] for each address to listen at. All listeners are served by one process.\n\n"
    "The file is TOML. The keys are the flags of iwarp-gateway(1) without \"--\". Numbers stand without quotes, other "
    "values in quotes, flags are true or false. Where a value is a list with commas (allow, source-map, rtr), an array "
    "of texts is as good. A key that is not known, or a value out of its range, is an error: iwarp gateway --config "
    "FILE --check names the line of each, and binds nothing.\n\n"
    "SIGHUP reads the file again (systemctl reload iwarp-gateway). Connections keep the settings that they began "
    "with, listeners that are no longer in the file stop accepting, and a file with an error changes nothing. Of "
    "[process], stats, state-dir, metrics, rpcbind, trace and pcap are read at the start only.";

constexpr const char* kListener =
    "A listener has either rdma-listen and tcp, or tcp-listen and rdma. Its max-connections and "
    "max-connections-per-client are for itself; by default those of [process].";

constexpr const char* kExample =
    "[process]\n"
    "memory = 1024\n"
    "metrics = \"127.0.0.1:9100\"\n"
    "\n"
    "[[listener]]\n"
    "name = \"nfs-rdma\"\n"
    "rdma-listen = \"[::]:20049\"\n"
    "tcp = \"127.0.0.1:2049\"\n"
    "allow = [\"10.0.0.0/8\", \"fd00::/8\"]\n"
    "\n"
    "[[listener]]\n"
    "name = \"far-server\"\n"
    "tcp-listen = \"127.0.0.1:2050\"\n"
    "rdma = \"192.0.2.1:20049\"\n";

std::string items(const std::vector<ConfigKey>& keys) {
  std::string s;
  for (const ConfigKey& key : keys)
    s += roff::item(roff::bold(key.name) + " = " + roff::italic(key.value), key.text + ".");
  return s;
}

}  // namespace

ManPage gateway_config_page(const std::string& version) {
  std::string s = ".TH IWARP-GATEWAY.TOML 5 \"\" \"iwarp " + version + "\" \"File Formats\"\n.SH NAME\n" +
                  roff::escaped("iwarp-gateway.toml") + " \\- " + "configuration file of iwarp gateway\n";
  s += ".SH SYNOPSIS\n" + roff::italic("/etc/iwarp/gateway.toml") + "\n";
  s += ".SH DESCRIPTION\n" + roff::paragraphs(kDescription);
  s += ".SH \"KEYS OF [process]\"\n" + items(process_keys());
  s += ".SH \"KEYS OF [[listener]]\"\n" + roff::paragraphs(kListener) + items(listener_keys());
  s += ".SH FILES\n" + roff::item(roff::bold("/etc/iwarp/gateway.toml"), "The file of the service, with every key.");
  s += ".SH EXAMPLES\n.nf\n" + roff::escaped(kExample) + ".fi\n";
  s += ".SH \"SEE ALSO\"\n" + roff::bold("iwarp-gateway") + "(1),\n" + roff::bold("iwarp-top") + "(1)\n";
  return {"iwarp-gateway.toml", std::move(s), '5'};
}

}  // namespace iwarp::tools
