"""Both backends under one parametrised fixture."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # h3_cells, h3_official

from h3video import h3
from h3video.h3 import build, kernel


@pytest.fixture(scope="session")
def library():
    """The native library, built if there is a compiler (make test builds it before)."""
    if not kernel.library_path().is_file():
        if not any(map(shutil.which, ("cc", "gcc", "clang"))):
            pytest.skip("no native index and no C compiler")
        assert build.main([]) == 0
    return kernel.library_path()


@pytest.fixture(params=["native", "pure"])
def index(request):
    """h3video.h3 on one backend."""
    if request.param == "native":
        request.getfixturevalue("library")
    with h3.use_backend(request.param):
        assert h3.backend() == request.param
        yield h3
