"""The choice of the space that a field fills: a box, all of space, or what NDC has made of it."""

from ..cameras import NDCCamera
from ..data import looks_outwards, shows_everything, Views
from ._config import FitConfig


def choose_space(config: FitConfig, views: Views) -> tuple[FitConfig, Views, str | None]:
    """Replaces `bounds="auto"` by what suits cameras and pictures, and says which and why.

    The pictures have rays as long as that needs; the sentence is `None` if nothing was left open.
    """
    if config.data.bounds != "auto":
        return config, views, None
    chosen, why = ("found", None) if not config.method.contracts else _choose(views)
    config = config.replace(bounds=chosen)
    return config, config.data.reach(views), why


def _choose(views: Views) -> tuple[str, str]:
    if isinstance(views.cameras, NDCCamera):
        return "found", "the cameras look one way: the scene is fitted in NDC (--no-ndc for none)"
    if shows_everything(views):
        return "contracted", (
            "the pictures show something everywhere: all of space is fitted, contracted into a "
            "ball (--bounds found for a box)"
        )
    if looks_outwards(views):
        return "contracted", (
            "the cameras look outwards: all of space is fitted, contracted into a ball about them "
            "(--bounds found for a box)"
        )
    return "found", (
        "the pictures have an opacity: a box is fitted (--bounds contracted for all of space)"
    )
