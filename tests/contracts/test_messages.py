"""A wrong call raises one line: the function, the argument, what was given, what is wanted."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from scenegraph._typing import Array, Float, Int, PyTree, ScalarLike, UInt8, VectorLike
from scenegraph._words import describe, wanted
from scenegraph.fitting._trainable import choose_trainable


BALL = sg.Surface(sg.Sphere(), [0.5] * 3)
SCENE = sg.Scene(sg.Group(ball=BALL))
CAMERA = sg.PerspectiveCamera.look_at([0, -4, 1], [0, 0, 0], [0, 0, 1], 0.5, 4, 4)
VIEWS = sg.views(CAMERA, sg.Image(jnp.zeros((4, 4, 3))))


def render(*arguments, **options):
    return lambda: sg.render(*arguments, **options)


def fit(data=VIEWS, **options):
    usual = {"optimizer": optax.adam(0.1), "steps": 1, "key": jax.random.key(0)}
    return lambda: sg.fit(SCENE, data, **{**usual, **options})


WANTED_LOSS = (
    "`loss` of `fit` must be a loss, such as `sg.losses.MultiLevelLoss()`, or a function "
    "`(model, state, batch, key)` that returns `(value, state)`"
)
WRONG = {
    "`scene` of `render` must be a Scene; got a PerspectiveCamera. "
    "`scene` and `camera` are swapped.": render(CAMERA, SCENE),
    "`camera` of `render` must be a camera or a string; got [a PerspectiveCamera].": render(
        SCENE, [CAMERA]
    ),
    "`filters` of `render` must be a filter or a sequence of filters; got [1, 2].": render(
        SCENE, CAMERA, filters=[1, 2]
    ),
    "`key` of `render` must be a random key, such as `jax.random.key(0)` or None; got 0.": render(
        SCENE, CAMERA, key=0
    ),
    "`chunk` of `render` must be an integer or 'auto'; got 'big'.": render(
        SCENE, CAMERA, chunk="big"
    ),
    "`render` has no argument `outptus`; did you mean `outputs`?": render(
        SCENE, CAMERA, outptus=()
    ),
    "`render` is missing its argument `camera`.": render(SCENE),
    "`key` of `fit` must be a random key, such as `jax.random.key(0)`; got 0.": fit(key=0),
    "`optimizer` of `fit` must be an optax.GradientTransformation; got 0.1.": fit(optimizer=0.1),
    "`loss` of `fit` must be a loss or a function of 4 arguments; got 'mse'.": fit(loss="mse"),
    "`fit` needs `Views`, such as `sg.views(camera, image)`, or an object with a method "
    "`batch(seed, step)`; got an Image.": fit(sg.Image(jnp.zeros((4, 4, 3)))),
    f"{WANTED_LOSS}; got the function <lambda>.": fit(loss=lambda model, batch: 0.0),
    f"{WANTED_LOSS}; got the class MultiLevelLoss.": fit(loss=sg.losses.MultiLevelLoss),
    "`loss` must return `(value, state)`; it returns float32[].": fit(
        loss=lambda model, state, batch, key: jnp.zeros(())
    ),
    "the root of a Scene must be a node (such as a Group, a Surface or a Volume), a light, a "
    "camera or a filter; got the class Group. A field becomes a node in a `Volume`, a shape in a "
    "`Surface`.": (lambda: sg.Scene(sg.Group)),
    "`Chain.filters`: filters are wanted; got [an Invert, 1]": lambda: sg.Chain([sg.Invert(), 1]),
    "`Group` takes its children by name, as in `Group(name=...)`.": lambda: sg.Group([BALL]),
    "`Scene` takes `root`; `background`, `integrator` only by name; got 2 arguments without a "
    "name.": lambda: sg.Scene(BALL, [1, 1, 1]),
    "`Sphere` has no argument `radus`; did you mean `radius`?": lambda: sg.Sphere(radus=1),
    "`Similarity` has no argument `x`; it has `translation`, `rotation`, `scale`.": (
        lambda: sg.Similarity(x=1)
    ),
    "`shape` of `Surface` must be a shape; got [0.5, 0.5, 0.5].": lambda: sg.Surface(
        [0.5] * 3, sg.Sphere()
    ),
    "`path` of `save` must be a string or a path; got a Scene.": lambda: sg.save("x", SCENE),
    "`patterns[1]` of `select` must be a string; got 0.": lambda: sg.select(SCENE, "ball", 0),
    "`target` of `psnr` must be a float array of shape (height width 3); "
    "got float32[4, 5, 3] beside `image` float32[4, 4, 3].": lambda: sg.psnr(
        jnp.zeros((4, 4, 3)), jnp.zeros((4, 5, 3))
    ),
    "`image` of `psnr` must be a float array of shape (height width 3); got float32[4, 4, 3] of "
    "NumPy beside `target` float32[4, 4, 3]. `jax.numpy.asarray` makes one of it.": lambda: sg.psnr(
        np.zeros((4, 4, 3), np.float32), jnp.zeros((4, 4, 3))
    ),
    "`Sphere.center` must be a float array of shape (3); got float32[2] beside `radius` "
    "float32[].": lambda: sg.Sphere([0, 0], 1),
    "`Lambert.albedo`: a shader is wanted, or a colour of three numbers; got float32[2]": (
        lambda: sg.Lambert([1, 2])
    ),
    "`Sphere.radius`: a physical quantity must be a number or an array; got 'a'": (
        lambda: sg.Sphere([0, 0, 0], "a")
    ),
    "`Sphere.center`: a physical quantity must be numbers in rows of one length; "
    "got [0, [0], 0]": lambda: sg.Sphere([0, [0], 0]),
    "`Pose.base`: a physical quantity must be a number or an array; got 'a'": lambda: sg.Pose("a"),
    "`Instances.transforms` as an array needs the shape (copies, 4, 4); got (4, 4).": (
        lambda: sg.Instances(BALL, np.eye(4))
    ),
    "`Scene.background`: a colour is red, green and blue, a name such as 'red', or a hexadecimal "
    "number such as '#cc3311'; got 'redd'": lambda: sg.Scene(BALL, background="redd"),
}


@pytest.mark.parametrize("message", WRONG)
def test_one_line_says_what_is_wrong(message):
    with pytest.raises((TypeError, ValueError)) as caught:
        WRONG[message]()
    assert str(caught.value).split("\n")[0] == message  # JAX may add lines of its own
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


WORDS = {
    "an integer, a string or None": int | str | None,
    "a number or an array": ScalarLike,
    "a number, an array or a sequence": VectorLike,
    "a float array of shape (height width 3)": Float[Array, "height width 3"],
    "a uint8 array of shape (n) or an int array of shape ()": UInt8[Array, " n"] | Int[Array, ""],
    "a list of cameras": list[sg.cameras.AbstractCamera],
    "a color space or None": sg.images.AbstractColorSpace | None,
    "a sequence, each item a camera or a string": Sequence[sg.cameras.AbstractCamera | str],
    "a tuple of an integer, a number": tuple[int, float],
    "a tuple of strings": tuple[str, ...],
    "a tuple, each item true or false": tuple[bool, ...],
    "a function of 1 argument": Callable[[int], str],
    "a function": Callable,
    "a string or a path": str | os.PathLike,
    "'near' or 'far'": Literal["near", "far"],
    "a mapping": Mapping[str, int],
    "an Image": sg.Image,
    "a jax.Array": jax.Array,
    "a tree": PyTree,
    "anything": Any,
}


@pytest.mark.parametrize("words", WORDS)
def test_words_for_annotations(words):
    assert wanted(WORDS[words]) == words


VALUES = {
    "float32[2, 3]": jnp.zeros((2, 3)),
    "int64[2] of NumPy": np.arange(2),
    "np.float64(0.5)": np.float64(0.5),
    "[1, a Sphere]": [1, sg.Sphere()],
    "(None, 'a')": (None, "a"),
    "the class Sphere": sg.Sphere,
    "the function render": sg.render,
    "an Image": sg.Image(jnp.zeros((1, 1, 3))),
    "a dict": {1: 2},
    "a list": list(range(9)),
}


@pytest.mark.parametrize("words", VALUES)
def test_words_for_values(words):
    assert describe(VALUES[words]) == words


def wrong_shader():
    class Plain(sg.shaders.AbstractShader):
        def __call__(self, hit):
            return jnp.ones(3)

    return Plain()


def wrong_field():
    class Mist(sg.fields.AbstractField):
        def __call__(self, gaussian, view):
            return sg.rays.Medium(0.1, jnp.ones(3))

        def density(self, gaussian):
            return 0.1

    return Mist()


class Pale(sg.shaders.AbstractShader):
    """A shader of a user's whose colours are too short."""

    def __call__(self, hit, view, lights):
        return jnp.ones(2)


class Half(sg.shapes.AbstractShape):
    """A shape of a user's that does not return hits; another number serves as an array."""

    is_convex, has_uv = True, False

    def parts(self, ray):
        return 1.0

    def coverage(self, ray):
        return 0.5


class Undressed(sg.filters.AbstractFilter):
    """A filter of a user's that returns something else."""

    def __call__(self, image):
        return image.rgb


WRITTEN = {
    "`Plain.__call__` takes `hit`; as the method of `AbstractShader`, it must take `hit`, `view`, "
    "`lights`.": wrong_shader,
    "`Mist.__call__` takes `gaussian`, `view`; as the method of `AbstractField`, it must take "
    "`gaussian`, `view`, and by name `key`.": wrong_field,
    "`Pale.__call__` returned float32[2]; it must return a float array of shape (3).": render(
        sg.Scene(sg.Surface(sg.Sphere(), Pale())), CAMERA
    ),
    "`Half.parts` returned 1.0; it must return a Hit.": render(
        sg.Scene(sg.Surface(Half(), [0.5] * 3)), CAMERA
    ),
    "`Undressed.__call__` returned float32[4, 4, 3]; it must return an Image.": render(
        SCENE, CAMERA, filters=[Undressed()]
    ),
}


@pytest.mark.parametrize("message", WRITTEN)
def test_one_line_says_what_is_wrong_with_a_method_of_a_user(message):
    with pytest.raises(TypeError) as caught:
        WRITTEN[message]()
    assert str(caught.value) == message


def test_a_number_serves_as_an_array():
    assert Half().coverage(None) == 0.5


def test_errors_in_a_function_stay_as_they_are():
    def loss(model, state, batch, key):
        return jnp.zeros(3) + jnp.zeros(4), state

    with pytest.raises(TypeError, match="incompatible shapes"):
        fit(loss=loss)()


def test_errors_of_traced_calls_are_as_short():
    def brightness(radius):
        return sg.render(sg.Sphere(radius=radius), CAMERA).rgb.sum()

    with pytest.raises(TypeError, match=r"`scene` of `render` must be a Scene; got a Sphere\."):
        eqx.filter_jit(brightness)(1.0)


@pytest.mark.parametrize("trainable", [{"a": True}, 5, [True, 5], {"ball": "yes"}])
def test_what_is_trainable_is_said_in_one_line(trainable):
    ball = sg.Surface(sg.Sphere([0.0, 0.0, 0.0], 1.0), sg.Constant([1.0, 0.0, 0.0]))
    with pytest.raises(TypeError, match="`trainable` of `fit` must be paths") as error:
        choose_trainable(sg.Scene(sg.Group(ball=ball)), trainable)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("distance", [lambda p: p, lambda p: (p[0], p[1])])
def test_distances_are_numbers(distance):
    with pytest.raises(TypeError, match="must return one number for a place.*; got") as error:
        sg.SignedDistance(distance)
    assert "\n" not in str(error.value)
