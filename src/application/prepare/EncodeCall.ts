import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as FunctionSignature from "../../domain/abi/FunctionSignature.js"
import * as Parameters from "../../domain/abi/Parameters.js"
import * as Values from "../../domain/abi/Values.js"
import type * as Hex from "../../domain/primitives/Hex.js"
import type * as WalletCalls from "../../domain/wallet/WalletCalls.js"
import { type Failure, invalid, invalidAt } from "../failures/Failure.js"
import type { Window } from "../ports/journal/Records.js"
import * as EventLoop from "../runtime/EventLoop.js"
import type { Operation } from "./Operation.js"
import * as Windows from "./ops/Windows.js"
import type * as Wallets from "./wallets/Wallets.js"

/** An operation with its encoded call. */
export interface EncodedCall {
  readonly index: number
  readonly selector: Wallets.Selector
  readonly call: WalletCalls.Call
  /** Time limits that the caller sets. */
  readonly window: Window | null
  readonly decode: (returned: Hex.Hex) => unknown
}

/** Decodes a function's return data to JSON; returns it unchanged when the signature has no outputs or other ones. */
export const decodeReturned = (
  signature: FunctionSignature.FunctionSignature,
  returned: Hex.Hex
): unknown => {
  if (signature.outputs === null || signature.outputs.length === 0) return returned
  const values = Values.decode(signature.outputs, returned, { maxValues: Values.maxValuesAtOnce })
  if (Result.isFailure(values)) return returned
  return values.success.length === 1 ? values.success[0] : values.success
}

export interface Encoded {
  readonly signature: FunctionSignature.FunctionSignature
  readonly data: Hex.Hex
}

/** Encodes a function's calldata from its signature text and parameters; 400 for errors in them. */
export const encodeCall = (
  funcSignature: string,
  funcParams: ReadonlyArray<unknown>,
  path: string
): Result.Result<Encoded, Failure> =>
  Result.gen(function* () {
    const at = path === "" ? "" : `${path}.`
    const signature = yield* Result.mapError(FunctionSignature.parse(funcSignature), ({ message, why }) =>
      invalid("invalid_function_signature", [{ path: `${at}funcSignature`, message: why }], message)
    )
    const data = yield* Result.mapError(
      Parameters.encodeCall(signature, funcParams, Parameters.maxValues),
      (error) =>
        invalid(
          "invalid_function_parameter",
          [
            {
              path: error.index === null ? `${at}funcParams` : `${at}funcParams[${error.index}]`,
              message: error.message
            }
          ],
          error.message
        )
    )
    return { signature, data }
  })

const encode = (operation: Operation, index: number): Result.Result<EncodedCall, Failure> =>
  Result.gen(function* () {
    const path = `operations[${index}]`
    const window = yield* Windows.read(operation, path)
    const { data, signature } = yield* encodeCall(operation.funcSignature, operation.funcParams ?? [], path)
    return {
      index,
      selector: operation,
      call: { target: operation.to, value: operation.value ?? 0n, data },
      window,
      decode: (returned) => decodeReturned(signature, returned)
    }
  })

export const encodeAll = (
  operations: ReadonlyArray<Operation>
): Effect.Effect<ReadonlyArray<EncodedCall>, Failure> =>
  operations.length === 0
    ? Effect.fail(invalidAt("operations", "expected at least one operation"))
    : EventLoop.each(operations, (operation, index) => Effect.fromResult(encode(operation, index)))
