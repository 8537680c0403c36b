"""What an endpoint takes: structured replies, temperature, seed. Learned from refusals, once an endpoint and model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final, Literal

Form = Literal["json_schema", "json_object", "prompt", "text"]
"""How the reply's form is asked for: enforced schema, enforced JSON with the schema in the prompt, the schema in the prompt alone; plain text has none."""

WEAKER: Final[dict[Form, Form | None]] = {"json_schema": "json_object", "json_object": "prompt", "prompt": None, "text": None}

PROBE_S: Final = 1.0
"""How long the others wait for the first answer of an endpoint, which may be a refusal."""

REFUSED_S: Final = 10.0
"""How long they wait where it was a refusal, and other ways are being tried."""

_ABOUT_FORM = ("response_format", "json_schema", "json_object", "structured", "guided", "grammar", "schema")


@dataclass(frozen=True, slots=True)
class Features:
    """What a request uses."""

    form: Form = "json_schema"
    temperature: bool = True
    seed: bool = True


class Capabilities:
    """What is known of one endpoint and model; on the background loop alone.

    A refusal counts as a missing capability only once the same request has succeeded without it. Until the first success one request goes
    ahead and the others wait up to `PROBE_S`, so that a refusal happens once and not once per slot.
    """

    def __init__(self, form: Form = "json_schema") -> None:
        """Begin with everything assumed and nothing known; ``form`` is the strongest that is asked for."""
        self.general = Features(form)
        self._forms: dict[str, Form] = {}
        self._known = False
        self._probing = 0
        self._refused = False
        self._changed = asyncio.Event()

    def features(self, schema: str) -> Features:
        """Return what to ask with for a reply of this schema."""
        form = self._forms.get(schema)
        return self.general if form is None or form == self.general.form else replace(self.general, form=form)

    async def first_goes_ahead(self) -> None:
        """Wait while nothing is known and another request is finding out."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while not self._known and self._probing:
            left_s = begun + (REFUSED_S if self._refused else PROBE_S) - loop.time()
            if left_s <= 0:
                return
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._changed.wait()

    @contextmanager
    def probing(self) -> Iterator[None]:
        """Be the one that finds out, where nothing is known."""
        if self._known:
            yield
            return
        self._probing += 1
        try:
            yield
        finally:
            self._end_probe()

    @contextmanager
    def stepping_aside(self) -> Iterator[None]:
        """Let another request find out, while this one waits before it tries again."""
        if not self._probing:
            yield
            return
        self._end_probe()
        try:
            yield
        finally:
            self._probing += 1

    def _end_probe(self) -> None:
        self._probing -= 1
        if not self._probing:
            self._refused = False
        self._changed.set()

    def suspect(self) -> None:
        """Note that a request was refused and is being tried in other ways."""
        self._refused = not self._known
        self._changed.set()

    def learn(self, schema: str, used: Features) -> None:
        """Remember what a success used."""
        if self._known and self._forms.get(schema) == used.form and replace(self.general, form=used.form) == used:
            return
        if not self._forms:
            self.general = used
        else:  # another schema was taken in the stronger form: the weaker one is for this schema alone
            self.general = replace(self.general, temperature=used.temperature, seed=used.seed)
        self._forms[schema] = used.form
        self._known = True
        self._changed.set()

    def alternatives(self, schema: str, refused: Features, about: str) -> list[Features]:
        """Return what to try instead, the likeliest first; empty where everything that was used is known to be taken.

        ``about`` is what the endpoint names as the cause, in lower case.
        """
        if self._known and (now := self.features(schema)) != refused:  # learned by another request meanwhile
            return [now]
        named: list[Features] = []
        doubtful = not self._known
        if refused.temperature and "temperature" in about:
            named.append(replace(refused, temperature=False))
        if refused.seed and "seed" in about:
            named.append(replace(refused, seed=False))
        weaker: list[Features] = []
        form = WEAKER[refused.form]
        while form is not None:
            weaker.append(replace(refused, form=form))
            form = WEAKER[form]
        form_is_doubtful = schema not in self._forms
        if named:
            return named if doubtful else []
        if any(word in about for word in _ABOUT_FORM):
            return weaker if form_is_doubtful else []
        others = [
            replace(refused, form=form, temperature=temperature, seed=seed)
            for form in dict.fromkeys((refused.form, "prompt" if form_is_doubtful and weaker else refused.form))
            for temperature, seed in ((refused.temperature, False), (False, refused.seed), (False, False))
        ]
        tried = [*(weaker if form_is_doubtful else []), *(others if doubtful else [])]
        return [features for features in dict.fromkeys(tried) if features != refused]
