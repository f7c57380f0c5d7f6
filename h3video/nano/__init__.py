"""The embedded model: Wan architecture, trained by us on synthetic clips, a few MB.

It draws one shape that moves over a textured ground, and follows the prompt.
It exists so that everything here can be tried, tested and measured end to end
without a download. See README.md in this folder. Importing this loads nothing.
"""

from __future__ import annotations

import re
from pathlib import Path


def path() -> str:
    """The folder of the weights, in diffusers format.

    Raises FileNotFoundError when the package was built without them.
    """
    folder = Path(__file__).with_name("weights")
    if not (folder / "model_index.json").is_file():
        raise FileNotFoundError(
            f"the embedded model is not in {folder}; install the full package, or train it with "
            "`python -m h3video.nano.train`"
        )
    return str(folder)


def vocabulary() -> tuple[str, ...]:
    """The words that the model knows, in the order of its tokenizer."""
    from . import words

    return words.WORDS


def unknown_words(prompt: str) -> list[str]:
    """Words of a prompt that the model does not know, in order, each once."""
    known = set(vocabulary())
    words = re.findall(r"\w+", prompt.lower())
    return list(dict.fromkeys(w for w in words if w not in known))
