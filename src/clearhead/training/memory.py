"""How much memory there is and how much is taken, as far as the system tells. Bytes; None where it does not."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import torch

if sys.platform != "win32":
    import resource

GROUP = Path("/sys/fs/cgroup")
"""Where Linux says what this container may take."""


def peak_memory(device: torch.device) -> int | None:
    """The most that was held at any time until now.

    On CUDA all tensors on `device`, `torch.cuda.max_memory_allocated`. On a CPU everything this process has in memory, the
    interpreter and PyTorch too: `ru_maxrss` of getrusage, which Linux gives in KiB and macOS in bytes.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if device.type != "cpu" or sys.platform == "win32":
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def present_memory(device: torch.device) -> int | None:
    """What is held now: of what `peak_memory` counts. Where a system tells the most alone, that."""
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device)
    if device.type == "cpu":
        with suppress(OSError, ValueError, IndexError):
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE")
    return peak_memory(device)


def available_memory(device: torch.device) -> int | None:
    """What can still be taken without pushing others out.

    On CUDA what is free on the device and what this process has reserved and does not use. On Linux `MemAvailable`, which counts
    what the system would give up of its caches, and no more than a container has left. Elsewhere the free pages that
    `os.sysconf` knows, or else all of the machine's memory.
    """
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + unused
    if device.type != "cpu":
        return None
    known = [each for each in (_meminfo(Path("/proc/meminfo")), _left_of_group(GROUP)) if each is not None]
    return min(known) if known else _pages()


def _meminfo(path: Path) -> int | None:
    """`MemAvailable`, which Linux gives in KiB."""
    with suppress(OSError, ValueError, IndexError):
        for line in path.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def _left_of_group(folder: Path) -> int | None:
    """What the container may still take: its limit less what it has, files that were read and can be read again not counted."""
    with suppress(OSError, ValueError, IndexError):
        # "max", no limit, is no number.
        limit = int((folder / "memory.max").read_text(encoding="ascii"))
        taken = int((folder / "memory.current").read_text(encoding="ascii"))
        statistics = dict(line.split() for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines())
        return max(0, limit - taken + int(statistics.get("inactive_file", 0)))
    return None


def _pages() -> int | None:
    for name in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):
        # Windows has no sysconf, macOS does not know the first name.
        with suppress(AttributeError, OSError, ValueError):
            return os.sysconf(name) * os.sysconf("SC_PAGE_SIZE")
    return None
