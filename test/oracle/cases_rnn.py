"""cases_rnn.py - recurrent nets: cells, single layers, whole nets."""

import math

import torch

from golden import chance, choice, number, uniform

OPS, RANDOM = {}, {}
GATES = {"rnn_tanh": 1, "rnn_relu": 1, "gru": 3, "lstm": 4}


def operands(kind, layers, directions, biases, batch, features, hidden, projected, states, draw):
    """Initial states (None where states is 0) and the flat list of weights."""
    out, rows, h = projected or hidden, GATES[kind] * hidden, []
    for width in (out, hidden) if kind == "lstm" else (out,):
        h.append(draw(layers * directions, *batch, width) if states else None)
    weights = []
    for layer in range(layers):
        for _ in range(directions):
            weights += [draw(rows, features if layer == 0 else directions * out), draw(rows, out)]
            weights += [draw(rows), draw(rows)] if biases else []
            weights += [draw(out, hidden)] if projected else []
    return h, weights


def absent(x, given, *shape):
    return torch.zeros(shape, dtype=x.dtype) if given is None else given


# ---- whole nets
def net(kind, p, projected=0):
    layers, directions = p.get("num_layers", 1), 2 if p.get("bidirectional") else 1
    biases, first = p.get("has_biases", True), p.get("batch_first", False)

    def f(x, *rest):
        alone = x.dim() == 2
        states, weights = list(rest[: 2 if kind == "lstm" else 1]), list(rest[2 if kind == "lstm" else 1 :])
        if alone:
            x, states = x.unsqueeze(0 if first else 1), [
                None if s is None else s.unsqueeze(1) for s in states
            ]
        batch, hidden = x.shape[0 if first else 1], weights[1].shape[0] // GATES[kind]
        widths = (weights[1].shape[1], hidden)
        states = [absent(x, s, layers * directions, batch, widths[i]) for i, s in enumerate(states)]
        hx = tuple(states) if kind == "lstm" else states[0]
        y = getattr(torch, kind)(
            x,
            hx,
            weights,
            biases,
            layers,
            p.get("dropout", 0.0),
            p.get("train", True),
            bool(p.get("bidirectional")),
            first,
        )
        return (y[0].squeeze(0 if first else 1), *(s.squeeze(1) for s in y[1:])) if alone else y

    return f


def net_case(kind, steps, batch, features, hidden, p, projected=0, states=1, draw=uniform):
    layers, directions = p.get("num_layers", 1), 2 if p.get("bidirectional") else 1
    sizes = () if batch is None else (batch,)
    h, weights = operands(
        kind, layers, directions, p.get("has_biases", True), sizes, features, hidden, projected, states, draw
    )
    shape = (*sizes, steps, features) if p.get("batch_first") else (steps, *sizes, features)
    return net(kind, p), [draw(*shape), *h, *weights], p


def nets(kind):
    def draw():
        yield net_case(kind, 5, 3, 4, 3, {})
        yield net_case(kind, 1, 2, 3, 2, {"has_biases": False})
        yield net_case(kind, 4, 2, 3, 2, {"num_layers": 2})
        yield net_case(kind, 3, 2, 3, 2, {"num_layers": 3, "bidirectional": True})
        yield net_case(
            kind,
            4,
            2,
            3,
            2,
            {"num_layers": 2, "bidirectional": True, "batch_first": True, "has_biases": False},
        )
        yield net_case(kind, 4, None, 3, 2, {"bidirectional": True})
        yield net_case(kind, 4, 2, 3, 2, {}, states=0)
        yield net_case(kind, 3, 0, 2, 2, {"num_layers": 2})
        # every element dropped but those of the last layer; none, as this is no training
        yield net_case(kind, 3, 2, 2, 2, {"num_layers": 2, "dropout": 1.0})
        yield net_case(kind, 3, 2, 2, 2, {"num_layers": 2, "dropout": 0.5, "train": False})
        yield net_case(kind, 3, 2, 2, 2, {"dropout": 0.9})
        yield net_case(kind, 20, 4, 30, 33, {}, draw=mild(33))
        # saturated gates; what is left of their gradients is rounding
        f, inputs, p = net_case(kind, 3, 2, 2, 2, {}, draw=lambda *s: uniform(*s, lo=-30, hi=30))
        yield f, inputs, p, range(len(inputs))
        if kind == "lstm":
            yield net_case(kind, 4, 2, 3, 4, {}, projected=2)
            yield net_case(kind, 3, 2, 3, 4, {"num_layers": 2, "bidirectional": True}, projected=3)
            yield net_case(kind, 3, None, 2, 3, {"has_biases": False, "num_layers": 2}, projected=1)

    return draw


# Random cases: sums so large that gates saturate (1 - y^2 of y near 1), chaotic nets, and gradients of a
# single element leave nothing that two roundings in f32 could agree on.  Small and saturated ones are among
# those by hand.
def mild(hidden):
    big = choice((0.5, 1)) / max(1, hidden / 3) ** 0.5
    return lambda *s: uniform(*s, lo=-big, hi=big)


def random_net(kind):
    def draw():
        p = {}
        if chance(0.3):
            p["has_biases"] = False
        if chance(0.5):
            p["num_layers"] = number(1, 2)
        if chance(0.4):
            p["bidirectional"] = True
        if chance(0.4):
            p["batch_first"] = True
        if chance(0.2):
            p["dropout"], p["train"] = choice((0.0, 0.5, 1.0)), False
        elif chance(0.1):
            p["dropout"] = choice((0.0, 1.0))
        hidden = number(3, 9) if chance(0.8) else choice((16, 17, 31))
        projected = number(2, hidden - 1) if kind == "lstm" and hidden > 2 and chance(0.25) else 0
        batch = None if chance(0.2) else number(1, 6) if chance(0.9) else 0
        return net_case(
            kind,
            number(1, 7),
            batch,
            number(2, 6),
            hidden,
            p,
            projected,
            states=not chance(0.2),
            draw=mild(hidden),
        )

    return draw


# ---- one layer in one direction: the sequence is turned around for the reverse one
def layer(kind, reverse):
    def f(x, *rest):
        count = 2 if kind == "lstm" else 1
        states, (w_ih, w_hh, b_ih, b_hh, *w_hr) = rest[:count], rest[count:]
        hidden = w_hh.shape[0] // GATES[kind]
        b = [absent(x, v, w_ih.shape[0]) for v in (b_ih, b_hh)]
        s = [(absent(x, v, x.shape[1], n)).unsqueeze(0) for v, n in zip(states, (w_hh.shape[1], hidden))]
        weights = [w_ih, w_hh, *b, *(v for v in w_hr if v is not None)]
        y = getattr(torch, kind)(
            x.flip(0) if reverse else x,
            tuple(s) if kind == "lstm" else s[0],
            weights,
            True,
            1,
            0.0,
            False,
            False,
            False,
        )
        out = y[0].flip(0) if reverse else y[0]
        return (out, y[2].squeeze(0)) if kind == "lstm" else out

    return f


def layer_case(
    kind, steps, batch, features, hidden, reverse, present=(1, 1, 1, 1), projected=0, draw=uniform
):
    """present: h0, c0, b_ih, b_hh."""
    out, rows = projected or hidden, GATES[kind] * hidden
    inputs = [draw(steps, batch, features), draw(batch, out) if present[0] else None]
    if kind == "lstm":
        inputs.append(draw(batch, hidden) if present[1] else None)
    inputs += [
        draw(rows, features),
        draw(rows, out),
        draw(rows) if present[2] else None,
        draw(rows) if present[3] else None,
    ]
    if kind == "lstm":
        inputs.append(draw(out, hidden) if projected else None)
    return layer(kind, reverse), inputs, {"reverse": reverse}


def layers(kind):
    def draw():
        for reverse in (False, True):
            yield layer_case(kind, 5, 3, 4, 3, reverse)
            yield layer_case(kind, 1, 2, 1, 2, reverse, (0, 0, 1, 0))
            yield layer_case(kind, 2, 1, 3, 1, reverse, (1, 0, 0, 1))
        if kind == "lstm":
            yield layer_case(kind, 3, 2, 3, 4, True, projected=2)

    return draw


def random_layer(kind):
    def draw():
        hidden = number(3, 9)
        projected = number(2, hidden - 1) if kind == "lstm" and hidden > 2 and chance(0.3) else 0
        return layer_case(
            kind,
            number(1, 7),
            number(0, 5),
            number(2, 6),
            hidden,
            chance(0.5),
            [chance(0.8) for _ in range(4)],
            projected,
            mild(hidden),
        )

    return draw


# ---- cells
def cell(kind):
    def f(x, *rest):
        count = 2 if kind == "lstm" else 1
        states, (w_ih, w_hh, b_ih, b_hh) = rest[:count], rest[count:]
        s = [absent(x, v, *x.shape[:-1], w_hh.shape[1]) for v in states]
        b_ih, b_hh = (absent(x, v, w_ih.shape[0]) for v in (b_ih, b_hh))
        if x.dim() == 1:
            x, s = x.unsqueeze(0), [v.unsqueeze(0) for v in s]
            y = getattr(torch, kind + "_cell")(x, s if kind == "lstm" else s[0], w_ih, w_hh, b_ih, b_hh)
            return tuple(v.squeeze(0) for v in y) if kind == "lstm" else y.squeeze(0)
        return getattr(torch, kind + "_cell")(x, s if kind == "lstm" else s[0], w_ih, w_hh, b_ih, b_hh)

    return f


def cell_case(kind, batch, features, hidden, present=(1, 1, 1, 1), draw=uniform):
    sizes, rows = () if batch is None else (batch,), GATES[kind] * hidden
    inputs = [draw(*sizes, features)] + [
        draw(*sizes, hidden) if present[i] else None for i in range(2 if kind == "lstm" else 1)
    ]
    inputs += [
        draw(rows, features),
        draw(rows, hidden),
        draw(rows) if present[2] else None,
        draw(rows) if present[3] else None,
    ]
    return cell(kind), inputs, {}


def with_a_nan(*s):
    x = uniform(*s)
    x.view(-1)[0] = math.nan
    return x


def cells(kind):
    def draw():
        yield cell_case(kind, 3, 2, 2, draw=with_a_nan)
        yield cell_case(kind, 3, 4, 5)
        yield cell_case(kind, None, 4, 3)
        yield cell_case(kind, 2, 3, 2, (0, 0, 0, 0))
        yield cell_case(kind, 0, 3, 2)
        f, inputs, p = cell_case(kind, 3, 4, 2, draw=lambda *s: uniform(*s, lo=-40, hi=40))
        yield f, inputs, p, range(len(inputs))

    return draw


def random_cell(kind):
    def draw():
        hidden = number(2, 18)
        return cell_case(
            kind,
            None if chance(0.2) else number(0, 7),
            number(2, 9),
            hidden,
            [chance(0.8) for _ in range(4)],
            draw=mild(hidden),
        )

    return draw


for name in GATES:
    OPS[name], RANDOM[name] = nets(name), random_net(name)
    OPS[name + "_layer"], RANDOM[name + "_layer"] = layers(name), random_layer(name)
    OPS[name + "_cell"], RANDOM[name + "_cell"] = cells(name), random_cell(name)
