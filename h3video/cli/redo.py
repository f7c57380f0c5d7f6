"""`h3video redo`: make one chunk of a job again, and what depends on it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from . import options


def add_parser(commands: Any) -> None:
    """Add the subcommand to the parser."""
    p = commands.add_parser(
        "redo",
        help="make one chunk of a job again, and what depends on it",
        description="Drop a chunk and everything that was made from it, then make it again. "
        "Chunks before it stay.",
    )
    p.add_argument("job", type=Path, help="job folder such as out.job")
    p.add_argument("--chunk", type=options.integer("chunk", 1, 100_000), required=True,
                   metavar="N", help="counted from 1, as `h3video status` shows")  # fmt: skip
    p.add_argument("--seed", type=options.integer("seed", 0, 2**63 - 1), help="another seed")
    p.add_argument("--prompt", type=options.prompt, help="another prompt, or @file")
    p.add_argument("--negative", type=options.prompt, help="another negative prompt, or @file")
    p.add_argument("--no-run", action="store_true", help="only drop; `h3video resume` makes it")
    options.worker(p)
    p.add_argument("--json", action="store_true", help="print the bill as JSON")
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Drop, then continue."""
    from ..render.document import load_document
    from ..render.jobs import redo
    from .long_options import work

    wishes = {
        name: getattr(args, name)
        for name in ("seed", "prompt", "negative")
        if getattr(args, name) is not None
    }
    redo(args.job, args.chunk - 1, wishes, say=(lambda text: None) if args.json else print)
    if args.no_run:
        return 0
    document = load_document(args.job)
    if args.worker:
        document["engine"]["worker"] = True
    return work(args.job, document, [], args.json)
