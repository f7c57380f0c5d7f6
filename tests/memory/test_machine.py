"""Machines: named, stated, probed; what of them a program may use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h3video.errors import UsageError
from h3video.memory import machines, probe
from h3video.memory.machine import find_machine
from h3video.memory.units import Range, gib, parse_memory, parse_size

GIB = 2**30

SEEN = {  # GB of RAM -> recommendedMaxWorkingSetSize values that users' logs show, in bytes
    16: [10.67 * GIB, 11.84e9], 24: [17.76 * GIB], 32: [21.33 * GIB], 36: [28_991.03e6],
    64: [48.0 * GIB, 55_662.79e6], 96: [72 * GIB], 128: [107.52 * GIB],
}  # fmt: skip


@pytest.mark.parametrize("ram", SEEN)
def test_working_set_holds_what_was_seen(ram):
    found = machines.working_set(ram * GIB)
    for value in SEEN[ram]:
        assert 0.995 * found.low <= value <= 1.005 * found.high


@given(st.integers(8, 512), st.integers(8, 512))
def test_working_set_grows_with_ram(a, b):
    small, large = sorted((a, b))
    x, y = machines.working_set(small * GIB), machines.working_set(large * GIB)
    assert x.low <= y.low and x.high <= y.high and x.high < small * GIB


@pytest.mark.parametrize("text", ["m1max-64gb", "M1 Max 64GB", "m1max_64gb", "m1max64gb"])
def test_macs_by_name(text):
    m = find_machine(text)
    assert (m.gpu, m.ram, m.name, m.unified) == ("mps", 64 * GIB, "m1max-64gb", True)
    assert m.metal == Range(48 * GIB, int(64 * GIB * 0.81))


@pytest.mark.parametrize("text", ["rtx4090", "RTX 4090", "NVIDIA GeForce RTX 4090", "rtx-4090",
                                  "rtx4090-24gb"])  # fmt: skip
def test_cards_by_name(text):
    m = find_machine(text)
    assert (m.gpu, m.name, m.fp8, m.nvfp4, m.assumed) == ("cuda", "rtx4090", True, False, True)
    assert not find_machine(text, ram="64GB").assumed


def test_every_name_of_the_table_is_found():
    for name in machines.names():
        assert find_machine(name).name == name
        assert find_machine(name).device_limit.low > 3 * GIB


@pytest.mark.parametrize(
    "kind, message",
    [
        ({"name": "m1max-48gb"}, "m1max is sold as m1max-32gb, m1max-64gb"),
        ({"name": "m1max"}, "needs its memory; use"), ({"name": "m9max-64gb"}, "no chip m9max"),
        ({"name": "rtx4909"}, "is unknown; near it: .*rtx4090"),
        ({"name": "m1max-64gb", "vram": "16GB"}, "no graphics card"),
        ({"gpu": "mps"}, "needs the machine's memory"), ({"gpu": "cuda"}, "add for example --vram"),
        ({"ram": "64"}, "write a unit"), ({"ram": "64GB", "gpu": "mps", "vram": "8GB"}, "--vram"),
        ({"gpu": "tpu"}, "use mps, cuda"),
    ],
)  # fmt: skip
def test_refusals(kind, message):
    with pytest.raises(UsageError, match=message):
        find_machine(**kind)


def test_stated_machines():
    m = find_machine(ram="64GB", gpu="mps")
    assert m.metal == machines.working_set(64 * GIB) and m.source == "stated"
    assert find_machine(ram="32GB", vram="16GB").gpu == "cuda"
    assert find_machine(ram="16GB", gpu="cpu").device_limit == find_machine(
        ram="16GB", gpu="cpu").ram_limit  # fmt: skip


def test_units():
    assert parse_size("1.5 GiB") == 3 * GIB // 2 and parse_size("16GB") == 16 * 10**9
    assert parse_memory("16GB", "ram") == 16 * GIB and parse_memory("16GiB", "ram") == 16 * GIB
    assert (gib(3 * GIB), gib(2**20), gib(2048)) == ("3.0 GiB", "1 MiB", "2 KiB")
    for bad in ("", "GB", "-1GB", "nanGB", "1XB", "0GB"):
        with pytest.raises(UsageError):
            parse_size(bad)


MEMINFO = """MemTotal:       65000000 kB
MemFree:         1000000 kB
MemAvailable:   25000000 kB
SwapTotal:       8000000 kB
SwapFree:        2000000 kB
Zswapped:         500000 kB
"""


def test_linux(tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text(MEMINFO)
    monkeypatch.setattr(probe, "PROC", tmp_path)
    monkeypatch.setattr(probe, "DRM", tmp_path)
    monkeypatch.setattr(probe, "_nvml", lambda: None)
    monkeypatch.setattr(probe, "_cgroup_limit", lambda: None)
    m = probe._with_graphics(probe._linux())
    assert (m.ram, m.in_use) == (65_000_000 * 1024, 40_000_000 * 1024)
    assert (m.swap, m.compressed) == (6_000_000 * 1024, 500_000 * 1024)
    assert m.ram_limit == Range.exactly(25_000_000 * 1024)
    monkeypatch.setattr(probe, "_cgroup_limit", lambda: 4 * GIB)
    assert probe._linux().ram == 4 * GIB  # a container's limit rules
    card = tmp_path / "card0" / "device"
    card.mkdir(parents=True)
    (card / "mem_info_vram_total").write_text(str(16 * GIB))
    assert probe._with_graphics(m).gpu == "rocm"


VM_STAT = """Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                               10000.
Pages active:                            500000.
Pages wired down:                        200000.
"Translation faults":                 123456789.
Anonymous pages:                        1000000.
Pages stored in compressor:             2000000.
Pages occupied by compressor:            700000.
"""


def test_macos_figures():
    taken, compressed = probe.vm_stat(VM_STAT)
    assert taken == (1_000_000 + 200_000 + 700_000) * 16384
    assert compressed == 2_000_000 * 16384
    assert probe.vm_stat("nonsense") == (None, None)
    raw = (8 * GIB).to_bytes(8, "little") + (3 * GIB).to_bytes(8, "little")
    assert probe._swap(raw + (5 * GIB).to_bytes(8, "little")) == 5 * GIB
    assert probe._swap(None) is None


def test_this_machine():
    m = find_machine()
    assert m.source == "probed" and GIB < m.ram < 2**50 and m.ram_limit.high <= m.ram
    assert m.text() and m.to_json()["source"] == "probed"


def test_pressure_is_said():
    import dataclasses

    from h3video.memory.ledger import plan
    from h3video.render.forecast import make_ask, model_spec

    m = dataclasses.replace(find_machine("m1max-64gb"), swap=28 * GIB, compressed=33 * GIB)
    ledger = plan(make_ask(model_spec("nano"), None, m))
    assert any("28.0 GiB are swapped" in w for w in ledger.warnings)
    assert any("33.0 GiB of memory are compressed" in w for w in ledger.warnings)
