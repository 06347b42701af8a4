#!/usr/bin/env python3
"""Makes the packages of a build and installs each into a bare root: a folder with the C and C++ libraries and nothing
else. There, by chroot, the program trains a small model, which means that it compiles kernels, and explains it. The
archive must work on its own, the .deb with the packages that it names. Exits with 77 where no bare root can be made.

usage: check_packages.py BUILD
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
BASE = ["libc6", "libgcc-s1", "libstdc++6"]  # what every Debian machine has: apt itself needs them
CONSUMER = Path(__file__).parent / "consumer"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def in_root(root, *command):
    """Runs a command with `root` as the root folder and /proc in it, by which the loader finds where a program lies.
    A user other than root gets a user namespace for it. Exits with 127 where the command does not exist."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    script = 'mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"'
    environment = {"HOME": "/root", "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin", "OMP_WAIT_POLICY": "passive"}
    return subprocess.run(["unshare", *user, "--mount", "sh", "-c", script, str(root), *command], env=environment,
                          capture_output=True, text=True)


def copy_libraries(root, package):
    """Copies the shared libraries of an installed package, links as links."""
    for line in output_of("dpkg-query", "--listfiles", package).splitlines():
        source = Path(line)
        if not re.search(r"\.so(\.|$)", source.name) or not source.is_file():
            continue
        target = root / line.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copy2(source, target, follow_symlinks=False)


def bare_root(root):
    for folder in ["usr/lib", "usr/lib64", "usr/bin", "tmp", "root", "proc", "opt"]:
        (root / folder).mkdir(parents=True)
    for link in ["lib", "lib64", "bin"]:
        (root / link).symlink_to("usr/" + link)
    for package in BASE:
        copy_libraries(root, package)
    (root / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 200)
    return root


def packages_of(depends):
    """Returns the packages that satisfy a Depends field here: of each list of alternatives the first that is installed.
    """
    found = []
    for entry in filter(None, (entry.strip() for entry in depends.split(","))):
        names = [re.split(r"[\s:(]", name.strip())[0] for name in entry.split("|")]
        installed = [name for name in names if fields(name)]
        found += installed[:1]
    return found


def fields(package):
    """Returns what an installed package depends on; empty where it is not installed or depends on nothing."""
    done = subprocess.run(["dpkg-query", "-W", "-f=${Depends},${Pre-Depends}", package], capture_output=True, text=True)
    return done.stdout


def closure_of(names):
    """Returns packages with all that they depend on."""
    found, pending = set(), list(names)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += packages_of(fields(name))
    return found


def check_program(root, program, kind):
    """Runs the program in the root: its version, three steps of training, and what became of a step."""
    for command in (["--version"],
                    ["train", "gpt", "--data", "/text.txt", "--out", "/model", "--layers", "1", "--heads", "2",
                     "--width", "16", "--context", "16", "--batch", "2", "--steps", "3"],
                    ["explain", "/model", "--step", "train", "--runs", "1"]):
        done = in_root(root, program, *command)
        if done.returncode != 0:
            print(done.stdout[-2000:], done.stderr[-2000:])
            sys.exit(f"{kind}: `weft {' '.join(command)}` fails in a bare root")
        if not done.stdout.strip():
            sys.exit(f"{kind}: `weft {' '.join(command)}` prints nothing in a bare root")


def check_consumer(prefix, work, kind):
    """Configures a project that uses the library and the headers of an unpacked package."""
    source = shutil.copytree(CONSUMER, work / "source")
    (source / "main.cpp").write_text("")
    done = subprocess.run(["cmake", "-S", str(source), "-B", str(work / "build"), "-G", "Ninja",
                           f"-Dweft_ROOT={prefix}"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{kind}: find_package(weft) fails:\n{done.stdout}{done.stderr}")
    found = re.search(r"weft_DIR:PATH=(.*)", (work / "build/CMakeCache.txt").read_text())
    if not found or not Path(found[1]).is_relative_to(prefix):
        sys.exit(f"{kind}: find_package(weft) found {found and found[1]}, not {prefix}")
    for header in ["weft/weft.h", "weft/ops/arithmetic.h", "weft/compat/mlx/array.h"]:
        if not (prefix / "include" / header).is_file():
            sys.exit(f"{kind}: {header} is missing")


def check_licences(prefix, kind, *packages):
    docs = prefix / "share/doc/weft"
    for name in ["copyright", *(f"licences/{package}" for package in packages)]:
        if not (docs / name).is_file():
            sys.exit(f"{kind}: share/doc/weft/{name} is missing")


def make_package(build, kind, into):
    done = subprocess.run(["cpack", "--config", str(build / "CPackConfig.cmake"), "-G", kind, "-B", str(into)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"cpack -G {kind} fails:\n{done.stdout}{done.stderr}")
    return next(path for path in into.iterdir() if path.suffix in {".deb", ".gz"})


def check_archive(build, work):
    archive = make_package(build, "TGZ", work / "tgz")
    root = bare_root(work / "archive root")
    subprocess.run(["tar", "-xf", str(archive), "-C", str(root / "opt")], check=True)
    place = next((root / "opt").iterdir())
    program = f"/opt/{place.name}/bin/weft"
    check_program(root, program, archive.name)
    carried = [path.name for path in (place / "lib").iterdir() if re.match(r"lib(?!weft).*\.so", path.name)]
    if not any(name.startswith("libLLVM") for name in carried):
        sys.exit(f"{archive.name}: carries no LLVM, only {carried}")
    check_licences(place, archive.name, "libeigen3-dev", "libfmt9", "libgomp1", "common/GPL-3")
    check_consumer(place, work / "archive consumer", archive.name)
    (place / "lib").rename(place / "gone")
    if in_root(root, program, "--version").returncode == 0:
        sys.exit("the program runs without the libraries of its archive: this root is not bare")
    print(f"{archive.name}: {archive.stat().st_size // 1000000} MB with {len(carried)} libraries, works in a bare root")


def check_deb(build, work):
    if not shutil.which("dpkg-shlibdeps"):
        skip("the archive is right; the .deb wants dpkg-shlibdeps, of the package dpkg-dev, which is not installed")
    package = make_package(build, "DEB", work / "deb")
    depends = output_of("dpkg-deb", "-f", str(package), "Depends")
    root = bare_root(work / "deb root")
    subprocess.run(["dpkg-deb", "-x", str(package), str(root)], check=True)
    if in_root(root, "/usr/bin/weft", "--version").returncode == 0:
        sys.exit("the program runs without the packages that its package names: this root is not bare")
    for name in closure_of(packages_of(depends)):
        copy_libraries(root, name)
    check_program(root, "/usr/bin/weft", package.name)
    check_licences(root / "usr", package.name, "libeigen3-dev")
    check_consumer(root / "usr", work / "deb consumer", package.name)
    print(f"{package.name}: {package.stat().st_size // 1000000} MB, works in a bare root beside {depends.strip()}")


def main():
    build = Path(sys.argv[1]).resolve()
    for tool in ["dpkg-query", "dpkg-deb", "cpack", "unshare"]:
        if not shutil.which(tool):
            skip(f"a bare root is made of Debian's packages with unshare, and this machine has no {tool}")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        probe = in_root(bare_root(work / "probe"), "/absent")  # 127: all worked but for the command
        if probe.returncode != 127:
            skip(f"this user may not make a root folder: {probe.stderr.strip()}")
        check_archive(build, work)
        check_deb(build, work)


if __name__ == "__main__":
    main()
