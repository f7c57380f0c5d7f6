"""One exception class for every H3 error code, each also a builtin that callers may expect."""

from __future__ import annotations


class H3Error(Exception):
    """Any failure that the index reports. `code` is uber/h3's."""

    code = 1


class H3FailedError(H3Error, ValueError):
    """The operation has no answer (cells too far apart, text that is no index)."""

    code = 1


class H3DomainError(H3Error, ValueError):
    """An argument is outside its range."""

    code = 2


class H3LatLngDomainError(H3Error, ValueError):
    """A latitude or longitude is not finite."""

    code = 3


class H3ResDomainError(H3Error, ValueError):
    """A resolution is outside 0..15."""

    code = 4


class H3CellInvalidError(H3Error, ValueError):
    """The number is no cell."""

    code = 5


class H3DirEdgeInvalidError(H3Error, ValueError):
    """The number is no directed edge."""

    code = 6


class H3UndirEdgeInvalidError(H3Error, ValueError):
    """The number is no undirected edge."""

    code = 7


class H3VertexInvalidError(H3Error, ValueError):
    """The number is no vertex."""

    code = 8


class H3PentagonError(H3Error, ValueError):
    """A pentagon is in the way."""

    code = 9


class H3DuplicateInputError(H3Error, ValueError):
    """A cell is given twice."""

    code = 10


class H3NotNeighborsError(H3Error, ValueError):
    """The cells share no edge."""

    code = 11


class H3ResMismatchError(H3Error, ValueError):
    """The resolutions do not fit together."""

    code = 12


class H3MemoryAllocError(H3Error, MemoryError):
    """There is not enough memory."""

    code = 13


class H3MemoryBoundsError(H3Error, ValueError):
    """The room for the answer is too small."""

    code = 14


class H3OptionInvalidError(H3Error, ValueError):
    """A mode or flag is unknown."""

    code = 15


class H3IndexInvalidError(H3Error, ValueError):
    """The number is no index."""

    code = 16


class H3BaseCellDomainError(H3Error, ValueError):
    """A base cell is outside 0..121."""

    code = 17


class H3DigitDomainError(H3Error, ValueError):
    """A digit is outside 0..6."""

    code = 18


class H3DeletedDigitError(H3Error, ValueError):
    """A pentagon has no such child."""

    code = 19


CODES: dict[int, type[H3Error]] = {
    c.code: c
    for c in (
        H3FailedError, H3DomainError, H3LatLngDomainError, H3ResDomainError, H3CellInvalidError,
        H3DirEdgeInvalidError, H3UndirEdgeInvalidError, H3VertexInvalidError, H3PentagonError,
        H3DuplicateInputError, H3NotNeighborsError, H3ResMismatchError, H3MemoryAllocError,
        H3MemoryBoundsError, H3OptionInvalidError,
        H3IndexInvalidError, H3BaseCellDomainError, H3DigitDomainError, H3DeletedDigitError,
    )
}  # fmt: skip


_REASONS = {c: (cls.__doc__ or "no index operation") for c, cls in CODES.items()}


def error(code: int, what: str) -> H3Error:
    """The exception of a code, saying what was given."""
    cls = CODES.get(code, H3FailedError)
    reason = _REASONS.get(code, _REASONS[1]).rstrip(".")
    return cls(f"{what}: {reason[0].lower()}{reason[1:]}")
