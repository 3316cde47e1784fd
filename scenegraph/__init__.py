"""A modular, differentiable scene-graph renderer: a scene is a pytree, every ray is a cone."""

import contextlib
import importlib.metadata

from jaxtyping import install_import_hook

from ._typing import typecheck_enabled


def _shape_checks() -> contextlib.AbstractContextManager:
    if typecheck_enabled():
        return install_import_hook("scenegraph", "scenegraph._typing.check_calls")
    return contextlib.nullcontext()


__version__ = importlib.metadata.version("scenegraph")

with _shape_checks():
    from . import (
        cameras as cameras,
    )
    from . import (
        compositing as compositing,
        data as data,
    )
    from . import (
        encodings as encodings,
    )
    from . import (
        fields as fields,
    )
    from . import (
        filters as filters,
    )
    from . import (
        images as images,
    )
    from . import (
        integrators as integrators,
    )
    from . import (
        io as io,
    )
    from . import (
        losses as losses,
    )
    from . import (
        numerics as numerics,
    )
    from . import (
        rays as rays,
    )
    from . import (
        samplers as samplers,
    )
    from . import (
        scene as scene,
    )
    from . import (
        shaders as shaders,
    )
    from . import (
        shapes as shapes,
    )
    from . import (
        transforms as transforms,
    )
    from .cameras import (
        OrthographicCamera as OrthographicCamera,
    )
    from .cameras import (
        PerspectiveCamera as PerspectiveCamera,
    )
    from .data import load_blender as load_blender, Views as Views, views as views
    from .filters import Invert as Invert
    from .fit import fit as fit, FitResult as FitResult, FitState as FitState, step as step
    from .images import Image as Image
    from .integrators import Hierarchical as Hierarchical
    from .losses import psnr as psnr
    from .losses import ssim as ssim
    from .render import render as render
    from .render import render_rays as render_rays
    from .scene import (
        Group as Group,
        load as load,
    )
    from .scene import (
        Scene as Scene,
    )
    from .scene import (
        Transformed as Transformed,
    )
    from .scene import (
        Volume as Volume,
    )
    from .scene import (
        describe as describe,
    )
    from .scene import (
        freeze as freeze,
    )
    from .scene import (
        save as save,
    )
    from .scene import (
        select as select,
    )
    from .scene import (
        thaw as thaw,
    )
    from .shaders import Constant as Constant
    from .shapes import Box as Box
    from .transforms import Affine as Affine
    from .transforms import Pose as Pose
    from .transforms import Similarity as Similarity
