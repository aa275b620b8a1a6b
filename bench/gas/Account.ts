import type { EntryPointVersion } from "../../src/hosts/cli/deploy/EntryPoints.js"
import type { Op } from "../../test/support/suite/Ops.js"

/** One kind of smart account, deployed on a chain and ready to be measured. */
export interface Account {
  readonly name: string
  /** npm package and version of its sources. */
  readonly source: string
  /** Compiler and settings of its code. */
  readonly build: string
  readonly version: EntryPointVersion
  /** The signed operation that creates the account of this number, which has no money yet. */
  readonly creation: (number: number) => Promise<Op>
  /** Calldata of the account for one call. */
  readonly execute: (target: string, data: string, value: bigint) => string
  readonly sign: (op: Op) => Promise<Op>
}
