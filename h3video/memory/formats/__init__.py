"""What a model file or folder says about itself: its header, read without its weights.

Standard library only. Files may be hostile: every reader works in bounded time and memory and
raises UsageError for what is damaged, absurd or no model.
"""

from .folder import Folder, Part, read_folder
from .gguf import read_gguf
from .header import FileHeader, StoredTensor, read_header
from .safetensors import read_index, read_safetensors

__all__ = [
    "FileHeader",
    "Folder",
    "Part",
    "StoredTensor",
    "read_folder",
    "read_gguf",
    "read_header",
    "read_index",
    "read_safetensors",
]
