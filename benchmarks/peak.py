"""The most memory that a piece of work holds beyond what was held before it.

On a CPU that is the peak of the resident set (VmHWM, set back before the work by the kernel's
clear_refs), on a GPU the peak of torch's allocations there.
"""

import re
from collections.abc import Callable
from pathlib import Path

import torch

_SELF = Path("/proc/self")
_RESET_PEAK = "5"


def peak_bytes(work: Callable[[], object]) -> int:
    """Do the work and return the bytes that it held at most."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        return torch.cuda.max_memory_allocated() - before
    (_SELF / "clear_refs").write_text(_RESET_PEAK)
    before = _resident("VmRSS")
    work()
    return _resident("VmHWM") - before


def _resident(field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB$", (_SELF / "status").read_text(), re.MULTILINE)
    if found is None:
        raise OSError(f"/proc/self/status names no {field}")
    return 1024 * int(found[1])
