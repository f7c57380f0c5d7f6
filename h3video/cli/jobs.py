"""`h3video jobs`: the jobs in a folder."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from ..errors import UsageError


def add_parser(commands: Any) -> None:
    """Add the subcommand to the parser."""
    p = commands.add_parser(
        "jobs", help="list the jobs here", description="List jobs in folders and one level below."
    )
    p.add_argument("folders", type=Path, nargs="*", default=[Path(".")], help="default: here")
    p.add_argument("--json", action="store_true", help="print them as JSON")
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Look at each and print a line."""
    from ..render.jobs import find_jobs, look

    for folder in args.folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is no folder; give one that holds jobs")
    found = []
    for folder in find_jobs(args.folders):
        try:
            found.append(look(folder))
        except UsageError as e:
            print(f"h3video: {e}", file=sys.stderr)
    if args.json:
        json.dump([s.to_json() for s in found], sys.stdout, indent=2, ensure_ascii=False)
        print()
        return 0
    for status in found:
        state = "finished" if status.finished else f"{status.done}/{len(status.pieces)} pieces"
        busy = f"  process {status.holder.get('pid')} works on it" if status.holder else ""
        print(f"{status.folder!s:<32} {state:<16} {status.document['output']}{busy}")
    if not found:
        print("no jobs here; `h3video render --frames 721 ...` makes one")
    return 0
