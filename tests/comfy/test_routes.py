"""The read-only routes /h3video/grid and /h3video/select on the real server."""

import json
import urllib.parse

import pytest


def ask(comfy, path, **query):
    """(status, answer, headers) of a route."""
    status, body, headers = comfy.get(f"/h3video/{path}?{urllib.parse.urlencode(query)}")
    return status, json.loads(body), headers


def test_grid(comfy):
    status, grid, headers = ask(comfy, "grid", width=1024, height=576, hex_res=4, overlap=32,
                                focus_x=0.25, focus_y=0.5)  # fmt: skip
    assert status == 200 and headers["cache-control"] == "no-cache"
    assert (grid["width"], grid["height"], grid["res"]) == (1024, 576, 4)
    assert grid["count"] == len(grid["cells"]) and grid["edge"] == pytest.approx(61, abs=1)
    focus = grid["cells"][grid["focus"]]
    assert focus["ring"] == 0 and abs(focus["x"] - 256) < 61 and abs(focus["y"] - 288) < 61
    for i, cell in enumerate(grid["cells"]):
        assert len(cell["corners"]) == 6 and len(cell["id"]) == 15
        assert all(i in grid["cells"][n]["neighbours"] for n in cell["neighbours"])
        rings = [grid["cells"][n]["ring"] for n in cell["neighbours"]]
        assert all(abs(r - cell["ring"]) <= 1 for r in rings)


def test_grid_without_parameters_is_the_node_with_its_defaults(comfy):
    given = ask(comfy, "grid", width=1024, height=576, hex_res=4, overlap=32, span=0.075,
                rotation=0, projection="face", focus_x=0.5, focus_y=0.5, falloff=0.75)  # fmt: skip
    assert ask(comfy, "grid")[1] == given[1]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"hex_res": 16}, "hex_res 16 is out of range 0..15"),
        ({"hex_res": "coarse"}, "hex_res"),
        ({"width": 0}, "width 0"),
        ({"width": "nan"}, "width"),
        ({"width": "1e400"}, "width"),
        ({"width": 100.5}, "whole number"),
        ({"height": -5}, "height -5"),
        ({"span": 2}, "span 2"),
        ({"focus_x": 1.5}, "focus_x 1.5 is out of range 0..1"),
        ({"overlap": -1}, "overlap -1"),
        ({"projection": "mercator"}, "mercator"),
        ({"width": 4096, "height": 4096, "hex_res": 9}, "4000"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_bad_grids(comfy, query, said):
    status, answer, _ = ask(comfy, "grid", **query)
    assert status == 400 and said in answer["error"]


def test_select(comfy):
    grid = ask(comfy, "grid", width=512, height=512, hex_res=4)[1]
    status, answer, headers = ask(comfy, "select", width=512, height=512, hex_res=4,
                                  select="ring<=1 and not index 0")  # fmt: skip
    assert status == 200 and headers["cache-control"] == "no-cache"
    near = [i for i, c in enumerate(grid["cells"]) if c["ring"] <= 1 and i != 0]
    assert answer["chosen"] == near


@pytest.mark.parametrize("select", ["rings<=2", "ring<=", "(all", "8475", "x<50%%", "", "not"])
def test_bad_selections(comfy, select):
    status, answer, _ = ask(comfy, "select", width=512, height=512, hex_res=4, select=select)
    assert status == 400 and "select" in answer["error"]


def test_long_selections_are_refused(comfy):
    """Under aiohttp's limit for a request line the route answers itself, over it aiohttp does."""
    status, answer, _ = ask(comfy, "select", select=" and ".join(["all"] * 600))
    assert status == 200 and answer["chosen"]
    assert comfy.get("/h3video/select?select=" + "a" * 60_000)[0] in (400, 414)


def test_routes_cannot_be_written_to(comfy):
    import urllib.error
    import urllib.request

    request = urllib.request.Request(f"{comfy.url}/h3video/grid", data=b"{}", method="POST")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    assert caught.value.code in (404, 405)
