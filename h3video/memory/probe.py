"""The present machine, asked of the system itself: /proc, sysctl, NVML, Metal.

Standard library only, and quick: no process is started but `vm_stat` on a Mac.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import platform
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from .machine import Machine, mac
from .units import GIB, MIB, Range

PROC = Path("/proc")
DRM = Path("/sys/class/drm")


def probe() -> Machine:
    """This machine. What the system does not tell is None, and tables fill in."""
    if sys.platform == "darwin":
        return _macos()
    if sys.platform == "win32":
        return _with_graphics(_windows())
    return _with_graphics(_linux())


def meminfo(text: str) -> dict[str, int]:
    """Bytes by name of Linux's /proc/meminfo."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"(\w+(?:\(\w+\))?):\s+(\d+) kB", line)
        if match:
            found[match.group(1)] = int(match.group(2)) * 1024
    return found


def _linux() -> Machine:
    try:
        info = meminfo((PROC / "meminfo").read_text())
    except OSError:
        info = {}
    ram = info.get("MemTotal") or _pages()
    free = info.get("MemAvailable", ram)
    limit = _cgroup_limit()
    if limit is not None and limit < ram:
        ram, free = limit, min(free, limit)
    zswap = info.get("Zswapped", 0)
    return Machine(
        platform.node() or "this machine", "cpu", ram, in_use=max(0, ram - free),
        swap=info.get("SwapTotal", 0) - info.get("SwapFree", 0), compressed=zswap, source="probed",
    )  # fmt: skip


def _cgroup_limit() -> int | None:
    """A container's memory limit in bytes, None without one."""
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(name).read_text().strip()
        except OSError:
            continue
        if text.isdigit() and int(text) < 2**60:
            return int(text)
    return None


def _pages() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 16 * GIB


def _with_graphics(machine: Machine) -> Machine:
    card = _nvml() or _amdgpu()
    if card is None:
        return machine
    name, gpu, size, capability = card
    return replace(
        machine, name=name, gpu=gpu, vram=size, fp8=capability >= 89, nvfp4=capability >= 100,
        bf16=capability >= 80 or gpu == "rocm", flash=capability >= 80 or gpu == "rocm",
    )  # fmt: skip


def _nvml() -> tuple[str, str, int, int] | None:
    """(name, cuda, bytes, compute capability x 10) of the largest NVIDIA card."""
    try:
        lib = ctypes.CDLL("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
    except OSError:
        return None

    class Memory(ctypes.Structure):
        _fields_ = [(n, ctypes.c_ulonglong) for n in ("total", "free", "used")]

    if lib.nvmlInit_v2():
        return None
    best = None
    try:
        count = ctypes.c_uint()
        lib.nvmlDeviceGetCount_v2(ctypes.byref(count))
        for index in range(count.value):
            handle, memory = ctypes.c_void_p(), Memory()
            name = ctypes.create_string_buffer(96)
            major, minor = ctypes.c_int(), ctypes.c_int()
            if lib.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)):
                continue
            if lib.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)):
                continue
            lib.nvmlDeviceGetName(handle, name, 96)
            lib.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor))
            found = (name.value.decode(), "cuda", memory.total, major.value * 10 + minor.value)
            best = found if best is None or found[2] > best[2] else best
    finally:
        lib.nvmlShutdown()
    return best


def _amdgpu() -> tuple[str, str, int, int] | None:
    """(name, rocm, bytes, 0) of the largest AMD card that the kernel driver shows."""
    sizes = []
    for path in DRM.glob("card*/device/mem_info_vram_total"):
        try:
            sizes.append(int(path.read_text()))
        except (OSError, ValueError):
            continue
    size = max(sizes, default=0)
    return ("AMD card", "rocm", size, 0) if size >= 2 * GIB else None  # less is an APU's window


def _windows() -> Machine:
    class Status(ctypes.Structure):
        _fields_ = [
            ("length", ctypes.c_ulong), ("load", ctypes.c_ulong),
            *[(n, ctypes.c_ulonglong) for n in ("total", "free", "page", "page_free", "virtual",
                                                 "virtual_free", "extended")],
        ]  # fmt: skip

    status = Status()
    status.length = ctypes.sizeof(Status)
    ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined]
    return Machine(
        platform.node() or "this machine", "cpu", status.total, system="windows",
        in_use=status.total - status.free, source="probed",
    )  # fmt: skip


def _macos() -> Machine:
    ram = _sysctl_int("hw.memsize") or _pages()
    brand = (_sysctl("machdep.cpu.brand_string") or b"Mac").decode("utf-8", "replace").strip("\0 ")
    if platform.machine() != "arm64":
        return Machine(brand, "cpu", ram, system="macos", source="probed")
    base = mac(brand, ram)
    wired = _sysctl_int("iogpu.wired_limit_mb") or 0
    queried = metal_working_set()
    metal = Range.exactly(queried) if queried else base.metal
    if wired and not queried:
        metal = Range.exactly(min(wired * MIB, ram))
    swap = _swap(_sysctl("vm.swapusage"))
    taken, compressed = _vm_stat()
    return replace(
        base, metal=metal, in_use=taken, swap=swap, compressed=compressed,
        wired_limit=wired * MIB or None, source="probed",
    )  # fmt: skip


def metal_working_set() -> int | None:
    """recommendedMaxWorkingSetSize of the default Metal device in bytes; None if it cannot tell."""
    try:
        metal = ctypes.CDLL("/System/Library/Frameworks/Metal.framework/Metal")
        objc = ctypes.CDLL(ctypes.util.find_library("objc") or "libobjc.dylib")
        metal.MTLCreateSystemDefaultDevice.restype = ctypes.c_void_p
        device = metal.MTLCreateSystemDefaultDevice()
        if not device:
            return None
        objc.sel_registerName.restype = ctypes.c_void_p
        objc.sel_registerName.argtypes = [ctypes.c_char_p]
        send = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)(
            ctypes.cast(objc.objc_msgSend, ctypes.c_void_p).value or 0
        )
        return int(send(device, objc.sel_registerName(b"recommendedMaxWorkingSetSize"))) or None
    except (OSError, AttributeError):
        return None


def _sysctl(name: str) -> bytes | None:
    try:
        libc = ctypes.CDLL(None)
        size = ctypes.c_size_t()
        if libc.sysctlbyname(name.encode(), None, ctypes.byref(size), None, 0):
            return None
        buffer = ctypes.create_string_buffer(size.value)
        if libc.sysctlbyname(name.encode(), buffer, ctypes.byref(size), None, 0):
            return None
        return buffer.raw[: size.value]
    except (OSError, AttributeError, TypeError):
        return None


def _sysctl_int(name: str) -> int | None:
    raw = _sysctl(name)
    return int.from_bytes(raw, sys.byteorder) if raw and len(raw) in (4, 8) else None


def _swap(raw: bytes | None) -> int | None:
    """Used bytes of macOS's struct xsw_usage (total, available, used, ...)."""
    return None if raw is None or len(raw) < 24 else int.from_bytes(raw[16:24], sys.byteorder)


def _vm_stat() -> tuple[int | None, int | None]:
    try:
        text = subprocess.run(
            ["/usr/bin/vm_stat"], capture_output=True, text=True, timeout=2, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None, None
    return vm_stat(text)


def vm_stat(text: str) -> tuple[int | None, int | None]:
    """(bytes in use that cannot simply be dropped, bytes before compression) of `vm_stat`."""
    page = re.search(r"page size of (\d+) bytes", text)
    counts = {k.strip('"'): int(v) for k, v in re.findall(r"^(.+?):\s+(\d+)\.", text, re.MULTILINE)}
    if page is None or not counts:
        return None, None
    size = int(page.group(1))
    used = ("Anonymous pages", "Pages wired down", "Pages occupied by compressor")
    taken = sum(counts.get(name, 0) for name in used) * size
    return taken, counts.get("Pages stored in compressor", 0) * size
