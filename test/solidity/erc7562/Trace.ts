import type { EntryPointVersion } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import type { Chain } from "../../support/suite/Chain.js"
import { type Op, pack } from "../../support/suite/Ops.js"
import { tracer } from "./tracer.js"

/** Events of the tracer, in order. Addresses are lower case, words hex without leading zeros. */
export type Event =
  | {
      readonly kind: "enter"
      readonly type: string
      readonly from: string
      readonly to: string
      /** The first 36 bytes. */
      readonly input: string
      readonly size: number
    }
  | { readonly kind: "exit"; readonly error: string | null }
  | {
      readonly kind: "step"
      readonly op: string
      /** The contract whose storage the code uses. */
      readonly address: string
      /** The operands, top of the stack first. */
      readonly args: ReadonlyArray<string>
      /** The instruction behind a GAS or EXTCODESIZE. */
      readonly next: string | null
      /** Preimage of a KECCAK256, when it is 64 bytes. */
      readonly preimage: string | null
    }

/** Traces `handleOps` of one op as a call and returns its events. The chain's state does not change. */
export const traceOp = (chain: Chain, version: EntryPointVersion, op: Op): Promise<ReadonlyArray<Event>> => {
  const entryPoint = chain.entryPoint(version)
  const data = entryPoint.interface.encodeFunctionData("handleOps", [
    [pack(version, op)],
    chain.bundler.address
  ])
  const call = { from: chain.bundler.address, to: entryPoint.target, data, gas: "0x1312d00" }
  return chain.provider.send("debug_traceCall", [call, "latest", { tracer }])
}
