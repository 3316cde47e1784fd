"""What a fit tells TensorBoard, read back from its files."""

import io
import struct
import sys

import imageio.v3 as iio
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from scenegraph.fitting import Progress, StepInfo
from scenegraph.io import MissingExtra
from scenegraph.optimizers import LogLinear, mip_nerf_optimizer
from scenegraph.runs import TensorBoard
from support.helpers import assert_close
from support.toy_fits import cloud, cloud_views, Line, Points, squared_error


pytest.importorskip(
    "tensorboardX", reason="needs tensorboardX: pip install scenegraph[tensorboard]"
)

SCHEDULE = LogLinear(1e-2, 1e-3)


def events(folder) -> list:
    """All records of all event files: a length, a checksum, the event, a checksum."""
    from tensorboardX.proto.event_pb2 import Event

    found = []
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        while data:
            (length,) = struct.unpack("<Q", data[:8])
            found.append(Event.FromString(data[12 : 12 + length]))
            data = data[16 + length :]
    return found


def values(folder) -> dict[str, dict[int, object]]:
    """Numbers and pictures by name and step."""
    found = {}
    for event in events(folder):
        for value in event.summary.value:
            kind = value.WhichOneof("value")
            held = value.simple_value
            if kind == "image":
                held = iio.imread(io.BytesIO(value.image.encoded_image_string))
            found.setdefault(value.tag, {})[event.step] = held
    return found


def fit_line(board, steps=10, state=None):
    return sg.fit(
        Line.start(),
        Points(),
        optimizer=optax.sgd(0.1),
        loss=squared_error,
        steps=steps,
        key=jax.random.key(0),
        callbacks=[board],
        state=state,
    )


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A cloud that finds its colour, and what was told of it."""
    folder = tmp_path_factory.mktemp("board")
    board = TensorBoard(folder, 2, 8, SCHEDULE, cloud_views(), picture_every=4)
    result = sg.fit(
        cloud([0.5, 0.5, 0.5]),
        sg.data.RayBatches(cloud_views(), 8),
        trainable=["blob.field.rgb"],
        optimizer=mip_nerf_optimizer(SCHEDULE),
        steps=9,
        key=jax.random.key(0),
        callbacks=[board],
    )
    board.close()
    return values(folder), result


def test_numbers_are_those_of_the_fit(told):
    found, result = told
    history = result.history
    # Every other step, and the last.
    steps = [2, 4, 6, 8, 9]
    for name, expected in {
        "train_loss": history.loss,
        "train_losses_0": history.extra.losses[:, 0],
        "train_psnrs_0": history.extra.psnr[:, 0],
        "train_psnr": history.extra.psnr[:, -1],
    }.items():
        assert list(found[name]) == steps
        assert_close([*found[name].values()], expected[np.array(steps) - 1], 1e-5)


def test_learning_rate_is_that_of_the_step(told):
    found, _ = told
    steps = np.array(list(found["learning_rate"]))
    # Along a straight line in the logarithm, from 1e-2 to 1e-3 at step 9.
    assert_close([*found["learning_rate"].values()], 1e-2 * 10.0 ** (-steps / 9), 1e-5)


def test_gradients_weights_and_speed(told):
    found, _ = told
    norm, largest = found["train_grad_norm"], found["train_grad_max"]
    assert all(0 < largest[step] <= norm[step] for step in norm)
    assert found["weight_l2"][2] == 0 and found["num_params"][2] == 0  # there is no network
    rates, rays = found["train_steps_per_sec"], found["train_rays_per_sec"]
    assert all(rays[step] == pytest.approx(8 * rates[step], rel=1e-5) for step in rates)


def test_pictures_are_rendered_every_so_often(told):
    found, result = told
    names = ["test_pred_color", "test_pred_acc", "test_pred_depth", "test_target"]
    assert [list(found[name]) for name in names] == [[4, 8]] * 4
    assert list(found["test_psnr"]) == list(found["test_ssim"]) == [4, 8]
    views = cloud_views()
    truth = np.round(255 * np.clip(views.image(0).rgb, 0, 1))
    assert_close(found["test_target"][8], truth, 0, 1)
    image = sg.render(result.scene, views.camera(0))
    assert_close(found["test_pred_acc"][8][..., 0], np.round(255 * image.alpha), 0, 1)
    assert found["test_pred_color"][8].shape == found["test_pred_depth"][8].shape == (8, 8, 3)


def test_psnr_of_the_picture(told):
    """8-bit pictures are near enough to say the same."""
    found, _ = told
    shown, target = (found[name][8] / 255.0 for name in ("test_pred_color", "test_target"))
    expected = -10 * np.log10(np.mean((shown - target) ** 2))
    assert found["test_psnr"][8] == pytest.approx(expected, abs=0.5)


def test_any_module_has_a_loss_and_gradients(tmp_path):
    board = TensorBoard(tmp_path, every=5)
    fit_line(board)
    board.close()
    found = values(tmp_path)
    assert set(found) == {"train_loss", "train_grad_norm", "train_grad_max", "train_steps_per_sec"}
    assert found["train_loss"][10] < found["train_loss"][5]


def test_resumed_fit_hides_what_it_tells_again(tmp_path):
    first = TensorBoard(tmp_path / "a", every=2)
    state = fit_line(first, steps=4).state
    first.close()
    again = TensorBoard(tmp_path / "b", every=2)
    fit_line(again, steps=8, state=state)
    again.close()
    begin = [e for e in events(tmp_path / "b") if e.WhichOneof("what") == "session_log"]
    assert [event.step for event in begin] == [6]
    assert list(values(tmp_path / "b")["train_loss"]) == [6, 8]


def test_weights_of_a_network_are_counted(tmp_path):
    field = sg.fields.MipNerfMLP(4, 1, view_width=4, key=jax.random.key(0))
    scene = sg.Scene(sg.Group(net=sg.Volume(field)))
    zero = jnp.zeros(())
    info = StepInfo(zero, zero, zero, jnp.ones(0, bool), jnp.array(0))
    board = TensorBoard(tmp_path)
    board(Progress(7, sg.start_state(scene, optax.sgd(1.0), key=jax.random.key(0)), info, 1.0, 2.0))
    board.close()
    found = values(tmp_path)
    weights = [np.asarray(x).ravel() for x in sg.scene.network_weights(scene)]
    assert found["num_params"] == {7: sum(map(len, weights))}
    assert found["weight_l2"][7] == pytest.approx(np.mean(np.concatenate(weights) ** 2), rel=1e-5)


def test_without_the_package_it_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(MissingExtra, match=r"pip install scenegraph\[tensorboard\]"):
        TensorBoard(tmp_path)


def test_depth_is_light_where_it_is_near():
    from scenegraph.runs._callbacks import _depth_colors

    depth = np.linspace(2.0, 6.0, 20)[None]
    light = _depth_colors(depth, np.ones_like(depth)).sum(axis=2)[0].astype(int)
    assert np.all(np.diff(light[1:-1]) < 0)
    assert np.all(_depth_colors(depth, np.zeros_like(depth)) == 255)
