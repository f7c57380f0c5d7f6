"""The quality lab: what hexagonal tiles buy, measured against rectangles and against no tiling.

    python -m benchmarks.quality --help        (from the repository's root; make lab runs all of it)

Needs the extras `diffusers` and `lab`.
"""
