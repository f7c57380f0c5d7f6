"""The light side of the room: words, the path, and what an import loads."""

import subprocess
import sys

import pytest

from h3video import nano


def test_vocabulary_is_small_and_unique():
    words = nano.vocabulary()
    assert len(set(words)) == len(words) < 70
    assert {"red", "circle", "moves", "left", "over", "blue", "waves"} <= set(words)


def test_unknown_words_once_in_order():
    assert nano.unknown_words("A red circle moves left over blue waves.") == []
    assert nano.unknown_words("a Zebra and a red lorry, a zebra") == ["zebra", "and", "lorry"]


def test_path_or_a_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(nano, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(FileNotFoundError, match="train it with"):
        nano.path()


def test_import_loads_nothing_heavy():
    code = (
        "import sys, h3video.nano as n; n.vocabulary(); n.unknown_words('x');"
        "print([m for m in ('torch', 'numpy', 'diffusers', 'transformers') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
