"""The engine diffusers on the embedded model: chunks, GGUF, LoRA, pictures, workers."""

import dataclasses
import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from h3video import nano
from h3video.cli.main import main
from h3video.errors import UsageError
from h3video.models import WAN
from h3video.render.document import make_document
from h3video.render.engines.diffusers_engine import DiffusersEngine, open_engine, seeded
from h3video.render.engines.protocol import Cancel, Cancelled, ChunkRequest, Engine, EngineDied
from h3video.render.engines.stepdown import smaller_crops, smaller_tiles
from h3video.render.engines.wan import WanEngine
from h3video.render.engines.worker import WorkerEngine
from h3video.render.job import RenderJob
from h3video.render.jobs import look
from h3video.render.source import find_model
from h3video.tiling.chunks import plan_chunks

PROMPT = "a red circle moves left over blue waves"
JOB = RenderJob(
    prompt=PROMPT, negative="", model="nano", width=32, height=32, frames=9, fps=16, steps=2,
    cfg=1.0, seed=3,
)  # fmt: skip
PLAN = plan_chunks(15, WAN, 9, 4)
SMALL = ["--width", "32", "--height", "32", "--steps", "1", "--cfg", "1", "--dtype", "float32",
         "--device", "cpu"]  # fmt: skip


def quiet(phase, share):
    pass


def request(k=0, **more):
    c = PLAN.chunks[k]
    return ChunkRequest(
        c.index, c.frames, c.latent_frames, c.start, c.latent_start, JOB.width, JOB.height, 16,
        PROMPT, "", JOB.steps, JOB.cfg, JOB.seed, **more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def engine():
    return DiffusersEngine(JOB, [(PROMPT, "")])


@pytest.fixture(scope="module")
def first(engine):
    return engine.generate(request(), quiet, Cancel()).latents


def test_it_is_an_engine(engine):
    assert isinstance(engine, Engine)
    assert (engine.name, engine.continuity, engine.gives) == ("diffusers", "latents", "latents")


def test_the_head_is_kept_to_the_bit_and_the_rest_follows_it(engine, first):
    head = first[:, :, -2:]
    go_on = engine.generate(request(1, head=head), quiet, Cancel()).latents
    alone = engine.generate(request(1), quiet, Cancel()).latents
    assert torch.equal(go_on[:, :, :2], head)
    assert not torch.equal(go_on[:, :, 2:], alone[:, :, 2:])


def test_a_chunk_that_continues_shows_what_the_one_before_shows():
    """In pictures, where both show the same moments; without the head it is another scene."""
    job = dataclasses.replace(JOB, width=96, height=64, frames=17, steps=4, cfg=4.0)
    engine = DiffusersEngine(job, [(PROMPT, "")])
    plan = plan_chunks(29, WAN, 17, 4)

    def make(k, **more):
        c = plan.chunks[k]
        wanted = ChunkRequest(
            c.index, c.frames, c.latent_frames, c.start, c.latent_start, 96, 64, 16, PROMPT, "", 4,
            4.0, 3, **more,
        )  # fmt: skip
        latents = engine.generate(wanted, quiet, Cancel()).latents
        return latents, engine.decode(latents, wanted, quiet, Cancel()).frames.astype(float)

    latents, before = make(0)
    _, after = make(1, head=latents[:, :, -2:])
    _, alone = make(1)
    shared = plan.chunks[1].shared
    apart = [np.abs(before[-shared:] - f[1 : 1 + shared]).mean() for f in (after, alone)]
    assert apart[0] < 6.0 and apart[0] < 0.25 * apart[1]


@pytest.mark.parametrize("sampler", ["unipc", "euler", "dpm++"])
def test_the_head_is_kept_with_every_sampler(first, sampler):
    engine = DiffusersEngine(dataclasses.replace(JOB, sampler=sampler), [(PROMPT, "")])
    head = first[:, :, -2:]
    out = engine.generate(request(1, head=head), quiet, Cancel()).latents
    assert torch.equal(out[:, :, :2], head) and torch.isfinite(out).all()
    sigmas = engine.identity()["sigmas"]
    assert len(sigmas) == JOB.steps + 1 and sigmas[-1] == 0.0 and sigmas == sorted(sigmas)[::-1]


def test_noise_by_position_is_shared_where_chunks_overlap(engine):
    from h3video.render.engines.diffusers_engine import field_noise

    wan = WanEngine(engine.source, JOB)
    a, b = (field_noise(request(k), wan) for k in range(2))
    assert torch.equal(a[:, :, 1:], b[:, :, :2]) and not torch.equal(a[:, :, 0], b[:, :, 2])
    one = torch.randn(1000, generator=seeded(1, 2))
    for other in (seeded(2, 1), seeded(1, 3), seeded(12, 0)):
        two = torch.randn(1000, generator=other)
        assert abs(float((one * two).mean())) < 0.15


def test_the_first_chunk_of_policy_next_is_the_short_clip(engine):
    chunk = engine.generate(request(noise="chunk"), quiet, Cancel()).latents
    wan = WanEngine(engine.source, JOB)
    assert torch.equal(chunk, wan.denoise(wan.encode()).float())


def test_cancelling_stops_within_a_tile(engine):
    cancel, done = Cancel(), []

    def stop(phase, share):
        done.append(phase)
        if phase == "denoise":
            cancel.set()

    with pytest.raises(Cancelled):
        engine.generate(request(), stop, cancel)
    assert done.count("denoise") == 1


def test_progress_sums_to_one(engine, first):
    shares = {}

    def count(phase, share):
        shares[phase] = shares.get(phase, 0.0) + share

    engine.generate(request(), count, Cancel())
    engine.decode(first, request(), count, Cancel())
    assert shares == pytest.approx({"encode": 1.0, "denoise": 1.0, "decode": 1.0})


# ---- weights ----


@pytest.fixture(scope="module")
def gguf_files(tmp_path_factory):
    """The embedded transformer in two quantizations, as ComfyUI-GGUF names tensors."""
    gguf = pytest.importorskip("gguf")
    from safetensors.torch import load_file

    from h3video.nano.export_comfy import dit_key

    weights = load_file(Path(nano.path()) / "transformer/diffusion_pytorch_model.safetensors")
    folder, found = tmp_path_factory.mktemp("gguf"), {}
    for name in ("Q8_0", "Q4_0"):
        kind = gguf.GGMLQuantizationType[name]
        found[name] = folder / f"nano-{name}.gguf"
        writer = gguf.GGUFWriter(found[name], "wan")
        for key, value in weights.items():
            plain = value.float().numpy()
            linear = value.ndim == 2 and value.shape[-1] % 32 == 0 and key.startswith("blocks.")
            if linear:
                data = gguf.quants.quantize(plain, kind)
                writer.add_tensor(dit_key(key), data, raw_dtype=kind)
            else:
                writer.add_tensor(dit_key(key), plain)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    return found


def test_gguf_transformers_are_near_the_full_ones(gguf_files, first):
    distance = {}
    for name, file in gguf_files.items():
        job = dataclasses.replace(JOB, gguf=(str(file),))
        engine = DiffusersEngine(job, [(PROMPT, "")])
        out = engine.generate(request(), quiet, Cancel()).latents
        distance[name] = float((out - first).norm() / first.norm())
        identity = engine.identity()
        assert identity["gguf"][0]["bytes"] == file.stat().st_size
        # the model's own transformer is not used, so it does not count
        assert not any(f.startswith("transformer/") for f in identity["model"]["files"])
    assert 0 < distance["Q8_0"] < 0.03 and distance["Q8_0"] < distance["Q4_0"] < 0.35


def test_gguf_weights_stay_quantised(gguf_files, engine):
    from h3video.render.engines.wan_parts import load_gguf

    model = load_gguf(engine.source, "transformer", gguf_files["Q4_0"], torch.float32)
    weight = model.blocks[0].attn1.to_q.weight
    assert weight.dtype == torch.uint8 and weight.numel() < 256 * 256  # 4.5 bits each


def test_gguf_on_the_command_line(gguf_files, tmp_path, capsys):
    out = tmp_path / "a.mp4"
    arguments = ["render", PROMPT, "-o", str(out), *SMALL, "--frames", "5"]
    assert main([*arguments, "--gguf", str(gguf_files["Q8_0"])]) == 0 and out.is_file()
    assert main([*arguments, "--gguf", str(tmp_path / "none.gguf")]) == 2
    assert "none.gguf cannot be read (No such file" in capsys.readouterr().err
    (tmp_path / "x.gguf").write_bytes(b"nothing")
    assert main([*arguments, "--gguf", str(tmp_path / "x.gguf")]) == 2
    assert "is no GGUF file" in capsys.readouterr().err
    two = ["--gguf", str(gguf_files["Q8_0"])] * 2
    assert main([*arguments, *two]) == 2
    assert "the model has 1 transformer; give at most one" in capsys.readouterr().err


def test_a_gguf_file_of_another_model_is_refused(tmp_path, engine):
    gguf = pytest.importorskip("gguf")
    from h3video.render.engines.wan_parts import load_gguf

    writer = gguf.GGUFWriter(tmp_path / "o.gguf", "wan")
    writer.add_tensor("blocks.0.self_attn.q.weight", np.zeros((64, 64), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(UsageError, match="cannot be loaded as nano's transformer"):
        load_gguf(engine.source, "transformer", tmp_path / "o.gguf", torch.float32)


@pytest.fixture(scope="module")
def lora_file(tmp_path_factory):
    from safetensors.torch import save_file

    file = tmp_path_factory.mktemp("lora") / "style.safetensors"
    g = torch.Generator().manual_seed(0)
    weights = {}
    for i in range(6):
        for part in ("to_q", "to_v"):
            base = f"transformer.blocks.{i}.attn1.{part}"
            weights[f"{base}.lora_A.weight"] = torch.randn(4, 256, generator=g) * 0.1
            weights[f"{base}.lora_B.weight"] = torch.randn(256, 4, generator=g) * 0.1
    save_file(weights, str(file))
    return file


def test_loras_change_the_result_by_their_scale(lora_file, first, gguf_files):
    pytest.importorskip("peft")

    def moved(text, **more):
        job = dataclasses.replace(JOB, lora=(text,), **more)
        engine = DiffusersEngine(job, [(PROMPT, "")])
        return engine.generate(request(), quiet, Cancel()).latents

    none, half, full = (moved(f"{lora_file}:{s}") for s in ("0", "0.5", "1"))
    assert torch.allclose(none, first, atol=1e-4)
    assert 0 < (half - first).norm() < (full - first).norm()
    assert torch.equal(moved(str(lora_file)), full)
    assert torch.isfinite(moved(str(lora_file), gguf=(str(gguf_files["Q8_0"]),))).all()


def test_a_lora_that_fits_nothing_is_refused(tmp_path, capsys):
    pytest.importorskip("peft")
    from safetensors.torch import save_file

    file = tmp_path / "other.safetensors"
    save_file({"transformer.unknown.lora_A.weight": torch.zeros(2, 8),
               "transformer.unknown.lora_B.weight": torch.zeros(8, 2)}, str(file))  # fmt: skip
    out = ["render", PROMPT, "-o", str(tmp_path / "a.mp4"), *SMALL, "--frames", "5", "--lora"]
    assert main([*out, str(file)]) == 2
    assert f"LoRA {file}" in capsys.readouterr().err
    assert main([*out, str(tmp_path / "none.safetensors:0.5")]) == 2
    assert "none.safetensors is not there" in capsys.readouterr().err


def test_group_offloading_gives_the_same_bits(first):
    engine = DiffusersEngine(dataclasses.replace(JOB, offload="group"), [(PROMPT, "")])
    assert torch.equal(engine.generate(request(), quiet, Cancel()).latents, first)


@pytest.mark.parametrize("mode", ["model", "sequential"])
def test_offloading_off_a_cpu_is_refused(mode):
    engine = DiffusersEngine(dataclasses.replace(JOB, offload=mode), [(PROMPT, "")])
    with pytest.raises(UsageError, match=f"offload {mode} moves weights off an accelerator"):
        engine.identity()


# ---- a model that starts from a picture ----


@pytest.fixture(scope="module")
def from_picture(tmp_path_factory):
    """A small image-to-video pipeline with random weights, nano's text encoder and VAE."""
    from diffusers import WanTransformer3DModel

    folder = tmp_path_factory.mktemp("i2v") / "model"
    shutil.copytree(nano.path(), folder)
    torch.manual_seed(0)
    config = json.loads((folder / "transformer/config.json").read_text())
    small = {"num_attention_heads": 2, "attention_head_dim": 24, "ffn_dim": 64, "num_layers": 2}
    kept = {k: v for k, v in config.items() if not k.startswith("_")}
    shutil.rmtree(folder / "transformer")
    model = WanTransformer3DModel(**{**kept, **small, "in_channels": 36})
    model.save_pretrained(folder / "transformer")
    index = json.loads((folder / "model_index.json").read_text())
    index |= {"_class_name": "WanImageToVideoPipeline", "image_encoder": [None, None],
              "image_processor": [None, None]}  # fmt: skip
    (folder / "model_index.json").write_text(json.dumps(index))
    return folder


def test_chunks_of_an_image_to_video_model_start_from_the_last_picture(from_picture, tmp_path):
    from PIL import Image

    from h3video.render.store import PieceStore

    Image.new("RGB", (50, 40), (200, 40, 40)).save(tmp_path / "p.png")
    arguments = ["render", PROMPT, "--model", str(from_picture), "--image",
                 str(tmp_path / "p.png"), "-o", str(tmp_path / "a.mp4"), *SMALL,
                 "--frames", "13", "--chunk-frames", "9"]  # fmt: skip
    assert main(arguments) == 0
    status = look(tmp_path / "a.job", thorough=True)
    assert status.finished and status.document["plan"]["continuity"] == "first-frame"
    pieces = [f"{kind}-{k:04d}" for kind in ("latents", "frames") for k in range(2)]
    assert list(status.pieces) == [*pieces, "merged-0000"]
    store = PieceStore(tmp_path / "a.job")
    assert "frames-0000" in store.piece("latents", 1).inputs
    # another picture is another job
    Image.new("RGB", (50, 40), (40, 200, 40)).save(tmp_path / "p.png")
    assert main(arguments) == 2


def test_pictures_where_they_belong(from_picture, tmp_path, capsys):
    out = ["-o", str(tmp_path / "a.mp4"), *SMALL, "--frames", "5"]
    assert main(["render", PROMPT, "--model", str(from_picture), *out]) == 2
    assert "starts from a picture; give one with --image" in capsys.readouterr().err
    assert main(["render", PROMPT, "--image", "p.png", *out]) == 2
    assert "would not use --image; leave it out" in capsys.readouterr().err
    none = str(tmp_path / "none.png")
    assert main(["render", PROMPT, "--model", str(from_picture), "--image", none, *out]) == 2
    assert "none.png is not there" in capsys.readouterr().err


# ---- smaller plans ----


def test_smaller_plans_are_smaller_and_end():
    source = find_model("nano")
    job = dataclasses.replace(JOB, width=832, height=480, frames=81)
    tokens, areas = [], []
    while found := smaller_tiles(job, source):
        job = dataclasses.replace(job, **found[0])
        tokens.append(job.token_plan(source.family, source.denoiser("float32")).tile_tokens)
        assert f"tiles of {tokens[-1]} instead of" in found[1]
    assert len(tokens) >= 2 and tokens == sorted(tokens)[::-1] and len(set(tokens)) == len(tokens)
    job = dataclasses.replace(JOB, width=832, height=480, shape="none")
    while found := smaller_crops(job, source):
        job = dataclasses.replace(job, **found[0])
        plan = job.crop_plan(source.family)
        areas.append(plan.crop_columns * plan.crop_rows)
    assert len(areas) >= 2 and areas == sorted(areas)[::-1]


# ---- a process of its own ----


def document(folder):
    settings = {"width": 32, "height": 32, "fps": 16, "steps": 2, "cfg": 1.0, "seed": 3,
                "seeds": "field", "dtype": "float32", "device": "cpu", "family": "wan"}  # fmt: skip
    engine = {"name": "diffusers", "options": {}, "worker": True, "gives": "latents"}
    merge = {"join": "cell", "join_colour": "hold", "codec": "h264"}
    texts = [(PROMPT, "")] * len(PLAN.chunks)
    return make_document(settings, engine, PLAN, texts, folder / "out.mp4", "nano", merge=merge)


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_worker_makes_the_same_and_its_death_is_noticed(tmp_path, first):
    doc = document(tmp_path)
    worker = WorkerEngine(doc)
    try:
        assert isinstance(worker, Engine)
        assert (worker.continuity, worker.gives) == ("latents", "latents")
        here = open_engine(doc, {})
        assert worker.identity() == json.loads(json.dumps(here.identity()))
        out = worker.generate(request(), quiet, Cancel()).latents
        assert torch.equal(out, first)
        head = first[:, :, -2:]
        assert torch.equal(
            worker.generate(request(1, head=head), quiet, Cancel()).latents,
            here.generate(request(1, head=head), quiet, Cancel()).latents,
        )

        def kill(phase, share):
            os.kill(worker.pid, signal.SIGKILL)

        with pytest.raises(EngineDied, match="was killed"):
            worker.generate(request(), kill, Cancel())
        assert worker.restarts == 1
        frames = worker.decode(out, request(), quiet, Cancel()).frames  # in a new process
        assert np.array_equal(frames, here.decode(out, request(), quiet, Cancel()).frames)
        cancel = Cancel()
        with pytest.raises(Cancelled):
            worker.generate(request(), lambda phase, share: cancel.set(), cancel)
        with pytest.raises(UsageError, match="hex_res 99 is out of range"):
            worker.generate(request(tiling={"hex_res": 99}), quiet, Cancel())
        pid = worker.pid
    finally:
        worker.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    worker.close()


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_job_survives_its_killed_worker_with_smaller_tiles(tmp_path, monkeypatch):
    from h3video.render import chain, jobs
    from h3video.render.store import PieceStore

    # A canvas this small has no smaller tiles; what is next is tested above.
    wish = ({"halo": 16.0}, "tiles of 3 instead of 4 tokens")
    monkeypatch.setattr(chain, "smaller", lambda doc, phase, now: wish)
    killed = []
    real = WorkerEngine.generate

    def once(self, request, progress, cancel):
        def kill(phase, share):
            if request.index == 1 and phase == "denoise" and not killed:
                killed.append(self.pid)
                os.kill(self.pid, signal.SIGKILL)
            progress(phase, share)

        return real(self, request, kill, cancel)

    monkeypatch.setattr(WorkerEngine, "generate", once)
    said = []
    jobs.run_job(tmp_path / "out.job", document(tmp_path), quiet=True, say=said.append)
    assert len(killed) == 1 and (tmp_path / "out.mp4").is_file()
    told = [s for s in said if "was killed" in s]
    assert len(told) == 1 and "chunk 2 of 3 (sampling)" in told[0] and "tokens" in told[0]
    store = PieceStore(tmp_path / "out.job")
    assert store.began[("latents", 0)] == 1 and store.began[("latents", 1)] == 1
    assert len(store.events("stepdown")) == 1
