"""Names of operators that several layers of this package speak about."""

from __future__ import annotations

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
Q_DQ_OPERATORS = frozenset({QUANTIZE, DEQUANTIZE})
