"""Maths that is safe to differentiate, step functions, compaction, and what a leaf is.

Read `_leaves`, `_frozen`, `_tied` and `_module` first (what scenes are made of), `_rules`
(checks at construction), `_safe` and `_trigonometry`, `_steps` (histograms along a ray),
`_coverage`, `_polygon` and `_filtered` (a pixel's footprint), `_outline` (light of polygons),
`_compact` with `_bits` (lists of fixed length), `_levels`, `_segments`, `_blocks`, `_runs`,
`_products` and `_tangents`.
"""

from ._blocks import sum_over_blocks as sum_over_blocks
from ._compact import compact as compact, Compaction as Compaction
from ._coverage import disk_coverage as disk_coverage, half_plane_coverage as half_plane_coverage
from ._filtered import filtered_square_wave as filtered_square_wave
from ._leaves import as_float_leaf as as_float_leaf
from ._outline import polygon_irradiance as polygon_irradiance
from ._polygon import polygon_coverage as polygon_coverage
from ._safe import (
    safe_divide as safe_divide,
    safe_norm as safe_norm,
    safe_normalise as safe_normalise,
    safe_sqrt as safe_sqrt,
)

# Internal: for other packages of the library, and for none of its users.
from ._bits import count_bits, nth_bit, nth_bit_of_word, pack_bits, sum_to_nth_bit
from ._blocks import choose_block, map_used_blocks
from ._compact import ragged_items, RaggedItems
from ._coverage import slab_coverage
from ._filtered import filtered_sqrt
from ._leaves import as_type, common_type
from ._frozen import Frozen, hold_constant, is_frozen, unfreeze
from ._levels import between_levels
from ._module import AbstractModule, wrong_field
from ._order import order_by_number, order_by_place
from ._products import einsum, in_full_precision, matmul
from ._rules import (
    any_values,
    collect_violations,
    require_at_least,
    require_at_most,
    require_finite,
    require_finite_rows,
    require_fraction,
    require_invertible,
    require_nonzero,
    require_not_negative,
    require_order,
    require_positive,
)
from ._runs import sum_over_runs
from ._safe import (
    clip_within,
    descending,
    dot,
    magnitude,
    max_or_nan,
    min_or_nan,
    with_value,
)
from ._segments import segment_prefix_sums
from ._steps import cumulative, inverse_cdf, max_blur, midpoints
from ._tangents import tangents
from ._tied import is_tied, Tied
from ._trigonometry import expected_sin, octaves, safe_cos, safe_sin

from .._first_use import finish_import


finish_import(__name__)
