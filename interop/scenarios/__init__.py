"""The scenarios, in the order in which they run."""

from scenarios import rping, kernel_mount, libnfs, callback, baseline, hostile, probe  # noqa: F401
