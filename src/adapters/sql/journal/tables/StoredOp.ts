import type { DirectCall, PreparedOp } from "../../../../application/ports/journal/Records.js"
import { direct } from "../../../../application/ports/journal/Requests.js"
import type { UserOperation } from "../../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../../domain/primitives/Address.js"

/**
 * A stored prepared op: one byte for the format, then JSON. The service prepares an op of an unknown format again.
 */

/** Format written by this version. A change of `Stored` takes the next number. */
const format = 1

/** With decimal strings instead of integers. */
type Texts<A> = { readonly [K in keyof A]: A[K] extends bigint ? string : A[K] }

/** A nonce space as a tuple, which saves the names in every op. */
type StoredSpace<EntryPoint> = readonly [
  authority: Address,
  chainId: string,
  entryPoint: EntryPoint,
  wallet: Address
]

type StoredOf<P> = P extends PreparedOp
  ? Omit<Texts<P>, "unsigned" | "space"> & {
      readonly unsigned: Texts<P["unsigned"]>
      readonly space: StoredSpace<P["space"]["entryPoint"]>
    }
  : never

type Stored = StoredOf<PreparedOp>

const utf8 = { encoder: new TextEncoder(), decoder: new TextDecoder("utf-8", { fatal: true }) }

const opOf = (texts: Texts<UserOperation>): UserOperation => ({
  ...texts,
  nonce: BigInt(texts.nonce),
  callGasLimit: BigInt(texts.callGasLimit),
  verificationGasLimit: BigInt(texts.verificationGasLimit),
  preVerificationGas: BigInt(texts.preVerificationGas),
  maxFeePerGas: BigInt(texts.maxFeePerGas),
  maxPriorityFeePerGas: BigInt(texts.maxPriorityFeePerGas)
})

const directOf = (texts: Texts<DirectCall>): DirectCall => ({
  ...texts,
  value: BigInt(texts.value),
  gasLimit: BigInt(texts.gasLimit)
})

export const encode = (prepared: PreparedOp): Uint8Array => {
  const { authority, chainId, entryPoint, wallet } = prepared.space
  const text = JSON.stringify({ ...prepared, space: [authority, chainId, entryPoint, wallet] }, (_, value) =>
    typeof value === "bigint" ? String(value) : value
  )
  const bytes = new Uint8Array(1 + 3 * text.length)
  bytes[0] = format
  return bytes.slice(0, 1 + utf8.encoder.encodeInto(text, bytes.subarray(1)).written)
}

/** Null: prepare the op again. */
export const decode = (bytes: Uint8Array): PreparedOp | null => {
  if (bytes[0] !== format) return null
  const stored = JSON.parse(utf8.decoder.decode(bytes.subarray(1))) as Stored
  const [authority, chainId, , wallet] = stored.space
  const figures = {
    nonceKey: BigInt(stored.nonceKey),
    sequence: BigInt(stored.sequence),
    reserve: BigInt(stored.reserve),
    l1Fee: BigInt(stored.l1Fee)
  }
  const space = { authority, chainId: BigInt(chainId), wallet }
  return stored.kind === "direct"
    ? { ...stored, ...figures, unsigned: directOf(stored.unsigned), space: { ...space, entryPoint: direct } }
    : {
        ...stored,
        ...figures,
        unsigned: opOf(stored.unsigned),
        space: { ...space, entryPoint: stored.space[2] }
      }
}
