"""Files that lie: a clear UsageError, in bounded time and memory."""

import json
import os
import struct
import time
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from h3video.errors import UsageError
from h3video.memory.formats import FileHeader, read_folder, read_header
from h3video.memory.formats.safetensors import MAX_JSON, MAX_MARKS
from tests.memory.gguf_bytes import Writer, small
from tests.memory.test_formats import safetensors

LIMIT = 100_000_000
"""Bytes that a header may make us allocate (issue 5)."""

ONE = {"dtype": "F16", "shape": [4], "data_offsets": [0, 8]}


def refused(tmp_path, data, match, name="m.gguf"):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(UsageError, match=match) as e:
        read_header(path)
    assert len(str(e.value)) < 600 + 2 * len(str(tmp_path))


def gguf(tensors=0, pairs=0, version=3):
    return Writer(version).count(tensors).count(pairs)


def string_pairs(count, length):
    w = gguf(0, count)
    for i in range(count):
        w.text(f"{i:0{length}}").n("I", 0).n("B", 1)
    return w


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "is empty"),
        (b"GGU", "neither a GGUF nor"),
        (b"GGUF", "is cut off"),
        (b"GGUF" + struct.pack("<I", 4), "version 4; versions 1 to 3"),
        (b"GGUF" + struct.pack("<I", 0), "version 0"),
        (b"GGUF" + struct.pack(">I", 9), "version 9"),
        (gguf(2**64 - 1).out, "claims 18446744073709551615 tensors"),
        (gguf(0, 2**63).out, "metadata entries, more than"),
        (gguf(5).out, "is cut off"),
        (gguf(0, 1).count(2**62).out, "bytes long, more than"),
        (gguf(0, 1).count(1000).out, "is cut off"),
        (gguf(0, 1).text("k").n("I", 8).count(2**63).out, "is cut off"),
        (gguf(0, 1).text("k").n("I", 13).out, "type 13, and types go up to 12"),
        (gguf(0, 1).text("k").n("I", 9).n("I", 4).count(2**60).out, "is cut off"),
        (gguf(0, 1).text("k").n("I", 9).n("I", 8).count(2**60).out, "arrays of more than"),
        (gguf(0, 1).text("k").n("I", 9).n("I", 13).count(1).out, "array has the type 13"),
        (gguf(0, 2).pair("k", 0, "B", 1).pair("k", 0, "B", 1).out, "is there twice"),
        (gguf(0, 1).pair("general.alignment", 4, "I", 3).done(), "alignment is 3, not a power"),
        (gguf(0, 1).pair("general.alignment", 4, "I", 0).done(), "alignment is 0"),
        (gguf(0, 1).pair("general.alignment", 6, "f", 32.0).done(), "alignment is 32.0"),
        (gguf(0, 1).pair("general.alignment", 7, "?", True).done(), "alignment is True"),
        (gguf(1).tensor("a", (4,), 99, 0).done(64), "has the type 99, unknown"),
        (gguf(1).tensor("a", (32,), 31, 0).done(64), r"Q4_0_4_4 \(31\), which ggml has removed"),
        (gguf(1).tensor("a", (33,), 2, 0).done(64), "no multiples of 32"),
        (gguf(1).tensor("a", (), 12, 0).done(64), "no multiples of 256"),
        (gguf(1).tensor("a", (1,) * 9, 0, 0).done(64), "has 9 dimensions"),
        (gguf(1).tensor("a", (2**40,) * 4, 0, 0).done(64), "has the shape"),
        (gguf(1).tensor("a", (2**61,), 0, 0).done(64), "is cut off: tensor a"),
        (gguf(1).tensor("a", (4,), 0, 2**63).done(64), "is cut off: tensor a"),
        (gguf(1).tensor("a", (4,), 0, 8).done(64), "off the alignment"),
        (gguf(1).tensor("a", (17,), 0, 0).done(64), "cut off: tensor a ends"),
        (gguf(2).tensor("a", (9,), 0, 0).tensor("b", (1,), 0, 32).done(64), "b overlaps a"),
        (gguf(2).tensor("a", (1,), 0, 0).tensor("a", (1,), 0, 32).done(64), "the same name"),
        (gguf(1).text("n" * 1025).out, "name is 1025 bytes long"),
        (b"\x80\x02}q", "pickled PyTorch file, which can run code"),
        (b"PK\x03\x04" + bytes(90), "pickled PyTorch file"),
        (b"<html>" * 9, "neither a GGUF nor a safetensors"),
    ],
)  # fmt: skip
def test_gguf(tmp_path, data, match):
    refused(tmp_path, bytes(data), match)


def test_arrays_in_arrays_in_arrays(tmp_path):
    w = gguf(0, 1).text("k").n("I", 9)
    for _ in range(10):
        w.n("I", 9).count(1)
    refused(tmp_path, bytes(w.out), "deeper than 4")


def test_a_billion_nested_empties(tmp_path):
    """Small counts that multiply: the steps of all arrays are counted together."""
    w = gguf(0, 1).text("k").n("I", 9).n("I", 9).count(1000)
    for _ in range(1000):
        w.n("I", 8).count(2000)
        w.out += bytes(16_000)
    refused(tmp_path, bytes(w.out), "arrays of more than")


@pytest.mark.parametrize(
    ("head", "size", "match"),
    [
        (b"[]", 0, "neither a GGUF nor"),
        (b"{" * 900, 0, "JSON cannot be read"),
        (b'{"a":' * 100_000, 0, "nested too deeply|marks|cannot be read"),
        (b'{"a": {"dtype": "F16", "shape": [4], "data_offsets": [0, 8]}, "a": 1}', 8, "twice"),
        (b'{"a": {"dtype": "F16", "dtype": "F16"}}', 8, "twice"),
        (b'{"a": 1}', 0, "tensor a is no object"),
        (b'{"__metadata__": 3}', 0, "is not texts by name"),
        (b'{"__metadata__": {"a": 3}}', 0, "is not texts by name"),
        (b'{"a": {"dtype": "F15", "shape": [4], "data_offsets": [0, 8]}}', 8, "F15, unknown"),
        (b'{"a": {"dtype": ["F16"], "shape": [4], "data_offsets": [0, 8]}}', 8, "unknown"),
        (b'{"a": {"dtype": "F16", "shape": [-4], "data_offsets": [0, 8]}}', 8, "whole numbers"),
        (b'{"a": {"dtype": "F16", "shape": [4.0], "data_offsets": [0, 8]}}', 8, "whole numbers"),
        (b'{"a": {"dtype": "F16", "shape": [true], "data_offsets": [0, 2]}}', 2, "whole numbers"),
        (b'{"a": {"dtype": "F16", "shape": [4], "data_offsets": [0]}}', 8, "whole numbers"),
        (b'{"a": {"dtype": "F16", "shape": [4], "data_offsets": [0, 9]}}', 9, "of 8 bytes lies"),
        (b'{"a": {"dtype": "F16", "shape": [4], "data_offsets": [8, 0]}}', 8, "of 8 bytes lies"),
        (b'{"a": {"dtype": "F4", "shape": [3], "data_offsets": [0, 1]}}', 1, "no whole number"),
        (b'{"a": {"dtype": "F16", "shape": [4], "data_offsets": [0, 8]}}', 4, "is cut off"),
        (b'{"a": {"dtype": "F16", "shape": [4], "data_offsets": [0, 8]}}', 9, "9 follow"),
        (b'{"a": {"dtype": "F16", "shape": [4], "data_offsets": [4, 12]}}', 12, "12 follow"),
        (b'{"a": \xff}', 0, "cannot be read"),
        (b'{"a": ' + b"9" * 5000 + b"}", 0, "cannot be read"),
        (b'{"a": {"dtype": "F16", "shape": [' + b"9" * 18 + b'], "data_offsets": [0, 8]}}', 8,
         "of .* bytes lies"),
        (b'{"a": {"dtype": "I8", "shape": [4294967296, 4294967296, 2], "data_offsets": [0, 0]}}',
         0, "has the shape"),
    ],
)  # fmt: skip
def test_safetensors(tmp_path, head, size, match):
    data = struct.pack("<Q", len(head)) + head + bytes(size)
    refused(tmp_path, data, match, "m.safetensors")


def test_overlap(tmp_path):
    other = {**ONE, "data_offsets": [4, 12]}
    refused(tmp_path, safetensors({"a": ONE, "b": other}, 16), "b overlaps a")


def test_lengths(tmp_path):
    refused(tmp_path, struct.pack("<Q", 2**63) + b"{}", "claims 9223372036854775808 bytes")
    refused(tmp_path, struct.pack("<Q", MAX_JSON) + b"{}", "is cut off")
    refused(tmp_path, struct.pack("<Q", 2**20) + b"{" + b"[" * MAX_MARKS + b"," * 700_000, "marks")


def test_what_is_no_file(tmp_path):
    (tmp_path / "folder.gguf").mkdir()
    os.mkfifo(tmp_path / "pipe.gguf")
    os.symlink("loop.gguf", tmp_path / "loop.gguf")
    os.symlink("/dev/zero", tmp_path / "zero.gguf")
    os.symlink(tmp_path / "pipe.gguf", tmp_path / "to_pipe.gguf")
    for name, match in (
        ("folder.gguf", "is a folder"), ("pipe.gguf", "device or pipe"), ("no.gguf", "No such"),
        ("loop.gguf", "cannot be opened"), ("zero.gguf", "device or pipe"),
        ("to_pipe.gguf", "device or pipe"), ("a\0b", "cannot be opened"),
    ):  # fmt: skip
        start = time.monotonic()
        with pytest.raises(UsageError, match=match):
            read_header(tmp_path / name)
        assert time.monotonic() - start < 1
    assert len(read_folder(tmp_path).problems) == 4


def test_a_folder_of_thousands_of_files(tmp_path):
    for i in range(2001):
        (tmp_path / f"{i}.txt").touch()
    with pytest.raises(UsageError, match="more than 2000 files"):
        read_folder(tmp_path)


def _metadata_of_one_string():
    return gguf(0, 1).text("k").n("I", 8).text(b"\xf0\x9f\x98\x80" * 4_000_000).done()


def _names():
    w = gguf(30_000)
    for i in range(30_000):
        w.tensor(f"{i:0200}\U0001f600", (1,), 0, 0)
    return w.done(64)


def _words():
    w = gguf(0, 1).text("k").n("I", 9).n("I", 8).count(200_000)
    w.out += (struct.pack("<Q", 8) + b"12345678") * 200_000
    return w.done()


def _lists_of_words():
    w = gguf(0, 5_000)
    for i in range(5_000):
        w.text(f"{i}").n("I", 9).n("I", 8).count(50)
        w.out += (struct.pack("<Q", 4) + b"1234") * 50
    return w.done()


def _tensors_of_eight():
    w = gguf(32_768)
    for i in range(32_768):
        w.tensor(f"{i:0250}", (1, 1, 1, 1, 1, 1, 1, 2**40), 0, 0)
    return w.done(64)


def _json(text):
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def _brackets():
    return _json('{"a":[' + ",".join(["{}"] * 190_000) + "]}")


def _small_objects():
    return _json("{" + ",".join(f'"{i}":{{"":0}}' for i in range(90_000)) + "}")


def _wide_text():
    return _json('{"__metadata__":{"a":"' + "\U0001f600" * 1_000_000 + '"}}')


def _many_tensors():
    one = '{"dtype":"F16","shape":[0],"data_offsets":[0,0]}'
    return _json("{" + ",".join(f'"{i:012}":{one}' for i in range(32_000)) + "}")


@pytest.mark.parametrize(
    "make",
    [
        _metadata_of_one_string, _names, _words, _lists_of_words, _tensors_of_eight, _brackets,
        _small_objects, _wide_text, _many_tensors, lambda: string_pairs(16_000, 1000).done(),
    ],
    ids=lambda f: f.__name__.strip("_"),
)  # fmt: skip
def test_what_a_header_may_make_us_allocate(tmp_path, make):
    path = tmp_path / "m"
    path.write_bytes(bytes(make()))
    tracemalloc.start()
    start = time.process_time()
    try:
        read_header(path)
    except UsageError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < LIMIT
    assert time.process_time() - start < 30  # tracemalloc makes it several times slower


def test_sparse_files_of_terabytes(tmp_path):
    """A file may be as large as it likes: only its header is looked at."""
    for name, head in (("a", small()), ("b", _json('{"a":{}}')), ("c", b"GGUF\3\0\0\0")):
        path = tmp_path / name
        path.write_bytes(head)
        os.truncate(path, 2**42)
        start = time.process_time()
        try:
            header = read_header(path)
            assert header.file_bytes == 2**42
        except UsageError:
            pass
        assert time.process_time() - start < 1


def test_shards_cannot_add_up(tmp_path):
    """Each shard within its limits, together over them."""
    data = _json('{"__metadata__":{"a":"' + "x" * 3_000_000 + '"}}')
    names = [f"{i}.safetensors" for i in range(8)]
    (tmp_path / names[0]).write_bytes(data)
    for name in names[1:]:
        os.link(tmp_path / names[0], tmp_path / name)
    index = tmp_path / "m.index.json"
    index.write_text(json.dumps({"weight_map": {n: n for n in names}}))
    tracemalloc.start()
    with pytest.raises(UsageError, match="bytes of headers"):
        read_header(index)
    assert tracemalloc.get_traced_memory()[1] < LIMIT
    tracemalloc.stop()


VALID = [small(v, o) for v in (1, 2, 3) for o in "<>"]
VALID.append(safetensors({"a": ONE, "b": {**ONE, "data_offsets": [8, 16]}}, 16, {"k": "v"}))
EDGES = [0, 1, 2, 0x7F, 0x80, 0xFF, 2**31, 2**32 - 1, 2**63, 2**64 - 1]


@st.composite
def mutated(draw):
    """A valid file with bytes changed, cut, put in, or a number replaced by an extreme one."""
    data = bytearray(draw(st.sampled_from(VALID)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        how = draw(st.sampled_from(("flip", "cut", "insert", "edge", "copy", "drop")))
        if how == "flip" and data:
            data[at] = draw(st.integers(0, 255))
        elif how == "cut":
            del data[at:]
        elif how == "drop":
            del data[at : at + draw(st.integers(1, 9))]
        elif how == "insert":
            data[at:at] = draw(st.binary(max_size=16))
        elif how == "copy":
            data[at:at] = data[: draw(st.integers(0, len(data)))]
        else:
            width = draw(st.sampled_from((4, 8)))
            edge = draw(st.sampled_from(EDGES)) % 2 ** (8 * width)
            data[at : at + width] = edge.to_bytes(width, draw(st.sampled_from(("little", "big"))))
    return bytes(data)


@settings(max_examples=800, deadline=2000, suppress_health_check=[HealthCheck.too_slow])
@given(mutated())
def test_mutations_are_read_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "mutated"
    path.write_bytes(data)
    try:
        header = read_header(path)
    except UsageError as e:
        assert str(path) in str(e)
        return
    assert isinstance(header, FileHeader)
    assert header.data_bytes <= header.file_bytes == len(data)
    for t in header.tensors:
        assert t.offset >= 0 and t.offset + t.bytes <= len(data)
