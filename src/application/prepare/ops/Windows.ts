import * as Result from "effect/Result"
import type { Version } from "../../../domain/erc4337/EntryPoint.js"
import { EntryPointSpec } from "../../../domain/erc4337/entrypoint/EntryPointSpec.js"
import { type ElementFailure, elementFailure } from "../../failures/Elements.js"
import { type InvalidRequest, invalidAt } from "../../failures/Failure.js"
import type { Block } from "../../ports/chain/ChainRpc.js"
import type { Window } from "../../ports/journal/Records.js"

/** An element's window, Unix seconds; 0 or absent: no bound. Null: no window. 400 for an empty window. */
export const read = (
  { validAfter = 0, validUnitl = 0 }: { readonly validAfter?: number; readonly validUnitl?: number },
  path: string
): Result.Result<Window | null, InvalidRequest> =>
  validUnitl !== 0 && validUnitl < validAfter
    ? Result.fail(invalidAt(`${path}.validUnitl`, `is before validAfter: ${validUnitl} < ${validAfter}`))
    : Result.succeed(validAfter === 0 && validUnitl === 0 ? null : { validAfter, validUntil: validUnitl })

const unbounded: Window = { validAfter: 0, validUntil: 0 }

/** A window that has not ended by the chain's latest block; otherwise 400 for the whole request. */
export const notOver = (
  window: Window | null,
  path: string,
  { timestamp }: Pick<Block, "timestamp">
): Result.Result<Window, InvalidRequest> => {
  const { validUntil } = window ?? unbounded
  return validUntil === 0 || timestamp <= validUntil
    ? Result.succeed(window ?? unbounded)
    : Result.fail(invalidAt(`${path}.validUnitl`, `the chain's time is now ${timestamp}`, "window_over"))
}

/** Whether the EntryPoint accepts such an op in a block of this time. */
export const hasBegun = (
  validAfter: number,
  { timestamp }: Pick<Block, "timestamp">,
  version: Version
): boolean => EntryPointSpec[version].hasBegun(BigInt(validAfter), BigInt(timestamp))

/** A window that is open now. A window that has not begun fails only the element. */
export const check = (
  window: Window | null,
  path: string,
  block: Pick<Block, "timestamp">,
  version: Version
): Result.Result<Window, InvalidRequest | ElementFailure> =>
  Result.filterOrFail(
    notOver(window, path, block),
    ({ validAfter }) => hasBegun(validAfter, block, version),
    ({ validAfter }) =>
      elementFailure("not_valid_yet", undefined, {
        validAfter: validAfter.toString(),
        chainTime: block.timestamp.toString()
      })
  )
