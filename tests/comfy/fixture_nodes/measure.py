"""Output nodes that measure what comes in and tell the client in ui output "stats"."""

import hashlib

import torch


def digest(x):
    """16 hexadecimal digits of the bytes of a float tensor, the same for the same values."""
    return hashlib.sha256(x.float().contiguous().cpu().numpy().tobytes()).hexdigest()[:16]


def describe(x):
    """Shape, moments and digest of a tensor."""
    f = x.float()
    return {
        "shape": list(x.shape), "finite": bool(torch.isfinite(f).all()), "sha": digest(x),
        "mean": float(f.mean()), "std": float(f.std()), "min": float(f.min()),
        "max": float(f.max()),
    }  # fmt: skip


class _Measure:
    FUNCTION = "measure"
    CATEGORY = "testing"
    OUTPUT_NODE = True
    RETURN_TYPES = ()


class TestImageStats(_Measure):
    """Of an IMAGE [F,H,W,3]: describe(), mean colour of each half, change between frames."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"images": ("IMAGE",)}}

    def measure(self, images):
        half = images.shape[2] // 2
        stats = describe(images) | {
            "left": images[:, :, :half].float().mean((0, 1, 2)).tolist(),
            "right": images[:, :, half:].float().mean((0, 1, 2)).tolist(),
            "motion": float((images[1:] - images[:-1]).abs().mean()) if len(images) > 1 else 0.0,
        }
        return {"ui": {"stats": [stats]}}


class TestMaskStats(_Measure):
    """Of a MASK [1,H,W]: describe() and the mean of each half."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"mask": ("MASK",)}}

    def measure(self, mask):
        half = mask.shape[-1] // 2
        stats = describe(mask) | {
            "left": float(mask[..., :half].mean()), "right": float(mask[..., half:].mean()),
        }  # fmt: skip
        return {"ui": {"stats": [stats]}}


class TestLatentStats(_Measure):
    """Of a LATENT: describe() of each part of a nested one."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"samples": ("LATENT",)}}

    def measure(self, samples):
        x = samples["samples"]
        parts = x.unbind() if getattr(x, "is_nested", False) else [x]
        return {"ui": {"stats": [describe(part) for part in parts]}}


class TestImageDifference(_Measure):
    """Of two IMAGEs of one shape: largest difference and PSNR in dB (999 when equal)."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"a": ("IMAGE",), "b": ("IMAGE",)}}

    def measure(self, a, b):
        if a.shape != b.shape:
            raise ValueError(f"images of shapes {tuple(a.shape)} and {tuple(b.shape)}")
        error = (a.double() - b.double()).abs()
        square = float((error**2).mean())
        psnr = 999.0 if square == 0 else float(-10 * torch.log10(torch.tensor(square)))
        return {"ui": {"stats": [{"worst": float(error.max()), "psnr": psnr}]}}


class TestLatentDifference(_Measure):
    """Of two LATENTs of one shape, for each part: largest difference in the left and in the right
    quarter and anywhere, and the root mean square of it against that of `a`.
    """

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"a": ("LATENT",), "b": ("LATENT",)}}

    def measure(self, a, b):
        pairs = [(a["samples"], b["samples"])]
        if getattr(a["samples"], "is_nested", False):
            pairs = list(zip(a["samples"].unbind(), b["samples"].unbind(), strict=True))
        return {"ui": {"stats": [self.compare(x.double(), y.double()) for x, y in pairs]}}

    def compare(self, x, y):
        if x.shape != y.shape:
            raise ValueError(f"latents of shapes {tuple(x.shape)} and {tuple(y.shape)}")
        error, quarter = (x - y).abs(), max(1, x.shape[-1] // 4)
        return {
            "worst": float(error.max()), "left": float(error[..., :quarter].max()),
            "right": float(error[..., -quarter:].max()),
            "relative": float((error.square().mean() / x.square().mean()).sqrt()),
        }  # fmt: skip
