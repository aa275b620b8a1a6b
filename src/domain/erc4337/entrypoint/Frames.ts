/** Gas of nested calls. */

/** Gas that `innerHandleOp` wants in hand beside the call's limit. */
export const innerReserve = 10_000n

/** x * 64/63, rounded up: what a caller must have to give `x` to one nested call (EIP-150). */
export const held = (x: bigint): bigint => (x * 64n + 62n) / 63n
