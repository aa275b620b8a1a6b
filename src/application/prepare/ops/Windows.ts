import * as Result from "effect/Result"
import type { Version } from "../../../domain/erc4337/EntryPoint.js"
import { EntryPointSpec } from "../../../domain/erc4337/entrypoint/EntryPointSpec.js"
import type { Block } from "../../ports/chain/ChainRpc.js"
import { type ElementFailure, elementFailure } from "../../request/Elements.js"
import { type InvalidRequest, invalid } from "../../request/Failure.js"

/** The caller's bounds on when an op may be executed, Unix seconds; 0, or none: no bound. */
export interface Window {
  readonly validAfter?: number
  readonly validUnitl?: number
}

/** The same bounds as an op is signed under. */
export interface Bounds {
  readonly validUntil: number
  readonly validAfter: number
}

/** A window that can hold at some time; 400 otherwise. */
export const bounds = (
  { validAfter = 0, validUnitl = 0 }: Window,
  path: string
): Result.Result<Bounds, InvalidRequest> =>
  validUnitl !== 0 && validUnitl < validAfter
    ? Result.fail(
        invalid("invalid_request", [
          { path: `${path}.validUnitl`, message: `is before validAfter: ${validUnitl} < ${validAfter}` }
        ])
      )
    : Result.succeed({ validUntil: validUnitl, validAfter })

/** The bounds of a window that is not over, by the chain's latest block; 400 of the whole request otherwise. */
export const notOver = (
  window: Window,
  path: string,
  { timestamp }: Pick<Block, "timestamp">
): Result.Result<Bounds, InvalidRequest> =>
  Result.filterOrFail(
    bounds(window, path),
    ({ validUntil }) => validUntil === 0 || timestamp <= validUntil,
    () =>
      invalid("window_over", [
        { path: `${path}.validUnitl`, message: `the chain's time is ${timestamp} by now` }
      ])
  )

/** The EntryPoint takes what begins then in a block of this time. */
export const hasBegun = (
  validAfter: number,
  { timestamp }: Pick<Block, "timestamp">,
  version: Version
): boolean => EntryPointSpec[version].hasBegun(BigInt(validAfter), BigInt(timestamp))

/** The bounds of a window that holds now. One that has not begun is the element's failure. */
export const check = (
  window: Window,
  path: string,
  block: Pick<Block, "timestamp">,
  version: Version
): Result.Result<Bounds, InvalidRequest | ElementFailure> =>
  Result.filterOrFail(
    notOver(window, path, block),
    ({ validAfter }) => hasBegun(validAfter, block, version),
    ({ validAfter }) =>
      elementFailure("not_valid_yet", undefined, {
        validAfter: validAfter.toString(),
        chainTime: block.timestamp.toString()
      })
  )
