"""Trains a small network on the UCI handwritten digits, end to end.

1,797 images of 8 x 8 pixels (from scikit-learn) train a multilayer perceptron written with `numpy`-like functions,
pytrees, `vmap`, `grad`, `jit` and explicit random keys. The program prints the test accuracy and the time of a
training step with and without `jit`, and draws the loss curve and some digits with their predictions.

The same code runs on ferrax and, with `--backend jax`, on JAX; `--platform` says on which devices.
"""

import argparse
import importlib
import json
import pathlib
import sys
import time

import numpy as np

DEFAULT_PICTURE = pathlib.Path(__file__).parent / "out" / "digits.png"


def parse_arguments(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--backend", choices=["ferrax", "jax"], default="ferrax", help="the library to run on")
    parser.add_argument(
        "--platform", help="the platform to run on, such as cpu or cuda; the library's first without it"
    )
    parser.add_argument("--epochs", type=int, default=40, help="passes over the training images")
    parser.add_argument("--batch", type=int, default=32, help="images in a training step")
    parser.add_argument("--hidden", type=int, nargs="*", default=[128, 64], help="units of each hidden layer")
    parser.add_argument("--rate", type=float, default=2e-3, help="Adam's learning rate")
    parser.add_argument("--decay", type=float, default=1e-4, help="weight of the squared parameters in the loss")
    parser.add_argument("--seed", type=int, default=0, help="seed of the split, the weights and the noise")
    parser.add_argument("--picture", type=pathlib.Path, default=DEFAULT_PICTURE, help="where the PNG goes")
    parser.add_argument("--losses", type=pathlib.Path, help="where to write the loss of every step, as JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    return parser.parse_args(argv)


def load_digits(seed):
    """The images scaled to [0, 1] and their labels, a fifth of them held out for testing."""
    from sklearn.datasets import load_digits as load

    images, labels = load(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(images))
    images = (images[order] / 16).astype(np.float32)
    labels = labels[order].astype(np.int32)
    test = len(images) // 5
    return (images[test:], labels[test:]), (images[:test], labels[:test])


def build(jax, jnp, options):
    """The model's functions: `init(key)`, `step(state, images, labels, key)` and `predict(params, images)`."""

    def init_layer(key, inputs, outputs):
        weights = jax.random.normal(key, (inputs, outputs)) * jnp.sqrt(2 / inputs)
        return {"weights": weights, "bias": jnp.zeros(outputs)}

    def init(key):
        sizes = [64, *options.hidden, 10]
        keys = jax.random.split(key, len(sizes) - 1)
        params = [init_layer(k, m, n) for k, m, n in zip(keys, sizes[:-1], sizes[1:])]
        zeros = jax.tree.map(jnp.zeros_like, params)
        return {"params": params, "mean": zeros, "square": zeros, "step": jnp.array(0.0)}

    def network(params, image):
        """Logits of one image."""
        x = image
        for layer in params[:-1]:
            x = jnp.maximum(x @ layer["weights"] + layer["bias"], 0)
        return x @ params[-1]["weights"] + params[-1]["bias"]

    def loss_of_image(params, image, label):
        logits = network(params, image)
        top = jnp.max(logits)
        return jnp.log(jnp.sum(jnp.exp(logits - top))) + top - logits[label]

    def loss(params, images, labels, key):
        noisy = images + 0.1 * jax.random.normal(key, images.shape)
        losses = jax.vmap(loss_of_image, in_axes=(None, 0, 0))(params, noisy, labels)
        size = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params))
        return jnp.mean(losses) + options.decay * size

    def step(state, images, labels, key):
        """One step of Adam; gives the new state and the loss before it."""
        value, grads = jax.value_and_grad(loss)(state["params"], images, labels, key)
        t = state["step"] + 1
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], grads)
        square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, state["square"], grads)

        def update(p, m, s):
            return p - options.rate * (m / (1 - 0.9**t)) / (jnp.sqrt(s / (1 - 0.999**t)) + 1e-8)

        params = jax.tree.map(update, state["params"], mean, square)
        return {"params": params, "mean": mean, "square": square, "step": t}, value

    @jax.jit
    def predict(params, images):
        return jnp.argmax(jax.vmap(network, in_axes=(None, 0))(params, images), axis=-1)

    return init, step, predict


class Progress:
    """A progress bar on standard error; silent where that is no terminal."""

    def __init__(self, total, quiet):
        self.total, self.start = total, time.perf_counter()
        self.quiet = quiet or not sys.stderr.isatty()

    def show(self, done, text):
        if self.quiet:
            return
        width = 30
        full = width * done // self.total
        left = (time.perf_counter() - self.start) / done * (self.total - done)
        bar = "█" * full + "·" * (width - full)
        sys.stderr.write(f"\r{bar} {done}/{self.total} epochs, {text}, {left:.0f} s left ")
        sys.stderr.flush()

    def close(self):
        if not self.quiet:
            sys.stderr.write("\n")


def train(jax, jnp, options, init, step, predict):
    """Trains the model; gives the final state, the loss of each step and the test accuracy after each epoch."""
    (images, labels), (test_images, test_labels) = jax.tree.map(jnp.asarray, load_digits(options.seed))
    key, init_key = jax.random.split(jax.random.key(options.seed))
    state = init(init_key)
    step = jax.jit(step)
    losses, accuracies = [], []
    progress = Progress(options.epochs, options.quiet)
    batches = len(images) // options.batch
    for epoch in range(options.epochs):
        key, order_key, noise_key = jax.random.split(key, 3)
        order = jax.random.permutation(order_key, len(images))
        for batch, batch_key in enumerate(jax.random.split(noise_key, batches)):
            rows = order[batch * options.batch : (batch + 1) * options.batch]
            state, value = step(state, images[rows], labels[rows], batch_key)
            losses.append(value)
        accuracies.append(float(jnp.mean(predict(state["params"], test_images) == test_labels)))
        progress.show(epoch + 1, f"loss {float(value):.3f}, test accuracy {accuracies[-1]:.1%}")
    progress.close()
    return state, [float(v) for v in losses], accuracies


def time_step(jax, options, state, step):
    """Seconds of one training step: the best of several."""
    (images, labels), _ = load_digits(options.seed)
    images, labels = jax.device_put((images[: options.batch], labels[: options.batch]))
    key = jax.random.key(0)
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        jax.block_until_ready(step(state, images, labels, key))
        best = min(best, time.perf_counter() - start)
    return best


def draw(path, losses, accuracies, images, labels, predictions):
    """Writes the picture: loss and accuracy on the left, digits with their predictions on the right."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1.2, 1])
    axis = left.subplots()
    axis.plot(losses, color="tab:blue", alpha=0.35, linewidth=0.8)
    window = max(1, len(losses) // 50)
    smooth = np.convolve(losses, np.ones(window) / window, mode="valid")
    axis.plot(np.arange(len(smooth)) + window // 2, smooth, color="tab:blue", label="loss")
    axis.set(xlabel="training step", ylabel="loss", yscale="log")
    twin = axis.twinx()
    steps = np.linspace(len(losses) / len(accuracies), len(losses), len(accuracies))
    twin.plot(steps, accuracies, color="tab:orange", label="test accuracy")
    twin.set(ylabel="test accuracy", ylim=(0.8, 1.0))
    axis.legend(loc="lower left")
    twin.legend(loc="lower right")
    right.suptitle("digits and predictions (the wrong ones first, with the truth)")
    for i, panel in enumerate(right.subplots(5, 6).flat):
        panel.imshow(images[i].reshape(8, 8), cmap="gray_r")
        good = predictions[i] == labels[i]
        title = f"{predictions[i]}" if good else f"{predictions[i]} (is {labels[i]})"
        panel.set_title(title, color="tab:green" if good else "tab:red", fontsize=9, pad=2)
        panel.axis("off")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(argv=None):
    options = parse_arguments(argv)
    jax = importlib.import_module(options.backend)
    device = jax.devices(options.platform)[0] if options.platform else None
    with jax.default_device(device):
        return demonstrate(jax, options)


def demonstrate(jax, options):
    """Trains, prints and draws; gives the test accuracy."""
    jnp = importlib.import_module(f"{options.backend}.numpy")
    init, step, predict = build(jax, jnp, options)
    start = time.perf_counter()
    state, losses, accuracies = train(jax, jnp, options, init, step, predict)
    seconds = time.perf_counter() - start
    print(f"{options.backend}: {len(losses)} steps in {seconds:.1f} s")
    print(f"final loss {losses[-1]:.4f}, test accuracy {accuracies[-1]:.2%}")
    if options.losses:
        options.losses.write_text(json.dumps({"losses": losses, "accuracies": accuracies}))
    _, (images, labels) = load_digits(options.seed)
    predictions = np.asarray(predict(state["params"], images))
    order = np.argsort(predictions == labels, kind="stable")
    draw(options.picture, losses, accuracies, images[order], labels[order], predictions[order])
    print(f"picture: {options.picture}")
    eager, jitted = (time_step(jax, options, state, f) for f in (step, jax.jit(step)))
    print(f"one training step: {eager * 1e3:.2f} ms eager, {jitted * 1e3:.3f} ms jitted ({eager / jitted:.0f}x)")
    return accuracies[-1]


if __name__ == "__main__":
    main()
