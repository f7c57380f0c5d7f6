"""Tables of the embedded model's clips and of the targets, on figures whose verdict is known."""

import pytest

pytest.importorskip("scipy")

from benchmarks.quality import nano_tables
from benchmarks.quality.nano_variants import PREVIOUS
from benchmarks.quality.targets import fewer, targets_table

SEEDS = range(20)


def clips(variant, flip=1.0, *, group="main", tokens=1.5, subjects=1, pulse=0.1, path="upscaled"):
    """Rows of 20 seeds whose measures go up with the seed alike."""
    return [
        {"canvas": "4x: 640x384", "path": path, "variant": variant, "group": group, "seed": s,
         "tiles": 5, "share": 0.35, "tokens": tokens, "seconds": 2.0, "flip": flip * (s + 1),
         "total": 1.0, "axis": 1.0, "line": 0.5, "flicker": 1.0, "drift": 1.0,
         "pulse": pulse, "step": 1.0 + pulse, "subjects": subjects if s < 2 else 1,
         "colour": s != 0, "ground": True, "direction": True}
        for s in SEEDS
    ]  # fmt: skip


def verdicts(rows):
    text = targets_table({"fields": None, "counted": None, "nano": {"rows": rows}})
    lines = [line.strip("| ").split(" | ") for line in text.splitlines()[2:]]
    return {target: (found, verdict) for target, found, verdict in lines}


def verdict(rows, words):
    (found,) = [v for k, v in verdicts(rows).items() if words in k]
    return found


def test_lower_flip_of_hexagons_is_met_and_equal_is_not():
    rects = clips("rectangles")
    assert verdict(clips("hexagons", 0.9) + rects, "FLIP")[1] == "met"
    assert verdict(clips("hexagons", 0.9) + rects, "FLIP")[0] == "0.900 (0.900 to 0.900)"
    assert verdict(clips("hexagons", 1.0) + rects, "FLIP")[1] == "**missed**"
    assert verdict(clips("hexagons", 1.1) + rects, "FLIP")[1] == "**missed**"


def test_one_double_in_20_is_met_and_two_are_not():
    one = clips("hexagons")
    one[0]["subjects"] = 2
    assert verdict(one, "doubled") == ("1 of 20", "met")
    assert verdict(clips("hexagons", subjects=3), "doubled") == ("2 of 20", "**missed**")
    assert not [k for k in verdicts(clips("hexagons", path="noise")) if "doubled" in k]


def test_the_largest_pulse_counts():
    rows = clips("hexagons") + clips("untiled", 0, pulse=0.0)
    assert verdict(rows, "difference from")[1] == "met"
    assert verdict(rows, "beyond") == ("0.100 (0.100 to 0.100), largest 0.10, 0 of 20 not", "met")
    rows[7]["pulse"] = 0.51
    assert verdict(rows, "difference from")[1] == "**missed**"
    assert "largest 0.51, 1 of 20 not" in verdict(rows, "difference from")[0]
    assert verdict(rows, "beyond")[1] == "met"
    rows[7]["step"] = 1.6
    assert verdict(rows, "beyond")[1] == "**missed**"


def test_a_moving_grid_counts_where_it_is_cheap():
    base = clips(PREVIOUS, group="methods", tokens=1.7)
    words = "moves each step"
    cheap = clips("halo 8", 1.0, group="methods", tokens=1.09)
    assert verdict(base + cheap, words) == (
        "1.00 (1.00 to 1.00) at x1.09 instead of x1.70", "met"
    )  # fmt: skip
    assert verdict(base + clips("hexagons", 0.8, tokens=1.3), words)[1] == "**missed**"
    worse = clips("halo 8", 1.2, group="methods", tokens=1.05)
    assert verdict(base + worse, words)[1] == "**missed**"
    assert not [k for k in verdicts(cheap) if words in k]


def test_savings_are_counted_case_by_case():
    def plan(way, tokens, sizes=3, width=832):
        return {"family": "wan", "width": width, "height": 480, "radius": 64.0, "limit": 0.25,
                "way": way, "sizes": sizes, "tokens": tokens}  # fmt: skip

    plans = [plan("hexagons", 90), plan("crops", 100), plan("hexagons", 95, 1),
             plan("crops", 100, 1), plan("hexagons", 50, width=1280)]  # fmt: skip
    assert fewer(plans, "crops") == pytest.approx([0.1])
    assert fewer(plans, "crops", 1) == pytest.approx([0.05])


def test_tables_of_clips():
    rows = clips("untiled", 0) + clips("hexagons", 0.9, subjects=2) + clips("rectangles")
    rows += clips("halo 32", 0.45, group="methods", tokens=1.2)
    data = {"rows": rows}
    main = nano_tables.main_table(data).splitlines()
    assert len(main) == 2 + 3
    assert main[3].split(" | ")[:3] == ["| 4x: 640x384, upscaled, hexagons", "5 of 35%", "x1.50"]
    assert main[3].split(" | ")[8:11] == ["2 of 20", "0 of 20", "95%"]
    pair = nano_tables.ratio_table(data).splitlines()
    assert len(pair) == 3
    assert "| 0.900 (0.900 to 0.900) | 20 of 20 |" in pair[2]
    options = nano_tables.methods_table(data).splitlines()
    assert [line.split(" | ")[0][-7:] for line in options[2:]] == ["default", "halo 32"]
    assert "| x1.20 | 4.7250 | 0.500 (0.500 to 0.500) |" in options[3]
