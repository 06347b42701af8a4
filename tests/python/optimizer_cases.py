"""Optimizers and options whose results are kept in golden/optimizers.npz, and the walk that computes them.

Nothing here imports a library of arrays: the generator passes MLX, the test Weft.
"""

from itertools import product

SHAPES = {"vector": (5,), "wide": (4, 6), "tall": (6, 3), "cube": (2, 3, 4), "scalar": ()}
STEPS = 20
DTYPES = ("float32", "float16", "bfloat16")


def _named(name, **options):
    text = ",".join(f"{key}={value}" for key, value in options.items())
    return f"{name}({text})", name, options


def cases():
    """(title, class, options without the learning rate) of every case."""
    for momentum, decay, dampening, nesterov in product((0.0, 0.9), (0.0, 0.1), (0.0, 0.3), (False, True)):
        if not nesterov or (momentum and not dampening):
            yield _named("SGD", momentum=momentum, weight_decay=decay, dampening=dampening, nesterov=nesterov)
    yield _named("RMSprop")
    yield _named("RMSprop", alpha=0.9, eps=1e-3)
    yield _named("Adagrad")
    yield _named("Adagrad", eps=1e-2)
    yield _named("AdaDelta")
    yield _named("AdaDelta", rho=0.5, eps=1e-4)
    for correction in (False, True):
        yield _named("Adam", bias_correction=correction)
        yield _named("Adam", betas=(0.7, 0.9), eps=1e-3, bias_correction=correction)
        yield _named("AdamW", bias_correction=correction)
        yield _named("AdamW", weight_decay=0.5, bias_correction=correction)
    yield _named("Adamax")
    yield _named("Lion")
    yield _named("Lion", betas=(0.5, 0.6), weight_decay=0.1)
    for nesterov in (True, False):
        yield _named("Muon", nesterov=nesterov)
    yield _named("Muon", momentum=0.8, weight_decay=0.0, ns_steps=3)
    for relative, scale, mean in product((True, False), (True, False), (None, 0.9)):
        yield _named("Adafactor", relative_step=relative, scale_parameter=scale, beta_1=mean)
    yield _named("Adafactor", warmup_init=True, weight_decay=0.1)
    yield _named("Adafactor", decay_rate=-0.5, clip_threshold=0.5, eps=(1e-8, 1e-2))


def walk(mx, optimizers, flatten, inputs, name, options, dtype, learning_rate):
    """Take STEPS steps and return {path: array} of parameters and state, by those functions of a library.

    `inputs` has parameters under "parameter/NAME" and the gradients of all steps under "gradient/NAME".
    """
    rate = optimizers.linear_schedule(0.01, 0.001, 10) if learning_rate == "schedule" else learning_rate
    optimizer = getattr(optimizers, name)(rate, **options)
    dtype = getattr(mx, dtype)
    parameters = {key: mx.array(inputs[f"parameter/{key}"]).astype(dtype) for key in SHAPES}
    for step in range(STEPS):
        gradients = {key: mx.array(inputs[f"gradient/{key}"][step]).astype(dtype) for key in SHAPES}
        parameters = optimizer.apply_gradients(gradients, parameters)
        mx.eval(parameters, optimizer.state)
    return dict(flatten({"parameters": parameters, "state": optimizer.state}))


def runs():
    """(title, class, options, dtype, learning rate) of every run."""
    seen = set()
    for title, name, options in cases():
        dtypes = DTYPES if name not in seen else ("float32",)
        rates = (0.01, "schedule") if name not in seen else (0.01,)
        seen.add(name)
        for dtype in dtypes:
            yield f"{title}/{dtype}", name, options, dtype, 0.01
        for rate in rates[1:]:
            yield f"{title}/{rate}", name, options, "float32", rate


SCHEDULES = {
    "exponential_decay": ((0.1, 0.9), {}),
    "step_decay": ((0.1, 0.5, 3), {}),
    "cosine_decay": ((0.1, 10), {}),
    "cosine_decay to end": ((0.1, 10, 0.01), {}),
    "linear_schedule": ((0.1, 1.0, 10), {}),
    "linear_schedule down": ((1.0, 0.0, 7), {}),
}


def schedule_values(mx, optimizers):
    """{title: values at steps 0 to 14} of every schedule, and of two that are joined."""
    made = {t: getattr(optimizers, t.split()[0])(*a, **k) for t, (a, k) in SCHEDULES.items()}
    warm, cool = made["linear_schedule"], made["cosine_decay"]
    made["join_schedules"] = optimizers.join_schedules([warm, cool, made["step_decay"]], [4, 9])
    return {t: [s(mx.array(i, mx.uint64)).item() for i in range(15)] for t, s in made.items()}
