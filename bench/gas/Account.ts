import type { EntryPointVersion } from "../../src/hosts/cli/deploy/EntryPoints.js"
import type { Op } from "../../test/support/suite/Ops.js"

/** A kind of smart account, deployed on a chain. */
export interface Account {
  readonly name: string
  /** npm package and version of its sources. */
  readonly source: string
  /** Compiler and settings of its code. */
  readonly build: string
  readonly version: EntryPointVersion
  /** The signed op that creates the account with this number, which has no money yet. */
  readonly creation: (number: number) => Promise<Op>
  /** Calldata of the account for one call. */
  readonly execute: (target: string, data: string, value: bigint) => string
  readonly sign: (op: Op) => Promise<Op>
}
