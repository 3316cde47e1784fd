"""Scenes of MuJoCo models, beside MuJoCo's own state and its own renderer."""

import importlib.util
import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from support.helpers import assert_close


# Read when MuJoCo is imported.
os.environ.setdefault("MUJOCO_GL", "osmesa")
HAS_MUJOCO = importlib.util.find_spec("mujoco") is not None
needs_mujoco = pytest.mark.skipif(not HAS_MUJOCO, reason="needs the extra `mujoco`")

# Every kind of geom, each on a body of its own.
HEIGHTS = "0 .2 .5 .3 .1 .6 .9 .2 .4 .8 1 .5"
THINGS = f"""
<mujoco>
  <asset>
    <texture name="tiles" type="2d" builtin="checker" width="32" height="32"
             rgb1=".8 .2 .2" rgb2=".2 .7 .3"/>
    <material name="tiles" texture="tiles" texrepeat="4 2"/>
    <texture name="dots" type="cube" builtin="flat" width="8" height="8" rgb1=".2 .4 .6"
             rgb2=".2 .4 .6"/>
    <material name="dots" texture="dots"/>
    <texture type="skybox" builtin="gradient" rgb1=".3 .5 .8" rgb2="0 0 0" width="16" height="96"/>
    <hfield name="hill" nrow="3" ncol="4" size=".5 .4 .3 .1" elevation="{HEIGHTS}"/>
    <mesh name="tent" vertex="0 0 0  1 0 0  0 1 0  0 0 1" scale=".5 .5 .5"/>
  </asset>
  <worldbody>
    <light name="lamp" pos="1 -1 4" dir="-.2 .2 -1"/>
    <camera name="eye" pos=".3 -3.5 2.5" xyaxes="1 0 0 0 .55 1" fovy="50"/>
    <geom name="floor" type="plane" size="3 2 .1" material="tiles"/>
    <body name="ball" pos="-1 0 .5">
      <freejoint/>
      <geom name="skin" size=".3" material="dots"/>
      <site name="spot" pos="0 0 .3" size=".05"/>
      <camera name="rider" mode="trackcom" pos="0 -2 1" xyaxes="1 0 0 0 .4 1"/>
    </body>
    <body name="rod" pos="0 0 .5" euler="30 20 10">
      <joint name="swing" type="hinge" axis="0 1 0"/>
      <geom name="skin" type="capsule" size=".15 .3" rgba="1 0 0 1"/>
    </body>
    <body name="egg" pos="1 0 .6" euler="30 20 10">
      <geom type="ellipsoid" size=".4 .2 .3" rgba="0 0 1 .5"/>
      <geom name="hidden" size=".5" group="4"/>
    </body>
    <body name="can" pos="-1 1 .5" euler="30 20 10">
      <geom type="cylinder" size=".3 .2" rgba="0 1 1 1"/>
    </body>
    <body name="block" pos="1 1 .5" euler="30 20 10">
      <geom type="box" size=".3 .2 .25" rgba="1 0 1 1"/>
    </body>
    <body name="hill" pos="0 1.2 .3" euler="0 0 10">
      <geom type="hfield" hfield="hill" rgba=".5 .9 .4 1"/>
    </body>
    <body name="tent" pos="0 -.9 .3" euler="30 20 10">
      <geom type="mesh" mesh="tent" rgba=".9 .9 .4 1"/>
    </body>
  </worldbody>
</mujoco>
""".replace('name="skin" size', 'name="ball_skin" size')
ARM = """
<mujoco>
  <worldbody>
    <light name="sun" directional="true" dir=".3 .2 -1" diffuse=".7 .7 .7"/>
    <light name="lamp" pos="0 0 3" mode="targetbody" target="lower"/>
    <camera name="eye" pos="0 -2.5 1.2" xyaxes="1 0 0 0 .4 1"/>
    <geom name="floor" type="plane" size="2 2 .1"/>
    <body name="upper" pos="0 0 1">
      <joint name="a" type="hinge" axis="0 1 0"/>
      <geom name="upper" type="capsule" fromto="0 0 0 .5 0 0" size=".08" rgba=".9 .4 .2 1"/>
      <light name="torch" pos="0 0 1" dir="0 0 -1" mode="fixed"/>
      <body name="lower" pos=".5 0 0">
        <joint name="b" type="hinge" axis="0 1 0"/>
        <geom name="lower" type="capsule" fromto="0 0 0 .4 0 .1" size=".06" rgba=".2 .5 .9 1"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def loaded(xml):
    import mujoco

    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return mujoco, model, data


@needs_mujoco
def test_names_are_paths_and_geoms_are_shapes():
    _, model, _ = loaded(THINGS)
    scene = sg.interop.mujoco.scene_from_model(model, width=16, height=12, sites=True)
    kinds = {path: type(scene[path].child.shape).__name__ for path in sg.surface_paths(scene)}
    wanted = "Rectangle", "Sphere", "Sphere", "Capsule", "Ellipsoid", "Cylinder", "Box"
    assert sorted(kinds.values()) == sorted([*wanted, "HeightField", "TriangleMesh"])
    assert kinds["world.floor"] == "Rectangle" and kinds["rod.skin"] == "Capsule"
    assert {"world.floor", "ball.ball_skin", "ball.spot", "rod.skin"} < set(kinds)
    assert "egg.hidden" not in scene
    assert {"cameras.eye", "cameras.rider", "cameras.free"} == set(
        f"cameras.{x}" for x in scene["cameras"].children
    )
    assert_close(scene["egg.geom_3"].child.opacity, 0.5)
    # Half lengths become lengths; pictures on cubes their mean.
    assert_close(scene["world.floor"].child.shape.size, [6.0, 4.0])
    assert_close(scene["rod.skin"].child.shape.end, [0.0, 0.0, 0.3])
    color = scene["ball.ball_skin"].child.shader.albedo.color
    assert_close(sg.images.linear_to_srgb(color), [0.2, 0.4, 0.6], 1e-2)
    field = scene["hill.geom_7"].child.shape
    # In the file, the row with the largest y comes first.
    heights = np.array([float(x) for x in HEIGHTS.split()]).reshape(3, 4)[::-1]
    assert_close(field.heights, 0.3 * heights, 1e-5)
    assert_close(field.base, -0.1)


@needs_mujoco
def test_poses_are_those_of_the_state():
    """Geoms, sites, cameras and lights after some steps, beside MuJoCo's own tables."""
    mujoco, model, data = loaded(THINGS)
    scene = sg.interop.mujoco.scene_from_model(model, width=16, height=12, sites=True)
    for _ in range(40):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    moved = sg.interop.mujoco.pose(scene, data)
    ball, rod = moved["ball.ball_skin"].transform, moved["rod.skin"].transform
    assert_close(ball.translation, data.geom("ball_skin").xpos, 1e-6)
    assert np.linalg.norm(ball.translation - scene["ball.ball_skin"].transform.translation) > 0.01
    assert_close(rod.matrix, data.geom("skin").xmat.reshape(3, 3), 1e-6)
    assert_close(moved["ball.spot"].transform.translation, data.site("spot").xpos, 1e-6)
    rider = moved["cameras.rider"].pose
    assert_close(rider.translation, data.cam("rider").xpos, 1e-6)
    # A copy: what the simulation does later changes nothing.
    kept = np.array(ball.translation)
    mujoco.mj_step(model, data)
    assert_close(ball.translation, kept)


@needs_mujoco
def test_lights_are_where_mujoco_has_them():
    """Fixed to a body that turns, and shining at another: MJX's states do not say where."""
    mujoco, model, data = loaded(ARM)
    data.qpos[:] = [0.7, -0.4]
    mujoco.mj_forward(model, data)
    scene = sg.interop.mujoco.pose(sg.interop.mujoco.scene_from_model(model), data)
    for number, name in enumerate(("sun", "lamp", "torch")):
        frame = scene[f"lights.{name}"].transform
        way = frame.axis / jnp.linalg.norm(frame.axis)
        assert_close(way, data.light_xdir[number], 1e-5)
        assert_close(frame.translation, data.light_xpos[number], 1e-5)
        assert_close(frame.linear()[:, 2], data.light_xdir[number], 1e-5)


@needs_mujoco
def test_lamps_keep_their_brightness_at_the_centre():
    """A white floor below a lamp shows the lamp's diffuse colour, and the even light."""
    xml = """<mujoco><visual><headlight active="0"/></visual><worldbody>
    <light pos="0 0 2" dir="0 0 -1" diffuse=".6 .5 .4" type="{}"/>
    <camera name="top" pos="0 0 3" xyaxes="1 0 0 0 1 0" fovy="10"/>
    <geom type="plane" size="5 5 1" rgba="1 1 1 1"/></worldbody>
    <statistic center="0 0 0"/></mujoco>"""
    for kind in ("spot", "directional", "point"):
        _, model, _ = loaded(xml.format(kind))
        scene = sg.interop.mujoco.scene_from_model(model, width=3, height=3)
        middle = sg.render(scene, "cameras.top").rgb[1, 1]
        assert_close(sg.images.linear_to_srgb(middle), [0.6, 0.5, 0.4], 2e-2)


@needs_mujoco
def test_lamps_that_track_are_as_bright_at_the_centre():
    """On a body above the floor, where the lamp's own position is relative to the body's."""
    xml = """<mujoco><visual><headlight active="0"/></visual><worldbody>
    <geom type="plane" size="5 5 1" rgba="1 1 1 1"/>
    <camera name="top" pos="0 0 5" xyaxes="1 0 0 0 1 0" fovy="4"/>
    <body pos="0 2 1"><geom size=".1"/><joint type="slide"/>
    <light pos="0 -2 1" dir="0 0 -1" diffuse=".5 .5 .5" mode="trackcom"/></body></worldbody>
    <statistic center="0 0 0"/></mujoco>"""
    _, model, _ = loaded(xml)
    scene = sg.interop.mujoco.scene_from_model(model, width=3, height=3)
    middle = sg.render(scene, "cameras.top").rgb[1, 1]
    assert_close(sg.images.linear_to_srgb(middle), [0.5] * 3, 2e-2)


@needs_mujoco
def test_the_headlight_is_at_the_eye():
    """A ball under the headlight alone: as bright as its normal faces the eye."""
    xml = """<mujoco><visual><headlight ambient="0 0 0" diffuse=".8 .8 .8"/></visual><worldbody>
    <camera name="eye" pos="0 -4 0" xyaxes="1 0 0 0 0 1" fovy="20"/>
    <geom size=".5" rgba="1 1 1 1"/></worldbody></mujoco>"""
    _, model, _ = loaded(xml)
    scene = sg.interop.mujoco.scene_from_model(model, width=33, height=33)
    image = sg.render(scene, "cameras.eye", outputs=("normal", "position"))
    inside = np.asarray(image.alpha) > 0.999
    to_eye = np.array([0.0, -4.0, 0.0]) - image.position
    to_eye /= np.linalg.norm(to_eye, axis=-1, keepdims=True)
    cosine = np.sum(image.normal * to_eye, axis=-1)
    bright = float(sg.images.srgb_to_linear(jnp.asarray(0.8)))
    assert_close(image.rgb[inside][:, 1], bright * cosine[inside], 1e-2)


def seen_by_both(model, data, mujoco, camera, side):
    """Geoms and depths of pixels: MuJoCo's, and ours."""
    # MuJoCo's round shapes have facets, by default 28 around.
    model.vis.quality.numslices, model.vis.quality.numstacks = 128, 64
    options = mujoco.MjvOption()
    options.sitegroup[:] = 0
    renderer = mujoco.Renderer(model, side, side)
    renderer.enable_segmentation_rendering()
    renderer.update_scene(data, camera=camera, scene_option=options)
    pairs = renderer.render()
    is_geom = pairs[..., 1] == int(mujoco.mjtObj.mjOBJ_GEOM)
    geoms = np.where(is_geom, pairs[..., 0], -1)
    renderer.disable_segmentation_rendering()
    renderer.enable_depth_rendering()
    renderer.update_scene(data, camera=camera, scene_option=options)
    depths = renderer.render().copy()
    renderer.close()
    scene = sg.interop.mujoco.scene_from_model(model, width=side, height=side)
    look = sg.interop.mujoco.Pixels(scene, (camera,), ("segmentation", "depth"))
    ours = look(data)[camera]
    return geoms, depths, np.asarray(ours["segmentation"]), np.asarray(ours["depth"])


@pytest.fixture
def software():
    """MuJoCo's software renderer, if it is installed."""
    mujoco = pytest.importorskip("mujoco")
    try:
        mujoco.Renderer(mujoco.MjModel.from_xml_string("<mujoco/>"), 8, 8).close()
    except Exception as error:
        pytest.skip(f"MuJoCo's renderer does not run here (libosmesa6): {error}")
    return mujoco


@pytest.mark.slow
@needs_mujoco
def test_silhouettes_and_depths_are_those_of_mujoco(software):
    """All kinds of geoms, 256 x 256."""
    mujoco, model, data = software, *loaded(THINGS.replace("0 0 1 .5", "0 0 1 1"))[1:]
    geoms, depths, ours, our_depths = seen_by_both(model, data, mujoco, "eye", 256)
    for number in range(-1, model.ngeom):
        one, other = geoms == number, ours == number
        if np.any(one):
            assert np.sum(one & other) / np.sum(one | other) > 0.98, number
    same = (geoms == ours) & (geoms >= 0)
    away = np.abs(our_depths - depths)[same] / depths[same]
    # A pixel on an edge has a mean depth.
    assert np.quantile(away, 0.97) < 0.01
    assert np.median(away) < 1e-3


@pytest.mark.slow
@needs_mujoco
def test_a_ball_and_a_box_are_seen_as_by_mujoco(software):
    xml = """<mujoco><worldbody><camera name="eye" pos="0 -3 1" xyaxes="1 0 0 0 .3 1"/>
    <geom type="plane" size="2 2 .1"/><geom pos="-.5 0 .5" size=".5"/>
    <geom type="box" pos=".6 .2 .4" size=".3 .4 .4" euler="0 0 30"/></worldbody></mujoco>"""
    _, model, data = loaded(xml)
    geoms, depths, ours, our_depths = seen_by_both(model, data, software, "eye", 96)
    for number in range(-1, model.ngeom):
        one, other = geoms == number, ours == number
        assert np.sum(one & other) / np.sum(one | other) > 0.97, number
    same = (geoms == ours) & (geoms >= 0)
    away = np.abs(our_depths - depths)[same] / depths[same]
    assert np.quantile(away, 0.95) < 0.01


@needs_mujoco
def test_the_sky_is_that_of_mujoco(software, tmp_path):
    """Six pictures of a cube, each with a dark quarter: seen along all axes."""
    colors = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 0], [255, 0, 255], [0, 255, 255]]
    from PIL import Image

    sides = ("right", "left", "up", "down", "front", "back")
    for side, color in zip(sides, colors, strict=True):
        picture = np.full((32, 32, 3), color, np.uint8)
        picture[:16, :16] //= 3
        Image.fromarray(picture).save(tmp_path / f"{side}.png")
    files = " ".join(f'file{side}="{tmp_path}/{side}.png"' for side in sides)
    axes = (
        "0 -1 0 0 0 1",
        "0 1 0 0 0 1",
        "1 0 0 0 0 1",
        "-1 0 0 0 0 1",
        "1 0 0 0 -1 0",
        "1 0 0 0 1 0",
    )
    eyes = "".join(f'<camera name="c{i}" xyaxes="{x}"/>' for i, x in enumerate(axes))
    mujoco, model, data = loaded(
        f'<mujoco><asset><texture type="skybox" {files}/></asset><worldbody>{eyes}'
        '<geom pos="0 0 -90" size=".1"/></worldbody></mujoco>'
    )
    scene = sg.interop.mujoco.scene_from_model(model, width=16, height=16)
    renderer = mujoco.Renderer(model, 16, 16)
    for number in range(6):
        renderer.update_scene(data, camera=f"c{number}")
        wanted = renderer.render().astype(float)
        look = sg.interop.mujoco.Pixels(scene, (f"c{number}",))
        shown = np.asarray(look(data)[f"c{number}"]["rgb"], float)
        quarters = np.ix_([3, 12], [3, 12])
        assert np.max(np.abs(shown[quarters] - wanted[quarters])) < 12
    renderer.close()


@pytest.mark.slow
@needs_mujoco
def test_states_of_mjx_in_a_batch():
    """Poses of `mjx.Data` beside those of `MjData`; pictures of four worlds beside single ones."""
    mjx = pytest.importorskip("mujoco.mjx")
    mujoco, model, data = loaded(ARM)
    scene = sg.interop.mujoco.scene_from_model(model, width=12, height=10)
    device_model = mjx.put_model(model)
    angles = jnp.asarray([[0.0, 0.0], [0.5, -0.3], [-0.4, 0.8], [1.0, 0.2]])

    @jax.jit
    @jax.vmap
    def states(qpos):
        start = mjx.make_data(device_model).replace(qpos=qpos)
        return mjx.forward(device_model, start)

    worlds = states(angles)
    look = sg.interop.mujoco.Pixels(scene, ("eye",), ("rgb", "depth", "segmentation"))
    seen = look.many(worlds)["eye"]
    assert seen["rgb"].shape == (4, 10, 12, 3) and seen["rgb"].dtype == jnp.uint8
    for number, qpos in enumerate(angles):
        data.qpos[:] = qpos
        mujoco.mj_forward(model, data)
        alone = look(data)["eye"]
        assert_close(seen["depth"][number], alone["depth"], 1e-4)
        assert np.mean(np.asarray(seen["segmentation"][number]) != alone["segmentation"]) < 0.02
        change = np.abs(np.asarray(seen["rgb"][number], int) - np.asarray(alone["rgb"], int))
        assert np.max(change) <= 2


@pytest.mark.slow
@needs_mujoco
def test_gradients_by_joint_positions(x64):
    """Through `mjx.forward`, of pixels with silhouettes and shadows, against differences."""
    mjx = pytest.importorskip("mujoco.mjx")
    _, model, _ = loaded(ARM)
    scene = sg.interop.mujoco.scene_from_model(model, width=24, height=20)
    device_model = mjx.put_model(model)
    weights = jnp.linspace(0.2, 1.0, 24) * jnp.linspace(1.0, 0.4, 20)[:, None]

    @jax.jit
    def loss(qpos):
        state = mjx.forward(device_model, mjx.make_data(device_model).replace(qpos=qpos))
        image = sg.render(sg.interop.mujoco.pose(scene, state), "cameras.eye")
        return jnp.sum(image.rgb * weights[..., None])

    qpos = jnp.asarray([0.35, -0.5])
    slope = jax.jit(jax.grad(loss))(qpos)
    # Over half a pixel, as shares of pixels are filtered.
    step = 1e-4
    wanted = [(loss(qpos + step * e) - loss(qpos - step * e)) / (2 * step) for e in jnp.eye(2)]
    assert_close(slope, np.stack(wanted), 3e-2)


# --- Bad input


@needs_mujoco
def test_geoms_that_are_not_drawn_are_counted():
    _, model, _ = loaded(ARM)
    model.geom_type[1] = 99
    with pytest.warns(UserWarning, match="not drawn: 1 of type 99"):
        sg.interop.mujoco.scene_from_model(model)


@needs_mujoco
def test_files(tmp_path):
    """A file that is missing, one that MuJoCo refuses, a URDF, and a camera that is not there."""
    with pytest.raises(sg.io.FileError, match="there is no such file"):
        sg.interop.mujoco.load_model(tmp_path / "no.xml")
    (tmp_path / "bad.xml").write_text('<mujoco><asset><mesh file="no.stl"/></asset></mujoco>')
    with pytest.raises(sg.io.FileError, match=r"bad\.xml: MuJoCo refuses it.*no\.stl"):
        sg.interop.mujoco.load_model(tmp_path / "bad.xml")
    (tmp_path / "one.urdf").write_text(
        '<robot name="r"><mujoco><compiler discardvisual="false"/></mujoco><link name="base">'
        '<visual><geometry><sphere radius="0.2"/></geometry></visual>'
        '<collision><geometry><sphere radius="0.2"/></geometry></collision></link></robot>'
    )
    scene = sg.interop.mujoco.load_model(tmp_path / "one.urdf", width=8, height=6)
    assert len(sg.surface_paths(scene)) >= 1
    with pytest.raises(ValueError, match="no camera at 'cameras.nose'"):
        sg.render(scene, "cameras.nose")


def test_what_is_missing_is_said(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ImportError, match=r"pip install scenegraph\[mujoco\]"):
        sg.interop.mujoco.load_model(tmp_path / "any.xml")
