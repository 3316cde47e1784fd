"""The readable tree."""

import jax
import jax.numpy as jnp

import scenegraph as sg
from scenegraph.fields import ConstantFog, MipNerfMLP
from scenegraph.numerics import Frozen
from scenegraph.scene import named_leaves


def scene(wrap=lambda node: node):
    fog = wrap(sg.Volume(ConstantFog(1.0, [1, 0, 0]), None))
    camera = sg.PerspectiveCamera(sg.Pose(jnp.eye(4)), 5.0, 3, 2)
    moved = sg.Transformed(fog, sg.Similarity())
    return sg.Scene(sg.Group(thing=moved, rig=sg.Group(cam=camera)), background=[0, 0, 0])


EXPECTED = """\
Scene  (12 leaves, 42 numbers, 0 network weights)
├─ rig  Group
│  └─ cam  PerspectiveCamera
│     ├─ pose  Pose
│     │  ├─ base  float32[4 4] ~
│     │  └─ delta  float32[6]
│     ├─ focal  float32[]
│     ├─ principal_point  float32[2]
│     ├─ near  float32[]
│     └─ far  float32[]
├─ thing  Transformed
│  ├─ transform  Similarity
│  │  ├─ translation  float32[3]
│  │  ├─ rotation  float32[4]
│  │  └─ scale  float32[]
│  └─ field  ConstantFog
│     ├─ extinction  float32[]
│     └─ rgb  float32[3]
└─ background  Backdrop
   └─ shader  Constant
      └─ color  float32[3]"""


def test_a_scene():
    """Children as the tree orders them; what is frozen has a `~`."""
    rebuilt = jax.tree.map(lambda x: x, scene())  # as it comes out of any transformation
    assert sg.describe(rebuilt) == EXPECTED


def frozen_lines(tree):
    return sum(line.endswith(" ~") for line in sg.describe(tree).splitlines())


def test_frozen_nodes_and_leaves():
    """Every frozen leaf is marked, wherever the wrapper is."""
    frozen = [
        scene(Frozen),
        sg.freeze(scene(), "thing"),
        sg.freeze(scene()),
        sg.Scene(Frozen(scene().root)),
    ]
    for tree in frozen:
        count = sum(frozen for _, _, frozen in named_leaves(tree))
        assert frozen_lines(tree) == count > 1


def test_every_name_and_shape_is_there():
    text = sg.describe(scene())
    for path, leaf, _ in named_leaves(scene()):
        assert all(f" {name}  " in text for name in path.split("."))
        assert f"float32[{' '.join(map(str, leaf.shape))}]" in text


def test_the_papers_field():
    net = MipNerfMLP(key=jax.random.key(0))
    text = sg.describe(sg.Scene(sg.Group(thing=sg.Volume(net)), background=[1, 1, 1]))
    assert "27 leaves, 612,749 numbers, 612,740 network weights" in text
    assert "thing  Volume  (612,740 network weights)" in text
    assert "│     │  │  ├─ weight  float32[256 96]" in text


def test_any_tree():
    assert "0  float32[2]" in sg.describe([jnp.ones(2), {"a": jnp.ones(3)}])
    assert sg.describe(sg.Group()) == "Group  (0 leaves, 0 numbers, 0 network weights)"
