import * as Address from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import * as StructHash from "../signature/typed/StructHash.js"
import type * as TypedData from "../signature/typed/TypedData.js"
import type * as TypeTable from "../signature/typed/TypeTable.js"
import * as Movements from "./Movements.js"

/**
 * Reads what a signature allows: of a hash and of a message only that it is one; of typed data the permits of tokens too.
 *
 * Gotchas:
 *
 * - A contract takes a struct of exactly one type, written out. It refuses a document of any other type, whatever its name.
 * - A witness of Permit2 has any type: the members before it decide.
 */

/** The object that a value of a struct is. */
type Struct = Readonly<Record<string, unknown>>

/** Permits and transfers in a struct; `contract`: of its domain. */
type Effects = (message: Struct, contract: Address.Address | null) => ReadonlyArray<Movements.Effect>

const structOf = (value: unknown): Struct => value as Struct
const listOf = (value: unknown): ReadonlyArray<Struct> => value as ReadonlyArray<Struct>

const approve = (asset: Address.Address | null, to: unknown, amount: unknown) =>
  Movements.effect("erc20.approve", asset, to, StructHash.integerOf(amount))

const authorised: Effects = ({ to, value }, contract) => [
  Movements.effect("erc20.transfer", contract, to, StructHash.integerOf(value))
]

/** A grant of Permit2: a token and its amount. */
const granted = ({ amount, token }: Struct, spender: unknown): Movements.Effect =>
  approve(Address.unsafe(String(token)), spender, amount)

const one =
  (name: string): Effects =>
  (message) => [granted(structOf(message[name]), message.spender)]

const each =
  (name: string): Effects =>
  (message) =>
    listOf(message[name]).map((entry) => granted(entry, message.spender))

const authorization =
  "(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
const details = "PermitDetails(address token,uint160 amount,uint48 expiration,uint48 nonce)"
const permissions = "TokenPermissions(address token,uint256 amount)"

/** Structs by their types, written out. */
const standards: ReadonlyMap<string, Effects> = new Map<string, Effects>([
  // EIP-2612.
  [
    "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)",
    ({ spender, value }, contract) => [approve(contract, spender, value)]
  ],
  // DAI's.
  [
    "Permit(address holder,address spender,uint256 nonce,uint256 expiry,bool allowed)",
    ({ allowed, spender }, contract) => [
      Movements.effect("erc20.approve", contract, spender, Movements.allOf(allowed))
    ]
  ],
  // EIP-3009.
  [`TransferWithAuthorization${authorization}`, authorised],
  [`ReceiveWithAuthorization${authorization}`, authorised],
  [`PermitSingle(PermitDetails details,address spender,uint256 sigDeadline)${details}`, one("details")],
  [`PermitBatch(PermitDetails[] details,address spender,uint256 sigDeadline)${details}`, each("details")],
  [
    `PermitTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline)${permissions}`,
    one("permitted")
  ],
  [
    `PermitBatchTransferFrom(TokenPermissions[] permitted,address spender,uint256 nonce,uint256 deadline)${permissions}`,
    each("permitted")
  ]
])

/** Beginnings of the types of Permit2's structs with a witness. */
const witnessed: ReadonlyArray<readonly [string, Effects]> = [
  [
    "PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,",
    one("permitted")
  ],
  [
    "PermitBatchWitnessTransferFrom(TokenPermissions[] permitted,address spender,uint256 nonce,uint256 deadline,",
    each("permitted")
  ]
]

const effectsOf = (type: string): Effects | undefined =>
  standards.get(type) ??
  // A type follows the bracket that ends the one before.
  (type.includes(`)${permissions}`)
    ? witnessed.find(([beginning]) => type.startsWith(beginning))?.[1]
    : undefined)

const memberOf = (
  { types, values }: TypedData.Parts["domain"],
  name: string,
  kind: TypeTable.Type["kind"]
) => (types.some((each) => each.name === name && each.type.kind === kind) ? values.get(name) : undefined)

const movementOf = (kind: Movements.Movement["kind"]): Movements.Movement => ({
  kind,
  contract: null,
  selector: null,
  data: Hex.empty,
  asset: null,
  to: null,
  amount: 0n
})

/** Of bytes that are signed as they are, or that could be an op's hash: nothing can be read. */
export const hash: Movements.Movement = movementOf("sign.hash")

export const message: Movements.Movement = movementOf("sign.message")

/**
 * Reads typed data: its signature, and what permits in it allow. A nested document (ERC-7739) allows what is inside; its
 * contents without a struct's type are any struct's hash.
 */
export const of = ({
  domain,
  message,
  primaryType,
  type,
  types
}: TypedData.Parts): ReadonlyArray<Movements.Movement> => {
  const name = memberOf(domain, "name", "string")
  const written = memberOf(domain, "verifyingContract", "address")
  const contract = written === undefined ? null : Address.unsafe(String(written))
  const document: Movements.Document = {
    name: name === undefined ? null : String(name),
    chainId: StructHash.integerOf(memberOf(domain, "chainId", "integer")),
    verifyingContract: contract,
    primaryType
  }
  const signed = { ...movementOf("sign.typedData"), contract, document }
  const effects = (type: string, value: unknown): ReadonlyArray<Movements.Movement> =>
    (effectsOf(type)?.(structOf(value), contract) ?? []).map((each) => ({ ...signed, ...each }))
  if (primaryType !== "TypedDataSign") return [signed, ...effects(type, message)]
  const nested = types.get(primaryType)?.members.find((each) => each.name === "contents")?.type
  const inside = nested?.kind === "struct" ? types.get(nested.name) : undefined
  return [signed, ...(inside === undefined ? [hash] : effects(inside.type, structOf(message).contents))]
}
