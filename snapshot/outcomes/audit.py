"""Which injected faults the tolerances see."""

from __future__ import annotations

from dataclasses import dataclass

from snapshot.calibrate import POWER
from snapshot.detection import OWN, Detection
from snapshot.kernel_detection import KernelDetection


@dataclass(frozen=True)
class Audit:
    """The outcome of ``goldens audit``.

    Attributes:
        detections: one a suite and fingerprint.
        kernels: one a kernel suite.
        expired: rules past their day, with owner and date.
        advice: what should be done about relaxations, by rule.
    """

    detections: tuple[Detection, ...]
    kernels: tuple[KernelDetection, ...] = ()
    expired: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()

    @property
    def underpowered(self) -> list[Detection]:
        """Where adapters move the logprobs less than `POWER` times what the batch does."""
        return [d for d in self.detections if d.power is not None and d.power < POWER]

    @property
    def exit_code(self) -> int:
        """1: a fault passes in its golden's own batch, no kernel case or a relax rule sees one, a
        suite is underpowered, or a rule has expired; 4: no fault was run; 0."""
        missed = any(d.missed(OWN) for d in self.detections)
        unseen = any(k.unseen or k.let_through for k in self.kernels)
        if self.expired or self.underpowered or missed or unseen:
            return 1
        ran = any(d.cells for d in self.detections) or any(k.exposures for k in self.kernels)
        return 0 if ran else 4
