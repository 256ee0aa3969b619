"""Stock tools and the usual ways of looking at files, with the emulated device rxe0 on lo."""

import os
import re
import signal
import subprocess
import textwrap
import unittest

from tests.compat.preload import preloading

DEVICE = "/sys/class/infiniband/rxe0"
HOME = "/sys/devices/virtual/urxe/rxe0"
GID = "0000:0000:0000:0000:0000:ffff:7f00:0001"


def sh(script, shell="bash", **variables):
    return preloading.output([shell, "-c", script], **variables)


class Tools(unittest.TestCase):
    def test_ibv_devices_lists_the_device(self):
        text = preloading.output(["ibv_devices"])
        self.assertRegex(text, r"(?m)^    rxe0 +\t[0-9a-f]{16}$")

    def test_ibv_devinfo_lists_the_device(self):
        self.assertIn("1 HCA found:\n\trxe0\n", preloading.output(["ibv_devinfo", "-l"]))

    def test_ibstat_shows_the_port(self):
        text = preloading.output(["/usr/sbin/ibstat"])
        for line in ("CA 'rxe0'", "State: Active", "Physical state: LinkUp",
                     "Link layer: Ethernet", "CA type: urxe", "Number of ports: 1"):
            self.assertIn(line, text)
        self.assertEqual(preloading.output(["/usr/sbin/ibstat", "-l"]), "rxe0\n")
        self.assertRegex(preloading.output(["/usr/sbin/ibstat", "-p"]), "^0x[0-9a-f]{16}\n$")

    def test_ibstatus_shows_the_port(self):
        text = preloading.output(["/usr/sbin/ibstatus"])
        for line in (f"default gid:\t {GID}", "state:\t\t 4: ACTIVE", "phys state:\t 5: LinkUp",
                     "link_layer:\t Ethernet"):
            self.assertIn(line, text)

    def test_without_the_library_there_is_no_device(self):
        if os.path.exists(DEVICE):
            print("SKIPPED: the kernel has a device rxe0")
            return
        self.assertNotIn("rxe0", preloading.run(["ibv_devices"], preload=False)[1])


class Shells(unittest.TestCase):
    def test_globbing_finds_devices_ports_and_files(self):
        for shell in ("bash", "dash"):
            self.assertEqual(sh("echo /sys/class/infiniband/*/ports/*/st*", shell),
                             f"{DEVICE}/ports/1/state\n")
            self.assertEqual(sh("cd /sys/class/infiniband; for d in *; do echo $d; done", shell),
                             "rxe0\n")

    def test_a_shell_that_goes_into_the_tree_and_its_children_can_read_there(self):
        script = f"""
            cd {DEVICE}/ports/1; pwd; /bin/pwd
            cat state link_layer gids/0 gid_attrs/types/0 counters/symbol_error
            cd gid_attrs; cat ndevs/0; (cd ..; cat gids/0); cd ..
            [ -r gids/0 ] && cat hw_counters/*
        """
        for shell in ("bash", "dash"):
            lines = sh(script, shell).splitlines()
            self.assertEqual(lines[:9], [
                f"{DEVICE}/ports/1", f"{HOME}/infiniband/rxe0/ports/1", "4: ACTIVE", "Ethernet",
                GID, "RoCE v2", "0", "lo", GID])
            self.assertEqual(len(lines), 9 + 19)

    def test_ls_find_stat_and_readlink_see_what_the_kernel_would_show(self):
        self.assertRegex(sh("ls -l /sys/class/infiniband"),
                         r"rxe0 -> \.\./\.\./devices/virtual/urxe/rxe0/infiniband/rxe0\n$")
        self.assertRegex(sh("ls -l /dev/infiniband"), r"(?m)^crw-rw-rw- .* 231, 192 .* uverbs0$")
        self.assertEqual(sh("find /dev/infiniband -type c -name uverbs0"),
                         "/dev/infiniband/uverbs0\n")
        self.assertEqual(sh("stat -c '%F %t %T %a' /dev/infiniband/uverbs0"),
                         "character special file e7 c0 666\n")
        self.assertEqual(sh(f"find {DEVICE}/ ! -path '*/power/*' -name state"),
                         f"{DEVICE}/ports/1/state\n")
        self.assertEqual(sh(f"find {DEVICE}/ports/1/gid_attrs/ -type f | wc -l"), "2048\n")
        self.assertEqual(sh(f"readlink -f {DEVICE}/device"), HOME + "\n")
        self.assertEqual(sh(f"ls {DEVICE}/ports/1/gids | wc -l; cat {DEVICE}/ports/1/gids/1023"),
                         "1024\n" + ":".join(["0000"] * 8) + "\n")
        self.assertEqual(sh(f"grep -r . {DEVICE}/node_type {DEVICE}/ports/1/pkeys"),
                         f"{DEVICE}/node_type:1: CA\n{DEVICE}/ports/1/pkeys/0:0xffff\n")


class Python(unittest.TestCase):
    SCRIPT = f"""
        import glob, os, pathlib
        print(os.listdir('/sys/class/infiniband'))
        print([e.name for e in os.scandir('/sys/class/infiniband_verbs') if e.is_dir()])
        print(glob.glob('/sys/class/infiniband/*/ports/*/state'))
        p = pathlib.Path('{DEVICE}')
        print(p.resolve(), os.path.realpath(p / 'device'), (p / 'ports/1/gids/0').read_text())
        print(sorted(x.name for x in (p / 'ports/1').iterdir() if x.is_dir()))
        print(sum(len(files) for _, _, files in os.walk('{DEVICE}/')) > 3072)
        fd = os.open('/', os.O_RDONLY)
        print(os.listdir(os.open('sys/class/infiniband', os.O_RDONLY, dir_fd=fd)))
        print(os.access('/dev/infiniband/uverbs0', os.R_OK | os.W_OK))
    """
    EXPECTED = [
        "['rxe0']", "['uverbs0']", f"['{DEVICE}/ports/1/state']",
        f"{HOME}/infiniband/rxe0 {HOME} {GID}", "",
        str(["cm_rx_duplicates", "cm_rx_msgs", "cm_tx_msgs", "cm_tx_retries", "counters",
             "gid_attrs", "gids", "hw_counters", "pkeys"]), "True", "['rxe0']", "True"]

    def test_listings_and_paths_are_as_with_the_kernel(self):
        script = textwrap.dedent(self.SCRIPT)
        text = preloading.output(["/usr/bin/python3", "-c", script])
        self.assertEqual(text.splitlines(), self.EXPECTED)


class Configuration(unittest.TestCase):
    def test_a_malformed_variable_gives_one_sentence_and_no_device(self):
        status, text, errors = preloading.run(["ls", "/sys/class/infiniband", "/dev/infiniband"],
                                              URXE_DEVICES="rxe0=nonexistent0")
        self.assertNotEqual(status, 0)
        self.assertEqual(text, "")
        complaints = [line for line in errors.splitlines() if line.startswith("urxe: ")]
        self.assertEqual(len(complaints), 1, errors)
        self.assertRegex(complaints[0], r'entry 1 \("rxe0=nonexistent0"\): there is no network '
                                        r'interface "nonexistent0" \(there are .*lo')

    def test_devices_can_be_chosen(self):
        text = sh("cd /sys/class/infiniband; cat rxe_b/ports/1/gids/0 rxe_b/parent;"
                  "ls /sys/class/infiniband /dev/infiniband",
                  URXE_DEVICES="rxe_a=lo/127.0.0.9,rxe_b=lo/127.0.0.2")
        self.assertRegex(text, "^0000:0000:0000:0000:0000:ffff:7f00:0002\nlo\n")
        for name in ("rxe_a", "rxe_b", "uverbs0", "uverbs1"):
            self.assertRegex(text, rf"(?m)^{name}$")

    def test_without_variables_there_are_devices_for_the_interfaces(self):
        names = sh("cat /sys/class/infiniband/*/parent", URXE_DEVICES=None).split()
        self.assertTrue(names)
        self.assertTrue(all(os.path.exists(f"/sys/class/net/{name}") for name in names))

    def test_a_place_for_the_tree_is_found_where_dev_shm_is_missing(self):
        if os.geteuid() != 0:
            print("SKIPPED: needs root to mount over /dev/shm")
            return
        script = ("mount -t tmpfs -o ro none /dev/shm && export LD_PRELOAD=$0 && "
                  f"cat {DEVICE}/node_type && ls -d ${{TMPDIR:-/tmp}}/urxe-tree.* >/dev/null")
        command = ["unshare", "-m", "bash", "-c", script, preloading.PRELOAD]
        status, text, errors = preloading.run(command, preload=False)
        self.assertEqual((text, errors.count("urxe:")), ("1: CA\n", 0), errors)
        self.assertIn(status, (0, 2))


class RealDevices(unittest.TestCase):
    """Beside devices of the kernel, for which a mount over /sys/class stands in."""

    SETUP = """
        mount -t tmpfs none /sys/class && mount -t tmpfs none /dev/shm || exit 9
        mkdir -p /sys/class/infiniband/mlx5_0/ports/1 /sys/class/infiniband_verbs/uverbs4
        echo real > /sys/class/infiniband/mlx5_0/ports/1/state
        echo mlx5_0 > /sys/class/infiniband_verbs/uverbs4/ibdev
        LD_PRELOAD=$0 bash -c "$1"
    """

    def under_mounts(self, script, **variables):
        command = ["unshare", "-m", "bash", "-c", self.SETUP, preloading.PRELOAD, script]
        status, text, errors = preloading.run(command, preload=False, **variables)
        self.assertEqual((status, errors), (0, ""), text)
        return text

    def test_real_devices_are_shown_or_hidden_as_the_user_likes(self):
        if os.geteuid() != 0:
            print("SKIPPED: needs root to mount over /sys/class")
            return
        script = "ls /sys/class/infiniband; cat /sys/class/infiniband_verbs/uverbs*/ibdev"
        self.assertEqual(self.under_mounts(script), "mlx5_0\nrxe0\nmlx5_0\nrxe0\n")
        self.assertEqual(self.under_mounts(script, URXE_HIDE_REAL="1"), "rxe0\nrxe0\n")
        script = ("cat /sys/class/infiniband/mlx5_0/ports/1/state; ls /dev/infiniband;"
                  "realpath /sys/class/infiniband/mlx5_0")
        self.assertEqual(self.under_mounts(script),
                         "real\nrdma_cm\nuverbs5\n/sys/class/infiniband/mlx5_0\n")


class Leftovers(unittest.TestCase):
    @staticmethod
    def tree_of(process):
        """Where the private tree of a process is."""
        folder = f"/proc/{process.pid}/fd"
        links = [os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder)]
        return next(link for link in links if re.search(r"/urxe-tree\.\w{6}$", link))

    @staticmethod
    def start():
        script = f"import sys; open('{DEVICE}/node_type'); print('ready', flush=True); input()"
        process = subprocess.Popen(["/usr/bin/python3", "-c", script], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, env=preloading.environment(), text=True)
        process.stdout.readline()
        return process

    def test_a_tree_vanishes_when_its_process_ends(self):
        with self.start() as process:
            tree = self.tree_of(process)
            self.assertTrue(os.path.isdir(tree))
            process.communicate("\n", timeout=20)
        self.assertEqual(process.returncode, 0)
        self.assertFalse(os.path.exists(tree))

    def test_the_tree_of_a_killed_process_is_removed_by_the_next(self):
        with self.start() as survivor, self.start() as process:
            kept, tree = self.tree_of(survivor), self.tree_of(process)
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=20)
            self.assertTrue(os.path.exists(tree))
            sh(f"cat {DEVICE}/node_type")
            self.assertFalse(os.path.exists(tree))
            self.assertTrue(os.path.exists(kept))
            survivor.communicate("\n", timeout=20)


if __name__ == "__main__":
    unittest.main()
