"""The probes that teach a token its place."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

from h3video.nano.place import BLOCKS, FEATURES, PlaceProbes, places
from h3video.nano.transformer import WIDTH


def test_no_two_tokens_look_alike():
    p = places(5, 6, 10)
    assert p.shape == (300, FEATURES)
    distance = torch.cdist(p, p) + torch.eye(300) * 9
    assert distance.min() > 0.05
    assert places(1, 6, 10).isfinite().all()


def test_probes_learn_what_hidden_states_tell_and_nothing_else():
    torch.manual_seed(0)
    want = places(2, 3, 4)
    lift = torch.randn(FEATURES, WIDTH)
    losses = {}
    for name, share in (("told", 1.0), ("silent", 0.0)):
        probes = PlaceProbes()
        for _ in range(200):
            hidden = share * (want @ lift) + torch.randn(16, 24, WIDTH)
            hidden.requires_grad_()
            loss = probes.loss([hidden] * (max(BLOCKS) + 1), 2, 3, 4)
            loss.backward()
            probes.update()
        losses[name] = loss.item()
        assert hidden.grad is not None and hidden.grad.abs().sum() > 0  # it teaches what it reads
    assert losses["told"] < 0.2 * losses["silent"]
