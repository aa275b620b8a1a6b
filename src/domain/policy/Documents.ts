import * as Address from "../primitives/Address.js"
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

const approve = (asset: Address.Address | null, to: unknown, amount: unknown) =>
  Movements.effect("erc20.approve", asset, to, StructHash.integerOf(amount))

const authorised: Effects = ({ to, value }, contract) => [
  Movements.effect("erc20.transfer", contract, to, StructHash.integerOf(value))
]

/** Grants of Permit2: a token and its amount, or a list of them, in the member of this name. */
const granted =
  (name: string): Effects =>
  (message) =>
    [message[name] as Struct | ReadonlyArray<Struct>]
      .flat()
      .map(({ amount, token }) => approve(Address.unsafe(String(token)), message.spender, amount))

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
  [`PermitSingle(PermitDetails details,address spender,uint256 sigDeadline)${details}`, granted("details")],
  [`PermitBatch(PermitDetails[] details,address spender,uint256 sigDeadline)${details}`, granted("details")],
  [
    `PermitTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline)${permissions}`,
    granted("permitted")
  ],
  [
    `PermitBatchTransferFrom(TokenPermissions[] permitted,address spender,uint256 nonce,uint256 deadline)${permissions}`,
    granted("permitted")
  ]
])

/** Beginning of the types of Permit2's structs with a witness. */
const witnessed =
  /^Permit(WitnessTransferFrom\(TokenPermissions|BatchWitnessTransferFrom\(TokenPermissions\[\]) permitted,address spender,uint256 nonce,uint256 deadline,/

const effectsOf = (type: string): Effects | undefined =>
  standards.get(type) ??
  // A type follows the bracket that ends the one before.
  (witnessed.test(type) && type.includes(`)${permissions}`) ? granted("permitted") : undefined)

const memberOf = (
  { types, values }: TypedData.Parts["domain"],
  name: string,
  kind: TypeTable.Type["kind"]
) => (types.some((each) => each.name === name && each.type.kind === kind) ? values.get(name) : undefined)

/** Of bytes that are signed as they are, or that could be an op's hash: nothing can be read. */
export const hash: Movements.Movement = Movements.plain("sign.hash")

export const message: Movements.Movement = Movements.plain("sign.message")

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
  const signed = { ...Movements.plain("sign.typedData"), contract, document }
  const effects = (type: string, value: unknown): ReadonlyArray<Movements.Movement> =>
    (effectsOf(type)?.(value as Struct, contract) ?? []).map((each) => ({ ...signed, ...each }))
  if (primaryType !== "TypedDataSign") return [signed, ...effects(type, message)]
  const nested = types.get(primaryType)?.members.find((each) => each.name === "contents")?.type
  const inside = nested?.kind === "struct" ? types.get(nested.name) : undefined
  return [signed, ...(inside === undefined ? [hash] : effects(inside.type, (message as Struct).contents))]
}
