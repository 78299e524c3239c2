"""The scenarios, in the order in which they run."""

from scenarios import rping, kernel_mount, libnfs, baseline, hostile  # noqa: F401
