"""Weights of judges that vote, learnt from labels or, without any, from the votes alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..framework.columns_and_scores import FloatArray

_ROUNDS = 1_000
_CLOSE = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteModel:
    """What the votes of judges say about a claim, if judges err independently of each other."""

    sensitivity: FloatArray
    """For each judge the share of supported claims that it votes for."""
    leniency: FloatArray
    """For each judge the share of unsupported claims that it votes for."""
    supported: float
    """Share of claims that are supported."""

    @property
    def votes_for(self) -> FloatArray:
        """What each judge's vote for a claim adds to the log odds that it is supported."""
        return np.log(self.sensitivity / self.leniency)

    @property
    def votes_against(self) -> FloatArray:
        """What each judge's vote against a claim adds."""
        return np.log((1 - self.sensitivity) / (1 - self.leniency))

    @property
    def prior(self) -> float:
        """Log odds that a claim is supported before any vote."""
        return float(np.log(self.supported / (1 - self.supported)))

    def posterior(self, votes: FloatArray) -> FloatArray:
        """Return the probability that each claim is supported.

        Args:
            votes: A row for each claim and a column for each judge: 1 for, 0 against, NaN no vote.
        """
        added = np.where(votes == 1, self.votes_for, self.votes_against)
        odds = self.prior + np.where(np.isnan(votes), 0.0, added).sum(axis=1)
        return np.asarray(1 / (1 + np.exp(-odds)))


def weights_of_labels(votes: FloatArray, supported: FloatArray) -> VoteModel:
    """Return the model of votes whose truth is known, or known with a probability.

    Each share counts one more claim of either kind (Laplace's rule), so that a judge without an
    error gets no infinite weight.

    Args:
        votes: As in :meth:`VoteModel.posterior`.
        supported: For each claim the probability that it is supported; 0 or 1 for labels.
    """
    given = ~np.isnan(votes)
    share_for, truth = np.where(given, votes, 0.0), supported[:, None]
    return VoteModel(
        sensitivity=_share((share_for * truth).sum(axis=0), (given * truth).sum(axis=0)),
        leniency=_share((share_for * (1 - truth)).sum(axis=0), (given * (1 - truth)).sum(axis=0)),
        supported=float(_share(supported.sum(), np.float64(len(supported)))),
    )


def dawid_skene(votes: FloatArray) -> VoteModel:
    """Return the model that explains votes best without a label.

    Expectation and maximisation in turns, from majorities on. It needs three or more judges that
    err independently; judges that make the same mistakes count too much.

    Args:
        votes: As in :meth:`VoteModel.posterior`.

    Source: Dawid and Skene, Maximum Likelihood Estimation of Observer Error-Rates Using the EM
    Algorithm, Applied Statistics 28 (1979), for two classes, with Laplace's rule.
    """
    probability = np.nanmean(votes, axis=1)
    for _ in range(_ROUNDS):
        model = weights_of_labels(votes, probability)
        found = model.posterior(votes)
        if np.abs(found - probability).max(initial=0.0) < _CLOSE:
            break
        probability = found
    return model


def _share(part: FloatArray | np.float64, whole: NDArray[np.float64] | np.float64) -> FloatArray:
    return np.asarray((part + 1) / (whole + 2))
