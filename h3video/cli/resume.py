"""`h3video resume`: continue a job from what it has finished."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from . import options


def add_parser(commands: Any) -> None:
    """Add the subcommand to the parser."""
    p = commands.add_parser(
        "resume",
        help="continue a job after a crash or Ctrl-C",
        description="Continue a job: whatever is finished and whole is kept, the rest is made. "
        "Refused if the model or a setting is not what it was.",
    )
    p.add_argument("job", type=Path, help="job folder such as out.job")
    options.allow(p)
    options.worker(p)
    p.add_argument("--json", action="store_true", help="print the bill as JSON")
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Continue."""
    from ..render.document import load_document
    from .long_options import work

    document = load_document(args.job)
    if args.worker:
        document["engine"]["worker"] = True
    return work(args.job, document, args.allow, args.json)
