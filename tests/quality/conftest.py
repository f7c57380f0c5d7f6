"""The lab is run from the repository's root; its tests import it from there."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
