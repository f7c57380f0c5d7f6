"""Which nodes made a value, however they are numbered, and what differs."""

import copy

from h3video.nodes.chunk_graph import ancestors, difference

PROMPT = {
    "1": {"class_type": "Loader", "inputs": {"name": "wan.safetensors"}},
    "2": {"class_type": "Text", "inputs": {"text": "a fox", "clip": ["1", 1]},
          "_meta": {"title": "Prompt"}},
    "3": {"class_type": "Plan", "inputs": {"frames": 33}},
    "4": {"class_type": "Sampler", "inputs": {"model": ["1", 0], "positive": ["2", 0], "seed": 7,
                                              "size": [64, 32], "length": ["3", 2]}},
    "5": {"class_type": "Save", "inputs": {"value": ["4", 0]}},
    "9": {"class_type": "Other", "inputs": {"images": ["4", 0]}},
}  # fmt: skip


def made(prompt=PROMPT):
    return ancestors(prompt, prompt["5"]["inputs"]["value"])


def test_only_what_comes_before_counts():
    assert [n["class"] for n in made()] == ["Sampler", "Plan", "Loader", "Text"]
    other = copy.deepcopy(PROMPT)
    other["9"]["inputs"]["more"] = 1
    other["5"]["inputs"]["folder"] = "x"
    assert made(other) == made()


def test_other_node_ids_are_the_same_graph():
    new = {}
    for node, entry in PROMPT.items():
        entry = copy.deepcopy(entry)
        for name, value in entry["inputs"].items():
            if isinstance(value, list) and isinstance(value[0], str):
                entry["inputs"][name] = [f"10:{value[0]}", value[1]]
        new[f"10:{node}"] = entry
    assert ancestors(new, new["10:5"]["inputs"]["value"]) == made()


def changed(edit):
    other = copy.deepcopy(PROMPT)
    edit(other)
    return difference(made(), made(other))


def test_every_change_is_named():
    assert changed(lambda p: p["2"]["inputs"].update(text="a dog")) == (
        'text of Prompt was "a fox", is "a dog"'
    )
    assert changed(lambda p: p["4"]["inputs"].update(seed=8)) == "seed of Sampler was 7, is 8"
    assert "size of Sampler" in changed(lambda p: p["4"]["inputs"].update(size=[64, 64]))
    assert "Loader was where Other is" in changed(lambda p: p["1"].update(class_type="Other"))
    assert "denoise of Sampler was null, is 0.5" in changed(
        lambda p: p["4"]["inputs"].update(denoise=0.5)
    )
    assert "a link to another node" in changed(lambda p: p["4"]["inputs"].update(seed=["3", 0]))
    assert changed(lambda p: p["5"]["inputs"].update(value=["4", 1])) == (
        "another output of Sampler is connected"
    )
    assert changed(lambda p: p["2"].update(_meta={"title": "renamed"})) == ""


def test_where_a_chunk_is_kept_does_not_count():
    prompt = {
        "1": {"class_type": "H3ChunkPlan", "inputs": {"frames": 9, "folder": "a", "index": -1}},
        "2": {"class_type": "Sampler", "inputs": {"length": ["1", 2]}},
    }
    other = copy.deepcopy(prompt)
    other["1"]["inputs"].update(folder="b", index=2)
    assert ancestors(prompt, ["2", 0]) == ancestors(other, ["2", 0])
    other["1"]["inputs"]["frames"] = 10
    assert ancestors(prompt, ["2", 0]) != ancestors(other, ["2", 0])


def test_no_link_and_loops():
    assert ancestors(PROMPT, 5) == [] == ancestors(PROMPT, ["77", 0])
    loop = {"1": {"class_type": "A", "inputs": {"x": ["2", 0]}},
            "2": {"class_type": "B", "inputs": {"x": ["1", 0]}}}  # fmt: skip
    assert [n["class"] for n in ancestors(loop, ["1", 0])] == ["A", "B"]
