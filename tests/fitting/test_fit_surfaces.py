"""Patterns, lamps and cameras found from pictures; learning rates, bounds and wide cones."""

import warnings
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from scenegraph.data import Annealing, RayBatches
from scenegraph.fitting import Every
from scenegraph.fitting._loss import pixel_cones, scene_cameras
from scenegraph.optimizers import by_path, within
from support.helpers import assert_close


TRUE = (2.0, [0.9, 0.1, 0.1], [0.1, 0.1, 0.9], [2.0, -2.0, 4.0])
WANTED = ["floor.shader.*.scale", "floor.shader.*.color_*", "lamp.position"]


def make(scale, color_a, color_b, lamp, **others):
    checker = sg.Checker(scale=scale, color_a=color_a, color_b=color_b)
    return sg.Scene(
        sg.Group(
            floor=sg.Surface(sg.Plane(), sg.Lambert(checker)),
            ball=sg.Surface(sg.Sphere([0.0, 0.0, 0.5], 0.5), sg.Lambert([0.2, 0.8, 0.3])),
            lamp=sg.PointLight(lamp, [20.0, 20.0, 20.0]),
            **others,
        ),
        background=sg.Constant([1.0, 1.0, 1.0]),
    )


def camera(size=128):
    return sg.PerspectiveCamera.look_at(
        [0.0, -4.0, 2.0], [0.0, 0.0, 0.5], [0.0, 0.0, 1.0], 0.7, size, size
    )


def assert_found(scene):
    children = scene.root.children
    board, lamp = children["floor"].shader.albedo, children["lamp"].position
    assert abs(board.scale / TRUE[0] - 1) < 1e-3
    assert_close(board.color_a, TRUE[1], 0, 0.005)
    assert_close(board.color_b, TRUE[2], 0, 0.005)
    assert_close(lamp, TRUE[3], 0, 0.01)


def fit(guess, views, trainable, optimizer, steps, **others):
    return sg.fit(
        guess,
        views,
        trainable=trainable,
        optimizer=optimizer,
        steps=steps,
        **{"key": jax.random.key(0)} | others,
    ).scene


# --- The checkerboard, its light, and the camera


def starts():
    rng = np.random.default_rng(0)
    quoted = (1.8, [0.5, 0.5, 0.5], [0.4, 0.4, 0.4], [1.5, -1.6, 4.4])
    random = [
        (
            2 * (1 + rng.uniform(-0.25, 0.25)),
            rng.uniform(size=3),
            rng.uniform(size=3),
            np.asarray(TRUE[3]) + rng.uniform(-0.5, 0.5, 3),
        )
        for _ in range(5)
    ]
    return [quoted, *random]


STARTS = starts()


@pytest.mark.slow
@pytest.mark.parametrize("start", STARTS)
def test_scale_colours_and_lamp_are_found(start):
    truth = sg.render(make(*TRUE), camera())
    scene = fit(make(*start), sg.views(camera(), truth), WANTED, optax.adam(2e-2), 600)
    assert_found(scene)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 3.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_wide_cones_lead_from_half_off(scale, seed):
    """Rays of one pixel do not find the way from a scale of 1, where cells are 40 pixels wide."""
    truth = sg.render(make(*TRUE), camera())
    views, guess = sg.views(camera(), truth), make(scale, *STARTS[0][1:])
    others = {"annealing": Annealing(40.0, 300), "key": jax.random.key(seed)}
    assert_found(fit(guess, views, WANTED, falling(2e-2, 600), 600, **others))


@pytest.mark.slow
def test_the_camera_is_found_with_them():
    """From 3 degrees and 0.1 units off."""
    truth = sg.render(make(*TRUE), camera())
    turn = np.deg2rad(3.0) * np.array([0.6, -0.5, 0.62]) / np.linalg.norm([0.6, -0.5, 0.62])
    shift = 0.1 * np.array([0.5, 0.6, -0.62]) / np.linalg.norm([0.5, 0.6, -0.62])
    lost = eqx.tree_at(lambda c: c.pose.delta, camera(), jnp.asarray([*shift, *turn], jnp.float32))
    guess = make(1.8, [0.5] * 3, [0.4] * 3, [1.5, -1.6, 4.4], cam=lost)
    optimizer = by_path({"cam.**": falling(3e-3, 2000), "**": falling(2e-2, 2000)})
    scene = fit(guess, sg.views("cam", truth), [*WANTED, "cam.pose.delta"], optimizer, 2000)
    assert_found(scene)
    found, right = scene.root.children["cam"].pose, camera().pose
    turned = np.asarray(found.linear()).T @ np.asarray(right.linear())
    sine = np.linalg.norm(turned - turned.T) / np.sqrt(8)
    assert np.rad2deg(np.arcsin(sine)) < 0.05
    assert np.linalg.norm(found.offset() - right.offset()) < 0.003


def falling(rate, steps):
    return optax.adam(optax.cosine_decay_schedule(rate, steps))


# --- Several pictures, and cameras by path


def board_scene(**others):
    return sg.Scene(sg.Group(board=sg.Surface(sg.Plane(), sg.Checker(0.5)), **others))


def cameras(count):
    places = [[0.3 * i, -1.0, 2.0 + 0.2 * i] for i in range(count)]
    up = [0.0, 1.0, 0.0]
    return [sg.PerspectiveCamera.look_at(x, [0.0, 0.0, 0.0], up, 0.8, 12, 10) for x in places]


def test_several_pictures_have_the_pixels_of_each():
    seen = [sg.render(board_scene(), x) for x in cameras(3)]
    views = sg.views(cameras(3), seen)
    for frame, image in enumerate(seen):
        np.testing.assert_array_equal(views.image(frame).rgb, image.rgb)


@pytest.mark.slow
def test_rays_of_cameras_in_the_scene_are_those_of_the_same_cameras_outside():
    cams = cameras(2)
    scene = board_scene(one=cams[0], two=cams[1])
    images = [sg.render(scene, x) for x in cams]
    inside = RayBatches(sg.views(["one", "two"], images), 16).batch(0, 3)
    outside = RayBatches(sg.views(cams, images), 16).batch(0, 3)
    rays = pixel_cones(inside.rays, scene_cameras(inside.rays, scene))
    for a, b in zip(jax.tree.leaves(rays), jax.tree.leaves(outside.rays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(inside.rgb, outside.rgb)


def test_what_does_not_belong_together_is_refused():
    image = sg.render(board_scene(), cameras(1)[0])
    with pytest.raises(ValueError, match="2 cameras for 1"):
        sg.views(cameras(2), image)
    with pytest.raises(TypeError, match="'one' is a path"):
        sg.views([cameras(1)[0], "one"], [image, image])
    with pytest.raises(ValueError, match="no camera at 'two'"):
        fit(board_scene(one=cameras(1)[0]), sg.views("two", image), None, optax.sgd(0.1), 1)
    with pytest.raises(ValueError, match="12x10"):
        sg.views(cameras(1), sg.Image(jnp.zeros((3, 4, 3))))


@pytest.mark.slow
def test_pictures_of_files_are_compared_as_light_in_a_scene_with_lights():
    """The picture of a scene, encoded as a file has it, is the scene's own picture."""
    scene = sg.Scene(
        sg.Group(floor=sg.Surface(sg.Plane(), sg.Lambert([0.3] * 3)), sky=sg.AmbientLight())
    )
    light = sg.render(scene, cameras(1)[0])
    assert isinstance(light.space, sg.images.Linear)
    srgb = sg.images.SRGB()
    encoded = sg.Image(srgb.from_linear(light.rgb), space=srgb)
    views = sg.views(cameras(1), encoded)
    result = sg.fit(scene, views, optimizer=optax.sgd(0.0), steps=1, key=jax.random.key(0))
    assert float(result.history.loss[0]) < 1e-12


# --- Wide cones


def test_width_falls_from_start_to_one_pixel():
    annealing = Annealing(8.0, 100)
    widths = [float(annealing(step)) for step in (0, 50, 100, 1000)]
    assert_close(widths, [8.0, 8.0**0.5, 1.0, 1.0], 1e-6)


def test_width_falls_with_a_part_of_the_fit():
    annealing = Annealing(8.0, 10, 0.5)
    # The larger of 10 steps and half of the fit.
    assert_close(annealing(50, 200.0), 8.0**0.5, 1e-6)
    assert_close([annealing(5, 12.0), annealing(5)], [8.0**0.5] * 2, 1e-6)
    assert float(annealing(100, 200.0)) == 1.0


@pytest.mark.parametrize("horizon, start", [(20.0, 4.0), (100.0, 2.0), (150.0, 4 / 3), (500.0, 1)])
def test_fits_that_see_all_pixels_begin_narrow(horizon, start):
    """With as many steps as draw all pixels twice, rays are one pixel wide."""
    annealing = Annealing(4.0, 1, 0.6, epoch=100.0)
    assert_close(annealing(0, horizon), start, 1e-6)
    assert_close(annealing(round(0.3 * horizon), horizon), start**0.5, 1e-6)
    assert float(annealing(round(0.6 * horizon), horizon)) == 1.0


@pytest.mark.parametrize("wrong", [{"part": 1.5}, {"part": -0.1}, {"epoch": -1.0}])
def test_schedules_of_widths_are_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Annealing(4.0, 10, **wrong)


def test_batches_know_the_end_of_a_fit():
    """A fit's own number of steps decides how soon its rays are narrow."""
    camera = cameras(1)[0]
    views, widths = sg.views(camera, sg.Image(jnp.ones((10, 12, 3)))), []

    def loss(model, state, batch, key):
        del state, key
        return jnp.sum(model**2), jnp.mean(batch.rays.radius)

    batches = RayBatches(views, 4, annealing=Annealing(5.0, 1, 0.5))
    sg.fit(
        jnp.ones(2),
        batches,
        optimizer=optax.sgd(0.1),
        loss=loss,
        steps=6,
        key=jax.random.key(0),
        callbacks=[Every(1, lambda progress: widths.append(float(progress.state.extra)))],
    )
    pixel = float(jnp.mean(RayBatches(views, 4).batch(0, 0).rays.radius))
    assert_close(np.array(widths) / pixel, 5.0 ** np.array([1, 2 / 3, 1 / 3, 0, 0, 0]), 0.02)


@pytest.mark.parametrize("width", [1.0, 1.7, 3.0, 4.4])
def test_means_of_pictures_are_exact(width):
    """Against a picture drawn with many small pixels for every pixel."""
    rng, fine = np.random.default_rng(0), 40
    image = rng.uniform(size=(10, 12, 3))
    views = sg.views(cameras(1)[0], sg.Image(image))
    means, inside = views.means(jnp.arange(120), Annealing(5.0, 10), jnp.asarray(width))
    big = image.repeat(fine, 0).repeat(fine, 1)
    half = round(width * fine / 2)
    for index in (0, 37, 65, 119):
        row, column = divmod(index, 12)
        y, x = row * fine + fine // 2, column * fine + fine // 2
        fits = min(y, x) >= half and y + half <= 10 * fine and x + half <= 12 * fine
        assert bool(inside[index]) == fits
        if fits:
            square = big[y - half : y + half, x - half : x + half]
            assert_close(means[index], square.mean((0, 1)), 1e-5, 1e-5)


@pytest.mark.slow
def test_wide_rays_see_the_mean_of_the_picture():
    """The batch's target and the render of its wide cones agree, for a board seen straight."""
    straight = sg.OrthographicCamera.look_at(
        [0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0], 4.0, 40, 40
    )
    views = sg.views(straight, sg.render(board_scene(), straight))
    batch = RayBatches(views, 64, annealing=Annealing(5.0, 10)).batch(0, 2)
    rgb = sg.render_rays(board_scene(), batch.rays)[-1].rgb
    counts = np.asarray(batch.lossmult) > 0
    assert 20 < counts.sum() < 64
    assert_close(rgb[counts], batch.rgb[counts], 0, 2e-3)


# --- Rates and bounds


def test_every_path_has_its_own_optimizer():
    scene = make(*TRUE)
    rules = by_path({"lamp.*": optax.sgd(1.0), "floor.**": optax.sgd(0.5), "**": optax.sgd(0.0)})
    free = eqx.filter(scene, sg.select(scene, "lamp.**", "floor.**", "ball.**"))
    slopes = jax.tree.map(jnp.ones_like, free)
    updates, _ = rules.update(slopes, rules.init(free), free)
    named = {path: float(jnp.max(-leaf)) for path, leaf, _ in sg.scene.named_leaves(updates)}
    assert named["lamp.position"] == 1.0
    assert named["floor.shader.albedo.scale"] == 0.5
    assert named["ball.shape.radius"] == 0.0


def test_bounds_hold_whatever_the_step():
    scene = make(*TRUE)
    limits = {"**.radius": (0.3, None), "floor.shader.**.color_a": (0.0, [1.0, 0.5, 0.5])}
    rule = optax.chain(optax.sgd(10.0), within(limits))
    free = eqx.filter(scene, sg.select(scene, "ball.**", "floor.**"))
    for sign in (-1.0, 1.0):
        slopes = jax.tree.map(partial(jnp.full_like, fill_value=sign), free)
        updates, _ = rule.update(slopes, rule.init(free), free)
        moved = eqx.apply_updates(free, updates).root.children
        if sign > 0:
            assert_close(moved["ball"].shape.radius, 0.3, 1e-6)
            assert_close(moved["floor"].shader.albedo.color_a, [0.0] * 3, 0, 1e-6)
        else:
            assert_close(moved["ball"].shape.radius, 10.5, 1e-6)
            assert_close(moved["floor"].shader.albedo.color_a, [1.0, 0.5, 0.5], 1e-6)


@pytest.mark.parametrize(
    "make_rule",
    [
        lambda p: by_path({p: optax.sgd(1.0), "**": optax.sgd(1.0)}),
        lambda p: within({p: (0.0, 1.0)}),
    ],
)
def test_a_rule_that_matches_nothing_lists_the_nearest(make_rule):
    with pytest.raises(ValueError, match="'ball.shape.radios'.*ball.shape.radius"):
        make_rule("ball.shape.radios").init(make(*TRUE))


def test_a_leaf_without_a_rule_is_named():
    with pytest.raises(ValueError, match="no rule matches the leaf 'ball.shape.center'"):
        by_path({"floor.**": optax.sgd(1.0)}).init(eqx.filter(make(*TRUE), eqx.is_array))


# --- What a picture cannot show is said


NORM = sg.SignedDistance(jnp.linalg.norm)


def test_nonsense_is_refused_where_it_is_made():
    for build, message in (
        (lambda: sg.Sphere([0, 0, 0], 0.0), r"Sphere.radius.*positive.*got 0.0"),
        (lambda: sg.Sphere([0, 0, 0], -1.0), r"Sphere.radius.*got -1.0"),
        (lambda: sg.Sphere([0, jnp.nan, 0], 1.0), r"Sphere.center.*finite"),
        (lambda: sg.Checker(0.0), r"Checker.scale.*positive"),
        (lambda: sg.Plane(normal=[0, 0, 0]), r"Plane.normal.*not zero"),
        (lambda: sg.Box([0, 0, 0], [1, -1, 1]), r"Box.lower.*below `upper`"),
        (lambda: sg.Similarity(scale=0.0), r"Similarity.scale.*not zero"),
        (lambda: sg.Affine([[1, 0, 0], [0, 1, 0], [1, 1, 0]]), r"Affine.matrix.*invertible"),
        (
            lambda: sg.Surface(sg.SignedDistance(jnp.linalg.norm), sg.Checker()),
            r"Checker is a pattern in `uv`.*SignedDistance",
        ),
        (lambda: sg.Surface(sg.Checker(), sg.Sphere()), r"shape"),
        (lambda: sg.Group(ball=sg.Sphere()), r"a shape in a `Surface`"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            build()


def test_leaves_that_are_not_finite_are_named():
    scene = eqx.tree_at(
        lambda s: s.root.children["lamp"].position, make(*TRUE), jnp.full(3, jnp.inf)
    )
    with pytest.raises(ValueError, match="'lamp.position' is not finite"):
        sg.render(scene, camera(8))


def test_a_scene_without_light_is_not_black_without_a_word():
    scene = sg.Scene(sg.Group(ball=sg.Surface(sg.Sphere(), sg.Lambert([1.0, 1.0, 1.0]))))
    with pytest.warns(UserWarning, match="no light in the scene, and a Lambert is black") as said:
        sg.render(scene, camera(8))
    assert said[0].filename == __file__  # it points at the user's own line


def panes(count):
    """Half-transparent squares one above the other."""
    squares = {
        f"pane{i}": sg.Surface(sg.Rectangle([0.0, 0.0, 0.1 * i], [8.0, 8.0]), [0.1 * i] * 3, 0.5)
        for i in range(count)
    }
    return sg.Scene(sg.Group(**squares), background=[1.0, 1.0, 1.0])


EYE = sg.PerspectiveCamera.look_at([0.0, 0.0, 5.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0], 0.3, 8, 8)


@pytest.mark.slow
def test_layers_without_room_are_counted():
    """Where nothing can be drawn again, in a traced function; otherwise they are drawn."""
    drawn = eqx.filter_jit(lambda scene: sg.render(scene, EYE, sg.Surfaces(layers=4)))
    assert np.all(np.asarray(drawn(panes(6)).overflow) == 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        images = [sg.render(panes(6), EYE, sg.Surfaces(layers=n)) for n in (4, 6)]
    colors, weights = 0.1 * np.arange(6)[::-1], 0.5 ** np.arange(1, 7)
    for image in images:
        assert_close(image.rgb[4, 4, 0], colors @ weights + 0.5**6, 1e-5)


@pytest.mark.slow
def test_rays_that_miss_layers_do_not_count_in_the_loss():
    views = sg.views(EYE, sg.Image(jnp.zeros((8, 8, 3)), space=sg.images.SRGB()))
    with pytest.warns(UserWarning, match="rays meet more"):
        result = sg.fit(panes(12), views, optimizer=optax.sgd(0.0), steps=1, key=jax.random.key(0))
    assert float(result.history.loss[0]) == 0.0
    assert float(result.state.extra.left_out) == 1024
