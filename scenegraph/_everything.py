"""All public names of the library, which the root gives on their first use."""

from . import (
    assets as assets,
    cameras as cameras,
    compositing as compositing,
    data as data,
    diagnostics as diagnostics,
    encodings as encodings,
    fields as fields,
    filters as filters,
    fitting as fitting,
    flat as flat,
    images as images,
    integrators as integrators,
    interop as interop,
    io as io,
    lights as lights,
    losses as losses,
    meshing as meshing,
    numerics as numerics,
    optimizers as optimizers,
    parallel as parallel,
    photographs as photographs,
    rays as rays,
    rendering as rendering,
    rows as rows,
    rowwise as rowwise,
    runs as runs,
    samplers as samplers,
    scene as scene,
    settings as settings,
    shaders as shaders,
    shapes as shapes,
    solving as solving,
    transforms as transforms,
    visibility as visibility,
)
from ._checks import check_calls
from ._deprecated import tiered_jit as tiered_jit
from ._typing import typecheck_enabled
from .assets import load_scene as load_scene, save_glb as save_glb
from .cameras import (
    FisheyeCamera as FisheyeCamera,
    OpenCVCamera as OpenCVCamera,
    OrthographicCamera as OrthographicCamera,
    PanoramaCamera as PanoramaCamera,
    PerspectiveCamera as PerspectiveCamera,
    RollingShutter as RollingShutter,
)
from .data import (
    load_blender as load_blender,
    load_data as load_data,
    load_llff as load_llff,
    load_multiscale as load_multiscale,
    load_transforms as load_transforms,
    Views as Views,
    views as views,
)
from .diagnostics import check_gradients as check_gradients
from .filters import (
    AcesToneMap as AcesToneMap,
    AgxToneMap as AgxToneMap,
    Blur as Blur,
    Chain as Chain,
    Exposure as Exposure,
    Gamma as Gamma,
    Invert as Invert,
    Picture as Picture,
    ToneMap as ToneMap,
    Vignette as Vignette,
)
from .fitting import (
    Console as Console,
    fit as fit,
    FitResult as FitResult,
    FitState as FitState,
    migrate as migrate,
    start_state as start_state,
    step as step,
)
from .images import Image as Image
from .integrators import (
    Hierarchical as Hierarchical,
    Integrator as Integrator,
    Path as Path,
    Surfaces as Surfaces,
)
from .interop import as_torch_module as as_torch_module
from .lights import (
    AmbientLight as AmbientLight,
    DirectionalLight as DirectionalLight,
    DiskLight as DiskLight,
    EnvironmentLight as EnvironmentLight,
    MeshLight as MeshLight,
    PointLight as PointLight,
    RectangleLight as RectangleLight,
    SphereLight as SphereLight,
    SpotLight as SpotLight,
)
from .losses import psnr as psnr, ssim as ssim
from .rendering import (
    cast_rays as cast_rays,
    render as render,
    render_batch as render_batch,
    render_rays as render_rays,
)
from .rows import compile_log as compile_log
from .scene import (
    describe as describe,
    freeze as freeze,
    Group as Group,
    Instances as Instances,
    load as load,
    replace as replace,
    save as save,
    Scene as Scene,
    select as select,
    Surface as Surface,
    surface_paths as surface_paths,
    thaw as thaw,
    tie as tie,
    Transformed as Transformed,
    untie as untie,
    Volume as Volume,
)
from .settings import FitConfig as FitConfig, preset as preset
from .shaders import (
    Checker as Checker,
    Constant as Constant,
    GGX as GGX,
    Gradient as Gradient,
    ImageTexture as ImageTexture,
    Lambert as Lambert,
    Noise as Noise,
    Normals as Normals,
    Phong as Phong,
    Principled as Principled,
    Stripes as Stripes,
    UV as UV,
)
from .shapes import (
    Box as Box,
    Capsule as Capsule,
    Cylinder as Cylinder,
    Disk as Disk,
    Ellipsoid as Ellipsoid,
    HeightField as HeightField,
    Plane as Plane,
    Rectangle as Rectangle,
    SignedDistance as SignedDistance,
    Sphere as Sphere,
    TriangleMesh as TriangleMesh,
)
from .solving import solve as solve, SolveResult as SolveResult
from .transforms import Affine as Affine, Pose as Pose, Similarity as Similarity


if typecheck_enabled():
    check_calls("scenegraph")
