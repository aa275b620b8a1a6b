import * as Result from "effect/Result"
import type { Version } from "../../../domain/erc4337/EntryPoint.js"
import { EntryPointSpec } from "../../../domain/erc4337/entrypoint/EntryPointSpec.js"
import { type ElementFailure, elementFailure } from "../../failures/Elements.js"
import { type InvalidRequest, invalid } from "../../failures/Failure.js"
import type { Block } from "../../ports/chain/ChainRpc.js"
import type { Window } from "../../ports/journal/Records.js"

/** The window of an element, Unix seconds; 0, or none: no bound. Null: it has none. 400 for one that can hold at no time. */
export const read = (
  { validAfter = 0, validUnitl = 0 }: { readonly validAfter?: number; readonly validUnitl?: number },
  path: string
): Result.Result<Window | null, InvalidRequest> =>
  validUnitl !== 0 && validUnitl < validAfter
    ? Result.fail(
        invalid("invalid_request", [
          { path: `${path}.validUnitl`, message: `is before validAfter: ${validUnitl} < ${validAfter}` }
        ])
      )
    : Result.succeed(validAfter === 0 && validUnitl === 0 ? null : { validAfter, validUntil: validUnitl })

const unbounded: Window = { validAfter: 0, validUntil: 0 }

/** A window that is not over, by the chain's latest block; 400 of the whole request otherwise. */
export const notOver = (
  window: Window | null,
  path: string,
  { timestamp }: Pick<Block, "timestamp">
): Result.Result<Window, InvalidRequest> => {
  const { validUntil } = window ?? unbounded
  return validUntil === 0 || timestamp <= validUntil
    ? Result.succeed(window ?? unbounded)
    : Result.fail(
        invalid("window_over", [
          { path: `${path}.validUnitl`, message: `the chain's time is ${timestamp} by now` }
        ])
      )
}

/** The EntryPoint takes what begins then in a block of this time. */
export const hasBegun = (
  validAfter: number,
  { timestamp }: Pick<Block, "timestamp">,
  version: Version
): boolean => EntryPointSpec[version].hasBegun(BigInt(validAfter), BigInt(timestamp))

/** A window that holds now. One that has not begun is the element's failure. */
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
