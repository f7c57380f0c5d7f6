"""GGUF files by hand: the format written down once more, independently of the reader."""

import struct


class Writer:
    """Bytes of a GGUF header: `order` "<" or ">", counts as version 1 or later ones have them."""

    def __init__(self, version=3, order="<"):
        self.order, self.version = order, version
        self.out = bytearray(b"GGUF" + struct.pack(order + "I", version))

    def n(self, letter, value):
        self.out += struct.pack(self.order + letter, value)
        return self

    def count(self, value):
        return self.n("I" if self.version == 1 else "Q", value)

    def text(self, value):
        raw = value.encode() if isinstance(value, str) else value
        self.count(len(raw))
        self.out += raw
        return self

    def pair(self, key, kind, letter, value):
        return self.text(key).n("I", kind).n(letter, value)

    def tensor(self, name, dims, kind, offset):
        self.text(name).n("I", len(dims))
        for d in dims:
            self.count(d)
        return self.n("I", kind).n("Q", offset)

    def done(self, data=0, alignment=32):
        self.out += bytes(-len(self.out) % alignment) + bytes(data)
        return bytes(self.out)


def small(version=3, order="<"):
    """Two tensors (Q4_0 [4, 64] and F32 [3]) and three metadata entries."""
    w = Writer(version, order).count(2).count(3)
    w.text("general.architecture").n("I", 8).text("wan")
    w.pair("general.alignment", 4, "I", 32).pair("x", 12, "d", 0.5)
    w.tensor("a", (64, 4), 2, 0).tensor("b", (3,), 0, 160)
    return w.done(160)[:-16] + bytes(16) + bytes(12)
