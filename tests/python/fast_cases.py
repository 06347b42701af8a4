"""Calls of mx.fast and of quantised products, for core modules to be compared."""

from gradient_cases import draw, fast_cases

MODES = {"affine": {}, "mxfp4": {"group_size": 32, "bits": 4}, "mxfp8": {"group_size": 32, "bits": 8},
         "nvfp4": {"group_size": 16, "bits": 4}}


def values_of_fast(mx):
    for name, (f, *arguments) in fast_cases(mx).items():
        for dtype in ("float32", "float16", "bfloat16"):
            if name.startswith(("quantized", "gather")) and dtype != "float32":
                continue
            few = [x.astype(getattr(mx, dtype)) for x in arguments]
            yield f"{name} of {dtype}", lambda f=f, few=few: f(*few)


def extremes_of_fast(mx):
    inf, nan = float("inf"), float("nan")
    rows = mx.array([[1.0, 2.0, 3.0, 4.0], [nan, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0], [1e20, 1e20, 0.0, 0.0]])
    ones = mx.ones(4)
    yield "layer_norm of extremes", lambda: mx.fast.layer_norm(rows, ones, None, 1e-5)
    yield "rms_norm of extremes", lambda: mx.fast.rms_norm(rows, ones, 1e-5)
    yield "layer_norm of nothing", lambda: mx.fast.layer_norm(mx.zeros((0, 4)), ones, ones, 1e-5)
    yield "rms_norm of nothing", lambda: mx.fast.rms_norm(mx.zeros((0, 4)), ones, 1e-5)
    yield "layer_norm of one column", lambda: mx.fast.layer_norm(rows[:, :1], None, None, 1e-5)
    q = draw(mx, 50, 1, 2, 3, 8)
    hidden = mx.array([[True, False, False], [False, True, True], [True, True, True]])
    yield "attention of one key", lambda: mx.fast.scaled_dot_product_attention(q, q[:, :, :1], q[:, :, :1], scale=1.0)
    yield "attention with infinities", lambda: mx.fast.scaled_dot_product_attention(
        q, q, q, scale=1.0, mask=mx.where(hidden, 0.0, -inf))
    yield "rope of positions", lambda: mx.fast.rope(
        mx.broadcast_to(q, (2, 2, 3, 8)), 8, traditional=False, base=50.0, scale=1.0, offset=mx.array([0, 5]))
    yield "rope of strided rows", lambda: mx.fast.rope(
        q.swapaxes(1, 2), 8, traditional=True, base=50.0, scale=2.0, offset=1)


def mistakes_of_fast(mx):
    x, q = draw(mx, 51, 2, 4), draw(mx, 52, 1, 2, 3, 8)
    yield "layer_norm weight", lambda: mx.fast.layer_norm(x, mx.ones(3), None, 1e-5)
    yield "rms_norm weight", lambda: mx.fast.rms_norm(x, mx.ones((2, 4)), 1e-5)
    yield "rope base and frequencies", lambda: mx.fast.rope(
        q, 8, traditional=False, base=10.0, scale=1.0, offset=0, freqs=mx.ones(4))
    yield "rope frequencies", lambda: mx.fast.rope(
        q, 8, traditional=False, base=None, scale=1.0, offset=0, freqs=mx.ones(3))
    yield "attention widths", lambda: mx.fast.scaled_dot_product_attention(q, q[..., :4], q, scale=1.0)
    yield "attention heads", lambda: mx.fast.scaled_dot_product_attention(
        draw(mx, 53, 1, 3, 3, 8), q, q, scale=1.0)
    yield "attention mask", lambda: mx.fast.scaled_dot_product_attention(q, q, q, scale=1.0, mask=mx.ones((4, 4)))
    yield "quantized_matmul widths", lambda: mx.quantized_matmul(
        draw(mx, 54, 2, 32), *mx.quantize(draw(mx, 55, 4, 64)), transpose=True)
    yield "quantize width", lambda: mx.quantize(draw(mx, 56, 4, 40))
    yield "quantize bits", lambda: mx.quantize(draw(mx, 57, 4, 64), bits=7)


def quantised(mx):
    w, x = draw(mx, 60, 24, 128), draw(mx, 61, 5, 128)
    stack, rows = draw(mx, 62, 4, 24, 128), draw(mx, 63, 6, 1, 128)
    left, right = mx.array([3, 0, 5, 1]), mx.array([1, 1, 3, 0])
    for bits in (2, 3, 4, 5, 6, 8):
        for group in (32, 64, 128):
            how = {"group_size": group, "bits": bits}

            def product(how=how):
                return mx.quantized_matmul(x, *mx.quantize(w, **how), transpose=True, **how)

            def back(how=how):
                return mx.quantized_matmul(x[:, :24], *mx.quantize(w, **how), transpose=False, **how)

            yield f"quantized_matmul of {bits} bits, groups of {group}", product
            yield f"quantized_matmul of {bits} bits, groups of {group}, not transposed", back
    for mode, how in MODES.items():
        def packed(v, mode=mode, how=how):
            return mx.quantize(v, mode=mode, **how)

        def arguments(v, packed=packed):
            codes = packed(v)
            return {"scales": codes[1], "biases": codes[2] if len(codes) > 2 else None}

        def product(dtype, mode=mode, how=how, packed=packed, arguments=arguments):
            return mx.quantized_matmul(
                x.astype(dtype), packed(w)[0], transpose=True, mode=mode, **arguments(w), **how)

        def gathered(mode=mode, how=how, packed=packed, arguments=arguments, **options):
            codes = packed(stack)[0]
            return mx.gather_qmm(rows, codes, transpose=True, mode=mode, **arguments(stack), **options, **how)

        yield f"quantize, {mode}", lambda packed=packed: packed(w)[:2]
        for dtype in ("float32", "float16", "bfloat16"):
            if mode == "affine" and dtype != "float32":
                continue  # scales have the dtype of the weights
            name = f"quantized_matmul, {mode} of {dtype}"
            yield name, lambda product=product, dtype=dtype: product(getattr(mx, dtype))
        chosen = {
            "": {"lhs_indices": left, "rhs_indices": right},
            ", by experts": {"rhs_indices": mx.array([0, 3, 3, 1, 2, 0])},
            ", sorted": {"rhs_indices": mx.array([0, 0, 1, 2, 3, 3]), "sorted_indices": True},
        }
        for more, options in chosen.items():
            yield f"gather_qmm, {mode}{more}", lambda gathered=gathered, options=options: gathered(**options)


def cases(mx):
    """(name, call) of each case."""
    for some in (values_of_fast, extremes_of_fast, mistakes_of_fast, quantised):
        yield from some(mx)
