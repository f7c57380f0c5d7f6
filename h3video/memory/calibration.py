"""What this machine's own bills teach: factors for activations, bytes of the program itself.

`h3video plan --calibrate bill.json` reads a bill of `h3video render`, which holds what was
predicted and what was measured, and keeps the quotients in a user file. Predictions for the same
runtime and kind of machine then use them.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import UsageError
from .ask import Ask
from .terms import Phase, Term
from .units import Range

LOW, HIGH = 0.5, 2.0
"""Quotients beyond these are not a matter of constants: something else was running, or the bill
is of another job."""


@dataclass(frozen=True)
class Calibration:
    """Learned constants, by "runtime on gpu": {"program": bytes, "denoise": factor, ...}."""

    constants: Mapping[str, Mapping[str, float]]

    def of(self, ask: Ask) -> Mapping[str, float]:
        """The constants for an ask; empty when nothing was learned."""
        return self.constants.get(key(ask.runtime, ask.machine.gpu), {})


def key(runtime: str, gpu: str) -> str:
    """The name under which a runtime on a kind of machine keeps its constants."""
    return f"{runtime} on {gpu}"


def user_file() -> Path:
    """Where the constants are kept: H3VIDEO_CALIBRATION, or the system's place for settings."""
    stated = os.environ.get("H3VIDEO_CALIBRATION")
    if stated:
        return Path(stated)
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        base = Path(os.environ.get("APPDATA", str(Path.home())))
    else:
        base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return base / "h3video" / "calibration.json"


def load(path: Path | None = None) -> Calibration:
    """The user's constants; empty without a file. Raises UsageError for a damaged one."""
    path = path or user_file()
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return Calibration({})
    try:
        data = json.loads(text)["constants"]
        found = {
            str(name): {str(k): float(v) for k, v in values.items()}
            for name, values in data.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise UsageError(
            f"calibration {path} is damaged ({type(e).__name__}); delete it and calibrate again"
        ) from None
    if not all(math.isfinite(v) and v > 0 for vs in found.values() for v in vs.values()):
        raise UsageError(f"calibration {path} holds values that cannot be; delete it")
    return Calibration(found)


def learn(bill: Mapping[str, Any], known: Calibration) -> tuple[Calibration, list[str]]:
    """Constants with those of a bill; and a line for each that was learned or refused.

    Raises UsageError when the bill holds no comparison, or one with fields missing.
    """
    name, rows = _comparison(bill)
    if not rows:
        raise UsageError("the bill has no measured peaks; this system does not tell them")
    learned = dict(known.constants.get(name, {}))
    lines = []
    least = min(rows, key=lambda r: r["predicted_bytes"] - r["program_bytes"])
    program = least["measured_bytes"] - (least["predicted_bytes"] - least["program_bytes"])
    if program > 0:
        learned["program"] = float(program)
        lines.append(f"program: {program / 2**30:.2f} GiB (from {least['name']})")
    else:
        program = least["program_bytes"]
    for r in rows:
        activations = r["activation_bytes"]
        if r is least or activations < 2**24:
            continue
        fixed = r["predicted_bytes"] - r["program_bytes"] - activations + program
        factor = (r["measured_bytes"] - fixed) / activations
        if not LOW <= factor <= HIGH:
            lines.append(f"{r['name']}: x {factor:.2f} is not believable; not learned")
            continue
        learned[str(r["name"])] = factor
        lines.append(f"{r['name']}: activations x {factor:.3f}")
    return Calibration({**known.constants, name: learned}), lines


_COUNTS = ("measured_bytes", "predicted_bytes", "program_bytes", "activation_bytes")


def _comparison(bill: Mapping[str, Any]) -> tuple[str, list[Mapping[str, Any]]]:
    """The bill's key and the phases that were measured. Raises UsageError for anything else."""
    ledger = bill.get("ledger")
    if not isinstance(ledger, Mapping):
        ledger = {}
    if not isinstance(ledger.get("phases"), list) or not ledger["phases"]:
        raise UsageError(
            "the bill holds no ledger; make one with `h3video render --json` of this version"
        )
    rows = []
    for phase in ledger["phases"]:
        if isinstance(phase, Mapping) and phase.get("measured_bytes") is None:
            continue
        counts = [phase.get(n) for n in _COUNTS] if isinstance(phase, Mapping) else []
        if not counts or not all(_is_count(c) for c in counts) or "name" not in phase:
            raise UsageError(
                f"the bill's phase {phase!r:.60} lacks its bytes; make a bill with `h3video render "
                "--json` of this version"
            )
        if phase["measured_bytes"]:
            rows.append(phase)
    if not isinstance(ledger.get("runtime"), str) or not isinstance(ledger.get("gpu"), str):
        raise UsageError("the bill's ledger names no runtime and gpu; make it with render --json")
    return key(ledger["runtime"], ledger["gpu"]), rows


def _is_count(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value >= 0


def save(calibration: Calibration, path: Path | None = None) -> Path:
    """Write the user file whole or not at all."""
    path = path or user_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    data = {"format": 1, "constants": {k: dict(v) for k, v in calibration.constants.items()}}
    with open(draft, "w", encoding="utf-8") as f:
        json.dump(data, f, indent=1)
        f.write("\n")
        f.flush()
        os.fsync(f.fileno())
    os.replace(draft, path)
    return path


def calibrated(phases: tuple[Phase, ...], ask: Ask, calibration: Calibration) -> tuple[Phase, ...]:
    """Phases with the constants that were learned for this runtime and machine."""
    constants = calibration.of(ask)
    if not constants:
        return phases
    return tuple(
        replace(p, terms=tuple(_apply(t, p.name.split(",")[0], constants) for t in p.terms))
        for p in phases
    )


def _apply(term: Term, phase: str, constants: Mapping[str, float]) -> Term:
    if term.name == "program" and "program" in constants:
        size = Range.exactly(constants["program"])
        return replace(term, size=size, usual=size.low, source="this machine's bill")
    factor = constants.get(phase)
    if term.kind != "activations" or factor is None:
        return term
    return replace(
        term, size=term.size.scaled(factor, factor),
        usual=None if term.usual is None else int(term.usual * factor),
        formula=f"({term.formula}) x {factor:.3f}", source=f"{term.source}; this machine's bill",
    )  # fmt: skip
