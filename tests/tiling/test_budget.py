"""Budgets as people write them."""

import pytest

from h3video.errors import UsageError
from h3video.tiling import parse_budget


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (None, None), ("auto", None), ("25%", 0.25), ("0.25", 0.25), (0.5, 0.5), ("1", 1.0),
        ("512MiB", 512 * 2**20), ("1.5 GB", 1_500_000_000), ("2gib", 2 * 2**30), (4096, 4096),
        ("1000000", 1_000_000),
    ],
)  # fmt: skip
def test_understood(text, value):
    assert parse_budget(text) == value
    assert type(parse_budget(text)) is type(value)


@pytest.mark.parametrize("text", ["much", "-1", "0", "0MiB", "200%", "1.5", "5 apples", "", 0, -3])
def test_refused_with_examples(text):
    with pytest.raises(UsageError, match=r"512MiB|share|25%"):
        parse_budget(text)
