"""What the model's weights are: quantised, patched by a LoRA, waiting on another device."""

import contextlib

import pytest

torch = pytest.importorskip("torch")

from tests_support import attach, attach_seeing_all, settings

TILED = dict(hex_res=3, overlap=64.0)


def close(a, b, rtol):
    return (a - b).norm() <= rtol * b.norm()


def dequantising_operations():
    """Layers that keep 8-bit weights and make floats of them at every call, as GGUF loaders do."""
    import comfy.ops

    class Operations(comfy.ops.manual_cast):
        class Linear(comfy.ops.manual_cast.Linear):
            calls = 0

            def forward_comfy_cast_weights(self, x):
                type(self).calls += 1
                weight, bias = self.dequantised(x)
                return torch.nn.functional.linear(x, weight, bias)

            def dequantised(self, x):
                scale = self.weight.abs().amax(1, keepdim=True) / 127
                weight = (self.weight / scale).round().to(torch.int8).to(x.dtype) * scale
                for function in self.weight_function:  # LoRAs come in here
                    weight = function(weight)
                return weight, None if self.bias is None else self.bias.to(x.dtype)

    return Operations


def with_operations(tiny, operations, family="wan", **changes):
    import comfy.supported_models

    before = comfy.supported_models.WAN21_T2V.custom_operations
    comfy.supported_models.WAN21_T2V.custom_operations = operations
    try:
        return getattr(tiny, family)(**changes)
    finally:
        comfy.supported_models.WAN21_T2V.custom_operations = before


def test_layers_that_dequantise_on_the_fly(tiny):
    operations = dequantising_operations()
    model = with_operations(tiny, operations)
    plain = tiny.sample(model, "wan")[0]
    assert operations.Linear.calls > 0
    assert not torch.equal(plain, tiny.sample(tiny.wan(), "wan")[0])  # 8 bits show
    assert close(tiny.sample(attach_seeing_all(model, settings(**TILED)), "wan")[0], plain, 1e-4)
    assert close(tiny.sample(attach(model, settings(**TILED)), "wan")[0], plain, 0.2)


def lora_for(model):
    """Differences for two layers, as ComfyUI keeps a loaded LoRA."""
    generator = torch.Generator().manual_seed(3)
    names = ("diffusion_model.blocks.0.self_attn.q.weight", "diffusion_model.blocks.2.ffn.0.weight")
    parameters = dict(model.model.named_parameters())
    return {
        n: ("diff", (torch.randn(parameters[n].shape, generator=generator) * 0.1,)) for n in names
    }


def test_a_lora(tiny):
    model = tiny.wan()
    patched = model.clone()
    patched.add_patches(lora_for(model), 0.8)
    plain = tiny.sample(patched, "wan")[0]
    assert not close(tiny.sample(model, "wan")[0], plain, 1e-3)
    assert close(tiny.sample(attach_seeing_all(patched, settings(**TILED)), "wan")[0], plain, 1e-4)
    # a LoRA after the tiles is the same
    later = attach_seeing_all(model, settings(**TILED))
    later.add_patches(lora_for(model), 0.8)
    assert close(tiny.sample(later, "wan")[0], plain, 1e-4)


@pytest.mark.parametrize("backend", ["attention_pytorch", "attention_sub_quad", "attention_split"])
@pytest.mark.parametrize("family", ["wan", "hunyuan", "ltx"])
def test_attention_backends(tiny, family, backend, monkeypatch):
    import comfy.ldm.flux.math
    import comfy.ldm.hunyuan_video.model
    import comfy.ldm.lightricks.model
    import comfy.ldm.modules.attention as attention
    import comfy.ldm.wan.model

    function = getattr(attention, backend)
    modules = (comfy.ldm.wan.model, comfy.ldm.flux.math, comfy.ldm.lightricks.model,
               comfy.ldm.hunyuan_video.model, attention)  # fmt: skip
    for module in modules:
        for name in ("optimized_attention", "optimized_attention_masked"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, function)
    model = getattr(tiny, family)()
    plain = tiny.sample(model, family)[0]
    assert close(tiny.sample(attach_seeing_all(model, settings(**TILED)), family)[0], plain, 1e-4)


class Elsewhere(torch.Tensor):
    """A weight on another device, which counts how often it is fetched."""

    fetched = {}

    @staticmethod
    def __new__(cls, data, name):
        self = torch.Tensor._make_subclass(cls, data)
        self.layer = name
        return self

    @property
    def device(self):
        return torch.device("cuda", 0)

    def detach(self):
        return self

    def to(self, *args, **kwargs):
        Elsewhere.fetched[self.layer] = Elsewhere.fetched.get(self.layer, 0) + 1
        return torch.Tensor._make_subclass(torch.Tensor, self)


@contextlib.contextmanager
def streamed(model):
    """Every matrix of every block waits elsewhere; layers fetch what is not here."""
    Elsewhere.fetched = {}
    linears, undo = [], []
    for i, block in enumerate(model.model.diffusion_model.blocks):
        for name, module in block.named_modules():
            if isinstance(module, torch.nn.Linear):
                linears.append((f"{i}.{name}", module))
    for name, module in linears:
        weight = module.weight
        undo.append((module, weight))
        module._parameters["weight"] = Elsewhere(weight.data, name)

        def forward(x, module=module):
            weight = module._parameters["weight"]
            if weight.device != x.device:
                weight = weight.to(x.device)
            return torch.nn.functional.linear(x, weight, module.bias)

        object.__setattr__(module, "forward", forward)
    try:
        yield
    finally:
        for module, weight in undo:
            module._parameters["weight"] = weight
            object.__delattr__(module, "forward")


def test_streamed_weights_are_fetched_once_per_step(tiny):
    import comfy.model_management as mm

    model = tiny.wan()
    tiling = attach(model, settings(**TILED))
    want = tiny.sample(tiling, "wan", steps=2)[0]
    mm.unload_all_models()
    with streamed(model):
        # Without loading: ComfyUI would bring the weights over before it starts.
        got, fetched = forward_twice(tiny, tiling), dict(Elsewhere.fetched)
    assert got.isfinite().all() and want.isfinite().all()
    assert len(fetched) >= 3 * 10
    assert set(fetched.values()) == {2}, "every weight of every block once per pass, two passes"


def forward_twice(tiny, model):
    """Two passes of the diffusion model with the wrappers that sampling would give it."""
    wrappers = {kind: dict(keys) for kind, keys in model.wrappers.items()}
    options = {"wrappers": wrappers, "cond_or_uncond": [0], "sigmas": torch.tensor([1.0]),
               "sample_sigmas": torch.tensor([1.0, 0.0])}  # fmt: skip
    x = torch.randn(1, *tiny.SIZE["wan"])
    context = tiny.prompt("wan")[0][0]
    inner = model.model.diffusion_model
    with torch.inference_mode():
        for _ in range(2):
            out = inner(x, torch.tensor([500.0]), context=context, transformer_options=options)
    return out
