"""The short cuts of the training code give the same numbers as diffusers' own code."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
diffusers = pytest.importorskip("diffusers")

from h3video.nano import data, latents, muon, pack, train_transformer, transformer, vae


@pytest.fixture(scope="module")
def small_vae():
    torch.manual_seed(0)
    return vae.make_vae().eval()


def test_lean_forward_is_the_models_forward():
    torch.manual_seed(0)
    model = transformer.make_transformer().eval()
    x, text = torch.randn(2, 16, 3, 8, 12), torch.randn(2, 16, 4096)
    timestep = torch.tensor([300.0, 700.0])
    with torch.no_grad():
        want = transformer.patches_of(model(x, timestep, text, return_dict=False)[0])
        got, index = transformer.forward(model, x, timestep, text)
    assert index is None
    assert (got - want).abs().max() < 2e-5


def test_some_tokens_keep_their_places():
    """All tokens given by index are all tokens; a part has the part's shape."""
    torch.manual_seed(0)
    model = transformer.make_transformer().eval()
    x, text, timestep = torch.randn(1, 16, 2, 8, 8), torch.randn(1, 8, 4096), torch.tensor([500.0])
    with torch.no_grad():
        whole, _ = transformer.forward(model, x, timestep, text)
        same, index = transformer.forward(model, x, timestep, text, torch.arange(16))
        part, _ = transformer.forward(model, x, timestep, text, torch.tensor([0, 1, 4, 5]))
    assert torch.equal(index, torch.arange(32))
    assert torch.allclose(whole, same)
    assert part.shape == (1, 8, 64)


def test_fast_convolutions_change_no_value(small_vae):
    clip = torch.from_numpy(data.render(data.Scene("red", "star", "", "up", "sand", "dots", 1),
                                        32, 32, 5)).permute(3, 0, 1, 2)[None] * 2 - 1  # fmt: skip
    with torch.no_grad():
        z = small_vae.encode(clip).latent_dist.mode()
        back = small_vae.decode(z).sample
        with vae.fast_convolutions():
            assert torch.allclose(vae.encode(small_vae, clip), z, atol=1e-4)
            assert torch.allclose(vae.decode(small_vae, z).clamp(-1, 1), back, atol=1e-4)
            frame = vae.encode(small_vae, clip[:, :, :1])
            assert torch.allclose(frame, z[:, :, :1], atol=1e-4)


def test_folding_statistics_moves_latents_only(small_vae):
    import copy

    folded = copy.deepcopy(small_vae)
    mean, std = torch.randn(16), torch.rand(16) + 0.5
    vae.fold_statistics(folded, mean, std)
    clip = torch.rand(1, 3, 5, 32, 32) * 2 - 1
    shape = (1, 16, 1, 1, 1)
    official_mean = torch.tensor(folded.config.latents_mean).view(shape)
    official_std = torch.tensor(folded.config.latents_std).view(shape)
    with torch.no_grad():
        before = small_vae.encode(clip).latent_dist.mode()
        posterior = folded.encode(clip).latent_dist
        after = (posterior.mode() - official_mean) / official_std
        assert torch.allclose(after, (before - mean.view(shape)) / std.view(shape), atol=1e-4)
        assert posterior.std.max() < 1e-4
        a, b = small_vae.decode(before).sample, folded.decode(posterior.mode()).sample
    assert torch.allclose(a, b, atol=1e-4)


def test_muon_steps_are_orthogonal():
    torch.manual_seed(0)
    for shape in ((24, 8), (8, 24), (16, 16)):
        values = torch.linalg.svdvals(muon.orthogonalise(torch.randn(3, *shape)))
        assert values.min() > 0.3 and values.max() < 1.4
    weight = torch.nn.Parameter(torch.randn(8, 4, 3, 3))
    weight.grad = torch.randn_like(weight)
    before = weight.detach().clone()
    muon.Muon([weight], lr=0.01).step()
    size = (weight - before).square().mean().sqrt().item()
    assert size == pytest.approx(0.2 * 0.01, rel=0.35)


def test_latents_are_made_once_and_read_back(small_vae, tmp_path, monkeypatch):
    monkeypatch.setattr(latents, "CLIPS", {(32, 32, 5): 3})
    monkeypatch.setattr(latents, "PART", 2)
    zero, one = torch.zeros(16), torch.ones(16)
    latents.make(small_vae, tmp_path, zero, one, seed=0)
    times = {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()}
    latents.make(small_vae, tmp_path, zero, one, seed=0)
    assert times == {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()}
    clips, captions = latents.load(tmp_path)[(32, 32, 5)]
    assert clips[0].shape == (16, 2, 4, 4)
    assert len(clips) == len(captions) and all(len(c) == latents.WORDINGS for c in captions)


def test_one_training_step_and_resume(tmp_path, monkeypatch):
    monkeypatch.setattr(train_transformer, "compiled_block", lambda: None)
    trainer = train_transformer.Trainer(0)
    z, captions = torch.randn(2, 16, 2, 4, 8), ["a red circle moves left over blue waves", ""]
    first = trainer.loss(z, captions, 16, parts=False)
    trainer.update(first, 1.0)
    trainer.update(trainer.loss(z, captions, 32, parts=True), 1.0)
    assert np.isfinite(first.item()) and trainer.step == 2
    trainer.save(tmp_path / "t.pt", 0.25)
    other = train_transformer.Trainer(1)
    assert other.resume(tmp_path / "t.pt") == 0.25
    for a, b in zip(trainer.masters.parameters(), other.masters.parameters()):
        assert torch.equal(a, b)


def test_part_of_a_frame_is_compact():
    trainer = object.__new__(train_transformer.Trainer)
    trainer.rng = np.random.default_rng(0)
    for _ in range(20):
        part = trainer.part_of(15, 9)
        assert 0.2 * 135 < len(part) < 0.76 * 135
        assert torch.equal(part, part.unique())


def test_pack_refuses_what_is_missing_or_too_large(tmp_path, small_vae, monkeypatch):
    from h3video.nano.text import make_encoder

    weights = {f"text.{n}": p for n, p in make_encoder().named_parameters()}
    weights |= {f"dit.{n}": p for n, p in transformer.make_transformer().named_parameters()}
    stats = torch.zeros(16), torch.ones(16)
    state = small_vae.state_dict()
    lacking = {k: v for k, v in weights.items() if k != "dit.proj_out.weight"}
    with pytest.raises(ValueError, match="lacks"):
        pack.pack(tmp_path / "w", state, *stats, lacking)
    monkeypatch.setattr(pack, "MAX_BYTES", 1000)
    with pytest.raises(ValueError, match="over the limit of 1000"):
        pack.pack(tmp_path / "w", state, *stats, weights)
    assert not (tmp_path / "w").exists()
