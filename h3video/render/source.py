"""Where a model comes from, read without loading it: the embedded one, a folder, a hub id."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..models import DenoiserShape, VideoFamily, family_of
from ..models.wan import denoiser_shape, with_vae

PIPELINES = ("WanPipeline", "WanImageToVideoPipeline")


@dataclass(frozen=True)
class ModelSource:
    """A diffusers model folder and what its configuration says.

    folder     a path, or the hub id if it is not here yet
    pipeline   name of the pipeline class
    parts      names of the pipeline's components
    """

    name: str
    folder: str
    family: VideoFamily
    transformer: dict[str, Any]
    pipeline: str = "WanPipeline"
    parts: tuple[str, ...] = ()

    @property
    def from_image(self) -> bool:
        """Whether a clip starts from a picture."""
        return self.pipeline == "WanImageToVideoPipeline"

    def local(self) -> ModelSource:
        """The same model as a folder on this machine; fetches a hub model. Raises UsageError."""
        if Path(self.folder).is_dir():
            return self
        import diffusers

        try:
            folder = getattr(diffusers, self.pipeline).download(self.folder)
        except Exception as e:  # the hub raises a dozen kinds; all mean the same to the user
            raise UsageError(
                f"model {self.name} could not be fetched ({type(e).__name__}: {e})"
            ) from None
        return replace(self, folder=str(folder))

    def denoiser(self, dtype: str) -> DenoiserShape:
        """Sizes of the transformer when it runs in `dtype`."""
        return denoiser_shape(self.transformer, 4 if dtype == "float32" else 2)


def find_model(name: str) -> ModelSource:
    """Read the configuration of a model.

    name   "nano" (embedded), a folder in diffusers format, or a hub id "owner/name"

    Raises UsageError when it is not there or no family of ours.
    """
    if name == "nano":
        from .. import nano

        folder = Path(nano.path())
    else:
        folder = Path(name).expanduser()
        if not folder.exists() and name.count("/") == 1 and not name.startswith((".", "/", "~")):
            return _from_hub(name)
    index = folder / "model_index.json"
    if not index.is_file():
        raise UsageError(
            f"model {name} has no model_index.json in {folder}; give a folder in diffusers format, "
            "a hub id such as Wan-AI/Wan2.1-T2V-1.3B-Diffusers, or nano"
        )
    return _describe(name, str(folder), _json(index), _json(folder / "transformer/config.json"),
                     _json(folder / "vae/config.json"))  # fmt: skip


def _from_hub(name: str) -> ModelSource:
    """A hub model by its configuration files; weights are fetched when they are used."""
    from huggingface_hub import hf_hub_download

    def fetch(path: str) -> dict[str, Any]:
        try:
            return _json(Path(hf_hub_download(name, path)))
        except Exception as e:  # the hub raises a dozen kinds; all mean the same to the user
            raise UsageError(
                f"model {name} is no folder here and could not be read from the hub "
                f"({type(e).__name__}); check the name or give a local folder"
            ) from None

    return _describe(
        name, name, fetch("model_index.json"), fetch("transformer/config.json"),
        fetch("vae/config.json"),
    )  # fmt: skip


def _describe(
    name: str, folder: str, index: dict[str, Any], transformer: dict[str, Any], vae: dict[str, Any]
) -> ModelSource:
    pipeline = index.get("_class_name")
    kind = (index.get("transformer") or [None, None])[1] or transformer.get("_class_name")
    family = family_of(str(kind))
    if family is None or pipeline not in PIPELINES:
        raise UsageError(
            f"model {name} is a {pipeline} with a {kind}; Wan pipelines "
            f"({' or '.join(PIPELINES)} with WanTransformer3DModel) can be rendered so far"
        )
    parts = tuple(k for k, v in index.items() if isinstance(v, list) and v and v[0])
    family = with_vae(family, vae.get("scale_factor_spatial", 8))
    return ModelSource(name, folder, family, transformer, str(pipeline), parts)


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise UsageError(f"{path} cannot be read ({e.strerror}); the model is incomplete") from None
    except ValueError as e:
        raise UsageError(f"{path} is not valid JSON ({e}); the model is damaged") from None
    if not isinstance(data, dict):
        raise UsageError(f"{path} holds no JSON object; the model is damaged")
    return data
