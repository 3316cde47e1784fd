"""An `Instances` equals as many nodes by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg


COLORS = np.array([[0.9, 0.1, 0.1], [0.1, 0.9, 0.1], [0.1, 0.1, 0.9]], np.float32)
PLACES = [sg.Similarity(translation=[x, 0.0, 0.0], scale=0.7 + 0.1 * x) for x in (-1.5, 0.0, 1.5)]
CAMERA = sg.PerspectiveCamera.look_at([0, -6, 3], [0, 0, 0], [0, 0, 1], 0.8, 16, 16)


def ball(color) -> sg.Surface:
    return sg.Surface(sg.Sphere(), sg.Lambert(color))


def row(places=PLACES, colors=COLORS) -> sg.Instances:
    return sg.Instances(ball([0.5] * 3), places, {"shader.albedo.color": colors})


def scene_of(**nodes) -> sg.Scene:
    lamp, floor = sg.PointLight([2, -3, 6.0], [40.0] * 3), sg.Surface(sg.Plane(), [0.3] * 3)
    return sg.Scene(sg.Group(lamp=lamp, floor=floor, **nodes))


def by_hand() -> sg.Scene:
    nodes = {f"b{i}": sg.Transformed(ball(COLORS[i]), place) for i, place in enumerate(PLACES)}
    return scene_of(**nodes)


@eqx.filter_jit
def picture_and_gradient(scene):
    def loss(scene):
        rgb = sg.render(scene, CAMERA, sg.Surfaces(lists=True)).rgb
        return jnp.sum(rgb**2), rgb

    return eqx.filter_grad(loss, has_aux=True)(scene)


@pytest.mark.slow
def test_pictures_and_gradients_are_those_of_nodes_by_hand():
    gradient, rgb = picture_and_gradient(scene_of(row=row()))
    expected, truth = picture_and_gradient(by_hand())
    np.testing.assert_allclose(rgb, truth, atol=1e-6)
    nodes = [expected.root.children[f"b{i}"] for i in range(3)]
    found = gradient.root.children["row"]
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    close(found.values["shader.albedo.color"], [x.child.shader.albedo.color for x in nodes])
    close(found.transforms.translation, [x.transform.translation for x in nodes])
    # What the copies share gets the sum of their gradients.
    close(found.child.shape.radius, sum(x.child.shape.radius for x in nodes))


@pytest.mark.slow
def test_copies_of_copies_of_a_group():
    pair = sg.Group(one=ball([0.2] * 3), two=sg.Transformed(ball([0.7] * 3), PLACES[2]))
    inner = [sg.Similarity(translation=[0.0, y, 0.0], scale=0.4) for y in (0.0, 1.0)]
    nested = scene_of(all=sg.Instances(sg.Instances(pair, inner), PLACES))
    nodes = {
        f"n{i}{j}": sg.Transformed(sg.Transformed(pair, below), above)
        for i, above in enumerate(PLACES)
        for j, below in enumerate(inner)
    }
    picture = lambda scene: sg.render(scene, CAMERA).rgb
    np.testing.assert_allclose(picture(nested), picture(scene_of(**nodes)), atol=1e-6)


@pytest.mark.slow
def test_copies_of_a_light_and_of_a_volume():
    lamp = sg.Instances(sg.PointLight([0.0, -2.0, 5.0], [9.0] * 3), PLACES)
    lamps = {f"l{i}": sg.Transformed(lamp.child, place) for i, place in enumerate(PLACES)}
    picture = lambda **nodes: sg.render(scene_of(ball=ball([0.5] * 3), **nodes), CAMERA).rgb
    np.testing.assert_allclose(picture(lamps=lamp), picture(**lamps), atol=1e-6)
    blob = sg.Volume(sg.fields.GaussianBlob([0.0] * 3, 0.4, 5.0, [0.9, 0.5, 0.2]))
    blobs = {f"v{i}": sg.Transformed(blob, place) for i, place in enumerate(PLACES)}
    cloud = lambda **nodes: sg.render(sg.Scene(sg.Group(**nodes)), CAMERA).rgb
    np.testing.assert_allclose(cloud(row=sg.Instances(blob, PLACES)), cloud(**blobs), atol=1e-5)


@pytest.mark.slow
def test_copies_of_a_texture_with_places_of_their_own():
    texels = np.random.default_rng(0).uniform(size=(4, 4, 3)).astype(np.float32)
    corners = np.array([[-0.5, -0.5], [-0.3, -0.6], [-1.0, 0.0]], np.float32)

    def card(corner) -> sg.Surface:
        texture = sg.ImageTexture(texels, [1.0, 1.0], corner=corner, repeat=True)
        return sg.Surface(sg.Rectangle(), texture)

    cards = sg.Instances(card([0.0, 0.0]), PLACES, {"shader.corner": corners})
    nodes = {f"c{i}": sg.Transformed(card(corners[i]), place) for i, place in enumerate(PLACES)}
    picture = lambda **nodes: sg.render(sg.Scene(sg.Group(**nodes)), CAMERA).rgb
    np.testing.assert_allclose(picture(cards=cards), picture(**nodes), atol=1e-6)


@pytest.mark.slow
def test_saved_described_and_frozen_like_any_other_node(tmp_path):
    scene = scene_of(row=row())
    assert "row.shape.radius" in [path for path, _, _ in sg.scene.named_leaves(scene)]
    assert "Instances" in sg.describe(scene)
    sg.save(scene, tmp_path / "row.sg")
    again = sg.load(tmp_path / "row.sg")
    picture = lambda scene: sg.render(scene, CAMERA).rgb
    np.testing.assert_array_equal(picture(again), picture(scene))
    gradient, _ = picture_and_gradient(sg.freeze(scene, "row.transforms.**"))
    assert not np.any(jax.tree.leaves(gradient.root.children["row"].transforms)[0])


@pytest.mark.slow
def test_transforms_of_one_vmap_equal_a_sequence():
    offsets = jnp.stack([place.translation for place in PLACES])
    matrices = jnp.stack([place.linear() for place in PLACES])
    stacked = row(jax.vmap(sg.Affine)(matrices, offsets))
    picture = lambda node: sg.render(scene_of(row=node), CAMERA).rgb
    np.testing.assert_allclose(picture(stacked), picture(row()), atol=1e-6)


def test_matrices_stand_for_affine_transforms():
    affine = [sg.Affine(place.linear(), place.translation) for place in PLACES]
    matrices = np.stack([np.eye(4)] * len(affine))
    matrices[:, :3, :3] = [x.matrix for x in affine]
    matrices[:, :3, 3] = [x.translation for x in affine]
    for given in (matrices, jnp.asarray(matrices), list(matrices), matrices.tolist()):
        made = sg.Instances(ball([0.5] * 3), given).transforms
        wanted = sg.Instances(ball([0.5] * 3), affine).transforms
        jax.tree.map(np.testing.assert_allclose, made, wanted)


def test_errors_say_what_is_wrong():
    with pytest.raises(ValueError, match="2 kinds"):
        sg.Instances(ball([0.5] * 3), [PLACES[0], sg.Affine(np.eye(3), np.zeros(3))])
    with pytest.raises(ValueError, match="leading axis"):
        sg.Instances(ball([0.5] * 3), PLACES[0])
    with pytest.raises(ValueError, match=r"no leaf at 'shader.color'.*shader.albedo.color"):
        sg.Instances(ball([0.5] * 3), PLACES, {"shader.color": COLORS})
    with pytest.raises(ValueError, match=r"\(3, 3\).*got \(2, 3\)"):
        row(colors=COLORS[:2])
    with pytest.raises(ValueError, match="camera"):
        sg.Instances(sg.Group(eye=CAMERA), PLACES)
