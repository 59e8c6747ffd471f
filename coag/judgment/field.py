"""The energy field on a torus, and where capabilities lie on it.

A field spreads what is injected at one capability to those that lie near it. Consultations use a
field of their own that begins empty, has no decay, and is read by the router: with the main field,
which old injections fill, contexts make no difference.

Source: W. K. Million (2026), sections 4.1 and 5.4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from coag.errors import ConfigurationError

Place = tuple[int, int]
"""Bins of theta and of phi."""


class TorusField:
    """Energy in bins of theta and phi; both wrap around.

    Args:
        theta: Bins of the first angle.
        phi: Bins of the second one.

    Raises:
        ConfigurationError: There is no bin.
    """

    def __init__(self, theta: int = 12, phi: int = 12) -> None:
        if theta < 1 or phi < 1:
            raise ConfigurationError(f"A torus needs bins, got {theta} and {phi}.")
        self.theta, self.phi = theta, phi
        self._energy = [[0.0] * phi for _ in range(theta)]

    def inject(self, place: Place, energy: float) -> None:
        """Adds energy at a place.

        Raises:
            ConfigurationError: The energy is not a finite number.
        """
        if not math.isfinite(energy):
            raise ConfigurationError(f"Energy must be a finite number, got {energy!r}.")
        self._energy[place[0] % self.theta][place[1] % self.phi] += energy

    def diffuse(self, alpha_theta: float = 0.2, alpha_phi: float = 0.2, steps: int = 1) -> None:
        """Spreads energy to the four neighbours of each bin; the sum stays.

        Args:
            alpha_theta: Share of a bin's energy that leaves it along theta in a step.
            alpha_phi: The same along phi; both together at most 1.
            steps: How often.
        """
        if alpha_theta < 0 or alpha_phi < 0 or alpha_theta + alpha_phi > 1:
            raise ConfigurationError(
                f"Mixing must be from 0 to 1 in all, got {alpha_theta} and {alpha_phi}."
            )
        stays = 1 - alpha_theta - alpha_phi
        for _ in range(steps):
            old, rows = self._energy, self.theta
            self._energy = [
                [
                    stays * old[i][j]
                    + alpha_theta / 2 * (old[i - 1][j] + old[(i + 1) % rows][j])
                    + alpha_phi / 2 * (old[i][j - 1] + old[i][(j + 1) % self.phi])
                    for j in range(self.phi)
                ]
                for i in range(rows)
            ]

    def decay(self, rate: float) -> None:
        """Takes a share of all energy away.

        Args:
            rate: From 0 to 1.
        """
        if not 0 <= rate <= 1:
            raise ConfigurationError(f"Decay must be from 0 to 1, got {rate!r}.")
        self._energy = [[(1 - rate) * each for each in row] for row in self._energy]

    def at(self, place: Place) -> float:
        """The energy at a place."""
        return self._energy[place[0] % self.theta][place[1] % self.phi]

    def relative(self, places: Mapping[str, Place]) -> dict[str, float]:
        """The energy at each of these places, the highest at 1; empty where there is none."""
        energy = {name: self.at(place) for name, place in places.items()}
        most = max(energy.values(), default=0.0)
        return {name: each / most for name, each in energy.items()} if most > 0 else {}

    @property
    def total(self) -> float:
        """All energy."""
        return math.fsum(each for row in self._energy for each in row)


def places_by_index(names: Sequence[str], theta: int = 12, phi: int = 12) -> dict[str, Place]:
    """Places in the order of a manifest, as in the paper: neighbours need not be alike."""
    step = max(1, theta * phi // max(1, len(names)))
    return {
        name: ((number * step) // phi % theta, (number * step) % phi)
        for number, name in enumerate(names)
    }


def places_by_meaning(
    vectors: Mapping[str, Sequence[float]], theta: int = 12, phi: int = 12
) -> dict[str, Place]:
    """Places by the embeddings of capabilities: what is alike lies near.

    Each angle is the rank along one of the two main directions of the vectors, so that the
    capabilities fill the torus evenly.

    Args:
        vectors: By name of the capability; all of one length.
        theta: Bins of the first angle.
        phi: Bins of the second one.
    """
    import numpy

    names = list(vectors)
    if not names:
        return {}
    table = numpy.asarray([list(vectors[name]) for name in names], dtype=float)
    table -= table.mean(axis=0)
    main = numpy.linalg.svd(table, full_matrices=False)[0][:, :2]
    if main.shape[1] < 2:
        main = numpy.column_stack([main, numpy.zeros(len(names))])
    ranks = main.argsort(axis=0).argsort(axis=0)
    return {
        name: (int(ranks[i, 0] * theta // len(names)), int(ranks[i, 1] * phi // len(names)))
        for i, name in enumerate(names)
    }


def context_energy(
    relevance: Mapping[str, float],
    places: Mapping[str, Place],
    *,
    theta: int = 12,
    phi: int = 12,
    steps: int = 3,
) -> dict[str, float]:
    """The energy at each capability, in a field that holds this context alone, the best at 1."""
    field = TorusField(theta, phi)
    for name, share in relevance.items():
        if name in places:
            field.inject(places[name], share)
    field.diffuse(steps=steps)
    return field.relative(places)
