"""Measuring phases."""

import pytest

from h3video.memory import PhaseMeter, format_bytes


def test_phases_are_kept_even_when_they_fail():
    meter = PhaseMeter(device_peak=lambda: 7)
    with meter.phase("a"):
        block = bytearray(30_000_000)
    del block
    with pytest.raises(KeyboardInterrupt), meter.phase("b"):
        raise KeyboardInterrupt
    assert [p.name for p in meter.phases] == ["a", "b"]
    assert all(p.seconds >= 0 and p.device_peak == 7 for p in meter.phases)
    assert meter.phases[0].host_peak is None or meter.phases[0].host_peak > 30_000_000


@pytest.mark.parametrize(
    ("count", "text"),
    [(None, "-"), (12, "12 B"), (2048, "2.0 KiB"), (1.5 * 2**20, "1.5 MiB"), (2**30, "1.00 GiB")],
)
def test_bytes_for_people(count, text):
    assert format_bytes(count) == text
