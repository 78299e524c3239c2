"""A realm of its own in a guest: its KDC, the keys of NFS server and client, and the daemons with which the kernel asks for them."""

from __future__ import annotations

from lib.guest import HOST_ADDRESS, Guest

REALM = "INTEROP"
SERVER_NAME = "host"    # of HOST_ADDRESS in the guest's /etc/hosts: what clients mount from, and the server's principal
LOG = "/run/gss.log"    # of the daemons

# svcgssd takes any principal of its keytab, since server and client are the same machine.
_START = f"""
set -e
cat > /etc/krb5.conf <<'END'
[libdefaults]
  default_realm = {REALM}
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  qualify_shortname = ""
  rdns = false
[realms]
  {REALM} = {{
    kdc = 127.0.0.1
  }}
END
mkdir -p /etc/krb5kdc /run/krb5 /var/lib/krb5kdc
cat > /etc/krb5kdc/kdc.conf <<'END'
[realms]
  {REALM} = {{
    database_name = /run/krb5/principal
    key_stash_file = /run/krb5/stash
    acl_file = /run/krb5/acl
    supported_enctypes = aes256-cts-hmac-sha1-96:normal
  }}
END
export KRB5_KDC_PROFILE=/etc/krb5kdc/kdc.conf
kdb5_util create -r {REALM} -s -P interop > /dev/null
for name in {SERVER_NAME} $(hostname); do
  kadmin.local -q "addprinc -randkey nfs/$name@{REALM}" > /dev/null
  kadmin.local -q "ktadd -k /etc/krb5.keytab nfs/$name@{REALM}" > /dev/null
done
krb5kdc
modprobe -a auth_rpcgss rpcsec_gss_krb5
# The kernel's own modprobe sees the initramfs only. Some are built in.
for cipher in cts cbc ecb hmac cmac sha1_generic aes_generic; do modprobe $cipher 2>/dev/null || true; done
rpc.idmapd -p /var/lib/nfs/rpc_pipefs
rpc.svcgssd -f -vv -n >> {LOG} 2>&1 &
rpc.gssd -f -vv -p /var/lib/nfs/rpc_pipefs >> {LOG} 2>&1 &
getent hosts {SERVER_NAME} | grep -q {HOST_ADDRESS}
"""


def start_kerberos(guest: Guest) -> None:
    """After the guest's NFS server, whose rpc_pipefs it uses. Once for each boot."""
    guest.must("bash -s", 180, stdin=_START)
