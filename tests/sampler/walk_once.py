"""walk_once.py COMFYUI FOLDER OUT SAMPLER [DIE_AT]: one walk in a process of its own.

DIE_AT: at this network call the process kills itself with SIGKILL. Prints the number of calls.
"""

import os
import signal
import sys
from pathlib import Path

HERE = Path(__file__).parent
HARNESS = HERE.parent / "comfy" / "comfy_harness"


def main(comfyui, folder, out, sampler, die_at=0):
    sys.path[:0] = [str(HERE), str(HERE.parents[1]), str(HARNESS)]
    import cpu_wheels

    cpu_wheels.install()
    sys.path.insert(0, comfyui)
    sys.argv = ["main.py", "--cpu"]
    import comfy.options

    comfy.options.enable_args_parsing()
    import comfy.model_management
    import torch
    import toys

    import h3video.render.engines.comfyui.walk as walk
    from h3video.tiling.settings import HexSettings

    def answer(x, inputs):
        if len(model.model.diffusion_model.calls) == int(die_at):
            os.kill(os.getpid(), signal.SIGKILL)
        near = torch.nn.functional.avg_pool2d(x, 5, 1, 2)
        return near * 0.5 + inputs["context"].mean() * torch.randn_like(x)

    model = toys.toy(answer, 2)
    sampler = walk.WalkSampler(
        toys.sampler_object(sampler), HexSettings(hex_res=3, overlap=32.0, halo=32.0),
        walk.WalkOptions(folder=Path(folder)),
    )  # fmt: skip
    result = toys.run(model, (1, 4, 24, 40), cfg=2.0, steps=2, sampler=sampler)[0]
    Path(out).write_bytes(result.numpy().tobytes())
    print("calls", len(model.model.diffusion_model.calls))


if __name__ == "__main__":
    main(*sys.argv[1:])
