"""The `h3video` command: parse, dispatch, and turn errors into one line and an exit code."""

from __future__ import annotations

import argparse
import enum
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from .. import __version__
from ..errors import UsageError
from .options import Refused

COMMANDS = ("plan", "inspect", "render", "decode", "jobs", "status", "resume", "redo", "verify")


class Exit(enum.IntEnum):
    """Exit codes."""

    OK = 0
    FAILED = 1  # something went wrong while working
    USAGE = 2  # a value that cannot be used; nothing was done
    INTERRUPTED = 130  # Ctrl-C


class Parser(argparse.ArgumentParser):
    """argparse with our error form: one line, exit code 2."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see `{self.prog} --help`")


def build_parser(first: str | None = None) -> Parser:
    """All subcommands, or only the one that the command line begins with; imports nothing heavy."""
    parser = Parser(
        prog="h3video",
        description="Hexagonally tiled video diffusion on machines that are too small.",
    )
    parser.add_argument("--version", action="version", version=f"h3video {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for name in (first,) if first in COMMANDS else COMMANDS:
        import_module(f"{__package__}.{name}").add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit code."""
    try:
        given = sys.argv[1:] if argv is None else argv
        parser = build_parser(given[0] if given else None)
        args = parser.parse_args(given)
        if args.command is None:
            parser.print_help()
            return Exit.OK
        return int(args.run(args))
    except (UsageError, Refused) as e:
        return complain(str(e), Exit.USAGE)
    except KeyboardInterrupt:
        return complain("interrupted", Exit.INTERRUPTED)
    except BrokenPipeError:
        # The reader went away (| head): not our failure, but nothing more can be printed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except (OSError, RuntimeError, MemoryError, ImportError) as e:
        if os.environ.get("H3VIDEO_TRACEBACK"):
            raise
        return complain(
            f"{type(e).__name__}: {e} (set H3VIDEO_TRACEBACK=1 for the traceback)", Exit.FAILED
        )


def complain(message: str, code: Exit) -> int:
    """One line on stderr; returns the code."""
    print(f"h3video: error: {' '.join(message.split())}", file=sys.stderr)
    return code


def run() -> NoReturn:
    """Console entry point."""
    sys.exit(main())
