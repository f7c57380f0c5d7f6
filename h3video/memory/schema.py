"""The plan as JSON, and the JSON Schema that it keeps to."""

from __future__ import annotations

from typing import Any

from .ledger import Ledger

VERSION = 1


def ledger_json(ledger: Ledger, advice: tuple[Any, ...] = ()) -> dict[str, Any]:
    """The plan as plain data; keeps to SCHEMA."""
    from .advice import verdict
    from .settings import settings

    ask = ledger.ask
    phase, place = ledger.worst
    tokens = ask.tokens
    return {
        "format": VERSION,
        "verdict": verdict(ledger, advice), "fits": ledger.fits, "because": ledger.because(),
        "model": ask.spec.name, "quant": ask.quant, "runtime": ask.runtime,
        "width": ask.width, "height": ask.height, "frames": ask.frames,
        "asked_frames": ask.asked_frames or ask.frames,
        "machine": ask.machine.to_json(),
        "tokens": {
            "video": tokens.video, "text": tokens.text, "sound": tokens.sound,
            "conditions": tokens.conditions, "references": ask.reference_tokens,
            "at_once": ask.rows,
        },
        "tiles": None if ask.tiles is None else {
            "runs": ask.tiles.runs, "tile_tokens": ask.tiles.tile_tokens,
            "frame_tokens": ask.tiles.frame_tokens, "tokens": ask.tiles.all_tokens,
            "time": ask.tiles.time,
            "settings": dict(ask.tiles.settings),
        },
        "peak_bytes": ledger.peak,
        "decides": {"phase": phase.name, "memory": place.name},
        "streamed_bytes": ledger.streamed,
        "phases": [
            {
                "name": p.name,
                "memories": [
                    {"name": m.name, "peak_bytes": m.peak, "needed_bytes": m.needed,
                     "high_bytes": m.high, "limit_bytes": [m.limit.low, m.limit.high],
                     "state": m.state}
                    for m in ledger.places(p)
                ],
                "terms": [t.to_json() for t in p.terms],
                "notes": list(p.notes),
            }
            for p in ledger.phases
        ],
        "blockers": [b.to_json() for b in ledger.blockers],
        "warnings": list(ledger.warnings),
        "advice": [a.to_json() for a in advice],
        "settings": [s.to_json() for s in settings(ledger)],
    }  # fmt: skip


def _object(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "object", "properties": properties, "required": sorted(properties),
        "additionalProperties": False, **more,
    }  # fmt: skip


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_TEXT: dict[str, Any] = {"type": "string"}
_PAIR: dict[str, Any] = {"type": "array", "items": _COUNT, "minItems": 2, "maxItems": 2}
_MAYBE: dict[str, Any] = {"type": ["integer", "null"]}
_TEXTS: dict[str, Any] = {"type": "object", "additionalProperties": _TEXT}

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "h3video plan",
    **_object({
        "format": {"const": VERSION},
        "verdict": {"enum": ["fits", "tight", "fits if", "does not fit"]},
        "fits": {"type": "boolean"}, "because": _TEXT, "model": _TEXT, "quant": _TEXT,
        "runtime": _TEXT, "width": _COUNT, "height": _COUNT, "frames": _COUNT,
        "asked_frames": _COUNT, "peak_bytes": _COUNT, "streamed_bytes": _COUNT,
        "decides": _object({"phase": _TEXT, "memory": _TEXT}),
        "machine": _object({
            "name": _TEXT, "gpu": {"enum": ["mps", "cuda", "rocm", "cpu"]}, "ram_bytes": _COUNT,
            "vram_bytes": _COUNT, "metal_bytes": {"anyOf": [_PAIR, {"type": "null"}]},
            "device_limit_bytes": _PAIR, "ram_limit_bytes": _PAIR, "swap_bytes": _MAYBE,
            "compressed_bytes": _MAYBE, "wired_limit_bytes": _MAYBE, "source": _TEXT,
        }),
        "tokens": _object(dict.fromkeys(
            ("video", "text", "sound", "conditions", "references", "at_once"), _COUNT)),
        "tiles": {"anyOf": [{"type": "null"}, _object({
            "runs": _COUNT, "tile_tokens": _COUNT, "frame_tokens": _COUNT, "tokens": _COUNT,
            "time": {"type": "number"}, "settings": _TEXTS,
        })]},
        "phases": _list(_object({
            "name": _TEXT, "notes": _list(_TEXT),
            "memories": _list(_object({
                "name": _TEXT, "peak_bytes": _COUNT, "needed_bytes": _COUNT, "high_bytes": _COUNT,
                "limit_bytes": _PAIR, "state": {"enum": ["fits", "tight", "does not fit"]},
            })),
            "terms": _list(_object({
                "name": _TEXT, "where": {"enum": ["device", "host"]}, "kind": _TEXT,
                "bytes": _COUNT, "low_bytes": _COUNT, "high_bytes": _COUNT,
                "elastic_bytes": _COUNT, "basis": {"enum": ["exact", "formula", "range"]},
                "formula": _TEXT, "source": _TEXT,
            })),
        })),
        "blockers": _list(_object({"what": _TEXT, "why": _TEXT, "remedy": _TEXT})),
        "warnings": _list(_TEXT),
        "advice": _list(_object({
            "changes": _list(_TEXT), "kinds": _list(_TEXT), "fits": {"type": "boolean"},
            "state": _TEXT, "peak_bytes": _COUNT, "time": {"type": "number"}, "settings": _TEXTS,
            "notes": _list(_TEXT),
        })),
        "settings": _list(_object({"kind": _TEXT, "text": _TEXT, "why": _TEXT})),
    }),
}  # fmt: skip
