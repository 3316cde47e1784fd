"""Nonlinear least squares over the leaves of a scene, with standard errors.

Read `_unknowns` (leaves as one tangent vector), `_residuals` (pixels, block by block), `_system`
(sums over blocks) and `_descent` (a step) first; then `_problem` and `_method`, which put them
together, `_solve`, the iteration, and `_result`, what the Jacobian at the solution says.
`_robust` has losses for outliers.
"""

from ._result import SolveResult as SolveResult, Uncertainty as Uncertainty
from ._robust import (
    AbstractRobustLoss as AbstractRobustLoss,
    Cauchy as Cauchy,
    Huber as Huber,
    LeastSquares as LeastSquares,
)
from ._solve import solve as solve

# Internal: for other packages of the library, and for none of its users.
from ._method import linear_uncertainty
from ._result import Direction

from .._first_use import finish_import


finish_import(__name__)
