"""Compiled products of a few rows with a matrix: four rows at a time, so that a matrix is read once for all four.

For groups of some ten rows the call of a library takes as long as the product itself, and holds Python's lock.
"""
# numba infers these types
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

import numpy as np
from numba import njit

# Sums in any order and fused with products, as libraries do; what is not a number stays so.
compiled = njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")


@compiled
def multiply(rows, weight, products, which, firsts, lasts):
    """Nothing; the rows of each group times its matrix go to `products`.

    The last row stands in for those that four lack: so a row has the same product wherever it is.
    """
    inner, outer = weight.shape[1], weight.shape[2]
    room = np.empty((4, outer), rows.dtype)
    to_a, to_b, to_c, to_d = room[0], room[1], room[2], room[3]
    for group in range(len(which)):
        matrix, last = weight[which[group]], lasts[group]
        for row in range(firsts[group], last, 4):
            a, b = rows[row], rows[min(row + 1, last - 1)]
            c, d = rows[min(row + 2, last - 1)], rows[min(row + 3, last - 1)]
            room[:] = 0
            for k in range(0, inner - 3, 4):
                m0, m1, m2, m3 = matrix[k], matrix[k + 1], matrix[k + 2], matrix[k + 3]
                a0, a1, a2, a3 = a[k], a[k + 1], a[k + 2], a[k + 3]
                b0, b1, b2, b3 = b[k], b[k + 1], b[k + 2], b[k + 3]
                c0, c1, c2, c3 = c[k], c[k + 1], c[k + 2], c[k + 3]
                d0, d1, d2, d3 = d[k], d[k + 1], d[k + 2], d[k + 3]
                for j in range(outer):
                    to_a[j] += a0 * m0[j] + a1 * m1[j] + a2 * m2[j] + a3 * m3[j]
                    to_b[j] += b0 * m0[j] + b1 * m1[j] + b2 * m2[j] + b3 * m3[j]
                    to_c[j] += c0 * m0[j] + c1 * m1[j] + c2 * m2[j] + c3 * m3[j]
                    to_d[j] += d0 * m0[j] + d1 * m1[j] + d2 * m2[j] + d3 * m3[j]
            for k in range(inner - inner % 4, inner):
                for j in range(outer):
                    to_a[j] += a[k] * matrix[k, j]
                    to_b[j] += b[k] * matrix[k, j]
                    to_c[j] += c[k] * matrix[k, j]
                    to_d[j] += d[k] * matrix[k, j]
            for place in range(min(4, last - row)):
                products[row + place] = room[place]


@compiled
def multiply_turned(rows, weight, products, which, firsts, lasts):
    """Nothing; the rows of each group times its matrix turned over go to `products`."""
    inner, outer = weight.shape[1], weight.shape[2]
    nothing = rows.dtype.type(0)
    for group in range(len(which)):
        matrix, last = weight[which[group]], lasts[group]
        for row in range(firsts[group], last, 4):
            second, third, fourth = min(row + 1, last - 1), min(row + 2, last - 1), min(row + 3, last - 1)
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
def add_products(rows, sums, arrived, which, firsts, lasts):
    """Nothing; the rows of each group turned over, times what arrived for them, are added to the group's sums."""
    inner, outer = sums.shape[1], sums.shape[2]
    for group in range(len(which)):
        matrix = sums[which[group]]
        row, last = firsts[group], lasts[group]
        while last - row >= 4:
            a, b, c, d = rows[row], rows[row + 1], rows[row + 2], rows[row + 3]
            p, q, r, s = arrived[row], arrived[row + 1], arrived[row + 2], arrived[row + 3]
            for k in range(0, inner - 1, 2):
                m0, m1 = matrix[k], matrix[k + 1]
                a0, b0, c0, d0 = a[k], b[k], c[k], d[k]
                a1, b1, c1, d1 = a[k + 1], b[k + 1], c[k + 1], d[k + 1]
                for j in range(outer):
                    m0[j] += a0 * p[j] + b0 * q[j] + c0 * r[j] + d0 * s[j]
                    m1[j] += a1 * p[j] + b1 * q[j] + c1 * r[j] + d1 * s[j]
            for k in range(inner - inner % 2, inner):
                for j in range(outer):
                    matrix[k, j] += a[k] * p[j] + b[k] * q[j] + c[k] * r[j] + d[k] * s[j]
            row += 4
        while row < last:
            a, p = rows[row], arrived[row]
            for k in range(inner):
                one, values = a[k], matrix[k]
                for j in range(outer):
                    values[j] += one * p[j]
            row += 1
