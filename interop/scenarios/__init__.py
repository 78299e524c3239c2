"""The scenarios, in the order in which they run."""

from scenarios import rping, verbs, rsockets, kernel_mount, libnfs, device, rpc, callback, nfs42, krb5, storm, crash, service  # noqa: F401
from scenarios import sctp, build_siw, baseline, hostile, probe, speed, stress  # noqa: F401
