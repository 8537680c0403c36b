"""The confusion matrix in a view: of a result that is there, or compared anew whenever a label changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scorekit.errors import ArgumentTypeError, OptionRangeError, UnknownOptionError
from scorekit.texts import without_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from scorekit.analysis.agreement import Agreement


class Matrix:
    """How far a score agrees with the labels of a view.

    Parameters
    ----------
    given
        What `scorekit.agreement` found, a function from the labelled frame to it, or None.
    count
        How many rows the frame has.

    Attributes
    ----------
    agreement
        What was found; None where nothing was asked for, or where it cannot be found.
    problem
        Why it cannot be found; empty elsewhere.
    """

    def __init__(self, given: Agreement | Callable[[pd.DataFrame], Agreement] | None, count: int) -> None:
        """Take what is there; with a function, `compare` finds it."""
        self.count = count
        self.compares = callable(given)
        self.problem = ""
        self._function: Any = given if callable(given) else None
        self.agreement: Agreement | None = None if given is None or callable(given) else self._checked(given)

    def compare(self, df: pd.DataFrame) -> None:
        """Compare anew; too few labels leave no matrix, which is no error."""
        self.agreement, self.problem = None, ""
        try:
            self.agreement = self._checked(self._function(df))
        except OptionRangeError as error:
            self.problem = str(error)

    def follow(self, df: pd.DataFrame) -> None:
        """Compare anew after a label has changed; whatever the reader's own function does then, the label is taken."""
        try:
            self.compare(df)
        except Exception as error:  # noqa: BLE001
            self.problem = f"{type(error).__name__}: {error}"

    def mask(self, cell: list[str]) -> NDArray[np.bool_]:
        """Return which rows are in a cell: people's label and the score's.

        Raises
        ------
        UnknownOptionError
            When there is no such cell.
        """
        if self.agreement is None:
            raise UnknownOptionError.from_value("filters['cell']", cell, [])
        return self.agreement.rows(*cell)

    def shown(self) -> dict[str, Any]:
        """Return what a view shows: ``matrix`` or None, and why there is none."""
        found, matrix = self.agreement, None
        if found is not None:
            matrix = {
                "human": without_surrogates(found.human),
                "score": without_surrogates(found.score),
                "rows": [without_surrogates(str(label)) for label in found.matrix.index],
                "columns": [without_surrogates(str(label)) for label in found.matrix.columns],
                "counts": found.matrix.to_numpy(dtype=int).tolist(),
                "remarks": [without_surrogates(remark) for remark in found.remarks[:2]],
            }
        return {"matrix": matrix, "unmatched": without_surrogates(self.problem)}

    def _checked(self, found: object) -> Agreement:
        """Return what was found of this frame, and raise where it is something else."""
        from scorekit.analysis.agreement import Agreement

        if not isinstance(found, Agreement):
            raise ArgumentTypeError.from_value("agreement", found, "what agreement(df) returns, or a function from a frame to it")
        if (rows := len(found.codes[0])) != self.count:
            msg = f"agreement is of a frame of {rows:,} rows, and this one has {self.count:,}. Compare the frame that is explored."
            raise ArgumentTypeError(msg)
        return found
