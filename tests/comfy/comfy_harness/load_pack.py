"""load_pack.py COMFYUI: load node packs as ComfyUI does, each in a fork of one warm process.

Cases come as JSON lines on standard input, answers leave as JSON lines on standard output.

case    {"pack": folder, "hide": [module names], "env": {name: value}, "calls": [[node id, inputs]]}
        an input {"from": [call, output]} is an output of an earlier call
answer  {"loaded", "seconds", "cpu" (seconds, too), "nodes", "log", "path_kept",
         "calls": [{"ok": true} or {"error": text}], "text": [text outputs]}
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from boot import prepare

BEFORE = ("utils.extra_config", "server", "nodes", "comfy_config.config_parser")
"""What main.py has imported before any pack, in its order: nodes.py puts ComfyUI's folder `comfy`
on the path, whose utils.py hides the package `utils`. The first pack would pay for the last one."""


def load(case: dict[str, Any], nodes: Any) -> dict[str, Any]:
    """One case, in this process. ComfyUI's module `nodes` is already imported."""
    import hide

    os.environ.update(case.get("env", {}))
    hide.install(case.get("hide", []))
    before, path = set(nodes.NODE_CLASS_MAPPINGS), (list(sys.path), list(sys.meta_path))
    start = time.perf_counter(), time.process_time()
    loaded = asyncio.run(nodes.load_custom_node(case["pack"]))
    seconds, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
    outputs: list[Any] = []
    calls = [call(nodes, name, given, outputs) for name, given in case.get("calls", [])]
    return {
        "loaded": loaded, "seconds": seconds, "cpu": cpu, "calls": calls,
        "nodes": sorted(set(nodes.NODE_CLASS_MAPPINGS) - before),
        "path_kept": path == (sys.path, sys.meta_path),
        "text": [[o if isinstance(o, str) else None for o in out] for out in outputs],
    }  # fmt: skip


def call(nodes: Any, name: str, given: dict[str, Any], outputs: list[Any]) -> dict[str, Any]:
    """Run one node; its outputs are appended."""
    inputs = {
        key: outputs[value["from"][0]][value["from"][1]] if isinstance(value, dict) else value
        for key, value in given.items()
    }
    node = nodes.NODE_CLASS_MAPPINGS[name]
    try:
        if hasattr(node, "define_schema"):
            outputs.append(node.execute(**inputs).result)
        else:
            outputs.append(getattr(node(), node.FUNCTION)(**inputs))
    except Exception as e:
        outputs.append(())
        return {"error": f"{type(e).__name__}: {e}"}
    return {"ok": True}


def fork(case: dict[str, Any], nodes: Any) -> dict[str, Any]:
    """`load` in a child process, with all that it prints as "log"."""
    with tempfile.TemporaryDirectory() as folder:
        log, answer = Path(folder, "log"), Path(folder, "answer")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                handle = os.open(log, os.O_WRONLY | os.O_CREAT)
                os.dup2(handle, 1)
                os.dup2(handle, 2)
                form = "%(levelname)s %(name)s: %(message)s"
                logging.basicConfig(level=logging.INFO, format=form, force=True)
                answer.write_text(json.dumps(load(case, nodes)))
                code = 0
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        os.waitpid(child, 0)
        printed = log.read_text(errors="replace")
        found = json.loads(answer.read_text()) if answer.exists() else {"loaded": False}
        return {**found, "log": printed}


def main() -> None:
    """The command line."""
    comfyui = Path(sys.argv[1]).absolute()
    prepare(comfyui, ["h3video", "h3", "diffusers"])
    sys.argv = [str(comfyui / "main.py"), "--cpu"]
    answers, sys.stdout = sys.stdout, sys.stderr  # ComfyUI may print
    import comfy.options

    comfy.options.enable_args_parsing()
    for name in BEFORE:
        importlib.import_module(name)
    nodes = sys.modules["nodes"]
    for line in sys.stdin:
        print(json.dumps(fork(json.loads(line), nodes)), file=answers, flush=True)


if __name__ == "__main__":
    main()
