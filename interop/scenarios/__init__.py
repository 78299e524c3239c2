"""The scenarios, in the order in which they run."""

from scenarios import rping, kernel_mount, libnfs, callback, storm, crash, baseline, hostile, probe, speed  # noqa: F401
