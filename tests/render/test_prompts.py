"""Prompts with times: which chunk gets which, and what is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h3video.errors import UsageError
from h3video.models import WAN
from h3video.render.prompts import TimedPrompt, assign, frame_of, read_prompts
from h3video.tiling.chunks import plan_chunks


@pytest.mark.parametrize(
    ("at", "frame"),
    [(0, 0), (1.5, 24), ("0:05", 80), ("1:02:03.5", 59576), ("80f", 80), ("7 frames", 7),
     ("2.5", 40), (90, 1440), ("00:00", 0)],
)  # fmt: skip
def test_times(at, frame):
    assert frame_of(at, 16) == frame


@pytest.mark.parametrize("at", ["soon", "-1", "1:2:3:4", True, None, [1], "5s", ""])
def test_no_times(at):
    with pytest.raises(UsageError, match=r"is no time; use 0:05, 5\.0 or 80f"):
        frame_of(at, 16)


YAML = """
- prompt: a red circle
  negative: blur
- at: 0:05
  prompt: a blue circle
- at: 1:10
  prompt: a green circle
  negative: ""
"""


def test_yaml_and_json_say_the_same(tmp_path):
    pytest.importorskip("yaml")
    (tmp_path / "p.yaml").write_text(YAML)
    found = read_prompts(tmp_path / "p.yaml", 16)
    assert found == [
        TimedPrompt(0, "a red circle", "blur"), TimedPrompt(80, "a blue circle"),
        TimedPrompt(1120, "a green circle", ""),
    ]  # fmt: skip
    told = [
        {"prompt": p.prompt, "at": f"{p.start}f"}
        | ({} if p.negative is None else {"negative": p.negative})
        for p in found
    ]
    (tmp_path / "p.json").write_text(json.dumps({"prompts": told}))
    assert read_prompts(tmp_path / "p.json", 16) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "holds no list of prompts"),
        ("{", "is no valid JSON"),
        ("3", "holds no list of prompts"),
        ('[{"at": 0}]', "entry 1 has no prompt"),
        ('[{"prompt": " "}]', "entry 1 has no prompt"),
        ('[{"prompt": "x", "seed": 1}]', "entry 1 has seed; known are"),
        ('[{"prompt": "x", "at": 1}]', "do not rise from 0"),
        ('["x", {"prompt": "y", "at": 5}, {"prompt": "z", "at": 4}]', "do not rise from 0"),
        ('["x", "y"]', "frame 0, frame 0 do not rise"),
        ('["x", {"prompt": "y", "at": "noon"}]', "entry 2: 'noon' is no time"),
    ],
)
def test_files_that_are_refused(tmp_path, text, message):
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(UsageError, match=message):
        read_prompts(tmp_path / "p.json", 16)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UsageError, match="cannot be read \\(No such file"):
        read_prompts(tmp_path / "none.yaml", 16)
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not UTF-8"):
        read_prompts(tmp_path / "b.yaml", 16)
    (tmp_path / "y.yaml").write_text("a: [")
    with pytest.raises(UsageError, match="is no valid YAML"):
        read_prompts(tmp_path / "y.yaml", 16)


def test_a_chunk_gets_what_holds_for_most_of_its_new_frames():
    plan = plan_chunks(41, WAN, 17, 4)  # new frames: 0-16, 17-28, 29-40
    found = assign(plan, [TimedPrompt(0, "a", "n"), TimedPrompt(22, "b")], "", 16)
    assert found == [("a", "n"), ("b", "n"), ("b", "n")]
    found = assign(plan, [TimedPrompt(0, "a"), TimedPrompt(24, "b", "m")], "given", 16)
    assert found == [("a", "given"), ("a", "given"), ("b", "m")]


def test_a_prompt_that_nobody_gets_is_an_error():
    plan = plan_chunks(41, WAN, 17, 4)
    with pytest.raises(UsageError, match=r"the prompt at 2.5 s \('late'\) is used by no chunk"):
        assign(plan, [TimedPrompt(0, "a"), TimedPrompt(40, "late")], "", 16)
    with pytest.raises(UsageError, match="is used by no chunk"):
        assign(plan, [TimedPrompt(0, "a"), TimedPrompt(400, "after the end")], "", 16)


@given(st.integers(20, 600), st.data())
def test_every_chunk_gets_a_prompt_that_holds_in_it(frames, data):
    plan = plan_chunks(frames, WAN, 33, 8)
    starts = sorted({0, *data.draw(st.lists(st.integers(1, frames - 1), max_size=4))})
    prompts = [TimedPrompt(s, str(s)) for s in starts]
    try:
        found = assign(plan, prompts, "", 16)
    except UsageError:
        return
    ends = [*starts[1:], frames]
    for chunk, (text, _) in zip(plan.chunks, found):
        i = starts.index(int(text))
        best = max(min(plan.frames, chunk.stop, e) - max(chunk.new, s)
                   for s, e in zip(starts, ends))  # fmt: skip
        assert min(plan.frames, chunk.stop, ends[i]) - max(chunk.new, starts[i]) == best > 0
    assert {t for t, _ in found} == {str(s) for s in starts}
