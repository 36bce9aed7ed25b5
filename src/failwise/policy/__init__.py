"""failure + declarations + history → decision: one pure function over tables in TOML."""

from failwise.policy.decide import TablePolicy
from failwise.policy.table import PRESETS, Row, Settings, Table, load

__all__ = ["PRESETS", "Row", "Settings", "Table", "TablePolicy", "load"]
