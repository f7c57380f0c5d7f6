"""`h3video status`: how far a job is."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any


def add_parser(commands: Any) -> None:
    """Add the subcommand to the parser."""
    p = commands.add_parser(
        "status",
        help="how far a job is",
        description="Show the chunks of a job: what is finished, who works on it.",
    )
    p.add_argument("job", type=Path, help="job folder such as out.job")
    p.add_argument("--json", action="store_true", help="print it as JSON")
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Look and print."""
    from ..render.jobs import describe, look

    status = look(args.job)
    if args.json:
        json.dump(status.to_json(), sys.stdout, indent=2, ensure_ascii=False)
        print()
    else:
        print(describe(status))
    return 0
