import type { UserOperation } from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import { type DirectCall, direct, type PreparedOp, type Space } from "./Records.js"

/**
 * A prepared op as the journal stores it: a byte that names the format, then JSON. What another version of the service wrote
 * in a format that this one does not know is prepared again.
 */

/** The one that is written. A change of `Stored` takes the next number. */
const format = 1

const integers = [
  "nonce",
  "callGasLimit",
  "verificationGasLimit",
  "preVerificationGas",
  "maxFeePerGas",
  "maxPriorityFeePerGas",
  "value",
  "gasLimit"
] as const

type Texts<A> = { readonly [K in keyof A]: A[K] extends bigint ? string : A[K] }

/** With decimals in the place of integers, and without what every op of its lane has. */
type Stored = Omit<Texts<PreparedOp>, "unsigned" | "space"> & {
  readonly unsigned: Texts<UserOperation> | Texts<DirectCall>
  readonly space: readonly [authority: string, chainId: string, entryPoint: string, wallet: string]
}

const utf8 = { encoder: new TextEncoder(), decoder: new TextDecoder("utf-8", { fatal: true }) }

const spaceOf = ([authority, chainId, entryPoint, wallet]: Stored["space"]): Space => {
  const common = { authority: authority as Address, chainId: BigInt(chainId), wallet: wallet as Address }
  return entryPoint === direct
    ? { ...common, entryPoint: direct }
    : { ...common, entryPoint: entryPoint as Address }
}

const textsOf = (unsigned: UserOperation | DirectCall): Stored["unsigned"] => {
  const texts: Record<string, unknown> = { ...unsigned }
  for (const field of integers) if (field in texts) texts[field] = String(texts[field])
  return texts as unknown as Stored["unsigned"]
}

const unsignedOf = (texts: Stored["unsigned"]): UserOperation | DirectCall => {
  const unsigned: Record<string, unknown> = { ...texts }
  for (const field of integers) if (field in unsigned) unsigned[field] = BigInt(unsigned[field] as string)
  return unsigned as unknown as UserOperation | DirectCall
}

export const encode = (prepared: PreparedOp): Uint8Array => {
  const { authority, chainId, entryPoint, wallet } = prepared.space
  const text = JSON.stringify({
    ...prepared,
    nonceKey: String(prepared.nonceKey),
    sequence: String(prepared.sequence),
    reserve: String(prepared.reserve),
    l1Fee: String(prepared.l1Fee),
    unsigned: textsOf(prepared.unsigned),
    space: [authority, String(chainId), entryPoint, wallet]
  })
  const bytes = new Uint8Array(1 + 3 * text.length)
  bytes[0] = format
  return bytes.slice(0, 1 + utf8.encoder.encodeInto(text, bytes.subarray(1)).written)
}

/** Null: it is to be prepared again. */
export const decode = (bytes: Uint8Array): PreparedOp | null => {
  if (bytes[0] !== format) return null
  const stored = JSON.parse(utf8.decoder.decode(bytes.subarray(1))) as Stored
  const common = {
    ...stored,
    nonceKey: BigInt(stored.nonceKey),
    sequence: BigInt(stored.sequence),
    reserve: BigInt(stored.reserve),
    l1Fee: BigInt(stored.l1Fee)
  }
  return { ...common, unsigned: unsignedOf(stored.unsigned), space: spaceOf(stored.space) } as PreparedOp
}
