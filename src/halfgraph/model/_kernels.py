"""Compiled loops: products of groups of rows with a matrix each, of rows with each other, and rows at length one.

For groups of some ten rows the call of a library takes as long as the product itself, and holds Python's lock; for
larger ones of our size, some hundred columns, it is no faster than this.
"""
# numba infers these types
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

import numpy as np
from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

# Sums in any order and fused with products, as libraries do; what is not a number stays so.
FREELY = ("reassoc", "contract", "nsz")
compiled = njit(cache=True, nogil=True, fastmath=set(FREELY), error_model="numpy")


def _registers():
    """What fits into the processor's registers, for each of two rows: so many vectors of so many numbers."""
    try:
        return (8, 16) if binding.get_host_cpu_features().get("avx512f") else (4, 8)
    except RuntimeError:  # of processors that the compiler knows no features of
        return (4, 8)


VECTORS, LANES = _registers()
WIDE, NARROW = VECTORS * LANES, 8
MANY = 128  # rows from which turning their matrix over in memory takes less time than it saves


def _adder(vectors, lanes):
    """What adds the products of two rows with some columns of a matrix to two others: `to += row @ matrix`.

    Written in the compiler's own language: from loops it makes code that puts the sums into memory and takes them out
    again at each row of the matrix, and is two to four times as slow.
    """

    @intrinsic
    def add(_typing, a, b, matrix, to_a, to_b, column):
        def code(context, builder, signature, values):
            number = context.get_value_type(matrix.dtype)
            vector, size = ir.VectorType(number, lanes), context.get_abi_sizeof(number)
            arrays = [
                context.make_array(type_id)(context, builder, value)
                for type_id, value in zip(signature.args[:5], values[:5], strict=True)
            ]
            strides = [cgutils.unpack_tuple(builder, array.strides)[0] for array in arrays]
            beside = builder.mul(values[5], values[5].type(size))  # bytes to the first column

            def pointer(array, offset, place=0, type_id=vector):
                offset = builder.add(offset, offset.type(place * lanes * size))
                return cgutils.pointer_add(builder, arrays[array].data, offset, type_id.as_pointer())

            sums = []
            for to in (3, 4):
                for place in range(vectors):
                    begun = builder.load(pointer(to, beside, place), align=size)
                    sums.append(cgutils.alloca_once_value(builder, begun))  # a register in the end
            with cgutils.for_range(builder, cgutils.unpack_tuple(builder, arrays[2].shape)[0]) as loop:
                at = builder.add(builder.mul(loop.index, strides[2]), beside)
                of_matrix = [builder.load(pointer(2, at, place), align=size) for place in range(vectors)]
                for row in (0, 1):
                    one = builder.load(pointer(row, builder.mul(loop.index, strides[row]), type_id=number))
                    first = builder.insert_element(vector(ir.Undefined), one, cgutils.int32_t(0))
                    first_lane = ir.VectorType(cgutils.int32_t, lanes)(None)
                    every = builder.shuffle_vector(first, vector(ir.Undefined), first_lane)
                    for place, values_there in enumerate(of_matrix):
                        kept = sums[row * vectors + place]
                        product = builder.fmul(every, values_there, flags=FREELY)
                        builder.store(builder.fadd(builder.load(kept), product, flags=FREELY), kept)
            for row in (0, 1):
                for place in range(vectors):
                    found = builder.load(sums[row * vectors + place])
                    builder.store(found, pointer(3 + row, beside, place), align=size)
            return context.get_dummy_value()

        return types.void(a, b, matrix, to_a, to_b, column), code

    return add


add_wide, add_narrow = _adder(VECTORS, LANES), _adder(1, NARROW)


@compiled
def add_two(a, b, matrix, to_a, to_b):
    """Nothing; `to_a += a @ matrix` and `to_b += b @ matrix`; the two may be the same."""
    outer = matrix.shape[1]
    wide, narrow = outer - outer % WIDE, outer - outer % NARROW
    for column in range(0, wide, WIDE):
        add_wide(a, b, matrix, to_a, to_b, column)
    for column in range(wide, narrow, NARROW):
        add_narrow(a, b, matrix, to_a, to_b, column)
    for column in range(narrow, outer):
        of_a, of_b = to_a[column], to_b[column]
        for k in range(len(matrix)):
            of_a += a[k] * matrix[k, column]
            of_b += b[k] * matrix[k, column]
        to_a[column], to_b[column] = of_a, of_b


@compiled
def multiply(rows, weight, products, order, which, firsts, lasts):
    """Nothing; the rows of each group times its matrix go to `products`."""
    for group in range(len(which)):
        matrix, last = weight[which[group]], lasts[group]
        for place in range(firsts[group], last, 2):
            row, other = order[place], order[min(place + 1, last - 1)]
            products[row] = 0
            products[other] = 0
            add_two(rows[row], rows[other], matrix, products[row], products[other])


@compiled
def multiply_turned(rows, weight, products, order, which, firsts, lasts):
    """Nothing; the rows of each group times its matrix turned over go to `products`."""
    inner, outer = weight.shape[1], weight.shape[2]
    nothing = rows.dtype.type(0)
    turned = np.empty((1, outer, inner), dtype=weight.dtype)
    for group in range(len(which)):
        matrix, first, last = weight[which[group]], firsts[group], lasts[group]
        if last - first >= MANY:
            turned[0] = matrix.T
            own = slice(group, group + 1)
            multiply(rows, turned, products, order, np.zeros(1, np.int64), firsts[own], lasts[own])
            continue
        for place in range(first, last, 4):
            row, second = order[place], order[min(place + 1, last - 1)]
            third, fourth = order[min(place + 2, last - 1)], order[min(place + 3, last - 1)]
            a, b, c, d = rows[row], rows[second], rows[third], rows[fourth]
            for k in range(inner):
                values = matrix[k]
                of_a, of_b, of_c, of_d = nothing, nothing, nothing, nothing
                for j in range(outer):
                    of_a += a[j] * values[j]
                    of_b += b[j] * values[j]
                    of_c += c[j] * values[j]
                    of_d += d[j] * values[j]
                products[row, k], products[second, k] = of_a, of_b
                products[third, k], products[fourth, k] = of_c, of_d


@compiled
def add_products(rows, sums, arrived, which, firsts, lasts, low, high):
    """Nothing; the rows of each group turned over, times what arrived for them, are added to some rows of its sums."""
    for group in range(len(which)):
        matrix = sums[which[group]]
        taken, factor = rows[firsts[group] : lasts[group]], arrived[firsts[group] : lasts[group]]
        for k in range(low, high, 2):
            other = min(k + 1, high - 1)
            add_two(taken[:, k], taken[:, other], factor, matrix[k], matrix[other])


@compiled
def make_units(rows, units, sizes, first, last):
    """Nothing; some rows at length one go to `units`, and their lengths to `sizes`."""
    least = rows.dtype.type(1e-12)
    for row in range(first, last):
        values, unit = rows[row], units[row]
        square = rows.dtype.type(0)
        for j in range(len(values)):
            square += values[j] * values[j]
        sizes[row, 0] = size = max(np.sqrt(square), least)
        for j in range(len(values)):
            unit[j] = values[j] / size


@compiled
def multiply_each(rows, others, products, first, last):
    """Nothing; the products of each row with its own others go to `products`."""
    for row in range(first, last):
        values = rows[row]
        for other in range(others.shape[1]):
            factors, found = others[row, other], rows.dtype.type(0)
            for j in range(len(values)):
                found += values[j] * factors[j]
            products[row, other] = found


@compiled
def multiply_each_back(gradient, rows, others, to_rows, to_others, first, last):
    """Nothing; the gradient of such products goes to the rows, where it is added, and to the others."""
    for row in range(first, last):
        values, to = rows[row], to_rows[row]
        for other in range(others.shape[1]):
            slope, factors, to_other = gradient[row, other], others[row, other], to_others[row, other]
            for j in range(len(values)):
                to[j] += slope * factors[j]
                to_other[j] = slope * values[j]


@compiled
def take_least(parts, least, first, last):
    """Nothing; the least of each number over the parts of some rows goes to `least`; what is no number stays so."""
    for row in range(first, last):
        to = least[row]
        to[:] = parts[row, 0]
        for part in range(1, parts.shape[1]):
            values = parts[row, part]
            for j in range(len(to)):
                to[j] = np.minimum(to[j], values[j])


@compiled
def least_back(gradient, parts, least, to_parts, first, last):
    """Nothing; the gradient of each least number goes to the parts that have it, in equal shares."""
    share = np.empty(parts.shape[2], dtype=parts.dtype)
    none = parts.dtype.type(0)
    for row in range(first, last):
        found = least[row]
        share[:] = none
        for part in range(parts.shape[1]):
            values = parts[row, part]
            for j in range(len(share)):
                share[j] += values[j] == found[j]
        for j in range(len(share)):
            share[j] = gradient[row, j] / share[j]
        for part in range(parts.shape[1]):
            values, to = parts[row, part], to_parts[row, part]
            for j in range(len(share)):
                to[j] = share[j] if values[j] == found[j] else none


@compiled
def owe(gradient, ids, owed):
    """Nothing; the gradients of rows that were looked up are added to what is owed to them."""
    for place in range(len(ids)):
        due, to = gradient[place], owed[ids[place]]
        for j in range(len(due)):
            to[j] += due[j]


@compiled
def settle(owed, units, sizes, gradient, first, last):
    """Nothing; what is owed to rows of length one is added to the gradient of the rows as they were, and cleared."""
    for row in range(first, last):
        due, unit, to = owed[row], units[row], gradient[row]
        along = due.dtype.type(0)
        for j in range(len(due)):
            along += due[j] * unit[j]
        for j in range(len(due)):
            to[j] += (due[j] - along * unit[j]) / sizes[row, 0]
            due[j] = 0
