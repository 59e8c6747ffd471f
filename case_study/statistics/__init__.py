"""Statistics of paired trials: pure functions on scipy and statsmodels.

Contenders are compared on the same seeds, so everything is paired: McNemar's exact test for
success, a sign-flip test and a bootstrap interval for measures, Holm's correction over a table,
effect sizes that do not depend on the number of seeds, and the number of pairs that would be
needed where the data leave the question open. Below six pairs no p-value is given, because none
could come below 0.05. `compare` puts all of it into one value; docs/measures.md explains it.

Since reliability is the claim, `pass_at_k` (any of k trials) stands beside `worst_of_k` (all of
k trials).
"""

from ._compare import FEWEST_PAIRS, Comparison, compare, with_holm
from ._differences import paired_bootstrap, rate_difference
from ._effects import (
    POWER,
    cohens_h,
    discordant_odds,
    needed_n,
    needed_pairs_for_rates,
    paired_d,
)
from ._interval import Interval, wilson
from ._repeats import expected_worst, pass_at_k, worst_of_k
from ._tests import RESAMPLES, Paired, holm, mcnemar, sign_flip, smallest_n

__all__ = [
    "compare",
    "with_holm",
    "Comparison",
    "FEWEST_PAIRS",
    "Interval",
    "wilson",
    "rate_difference",
    "paired_bootstrap",
    "mcnemar",
    "Paired",
    "sign_flip",
    "holm",
    "smallest_n",
    "cohens_h",
    "discordant_odds",
    "paired_d",
    "needed_n",
    "needed_pairs_for_rates",
    "POWER",
    "pass_at_k",
    "worst_of_k",
    "expected_worst",
    "RESAMPLES",
]
