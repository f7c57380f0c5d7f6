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
    told = (want @ lift + 0.05 * torch.randn(4, 24, WIDTH)).requires_grad_()
    silent = torch.randn(4, 24, WIDTH)
    losses = {}
    for name, hidden in (("told", told), ("silent", silent)):
        probes = PlaceProbes()
        for _ in range(150):
            loss = probes.loss([hidden] * (max(BLOCKS) + 1), 2, 3, 4)
            loss.backward()
            probes.update()
        losses[name] = loss.item()
    assert losses["told"] < 0.2 * losses["silent"]
    assert told.grad is not None and told.grad.abs().sum() > 0  # the transformer is taught, too
