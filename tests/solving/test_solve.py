"""Least squares against numpy and scipy, in small scenes, and what is refused."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import least_squares

import scenegraph as sg
from scenegraph.solving import Cauchy, Huber
from scenegraph.solving._system import triangle
from support.helpers import assert_close


class Numbers(eqx.Module):
    first: jax.Array
    last: jax.Array


RNG = np.random.default_rng(0)
MATRIX, RIGHT = RNG.normal(size=(40, 4)), RNG.normal(size=40)
ZERO = Numbers(jnp.zeros(3), jnp.zeros(()))


def linear(model):
    unknowns = jnp.append(model.first, model.last)
    return jnp.asarray(MATRIX, jnp.float32) @ unknowns - jnp.asarray(RIGHT, jnp.float32)


def solution(model):
    return np.append(model.first, model.last)


def test_linear_problem_and_its_covariance():
    result, expected = sg.solve(ZERO, linear), np.linalg.lstsq(MATRIX, RIGHT)[0]
    assert result.converged and result.iterations <= 4
    assert_close(solution(result.scene), expected, 1e-3, 1e-4)
    variance = np.sum((MATRIX @ expected - RIGHT) ** 2) / 36
    certain, covariance = result.uncertainty, variance * np.linalg.inv(MATRIX.T @ MATRIX)
    assert_close(certain.covariance, covariance, 1e-4, 1e-7)
    assert_close(certain.standard_errors["first"], np.sqrt(np.diag(covariance))[:3], 1e-4)
    assert (certain.rank, certain.degrees_of_freedom, certain.undetermined) == (4, 36, ())
    assert certain.paths == ("first", "first", "first", "last")
    assert "first" in certain.table()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_two_leaves_that_are_hardly_told_apart(x64, dtype):
    """Along a curved valley: their columns differ by an angle of 1e-4."""

    def residuals(model):
        x, y = model.first[0], model.last
        return jnp.stack([x + y - 3 + 1e-3 * (x - 1) ** 2, 1e-4 * (y - x - 1), x + y - 3])

    start = Numbers(jnp.asarray([0.0], dtype), jnp.asarray(0.0, dtype))
    result = sg.solve(start, residuals, steps=20)
    assert result.converged
    assert_close(solution(result.scene), [1.0, 2.0], 1e-6 if dtype is np.float64 else 1e-2)


def test_triangle_of_a_tall_matrix():
    """Against LAPACK, up to the signs of rows; a column of zeros and one that is another's."""
    matrix = np.random.default_rng(2).normal(size=(500, 6)).astype(np.float32) * 10.0 ** np.arange(
        6
    )
    found = np.asarray(triangle(jnp.asarray(matrix, jnp.float32)))
    expected = np.linalg.qr(matrix, mode="r")
    assert_close(
        np.abs(found) / 10.0 ** np.arange(6), np.abs(expected) / 10.0 ** np.arange(6), 2e-6
    )
    matrix[:, 2], matrix[:, 4] = 0.0, 2 * matrix[:, 1]
    deficient = np.asarray(triangle(jnp.asarray(matrix, jnp.float32)), float)
    squares, scale = matrix.T.astype(float) @ matrix, np.linalg.norm(matrix, axis=0) + 1
    assert_close(
        deficient.T @ deficient / np.outer(scale, scale), squares / np.outer(scale, scale), 1e-5
    )
    singular = np.linalg.svd(deficient / scale, compute_uv=False)
    assert singular[3] > 0.1 and singular[4] < 1e-6


def test_sigma_that_is_known():
    certain = sg.solve(ZERO, linear, sigma=2.0).uncertainty
    assert_close(certain.covariance, 4 * np.linalg.inv(MATRIX.T @ MATRIX), 1e-4, 1e-6)


def test_conjugate_gradients_agree_with_numpy():
    """Of 300 unknowns, which are too many for a factorisation."""
    rng = np.random.default_rng(1)
    matrix, right = rng.normal(size=(600, 300)).astype(np.float32), rng.normal(size=600)
    residuals = lambda x: jnp.asarray(matrix) @ x - jnp.asarray(right, jnp.float32)
    result = sg.solve(jnp.zeros(300), residuals)
    expected = np.linalg.lstsq(matrix, right)[0]
    assert result.converged
    assert_close(result.scene, expected, 0, 2e-3)
    assert result.uncertainty.covariance is None and result.uncertainty.rank is None
    dense = sg.solve(jnp.asarray(expected, jnp.float32), residuals, covariance="dense").uncertainty
    variance = np.sum((matrix @ expected - right) ** 2) / 300
    truth = variance * np.linalg.inv(matrix.T.astype(float) @ matrix)
    assert_close(np.diag(dense.covariance), np.diag(truth), 1e-2)


TIMES = np.linspace(0, 3, 50)
NOISY = 2.5 * np.exp(-1.3 * TIMES) + 0.5 + 0.02 * RNG.normal(size=50)
NOISY[[5, 20, 33]] += 3.0


def decay(x, numpy=np):
    return x[0] * numpy.exp(-x[1] * TIMES.astype(np.float32)) + x[2] - NOISY.astype(np.float32)


@pytest.mark.parametrize(
    ("loss", "name"), [(None, "linear"), (Huber(0.1), "huber"), (Cauchy(0.1), "cauchy")]
)
def test_nonlinear_problem_with_outliers(loss, name):
    start = np.asarray([2.0, 1.0, 0.3])
    options = {} if loss is None else {"loss": loss}
    result = sg.solve(jnp.asarray(start), lambda x: decay(x, jnp), **options)
    truth = least_squares(decay, start, loss=name, f_scale=0.1, xtol=1e-12, ftol=1e-12)
    assert result.converged
    assert_close(result.scene, truth.x, 2e-3)
    assert_close(result.costs[-1], truth.cost, 1e-4)


def test_predicted_and_empirical_errors():
    """Over 300 seeds: the mean of what is predicted is what is found, within 15 %."""
    rng, true = np.random.default_rng(2), np.asarray([2.5, 1.3, 0.5])
    clean = true[0] * np.exp(-true[1] * TIMES) + true[2]
    noise = 0.02 * rng.normal(size=(300, 50))

    def residuals(x, data):
        return x[0] * jnp.exp(-x[1] * TIMES.astype(np.float32)) + x[2] - data

    start = jnp.asarray(true, jnp.float32)
    one = sg.solve(start, lambda x: residuals(x, clean + noise[0])).uncertainty
    # One step of Gauss and Newton from the truth, for all seeds.
    jacobian = np.asarray(jax.jacobian(residuals)(start, jnp.asarray(clean)), float)
    found = true + noise @ np.linalg.pinv(jacobian).T
    assert_close(found.std(axis=0), one.standard_errors[""] * 0.02 / one.sigma, 0.15)


# --- Scenes


def ball(radius=0.5, center=(0.0, 0.0, 0.0), **others):
    shape = sg.Sphere(center, radius)
    return sg.Scene(sg.Group(ball=sg.Surface(shape, sg.Constant([1, 0, 0])), **others))


def camera(size=16):
    return sg.PerspectiveCamera.look_at([0, -3, 1], [0, 0, 0], [0, 0, 1], 0.8, size, size)


def side(size=16):
    return sg.PerspectiveCamera.look_at([3, 0, 1], [0, 0, 0], [0, 0, 1], 0.8, size, size)


def test_radius_and_center_of_a_ball():
    cameras = [camera(), side()]
    pictures = sg.views(cameras, [sg.render(ball(), one) for one in cameras])
    guess = ball(0.45, (0.05, 0.1, -0.04))
    result = sg.solve(guess, pictures, trainable=["ball.shape"])
    shape = result.scene.root["ball"].shape
    assert result.converged and result.iterations <= 12
    assert_close(shape.radius, 0.5, 1e-3)
    assert_close(shape.center, np.zeros(3), 0, 1e-3)
    assert "ball.shape.radius" in result.describe()


@pytest.mark.slow
def test_outliers_hardly_matter_with_cauchy():
    picture = sg.render(ball(), camera())
    image = np.array(picture.rgb)
    image[4:6, 7:9] = [0.0, 1.0, 0.3]
    pictures = sg.views(camera(), image, space=picture.space)
    wanted = ["ball.shape.radius", "ball.shader.color"]
    radii = {}
    for loss in (Cauchy(0.05), sg.solving.LeastSquares()):
        found = sg.solve(ball(0.49), pictures, trainable=wanted, loss=loss)
        radii[type(loss)] = float(found.scene.root["ball"].shape.radius)
    off = {loss: abs(radius - 0.5) for loss, radius in radii.items()}
    assert off[Cauchy] < 2e-3 < 5e-3 < off[sg.solving.LeastSquares]


@pytest.mark.slow
def test_distance_and_size_of_a_ball_in_one_picture_are_named():
    """Its outline is a cone, on which any ball of the right size may lie."""
    certain = sg.diagnostics.fisher(ball(), [camera()], trainable=["ball.shape"])
    assert certain.rank == 3
    (direction,) = certain.undetermined
    assert set(direction.moves) == {"ball.shape.center", "ball.shape.radius"}
    # towards the eye, and smaller by as much as it is nearer: d r / r = d distance / distance
    center, radius = direction.moves["ball.shape.center"], direction.moves["ball.shape.radius"]
    towards = np.asarray([0.0, -3.0, 1.0])
    distance = np.linalg.norm(towards)
    ratio = center @ towards / distance / radius
    assert_close(ratio, -distance / 0.5, 1e-3)
    assert_close(np.cross(center, towards), np.zeros(3), 0, 1e-3)
    assert np.isinf(certain.standard_errors["ball.shape.radius"])


def test_a_plane_moved_within_itself_is_named():
    floor = sg.Surface(sg.Plane([0, 0, 0], [0, 0, 1]), sg.Constant([0.5, 0.6, 0.7]))
    scene = sg.Scene(sg.Group(floor=floor, ball=ball().root["ball"]))
    wanted = ["floor.shape.point", "ball.shape.radius"]
    certain = sg.diagnostics.fisher(scene, [camera()], trainable=wanted)
    assert certain.rank == 2
    moves = np.stack([x.moves["floor.shape.point"] for x in certain.undetermined])
    assert_close(moves[:, 2], [0, 0], 0, 1e-3)
    assert_close(np.linalg.norm(np.cross(*moves)), 1.0, 1e-3)
    assert [list(x.moves) for x in certain.undetermined] == [["floor.shape.point"]] * 2
    assert "not determined: `floor.shape.point` by (" in certain.table()
    errors = certain.standard_errors
    assert np.isinf(errors["floor.shape.point"]).tolist() == [True, True, False]
    assert np.isfinite(errors["ball.shape.radius"])


@pytest.mark.slow
def test_length_of_a_quaternion_is_no_unknown():
    box = sg.Surface(sg.Box([-0.5, -0.3, -0.2], [0.5, 0.3, 0.2]), sg.Constant([1, 0, 0]))
    turned = sg.Transformed(box, sg.Similarity(rotation=[1.9, 0.2, 0.3, 0.1]))
    scene = sg.Scene(sg.Group(box=turned))
    pictures = sg.views(camera(), sg.render(scene, camera()))
    certain = sg.diagnostics.fisher(scene, pictures, trainable=["**.rotation"])
    (error,) = certain.standard_errors.values()
    assert certain.rank == 3 and error.shape == (3,) and certain.undetermined == ()
    rotation = lambda s: s.root.children["box"].transform.rotation
    guess = eqx.tree_at(rotation, scene, jnp.asarray([1.9, 0.3, 0.2, 0.15]))
    found = rotation(sg.solve(guess, pictures, trainable=["**.rotation"]).scene)
    assert_close(jnp.linalg.norm(found), jnp.linalg.norm(rotation(guess)), 1e-5)
    assert_close(found / jnp.linalg.norm(found), rotation(scene) / np.sqrt(3.75), 0, 2e-3)


@pytest.mark.slow
def test_blocks_and_shared_derivatives_change_nothing():
    """Derivatives of three cameras' own leaves are computed together: so is each alone."""
    from scenegraph.solving._system import compressed

    views, wanted = three_cameras()
    problem, unknowns = views
    root, _ = compressed(problem, unknowns)
    alone = problem._replace(
        color=jnp.arange(unknowns.size()),
        owner=jnp.full(unknowns.size(), -1),
        colors=unknowns.size(),
    )
    assert problem.colors == 1 + 6 < unknowns.size() == wanted
    expected, _ = compressed(alone, unknowns)
    assert_close(root.T @ root, expected.T @ expected, 1e-4, 1e-3)


def three_cameras():
    from scenegraph.fitting import choose_trainable
    from scenegraph.solving._problem import make_problem, Options
    from scenegraph.solving._unknowns import as_unknowns

    cameras = {f"cam{i}": camera(9) for i in range(3)}
    scene = sg.tie(ball(**cameras), "cam*.focal")
    views = sg.views(list(cameras), [sg.render(scene, path) for path in cameras])
    chosen = choose_trainable(scene, ["cam*.pose.delta", "cam0.focal"])
    unknowns, paths = as_unknowns(scene, chosen)
    problem = make_problem(scene, views, unknowns, paths, Options())
    small = dataclasses.replace(problem.residuals.batches, size=50)
    return (problem._replace(residuals=problem.residuals._replace(batches=small)), unknowns), 19


# --- Bad input


def pictures_of_ball(size=8):
    return sg.views(camera(size), sg.render(ball(), camera(size)))


@pytest.mark.parametrize(
    ("trainable", "message"),
    [
        (jax.tree.map(lambda _: False, ball()), "nothing to solve for"),
        (["ball.shape.radius", "lamp"], "no leaf has a path"),
        (["ball.shape.radius", "far.shape.radius"], "no residual depends on 'far.shape.radius'"),
    ],
)
def test_leaves_that_cannot_be_found(trainable, message):
    unseen = sg.Surface(sg.Sphere([0, -9, 0], 0.1), sg.Constant([0, 1, 0]))
    scene = ball() if isinstance(trainable, sg.Scene) else ball(far=unseen)
    with pytest.raises(ValueError, match=message):
        sg.solve(scene, pictures_of_ball(), trainable=trainable)


@pytest.mark.slow
def test_leaves_that_nothing_sees_are_listed_by_fisher():
    unseen = sg.Surface(sg.Sphere([0, -9, 0], 0.1), sg.Constant([0, 1, 0]))
    certain = sg.diagnostics.fisher(ball(far=unseen), [camera(8)], trainable=["*.shape.radius"])
    assert certain.unseen == ("far.shape.radius",)
    assert certain.rank == 1


def test_too_few_residuals():
    with pytest.raises(ValueError, match="there are 2 residuals for 4 unknowns"):
        sg.solve(ZERO, lambda model: model.first[:2] - 1)


def test_residuals_that_are_not_finite():
    pixels = np.full((8, 8, 3), 0.5, np.float32)
    views = sg.views(camera(8), pixels, space=sg.images.Linear())
    # `views` refuses such pixels, but they may come later.
    views = eqx.tree_at(lambda x: x.pixels, views, views.pixels.at[5 * 8 + 3].set(jnp.nan))
    with pytest.raises(
        ValueError, match="3 residuals are not finite .* column 3, row 5 of 'image'"
    ):
        sg.solve(ball(), views, trainable=["ball.shape.radius"])
    with pytest.raises(ValueError, match="40 residuals are not finite"):
        sg.solve(ZERO, lambda model: linear(model) / 0)


def test_covariance_without_space(monkeypatch):
    monkeypatch.setattr("scenegraph.solving._method.free_memory", lambda: (2**20, "the machine"))
    with pytest.raises(
        MemoryError, match="covariance of 200 numbers needs .*covariance=.diagonal."
    ):
        sg.solve(jnp.ones(200), lambda x: jnp.concatenate([x, x]))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"steps": np.inf}, TypeError, "`steps` of `solve` must be an integer; got inf"),
        ({"steps": -1}, ValueError, "must not be negative"),
        ({"tolerance": 0.0}, ValueError, "`tolerance` must be positive"),
        ({"sigma": -1.0}, ValueError, "`sigma` must be positive"),
        ({"covariance": "full"}, (ValueError, TypeError), "covariance"),
    ],
)
def test_wrong_arguments(options, error, message):
    with pytest.raises(error, match=message):
        sg.solve(ZERO, linear, **options)


def test_steps_that_do_not_suffice():
    result = sg.solve(jnp.asarray([2.0, 1.0, 0.3]), lambda x: decay(x, jnp), steps=1)
    assert (
        not result.converged and result.reason == "stopped after 1 iterations, before it converged."
    )


# --- Filters

EXPOSED = {"lens0": (0.3, 0.4), "lens1": (-0.2, 0.4)}


def exposed_scene(stops: dict[str, tuple[float, float]]) -> sg.Scene:
    """Two cameras, each with an exposure of its own, which share a lens that vignettes."""
    at = lambda x: sg.PerspectiveCamera.look_at([x, -2, 2], [0, 0, 0], [0, 0, 1], 0.9, 16, 12)
    lenses = {
        name: sg.Chain((sg.Exposure(stop), sg.Vignette(strength)))
        for name, (stop, strength) in stops.items()
    }
    board = sg.Surface(sg.Rectangle(size=[2.0, 2.0]), sg.Checker(0.5, [0.5, 0.6, 0.4], [0.1] * 3))
    cameras = {"cam0": at(0.5), "cam1": at(-0.5)}
    scene = sg.Scene(sg.Group(board=board, **cameras, **lenses), background=[0.2, 0.3, 0.4])
    return sg.tie(scene, "lens*.filters.1.strength")


@pytest.mark.slow
def test_exposure_and_vignetting_are_found_with_a_pose():
    """The pictures are those of `render`, whose filters see whole pictures."""
    truth, guess = exposed_scene(EXPOSED), exposed_scene(dict.fromkeys(EXPOSED, (0.0, 0.2)))
    opened = sg.scene.open_scene(truth)
    pairs = list(zip(("cam0", "cam1"), EXPOSED, strict=True))
    pictures = [sg.render(truth, cam, filters=opened.root[lens]) for cam, lens in pairs]
    views = sg.views(["cam0", "cam1"], pictures)
    delta = jnp.array([0.01, -0.02, 0.02, 0.01, 0.0, 0.01])
    guess = eqx.tree_at(lambda s: s.root["cam0"].pose.delta, guess, delta)
    wanted = ["lens*.filters.0.stops", "lens0.filters.1.strength", "cam0.pose.delta"]
    result = sg.solve(guess, views, trainable=wanted, filters=list(EXPOSED))
    assert result.converged and result.uncertainty.rank == 9
    found = sg.scene.open_scene(result.scene).root
    for lens, (stops, strength) in EXPOSED.items():
        exposure, vignette = found[lens].filters
        assert_close([exposure.stops, vignette.strength], [stops, strength], 1e-4)
    assert_close(found["cam0"].pose.delta, np.zeros(6), absolute=1e-4)


def test_filters_that_cannot_be():
    scene = exposed_scene(EXPOSED)
    blurred = eqx.tree_at(lambda s: s.root["lens1"], scene, sg.Blur())
    views = sg.views(
        ["cam0", "cam1"], [np.zeros((12, 16, 3), np.float32)] * 2, space=sg.images.SRGB()
    )
    solve = lambda scene, filters: sg.solve(scene, views, trainable=["cam0.pose"], filters=filters)
    with pytest.raises(
        ValueError, match="no filter at 'lens2'; filters in the scene: lens0, lens1"
    ):
        solve(scene, "lens2")
    with pytest.raises(ValueError, match="one for each of 2 pictures; got 1"):
        solve(scene, ["lens0"])
    with pytest.raises(TypeError, match="'lens1' of `solve`.* a Blur needs the whole picture"):
        solve(blurred, ["lens0", "lens1"])
    with pytest.raises(TypeError, match="`filters` are for `Views`"):
        sg.solve(ZERO, linear, filters="lens0")


# --- A moving camera


@pytest.mark.slow
def test_the_velocity_of_a_rolling_shutter_is_found():
    """Jointly with the pose, from a picture of a board with a disk."""
    squares = sg.Checker(0.25, [0.9] * 3, [0.1] * 3)
    still = sg.PerspectiveCamera.look_at([0.4, -2, 2], [0, 0, 0], [0, 0, 1], 0.9, 48, 36)
    twist = np.array([0.1, -0.05, 0.08, 0.03, -0.1, 0.05], np.float32)

    def scene(twist, delta):
        camera = eqx.tree_at(lambda c: c.pose.delta, still, jnp.asarray(delta, jnp.float32))
        return sg.Scene(
            sg.Group(
                board=sg.Surface(sg.Rectangle(size=[2.0, 1.6]), squares),
                marker=sg.Surface(sg.Disk([0.5, 0.3, 1e-3], 0.2), sg.Constant([0.9, 0.2, 0.1])),
                cam=sg.RollingShutter(camera, twist),
            ),
            background=[0.4, 0.5, 0.6],
        )

    views = sg.views("cam", sg.render(scene(twist, np.zeros(6)), "cam"))
    guess = scene(0.5 * twist, [0.01, -0.01, 0.01, 0.01, -0.005, 0.01])
    wanted = ["cam.velocity", "cam.camera.pose"]
    result = sg.solve(guess, views, trainable=wanted, steps=30)
    assert result.converged and result.uncertainty.rank == 12
    assert_close(result.scene.root["cam"].velocity, twist, 1e-3)
