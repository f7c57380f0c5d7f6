"""What a run takes: measured here, predicted by the ledger."""

from .meter import PhaseMeter, format_bytes

__all__ = ["PhaseMeter", "format_bytes"]
