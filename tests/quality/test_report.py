"""The page's tables are those of the figures, and the page stays as it is around them."""

import json

import pytest

pytest.importorskip("scipy")

from benchmarks.quality import report, store
from benchmarks.quality.tilings import HEXAGONS, RECTANGLES


def rows(**more):
    keys = ("total", "axis", "line", "chance", "angle", "junction", "flip", "drift", "dip")
    return [
        {"tiling": t, "seed": s, "side": 128, "overlap": o, "field": "texture",
         **dict.fromkeys(keys, (1.0 if t == RECTANGLES else 0.5) * (s + 1)), "chance": 0.0, **more}
        for o in (8, 32) for s in range(4) for t in (RECTANGLES, HEXAGONS)
    ]  # fmt: skip


def test_a_table_is_made_and_the_rest_stays(tmp_path):
    store.save("fields", {"turns": rows(), "photographs": rows(), "nano": []}, tmp_path)
    text = "before\n<!-- lab:seams -->\nold\n<!-- /lab:seams -->\nafter\n"
    made = report.filled(text, tmp_path)
    assert made.startswith("before\n<!-- lab:seams -->\n| hexagons / rectangles |")
    assert made.endswith("\n<!-- /lab:seams -->\nafter\n")
    assert made.count("0.500 (0.500 to 0.500)") == 10
    assert "old" not in made
    assert report.filled(made, tmp_path) == made
    figures = {
        "fields": "| 2.5000 | 1.2500 | 0.500", "dip": "| 2.50 (1.50 to 3.50) |",
        "turns": "| native (19.1 degrees) | 0.500", "about": "fields: 4 seeds",
    }  # fmt: skip
    for name, figure in figures.items():
        assert figure in report.filled(f"<!-- lab:{name} -->\n<!-- /lab:{name} -->", tmp_path)


def test_what_was_not_run_says_so_and_unknown_tables_are_refused(tmp_path):
    made = report.filled("<!-- lab:nano -->\n<!-- /lab:nano -->", tmp_path)
    assert "Not run yet: `python -m benchmarks.quality nano`" in made
    with pytest.raises(ValueError, match="no table 'nothing'"):
        report.filled("<!-- lab:nothing -->\n<!-- /lab:nothing -->", tmp_path)


def test_the_page_shows_the_committed_figures():
    text = report.PAGE.read_text()
    assert report.filled(text) == text, "run `python -m benchmarks.quality report`"
    for name in report.TABLES:
        assert f"<!-- lab:{name} -->" in text


def test_results_are_written_whole(tmp_path):
    path = store.save("x", {"rows": [{"a": 1}, {"a": 2}]}, tmp_path)
    assert json.loads(path.read_text())["rows"] == [{"a": 1}, {"a": 2}]
    assert store.load("x", tmp_path)["about"]["cores"] >= 1
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]
    assert store.load("y", tmp_path) is None


@pytest.mark.parametrize("wrong", [["sums"], ["fields", "--seeds", "1"], ["--nano-seeds", "0"],
                                   ["--workers", "0"]])  # fmt: skip
def test_wrong_arguments_end_before_any_work(wrong, capsys):
    from benchmarks.quality.__main__ import main

    with pytest.raises(SystemExit) as end:
        main(wrong)
    assert end.value.code == 2
    assert wrong[-1].lstrip("-") in capsys.readouterr().err
