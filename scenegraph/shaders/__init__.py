"""Shaders: the colours of surfaces and backgrounds, from patterns, textures and light.

Read `_base` first, with `_albedo`, and `_coordinates`, in which patterns are drawn; then
`_constant`, the patterns `_checker`, `_stripes`, `_gradient` and `_noise`, textures
(`_image_texture` with `_pyramid`), and what a hit has (`_normals`, `_uv`, `_vertex_color`), and
`_view_dependent`; at last the lit ones, which say how they scatter (`_material`, `_sampling`):
`_lambert`, `_phong`, `_ggx` with `_inputs`, `_normal_map`, `_microfacets`, `_split_sum` and `_ltc`,
and `_principled` with `_glass` and `_sheen`.
"""

from ._albedo import AbstractAlbedoShader as AbstractAlbedoShader
from ._base import AbstractShader as AbstractShader
from ._checker import Checker as Checker
from ._constant import Constant as Constant
from ._coordinates import (
    AbstractCoordinates as AbstractCoordinates,
    InSpace as InSpace,
    OnSurface as OnSurface,
)
from ._ggx import GGX as GGX
from ._gradient import Gradient as Gradient
from ._image_texture import ImageTexture as ImageTexture
from ._lambert import Lambert as Lambert
from ._material import (
    AbstractMaterial as AbstractMaterial,
    AbstractReflectiveMaterial as AbstractReflectiveMaterial,
    ScatterSample as ScatterSample,
    SecondaryRays as SecondaryRays,
)
from ._noise import Noise as Noise
from ._normal_map import NormalMap as NormalMap
from ._normals import Normals as Normals
from ._phong import Phong as Phong
from ._principled import Principled as Principled
from ._stripes import Stripes as Stripes
from ._uv import UV as UV
from ._vertex_color import VertexColor as VertexColor
from ._view_dependent import ViewDependent as ViewDependent

# Internal: for other packages of the library, and for none of its users.
from ._albedo import albedo_of
from ._base import asks_for_light_behind, asks_for_own_view
from ._constant import as_shader
from ._image_texture import has_texture, pair_of, prepare_textures, PreparedTexture
from ._inputs import read_input, require_fraction_inputs
from ._lambert import cosines, incident
from ._pyramid import build_levels, Pyramid

from .._first_use import finish_import


finish_import(__name__)
