"""The bridge to PyTorch, against torch's own gradients of the same formulas; `nox -s torch`."""

import copy
import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.images import Linear


torch = pytest.importorskip("torch", reason="needs PyTorch: nox -s torch")
from scenegraph.interop import _tensors  # noqa: E402, I001


def picture(*shape, seed=0, **options):
    """Random colours, none of them black."""
    numbers = np.random.default_rng(seed).uniform(0.1, 0.9, shape)
    return torch.tensor(numbers, dtype=torch.float32, **options)


def assert_near(actual, expected, tolerance=1e-6):
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def cloud_scene(center=(0.0, 0.0, 0.0), rgb=(0.8, 0.2, 0.1)):
    cloud = sg.Volume(sg.fields.GaussianBlob(center, 0.3, 5.0, rgb))
    return sg.Scene(sg.Group(cloud=cloud), background=[1.0, 1.0, 1.0])


def look(width=6, height=5):
    return sg.PerspectiveCamera.look_at(
        eye=[0.0, -4.0, 1.0],
        target=[0.0, 0.0, 0.0],
        up=[0.0, 0.0, 1.0],
        fov_x=0.7,
        width=width,
        height=height,
    )


def show(scene):
    return sg.render(scene, look(), sg.Hierarchical((8,)))


# --- Values and gradients


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_gamma_is_what_torch_computes(layout, batch):
    shape = (*batch, 4, 5, 3) if layout == "HWC" else (*batch, 3, 4, 5)
    x, weights = picture(*shape, requires_grad=True), picture(*shape, seed=1)
    module = sg.as_torch_module(sg.Gamma(2.2), layout=layout)
    (weights * module(x)).sum().backward()

    y, exponent = x.detach().clone().requires_grad_(), torch.tensor(2.2, requires_grad=True)
    expected = y**exponent
    (weights * expected).sum().backward()
    assert_near(module(x), expected)
    assert_near(x.grad, y.grad)
    assert_near(module.exponent.grad, exponent.grad, 1e-5)


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_axes_are_not_confused(layout):
    """A filter that treats rows, columns and channels differently."""
    pixels = picture(4, 5, 3)
    expected = sg.Vignette(0.7)(sg.Image(jnp.asarray(pixels.numpy()))).rgb
    given = pixels if layout == "HWC" else pixels.permute(2, 0, 1)
    result = sg.as_torch_module(sg.Vignette(0.7), layout=layout)(given)
    assert result.is_contiguous() and result.shape == given.shape
    rows = result if layout == "HWC" else result.permute(1, 2, 0)
    assert_near(rows, torch.tensor(np.asarray(expected)))


def test_gradients_pass_torchs_own_check(x64):
    """Finite differences in float64, of the picture and of two parameters."""
    filters = sg.Chain((sg.Gamma(jnp.array(1.3)), sg.Exposure(jnp.array(0.2))))
    module = sg.as_torch_module(filters)
    assert {p.dtype for p in module.parameters()} == {torch.float64}
    x = picture(2, 3, 3).double().requires_grad_()

    def call(x, *values):
        names = dict(zip(["filters.0.exponent", "filters.1.stops"], values, strict=True))
        return torch.func.functional_call(module, names, x)

    assert torch.autograd.gradcheck(call, (x, *module.parameters()))


def test_a_scene_against_finite_differences():
    module = sg.as_torch_module(show, cloud_scene([0.1, 0.0, -0.1]), trainable=["cloud.field.*"])
    weights = picture(5, 6, 3)

    def value():
        return (weights * module()).sum()

    value().backward()
    center = module.get_parameter("cloud.field.center")
    for axis in (0, 2):
        with torch.no_grad():
            center[axis] += 1e-2
            above = value()
            center[axis] -= 2e-2
            below = value()
            center[axis] += 1e-2
        assert_near(center.grad[axis], (above - below) / 2e-2, 2e-2)


def test_further_inputs_have_gradients_wherever_they_are():
    """Tensors within tuples, arrays, and what is neither."""

    def function(scale, pair, array, power):
        return scale * pair[0] ** power + pair[1] * array

    module = sg.as_torch_module(function, jnp.array(3.0))
    a, b = picture(4, requires_grad=True), picture(4, seed=1, requires_grad=True)
    result = module((a, b), jnp.full(4, 5.0), 2)
    result.sum().backward()
    assert_near(result, 3 * a**2 + 5 * b)
    assert_near(a.grad, 6 * a)
    assert_near(b.grad, torch.full((4,), 5.0))
    assert_near(module.leaf.grad, (a**2).sum())


def test_a_function_alone_and_one_for_linear_light():
    x = picture(4)
    assert_near(sg.as_torch_module(jnp.sin)(x), torch.sin(x))
    brighter = sg.as_torch_module(lambda f, rgb: f(sg.Image(rgb, space=Linear())), sg.Exposure(1.0))
    assert_near(brighter(picture(2, 3, 3)), 2 * picture(2, 3, 3))


def test_a_scene_may_come_with_channels_first():
    module = sg.as_torch_module(lambda scene: show(scene).rgb, cloud_scene(), layout="CHW")
    with torch.no_grad():
        rows = module().permute(1, 2, 0)
    assert_near(rows, torch.tensor(np.asarray(show(cloud_scene()).rgb)))


# --- What is computed, and how often


def counted():
    traces = []

    def function(model, x):
        traces.append(1)
        return model * x

    return function, traces


def test_the_second_call_is_compiled():
    function, traces = counted()
    module = sg.as_torch_module(function, jnp.array(2.0))
    for _ in range(3):
        module(picture(4)).sum().backward()
        with torch.no_grad():
            module.leaf += 1
    assert len(traces) == 1
    module(picture(5)).sum().backward()
    assert len(traces) == 2
    copy.deepcopy(module)(picture(5))
    assert len(traces) == 2


def test_no_gradient_is_prepared_for_nobody(monkeypatch):
    def refuse(*_):
        raise AssertionError("a gradient is prepared")

    monkeypatch.setattr(jax, "vjp", refuse)
    module = sg.as_torch_module(lambda model, x: model * x, jnp.array(2.0))
    with torch.no_grad():
        assert not module(picture(4)).requires_grad
    with torch.inference_mode():
        module(picture(4))
    module.requires_grad_(False)
    assert_near(module(picture(4)), 2 * picture(4))
    with pytest.raises(AssertionError):
        module(picture(4, requires_grad=True))


def test_frozen_parameters_have_no_gradient():
    module = sg.as_torch_module(sg.Gamma(2.0))
    module.requires_grad_(False)
    x = picture(2, 3, 3, requires_grad=True)
    module(x).sum().backward()
    assert_near(x.grad, 2 * x)
    assert module.exponent.grad is None


# --- Memory


def address(array):
    return array.unsafe_buffer_pointer()


def test_memory_is_shared_where_it_can_be():
    tensor, array = picture(4, 5, 3), jnp.arange(12.0) * 2
    assert address(_tensors.to_array(tensor)) == tensor.data_ptr()
    assert address(_tensors.to_array(tensor.requires_grad_())) == tensor.data_ptr()
    assert _tensors.to_tensor(array, torch.device("cpu")).data_ptr() == address(array)


@pytest.mark.parametrize("view", [lambda x: x[1:], lambda x: x.permute(2, 0, 1)[..., 1:]])
def test_where_it_cannot_be_it_is_copied(view):
    """Not at a multiple of 64 bytes; not in order."""
    tensor = view(picture(4, 5, 3))
    array = _tensors.to_array(tensor)
    assert address(array) != tensor.data_ptr()
    np.testing.assert_array_equal(array, tensor.numpy())


def test_other_devices_are_reached_by_a_copy(monkeypatch):
    """As if JAX were elsewhere."""
    monkeypatch.setattr(_tensors, "_is_at", lambda *_: False)
    x = picture(2, 3, 3, requires_grad=True)
    sg.as_torch_module(sg.Gamma(2.0))(x).sum().backward()
    assert_near(x.grad, 2 * x)
    assert address(_tensors.to_array(x)) != x.data_ptr()


def test_writing_in_place_spoils_nothing():
    """Between a call and its `backward()`; and what comes out lives on alone."""
    module = sg.as_torch_module(lambda m, x: jnp.exp(m * x), jnp.full(64, 0.5))
    x = picture(64, requires_grad=True)
    expected = (0.5 * torch.exp(0.5 * x)).detach()
    result = module(x)
    slope = torch.ones(64)
    with torch.no_grad():
        x.zero_(), module.leaf.zero_(), result.zero_()
    result.backward(slope)
    assert_near(x.grad, expected)
    gc.collect()
    assert_near(result.detach(), torch.zeros(64))


def test_what_is_handed_through_is_a_copy():
    """Of an input, of an array that the model keeps, and of the incoming slope."""
    kept, x, slope = jnp.zeros((2, 3, 3)), picture(64, requires_grad=True), torch.ones(64)
    sg.as_torch_module(lambda model: model, kept, trainable=())().add_(1)
    assert not kept.any()
    identity = sg.as_torch_module(lambda x: x)
    identity(x.detach()).zero_()
    assert_near(x.detach(), picture(64))
    identity(x).backward(slope)
    x.grad.zero_()
    assert_near(slope, torch.ones(64))


def test_model_is_of_now():
    module = sg.as_torch_module(sg.Gamma(2.0))
    model = module.model()
    with torch.no_grad():
        module.exponent.fill_(3.0)
    assert float(model.exponent) == 2.0 and float(module.model().exponent) == 3.0


# --- As torch modules are used


def minimise(module, loss, steps, rate):
    optimizer = torch.optim.Adam(module.parameters(), lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()


def test_adam_finds_the_picture_behind_a_filter():
    target = picture(4, 6, 3)
    module = sg.as_torch_module(sg.Picture(sg.Image(jnp.full((4, 6, 3), 0.5)), sg.Invert()))
    assert [name for name, _ in module.named_parameters()] == ["image.rgb"]
    minimise(module, lambda: ((module() - target) ** 2).sum(), 300, 0.02)
    assert_near(torch.tensor(np.asarray(module.model().image.rgb)), 1 - target, 1e-3)


def test_adam_finds_an_exponent():
    module, x = sg.as_torch_module(sg.Gamma(1.0)), picture(4, 6, 3)
    minimise(module, lambda: ((module(x) - x**2.2) ** 2).sum(), 200, 0.05)
    assert_near(module.exponent.detach(), torch.tensor(2.2), 1e-3)


def test_adam_finds_a_cloud(tmp_path):
    """Its place and colour; the fitted scene is saved as any other."""
    truth = sg.as_torch_module(show, cloud_scene([0.15, 0.0, 0.1], [0.8, 0.2, 0.1]))().detach()
    paths = ["cloud.field.center", "cloud.field.rgb"]
    module = sg.as_torch_module(show, cloud_scene(rgb=[0.5, 0.5, 0.5]), trainable=paths)
    minimise(module, lambda: ((module() - truth) ** 2).mean(), 150, 0.02)
    sg.save(module.model(), tmp_path / "scene.sg")
    field = sg.load(tmp_path / "scene.sg").root.children["cloud"].field
    np.testing.assert_allclose(np.asarray(field.center)[[0, 2]], [0.15, 0.1], atol=0.01)
    np.testing.assert_allclose(field.rgb, [0.8, 0.2, 0.1], atol=0.02)


def test_within_a_network():
    """The gradients of a convolution before the filter are those of the formula in torch."""
    torch.manual_seed(0)
    convolution = torch.nn.Conv2d(3, 3, 3, padding=1)
    x, target = picture(2, 3, 6, 5), picture(2, 3, 6, 5, seed=1)
    slopes = []
    for last in (sg.as_torch_module(sg.Invert(), layout="CHW"), lambda x: 1 - x):
        convolution.zero_grad()
        ((last(convolution(x)) - target) ** 2).mean().backward()
        slopes.append(convolution.weight.grad.clone())
    assert_near(*slopes)
    network = torch.nn.Sequential(convolution, sg.as_torch_module(sg.Gamma(2.0), layout="CHW"))
    assert network(x).shape == x.shape
    assert list(network.state_dict()) == ["0.weight", "0.bias", "1.exponent"]


def test_state_dict_round_trip():
    first = sg.as_torch_module(sg.Chain((sg.Gamma(2.0), sg.Blur(0.7))))
    other = sg.as_torch_module(sg.Chain((sg.Gamma(), sg.Blur())))
    other.load_state_dict(first.state_dict())
    assert list(other.state_dict()) == ["filters.0.exponent", "filters.1.sigma"]
    assert torch.equal(first(picture(4, 5, 3)), other(picture(4, 5, 3)))
    twin = copy.deepcopy(first)
    with torch.no_grad():
        twin.get_parameter("filters.0.exponent").fill_(1.0)
    assert float(first.model().filters[0].exponent) == 2.0


def test_parameters_are_the_chosen_leaves():
    frozen = sg.freeze(cloud_scene(), "cloud.field.radius")
    every = [name for name, _ in sg.as_torch_module(show, frozen).named_parameters()]
    assert {"cloud.field.center", "cloud.field.rgb"} <= set(every)
    assert "cloud.field.radius" not in every
    chosen = sg.select(frozen, "cloud.field.rgb")
    for trainable in ("cloud.field.rgb", ["*.field.rgb"], chosen):
        module = sg.as_torch_module(show, frozen, trainable=trainable)
        assert list(module.state_dict()) == ["cloud.field.rgb"]
        assert jax.tree.structure(module.model()) == jax.tree.structure(frozen)


def test_names_that_torch_has_already():
    module = sg.as_torch_module(
        lambda m, x: m["half"]["model"] * x, {"half": {"model": 2 * jnp.ones(())}}
    )
    assert list(module.state_dict()) == ["half_.model_"]
    assert_near(module(picture(3)), 2 * picture(3))


# --- Errors


def test_errors_say_what_to_do():
    invert = sg.as_torch_module(sg.Invert())
    with pytest.raises(TypeError, match="uint8: divide bytes by 255"):
        invert(torch.zeros(4, 4, 3, dtype=torch.uint8))
    with pytest.raises(TypeError, match=r"float64 tensor.*\.float\(\)"):
        invert(torch.zeros(4, 4, 3, dtype=torch.float64))
    with pytest.raises(TypeError, match="complex"):
        invert(torch.zeros(4, 4, 3, dtype=torch.complex64))
    with pytest.raises(ValueError, match=r"'HWC'.*H, W, 3; got \(3, 4, 4\)"):
        invert(torch.zeros(3, 4, 4))
    with pytest.raises(ValueError, match=r"'CHW'.*3, H, W; got \(4, 4, 3\)"):
        sg.as_torch_module(sg.Invert(), layout="CHW")(torch.zeros(4, 4, 3))
    with pytest.raises(ValueError, match="cloud.field.center"):
        sg.as_torch_module(show, cloud_scene(), trainable=["cloud.field.centre"])
    with pytest.raises(ValueError, match="several devices: cpu, meta"):
        sg.as_torch_module(sg.Gamma())(torch.zeros(4, 4, 3, device="meta"))


@pytest.mark.parametrize("result", [1.0, jnp.arange(3), None])
def test_results_have_to_be_floating(result):
    with pytest.raises(TypeError, match="an Image or a floating array"):
        sg.as_torch_module(lambda x: result)(picture(3))


def test_only_pictures_have_channels():
    with pytest.raises(ValueError, match="'CHW' is for pictures"):
        sg.as_torch_module(lambda x: x, layout="CHW")(picture(3))


def test_a_layout_that_is_none():
    with pytest.raises((TypeError, ValueError), match="layout"):
        sg.as_torch_module(sg.Invert(), layout="WHC")


def test_second_derivatives_are_refused():
    x = picture(3, requires_grad=True)
    value = sg.as_torch_module(jnp.sin)(x).sum()
    with pytest.raises(RuntimeError, match="second derivatives"):
        torch.autograd.grad(value, x, create_graph=True)
