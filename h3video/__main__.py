"""`python -m h3video` is the command line."""

from .cli.main import run

run()
