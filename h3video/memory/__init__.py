"""What a run takes: measured here, predicted by the ledger."""

from .meter import Phase, PhaseMeter, format_bytes

__all__ = ["Phase", "PhaseMeter", "format_bytes"]
