/** Gas of nested calls. */

/** Gas that `innerHandleOp` requires in addition to the call's limit. */
export const innerReserve = 10_000n

/** x * 64/63, rounded up: the gas that a caller needs to give `x` to one nested call (EIP-150). */
export const held = (x: bigint): bigint => (x * 64n + 62n) / 63n
