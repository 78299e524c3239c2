"""Tests of scripts/siw/extract and scripts/build-siw that build nothing and change nothing: python3 interop/tests/test_siw.py"""

from __future__ import annotations

import lzma
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
SIW = "drivers/infiniband/sw/siw"
BROKEN = "\tskb_copy_bits(skb, srx->skb_offset, tbuf, avail);\n"
# Line 45 of siw_main.c and what is around it; the other variants change lines further down.
MAIN = "/* We try to negotiate CRC on, if true */\nconst bool mpa_crc_required;\n\n"
RELEASE = "6.1.0-9-amd64"


class Extract(unittest.TestCase):
    """On a linux-source made here."""

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)
        self.target = self.directory / "siw"

    def extract(self, receiver: str, *variants: str, makefile: str = "siw-y := siw_main.o siw_qp_rx.o\n") -> subprocess.CompletedProcess[str]:
        tree = self.directory / "linux-source-9.9"
        (tree / SIW).mkdir(parents=True)
        for name, text in (("Makefile", makefile), ("siw_main.c", MAIN), ("siw_qp_rx.c", receiver)):
            (tree / SIW / name).write_text(text)
        tarball = self.directory / "linux-source-9.9.tar.xz"
        with lzma.open(tarball, "wb", preset=0) as file, tarfile.open(fileobj=file, mode="w") as archive:
            archive.add(tree, tree.name)
        return subprocess.run([SCRIPTS / "siw" / "extract", tarball, self.target, *variants], capture_output=True, text=True, timeout=60)

    def test_repairs_the_trailer_wherever_it_is(self) -> None:
        done = self.extract("int first;\n" * 50 + "\n" + BROKEN + "\n")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("repaired: Keep what has arrived", done.stdout)
        self.assertIn("tbuf + srx->pad + MPA_CRC_SIZE - srx->fpdu_part_rem, avail);\n", (self.target / "siw_qp_rx.c").read_text())

    def test_leaves_another_siw_alone(self) -> None:
        done = self.extract("\n" + BROKEN.replace("tbuf", "repaired") + "\n")
        self.assertEqual((done.returncode, done.stdout), (0, "not needed by this siw: trailer-crc.patch\n"))

    def test_what_it_cannot_repair_is_an_error(self) -> None:
        done = self.extract("int before;\n" + BROKEN + "int behind;\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("trailer-crc.patch does not fit", done.stderr)
        self.assertFalse(self.target.exists())

    def test_variants(self) -> None:
        done = self.extract("", "crc-required")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1:]), (0, ["changed: crc-required"]))
        self.assertEqual((self.target / "siw_main.c").read_text(), MAIN.replace("required;", "required = true;"))
        self.assertFalse(list(self.target.glob("*.orig")))

    def test_errors(self) -> None:
        self.assertIn("no such variant: other", self.extract("", "other").stderr)

    def test_a_source_that_the_makefile_names_must_be_there(self) -> None:
        self.assertIn("lacks sources", self.extract("", makefile="siw-y := siw_new.o\n").stderr)


class DebianSource(unittest.TestCase):
    """On the linux-source that is installed, if one is."""

    def test_all_patches_fit(self) -> None:
        sources = sorted(Path("/usr/src").glob("linux-source-*.tar.xz"))
        if not sources:
            self.skipTest("no linux-source is installed")
        variants = [path.stem for path in sorted((SCRIPTS / "siw" / "variants").glob("*.patch"))]
        with tempfile.TemporaryDirectory() as directory:
            done = subprocess.run([SCRIPTS / "siw" / "extract", sources[-1], f"{directory}/siw", *variants], capture_output=True, text=True,
                                  timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(done.stdout.splitlines()), len(variants) + 1)


# What the script asks of the system, as far as a dry run goes.
DPKG_QUERY = """#!/bin/sh
for name; do :; done
case " $PACKAGES " in *" $name "*) echo "installed 6.1.7-2" ;; *) exit 1 ;; esac
"""
DKMS = """#!/bin/sh
[ "$1" != status ] || printf '%s' "$DKMS_STATUS"
"""
PACKAGES = f"dkms linux-headers-{RELEASE} linux-source-6.1 build-essential patch xz-utils kmod"
EFI_SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


class BuildSiw(unittest.TestCase):
    """Dry runs on a system made here: Debian 12 with a kernel as Debian builds it."""

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.system = Path(temporary.name)
        self.environment = {"PACKAGES": PACKAGES, "DKMS_STATUS": ""}
        self.write("etc/os-release", 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n')
        self.write(f"boot/config-{RELEASE}", "CONFIG_INFINIBAND=m\n# CONFIG_RDMA_SIW is not set\n")
        self.write(f"lib/modules/{RELEASE}/modules.builtin", "kernel/drivers/acpi/video.ko\n")
        self.write("proc/modules", "nfs 1 0 - Live 0x0\n")
        for name, text in (("dpkg-query", DPKG_QUERY), ("dkms", DKMS), ("uname", f"#!/bin/sh\necho {RELEASE}\n")):
            self.write(f"bin/{name}", text).chmod(0o755)

    def write(self, path: str, text: str) -> Path:
        file = self.system / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def run_script(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PATH": f"{self.system}/bin:{os.environ['PATH']}", "IWARP_SIW_SYSTEM": str(self.system), **self.environment}
        return subprocess.run([SCRIPTS / "build-siw", "--dry-run", *arguments], capture_output=True, text=True, timeout=60, env=environment)

    def commands(self, *arguments: str) -> list[str]:
        done = self.run_script(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [line[2:].replace(str(self.system), "") for line in done.stdout.splitlines() if line.startswith("+ ")]

    def refused(self, why: str, *arguments: str, status: int = 1) -> None:
        done = self.run_script(*arguments)
        self.assertEqual(done.returncode, status, done.stdout)
        self.assertRegex(done.stderr, f"^scripts/build-siw: .*{why}")
        self.assertNotIn("+ ", done.stdout)

    def test_from_nothing(self) -> None:
        self.environment["PACKAGES"] = "linux-source-6.1 xz-utils"
        commands = self.commands()
        self.assertEqual(commands[0], "apt-get update")
        self.assertRegex(commands[1], f"apt-get .*install .* dkms linux-headers-{RELEASE} build-essential patch kmod$")
        self.assertEqual(commands[2:6], [
            "scripts/siw/extract /usr/src/linux-source-6.1.tar.xz /usr/src/iwarp-siw-6.1.7", "dkms add -m iwarp-siw -v 6.1.7",
            f"dkms build -m iwarp-siw -v 6.1.7 -k {RELEASE}", f"dkms install -m iwarp-siw -v 6.1.7 -k {RELEASE}"])
        self.assertIn("modprobe rpcrdma", commands)
        self.assertEqual(commands[-1], "modprobe siw")

    def test_installed_packages_need_no_apt(self) -> None:
        self.assertFalse([command for command in self.commands() if "apt-get" in command])

    def test_only_the_running_kernel_is_loaded_for(self) -> None:
        (self.system / f"lib/modules/{RELEASE}").rename(self.system / "lib/modules/6.1.0-10-amd64")
        self.environment["PACKAGES"] += " linux-headers-6.1.0-10-amd64"
        commands = self.commands("--kernel", "6.1.0-10-amd64")
        self.assertEqual(commands[-1], "dkms install -m iwarp-siw -v 6.1.7 -k 6.1.0-10-amd64")
        self.assertFalse([command for command in self.commands("--kernel", "6.1.0-10-amd64", "--no-load") if "modprobe" in command])

    def test_crc(self) -> None:
        self.assertIn("scripts/siw/extract /usr/src/linux-source-6.1.tar.xz /usr/src/iwarp-siw-6.1.7 crc-required", self.commands("--crc"))

    def test_a_tarball_touches_no_system(self) -> None:
        commands = self.commands("--tarball", "siw.tar.gz")
        self.assertRegex(commands[-2], r"^dkms mktarball --sourcetree /\S+ --dkmstree /\S+ -m iwarp-siw ")
        self.assertTrue(commands[-1].endswith(f" {os.getcwd()}/siw.tar.gz"))
        self.assertFalse([command for command in commands if re.search("modprobe|dkms install|/usr/src/iwarp", command)])

    def test_an_older_one_of_the_same_series_is_replaced(self) -> None:
        self.environment["DKMS_STATUS"] = (f"iwarp-siw/6.1.5, {RELEASE}, x86_64: installed\niwarp-siw/6.12.3, 6.12.3+bpo-amd64, x86_64: installed\n")
        self.assertEqual(self.commands()[:2], ["dkms remove -m iwarp-siw -v 6.1.5 --all", "rm -rf /usr/src/iwarp-siw-6.1.5"])

    def test_uninstall_removes_all(self) -> None:
        self.environment["DKMS_STATUS"] = f"iwarp-siw/6.1.5, {RELEASE}, x86_64: installed\niwarp-siw/6.12.3: added\n"
        self.write("proc/modules", "siw 131072 0 - Live 0x0\n")
        self.assertEqual(self.commands("--uninstall"), [
            "modprobe -r siw", "dkms remove -m iwarp-siw -v 6.1.5 --all", "rm -rf /usr/src/iwarp-siw-6.1.5",
            "dkms remove -m iwarp-siw -v 6.12.3 --all", "rm -rf /usr/src/iwarp-siw-6.12.3"])
        self.environment["DKMS_STATUS"] = ""
        self.refused("nothing to remove", "--uninstall")

    def test_other_systems(self) -> None:
        self.write("etc/os-release", 'ID=ubuntu\nPRETTY_NAME="Ubuntu 24.04"\n')
        self.refused("Ubuntu 24.04, which has siw in linux-modules-extra-6.1.0-9-amd64")
        self.write("etc/os-release", 'ID=fedora\nPRETTY_NAME="Fedora Linux 40"\n')
        self.refused("Fedora Linux 40, not Debian; docs/SIW.md")

    def test_kernels_that_have_it(self) -> None:
        self.write(f"lib/modules/{RELEASE}/kernel/drivers/infiniband/sw/siw/siw.ko.xz", "")
        self.refused("has a siw of its own .*--replace")
        self.assertIn(f"dkms install -m iwarp-siw -v 6.1.7 -k {RELEASE} --force", self.commands("--replace"))
        self.write(f"lib/modules/{RELEASE}/modules.builtin", f"kernel/{SIW}/siw.ko\n")
        self.refused("has siw built in", "--replace")

    def test_kernels_that_cannot_have_it(self) -> None:
        self.write(f"boot/config-{RELEASE}", "# CONFIG_INFINIBAND is not set\n")
        self.refused("built without InfiniBand")
        self.refused("no modules in /lib/modules", "--kernel", "6.1.0-10-amd64")
        self.refused("not the release of a kernel", "--kernel", "newest")

    def test_secure_boot_needs_a_key(self) -> None:
        self.write(EFI_SECURE_BOOT, "\x06\0\0\0\x01")
        self.assertRegex(self.commands()[1], "openssl mokutil$")
        self.write(EFI_SECURE_BOOT, "\x06\0\0\0\0")
        self.assertFalse([command for command in self.commands() if "mokutil" in command])

    def test_wrong_usage(self) -> None:
        for arguments in (("--other",), ("--kernel",), ("stray",)):
            self.refused("--help", *arguments, status=2)

    def test_help_names_every_option(self) -> None:
        options = set(re.findall(r"^    (--[a-z-]+)\)", (SCRIPTS / "build-siw").read_text(), re.M))
        text = self.run_script("--help").stdout
        self.assertEqual([option for option in sorted(options) if option not in text], [])
        self.assertIn("--crc", options)


if __name__ == "__main__":
    unittest.main()
