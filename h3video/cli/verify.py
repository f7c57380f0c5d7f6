"""`h3video verify`: read every finished piece of a job and compare its checksum."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any


def add_parser(commands: Any) -> None:
    """Add the subcommand to the parser."""
    p = commands.add_parser(
        "verify",
        help="read every piece of a job and compare checksums",
        description="Read every finished piece of a job and compare its checksum; exit code 1 if "
        "one is damaged (`h3video resume` makes it again). Changes nothing.",
    )
    p.add_argument("job", type=Path, help="job folder such as out.job")
    p.add_argument("--json", action="store_true", help="print it as JSON")
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read everything and print what is wrong."""
    from ..render.jobs import look

    status = look(args.job, thorough=True)
    wrong = {n: s for n, s in status.pieces.items() if s.startswith("damaged")}
    if args.json:
        json.dump(status.to_json(), sys.stdout, indent=2, ensure_ascii=False)
        print()
        return 1 if wrong else 0
    for name, state in wrong.items():
        print(f"{name}: {state}")
    missing = sum(s in ("missing", "being made") for s in status.pieces.values())
    print(
        f"{status.folder}: {status.done} of {len(status.pieces)} pieces are whole, "
        f"{len(wrong)} damaged, {missing} not made yet"
    )
    for note in status.notes:
        print(f"note: {note}")
    return 1 if wrong else 0
