"""Native matrix product with one matrix for each group of rows, and its plain twin in torch.

A projection multiplies each row by the matrix of its relation, an intersection by the matrix of its type. Groups have
some ten rows, for which the call of a library takes as long as the product itself. `benchmarks/training.py` measures
what the native version gains in a training step; `plain_grouped_matmul` is the tests' oracle, and used on a GPU.
"""
# numba infers these types
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray
from torch import Tensor

Ids = NDArray[np.int64]
THREADED_ROWS = 256  # fewer rows are multiplied in one thread
TRANSPOSED_ROWS = 128  # from here on it pays to transpose the matrix of a group in memory
# Sums in any order and fused multiply-add, as in BLAS; NaN stays NaN.
FAST_MATH = ("reassoc", "contract", "nsz")


@dataclass(frozen=True)
class Groups:
    """The order of n rows by group: group `ids[i]` has the rows `order[starts[i]:stops[i]]`."""

    order: Tensor  # (n,)
    ids: Ids
    starts: Ids
    stops: Ids

    @classmethod
    def of(cls, group_of_row: Tensor) -> "Groups":
        """Sort rows by their group (n,)."""
        order = torch.argsort(group_of_row, stable=True)
        ids, counts = torch.unique_consecutive(group_of_row.index_select(0, order), return_counts=True)
        stops = counts.cumsum(0)
        return cls(order, ids.cpu().numpy(), (stops - counts).cpu().numpy(), stops.cpu().numpy())

    def repeat(self, count: int) -> "Groups":
        """Return the groups of n * count rows, `count` in the place of each row."""
        order = self.order.unsqueeze(1) * count + torch.arange(count, device=self.order.device)
        return Groups(order.view(-1), self.ids, self.starts * count, self.stops * count)

    def between(self, first: int, last: int) -> tuple[Ids, Ids, Ids]:
        """Return ids, starts and stops of the sorted rows first to last; the outer groups may be cut."""
        part = slice(np.searchsorted(self.stops, first, side="right"), np.searchsorted(self.starts, last))
        return self.ids[part], self.starts[part].clip(min=first), self.stops[part].clip(max=last)


def grouped_matmul(rows: Tensor, weight: Tensor, groups: Groups) -> Tensor:
    """Multiply each row by the matrix of its group: (n, d), (groups, d, e) -> (n, e)."""
    if rows.device.type != "cpu":
        return plain_grouped_matmul(rows, weight, groups)
    # The native code does not check its bounds.
    assert rows.dtype == weight.dtype
    assert rows.shape == (len(groups.order), weight.shape[1])
    assert (groups.ids < len(weight)).all()
    product: Tensor = _GroupedProduct.apply(rows, weight, groups)
    return product


def plain_grouped_matmul(rows: Tensor, weight: Tensor, groups: Groups) -> Tensor:
    """Multiply as `grouped_matmul`, with one torch product for each group."""
    pieces = rows.index_select(0, groups.order).split((groups.stops - groups.starts).tolist())
    matrices = weight.unbind()
    products = [piece @ matrices[group] for piece, group in zip(pieces, groups.ids.tolist(), strict=True)]
    product = torch.cat([rows[:0] @ matrices[0], *products])  # the first for no rows at all
    return torch.empty_like(product).index_copy(0, groups.order, product)


class _GroupedProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, groups: Groups) -> Tensor:
        rows, weight = rows.contiguous(), weight.contiguous()
        ctx.save_for_backward(rows, weight)
        ctx.groups = groups
        return _multiply_rows(multiply, rows, weight, groups, weight.shape[2])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        (rows, weight), groups = ctx.saved_tensors, ctx.groups
        gradient = gradient.contiguous()
        to_rows = to_weight = None
        if ctx.needs_input_grad[0]:
            to_rows = _multiply_rows(multiply_transposed, gradient, weight, groups, weight.shape[1])
        if ctx.needs_input_grad[1]:
            # Add to the gradient that is there: a step has several products with one weight, and each would otherwise
            # allocate and add a tensor of all its matrices.
            in_place = weight.is_leaf and weight.grad is not None
            sums = weight.grad if in_place else torch.zeros_like(weight)
            _add_weight_gradient(rows, gradient, sums, groups)
            to_weight = None if in_place else sums
        return to_rows, to_weight, None


def _multiply_rows(kernel: Callable[..., None], rows: Tensor, weight: Tensor, groups: Groups, dim: int) -> Tensor:
    products = rows.new_empty(len(rows), dim)
    shares = [groups.between(first, last) for first, last in _shares(len(rows), len(rows))]
    _in_threads(kernel, rows, weight, products, groups.order, shares=shares)
    return products


def _add_weight_gradient(rows: Tensor, gradient: Tensor, sums: Tensor, groups: Groups) -> None:
    rows, gradient = (tensor.index_select(0, groups.order) for tensor in (rows, gradient))
    # Each thread takes some rows of all matrices, so that no two threads write to the same numbers.
    shares = [(groups.ids, groups.starts, groups.stops, *bounds) for bounds in _shares(rows.shape[1], len(rows))]
    _in_threads(add_outer_products, rows, sums, gradient, shares=shares)


def _shares(size: int, rows: int) -> list[tuple[int, int]]:
    """Split range(size) into one range for each of torch's threads."""
    threads = torch.get_num_threads() if rows >= THREADED_ROWS else 1
    return list(pairwise(size * thread // threads for thread in range(threads + 1)))


def _in_threads(kernel: Callable[..., None], *tensors: Tensor, shares: Sequence[tuple[Any, ...]]) -> None:
    """Run a kernel on the tensors once for each share, the first in this thread."""
    arrays = [tensor.detach().numpy() for tensor in tensors]
    futures: list[Future[None]] = []
    try:
        for share in shares[1:]:
            futures.append(_pool(len(shares) - 1).submit(kernel, *arrays, *share))
        kernel(*arrays, *shares[0])
    finally:
        wait(futures)  # also when interrupted: they write to the tensors' memory
    for future in futures:
        future.result()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="grouped-matmul")


os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked process has none of the threads


compiled = njit(cache=True, nogil=True, fastmath=set(FAST_MATH), error_model="numpy")


def _register_block():
    """Return how many SIMD vectors of how many numbers fit into the registers for each of two rows."""
    try:
        return (8, 16) if binding.get_host_cpu_features().get("avx512f") else (4, 8)
    except RuntimeError:  # LLVM does not know this processor
        return (4, 8)


VECTORS, LANES = _register_block()
WIDE, NARROW = VECTORS * LANES, 8  # columns


def _row_pair_product(vectors, lanes):
    """Return an intrinsic: `to_a += a @ matrix; to_b += b @ matrix` for `vectors * lanes` columns from `column` on.

    Written in LLVM's language: from loops LLVM makes code that stores and loads the sums at each row of the matrix,
    which is two to four times as slow.
    """

    @intrinsic
    def add(_typing, a, b, matrix, to_a, to_b, column):
        def code(context, builder, signature, values):
            number = context.get_value_type(matrix.dtype)
            vector, size = ir.VectorType(number, lanes), context.get_abi_sizeof(number)
            arrays = [
                context.make_array(array_type)(context, builder, value)
                for array_type, value in zip(signature.args[:5], values[:5], strict=True)
            ]
            strides = [cgutils.unpack_tuple(builder, array.strides)[0] for array in arrays]
            first = builder.mul(values[5], values[5].type(size))  # bytes before the first column

            def pointer(array, offset, index=0, pointed=vector):
                offset = builder.add(offset, offset.type(index * lanes * size))
                return cgutils.pointer_add(builder, arrays[array].data, offset, pointed.as_pointer())

            sums = []
            for target in (3, 4):
                for index in range(vectors):
                    value = builder.load(pointer(target, first, index), align=size)
                    sums.append(cgutils.alloca_once_value(builder, value))  # LLVM keeps it in a register
            with cgutils.for_range(builder, cgutils.unpack_tuple(builder, arrays[2].shape)[0]) as loop:
                offset = builder.add(builder.mul(loop.index, strides[2]), first)
                matrix_row = [builder.load(pointer(2, offset, index), align=size) for index in range(vectors)]
                for row in (0, 1):
                    factor = builder.load(pointer(row, builder.mul(loop.index, strides[row]), pointed=number))
                    lane = builder.insert_element(vector(ir.Undefined), factor, cgutils.int32_t(0))
                    zeros = ir.VectorType(cgutils.int32_t, lanes)(None)
                    factors = builder.shuffle_vector(lane, vector(ir.Undefined), zeros)
                    for index, columns in enumerate(matrix_row):
                        total = sums[row * vectors + index]
                        product = builder.fmul(factors, columns, flags=FAST_MATH)
                        builder.store(builder.fadd(builder.load(total), product, flags=FAST_MATH), total)
            for row in (0, 1):
                for index in range(vectors):
                    total = builder.load(sums[row * vectors + index])
                    builder.store(total, pointer(3 + row, first, index), align=size)
            return context.get_dummy_value()

        return types.void(a, b, matrix, to_a, to_b, column), code

    return add


add_wide, add_narrow = _row_pair_product(VECTORS, LANES), _row_pair_product(1, NARROW)


@compiled
def add_row_pair(a, b, matrix, to_a, to_b):
    """Compute `to_a += a @ matrix` and `to_b += b @ matrix`; both may be the same row."""
    columns = matrix.shape[1]
    wide, narrow = columns - columns % WIDE, columns - columns % NARROW
    for column in range(0, wide, WIDE):
        add_wide(a, b, matrix, to_a, to_b, column)
    for column in range(wide, narrow, NARROW):
        add_narrow(a, b, matrix, to_a, to_b, column)
    for column in range(narrow, columns):
        sum_a, sum_b = to_a[column], to_b[column]
        for k in range(len(matrix)):
            sum_a += a[k] * matrix[k, column]
            sum_b += b[k] * matrix[k, column]
        to_a[column], to_b[column] = sum_a, sum_b


@compiled
def multiply(rows, weight, products, order, ids, starts, stops):
    """Write `rows[r] @ weight[group]` to `products[r]` for every row r of every group."""
    for group in range(len(ids)):
        matrix, stop = weight[ids[group]], stops[group]
        for position in range(starts[group], stop, 2):
            a, b = order[position], order[min(position + 1, stop - 1)]
            products[a] = 0
            products[b] = 0
            add_row_pair(rows[a], rows[b], matrix, products[a], products[b])


@compiled
def multiply_transposed(rows, weight, products, order, ids, starts, stops):
    """Write `rows[r] @ weight[group].T` to `products[r]` for every row r of every group."""
    inner, outer = weight.shape[1], weight.shape[2]
    zero = rows.dtype.type(0)
    transposed = np.empty((1, outer, inner), dtype=weight.dtype)
    for group in range(len(ids)):
        matrix, start, stop = weight[ids[group]], starts[group], stops[group]
        if stop - start >= TRANSPOSED_ROWS:
            transposed[0] = matrix.T
            only = slice(group, group + 1)
            multiply(rows, transposed, products, order, np.zeros(1, np.int64), starts[only], stops[only])
            continue
        for position in range(start, stop, 4):
            r0, r1 = order[position], order[min(position + 1, stop - 1)]
            r2, r3 = order[min(position + 2, stop - 1)], order[min(position + 3, stop - 1)]
            a, b, c, d = rows[r0], rows[r1], rows[r2], rows[r3]
            for k in range(inner):
                values = matrix[k]
                sum_a, sum_b, sum_c, sum_d = zero, zero, zero, zero
                for j in range(outer):
                    sum_a += a[j] * values[j]
                    sum_b += b[j] * values[j]
                    sum_c += c[j] * values[j]
                    sum_d += d[j] * values[j]
                products[r0, k], products[r1, k], products[r2, k], products[r3, k] = sum_a, sum_b, sum_c, sum_d


@compiled
def add_outer_products(rows, sums, gradient, ids, starts, stops, low, high):
    """Add `rows.T @ gradient` of each group to the rows low to high of its matrix in `sums`."""
    for group in range(len(ids)):
        matrix = sums[ids[group]]
        group_rows, group_gradient = rows[starts[group] : stops[group]], gradient[starts[group] : stops[group]]
        for k in range(low, high, 2):
            other = min(k + 1, high - 1)
            add_row_pair(group_rows[:, k], group_rows[:, other], group_gradient, matrix[k], matrix[other])
