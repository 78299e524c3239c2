"""The scenarios, in the order in which they run."""

from scenarios import rping, verbs, rsockets, kernel_mount, libnfs, device, callback, storm, crash, service, build_siw, baseline, hostile, probe, speed  # noqa: F401
