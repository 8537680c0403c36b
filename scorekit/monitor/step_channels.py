"""Where calls of the steps inside a function go."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from scorekit.monitor.scoring import LOG
from scorekit.monitor.worker import attach, note
from scorekit.run import unwrapped

if TYPE_CHECKING:
    from scorekit.monitor.channel import Attached, Channel, Open

MOST_STEPS: Final = 256
"""How many different steps with scorers one function may have."""


class StepChannels:
    """The channels of the steps inside one function: each is attached when it is first wanted, with the function's settings.

    Parameters
    ----------
    around
        The function's channel.
    """

    def __init__(self, around: Channel) -> None:
        """Attach none yet."""
        self._around = around
        self._told = False
        self._found: dict[tuple[Any, ...], tuple[Open | None, tuple[Attached, ...]]] = {}

    def opened(self, name: str, scorers: tuple[Attached, ...]) -> Open | None:
        """Return a step's channel; None where its scorers cannot be attached, which is said once.

        A ``with`` statement gives new scorers each time where it writes ``partial(...)`` or ``lambda``. Those that the same code made are
        the same, and those that came first are asked.
        """
        key = (name, *((attached.key, attached.version, *_mark(attached.scorer)) for attached in scorers))
        found = self._found.get(key)
        if found is None and len(self._found) >= MOST_STEPS:
            self._refuse(name)
            return None
        if found is None:
            # the scorers are kept with their channel, so that no others get their ids
            found = self._found.setdefault(key, (self._attached(name, scorers), scorers))
        return found[0]

    def _refuse(self, name: str) -> None:
        """Give up a step of a function that makes new scorers all the time; a channel for each would fill the memory."""
        note(hook_errors=1)
        if not self._told:
            self._told = True
            LOG.warning(
                "%r has had %d steps with other scorers each; make the scorers of %r once, outside.",
                self._around.entity_id,
                MOST_STEPS,
                name,
            )

    def _attached(self, name: str, scorers: tuple[Attached, ...]) -> Open | None:
        """Attach a step's scorers; wrong ones must not end the function that is in the middle of its work."""
        try:
            return attach(replace(self._around, entity_type="step", entity_id=name, scorers=scorers))
        except Exception as error:  # noqa: BLE001
            note(hook_errors=1)
            LOG.warning("The scorers of the step %r in %r cannot be used.", name, self._around.entity_id, exc_info=error)
            return None


def _mark(scorer: Any) -> tuple[Any, ...]:
    """Return what tells a scorer from others that other code made."""
    function, bound = unwrapped(scorer)
    code = getattr(function, "__code__", function)
    return id(code), id(getattr(function, "__self__", None)), repr(bound) if bound else ""
