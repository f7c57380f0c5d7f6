"""What a tiling's settings refuse before anything is loaded."""

import pytest

from h3video.errors import UsageError
from h3video.tiling.settings import HexSettings


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (dict(shape="round"), "shape 'round' is unknown; use hex, rect, none"),
        (dict(hex_res=16), "hex_res 16 is out of range 0..15"),
        (dict(budget="lots"), "budget 'lots' is not understood"),
        (dict(window=-1), "window -1 is negative"),
        (dict(window=8, window_overlap=5), "use at most 4"),
        (dict(start_step=4, end_step=4), "steps 4 to 4 are none"),
        (dict(order="tile-major", exchange="block"), "use block-major"),
        (dict(positions="local"), "Use tiles=crop with it"),
        (dict(accumulate="disk"), "accumulate 'disk' is unknown; use device, cpu"),
    ],
)
def test_bad_values_name_value_and_remedy(values, message):
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        HexSettings(**values)


def test_what_is_right():
    assert HexSettings().turn == 0.0
    assert HexSettings(rotation=30.0).turn == 30.0
    assert HexSettings(tiles="crop", positions="local").positions == "local"
