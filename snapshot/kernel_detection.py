"""What injected faults say of a kernel suite's bounds: which are caught, and by what they pass.

Pure: the faults were run and judged elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from snapshot.result import Verdict


@dataclass(frozen=True)
class Exposure:
    """Whether one fault shows at one case.

    Attributes:
        fault, case: which.
        verdict: what the suite's tolerance makes of it (WRONG, NONFINITE, ERROR); None where it
            sees nothing.
        headline: that verdict's sentence.
        effect: whether the fault changes one bit of this case at all; where it does not (a
            sink counted twice where there is none), it can be neither caught nor missed.
        rel_l2: the worst row's error: the loosest bound that still catches it lies below.
        let_through: by candidate: the relax rules (file and key) under which it passes.
    """

    fault: str
    case: str
    verdict: Verdict | None
    headline: str
    effect: bool
    rel_l2: float | None
    let_through: Mapping[str, tuple[str, ...]]

    @property
    def caught(self) -> bool:
        return self.verdict is not None

    @property
    def missed(self) -> bool:
        return self.effect and not self.caught


@dataclass(frozen=True)
class KernelDetection:
    """All faults in one kernel suite.

    Attributes:
        exposures: one a fault and case.
    """

    suite: str
    exposures: tuple[Exposure, ...]

    @property
    def unseen(self) -> list[str]:
        """Faults that change some case and are caught in none."""
        affected = [e for e in self.exposures if e.effect]
        caught = {e.fault for e in affected if e.caught}
        return [f for f in dict.fromkeys(e.fault for e in affected) if f not in caught]

    @property
    def let_through(self) -> dict[str, set[str]]:
        """By relax rule: the faults that pass by it."""
        found: dict[str, set[str]] = {}
        for exposure in self.exposures:
            for rules in exposure.let_through.values() if exposure.effect else ():
                for rule in rules:
                    found.setdefault(rule, set()).add(exposure.fault)
        return found
