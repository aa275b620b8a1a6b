import { readFileSync } from "node:fs"
import * as Solc from "./Solc.js"

/** The page generated from the ABI and the NatSpec comments of the deployed contracts. */
export const path = "docs/contracts-reference.md"

const deployed = [
  "WalletFactory",
  "WalletProxy",
  "WalletBeacon",
  "Wallet",
  "CustodyValidator",
  "OperationLedger",
  "SponsorPaymaster"
]

interface Parameter {
  readonly name: string
  readonly type: string
  readonly indexed?: boolean
  readonly components?: ReadonlyArray<Parameter>
}

interface Entry {
  readonly type: string
  readonly name?: string
  readonly stateMutability?: string
  readonly inputs?: ReadonlyArray<Parameter>
  readonly outputs?: ReadonlyArray<Parameter>
}

interface Words {
  readonly notice?: string
  readonly details?: string
  readonly params?: Readonly<Record<string, string>>
  readonly returns?: Readonly<Record<string, string>>
  readonly return?: string
}

interface Documents {
  readonly notice?: string
  readonly details?: string
  readonly methods?: Readonly<Record<string, Words>>
  readonly events?: Readonly<Record<string, Words>>
  readonly errors?: Readonly<Record<string, ReadonlyArray<Words>>>
  readonly stateVariables?: Readonly<Record<string, Words>>
}

interface Node {
  readonly nodeType: string
  readonly name?: string
  readonly documentation?: { readonly text: string }
  readonly members?: ReadonlyArray<{
    readonly name: string
    readonly typeDescriptions: { readonly typeString: string }
  }>
  readonly nodes?: ReadonlyArray<Node>
}

interface Output {
  readonly errors?: ReadonlyArray<{ readonly severity: string; readonly formattedMessage: string }>
  readonly sources: Readonly<Record<string, { readonly ast: Node }>>
  readonly contracts: Readonly<
    Record<
      string,
      Readonly<
        Record<
          string,
          { readonly abi: ReadonlyArray<Entry>; readonly userdoc: Documents; readonly devdoc: Documents }
        >
      >
    >
  >
}

/** One ABI item; an empty `text` is missing documentation. */
interface Described {
  readonly kind: string
  readonly title: string
  /** OpenZeppelin's; the sources have no separate text for it. */
  readonly isForeign?: boolean
  readonly text: string
  readonly rows: ReadonlyArray<{
    readonly role: "takes" | "indexed" | "returns" | "has"
    readonly name: string
    readonly type: string
    readonly text: string
  }>
}

interface Contract {
  readonly name: string
  readonly text: string
  readonly parts: ReadonlyArray<Described>
}

/** Documentation of OpenZeppelin items that lack it, by signature; parameters and results in order. */
const inherited: Readonly<
  Record<
    string,
    {
      readonly text: string
      readonly inputs?: ReadonlyArray<string>
      readonly outputs?: ReadonlyArray<string>
    }
  >
> = JSON.parse(readFileSync(new URL("inherited.json", import.meta.url), "utf8"))

/** Items of OpenZeppelin's Ownable2Step and EIP712: the page names them, and OpenZeppelin documents them. */
const openZeppelin: ReadonlySet<string> = new Set([
  "InvalidShortString()",
  "StringTooLong(string)",
  "OwnableInvalidOwner(address)",
  "OwnableUnauthorizedAccount(address)",
  "EIP712DomainChanged()",
  "OwnershipTransferStarted(address,address)",
  "OwnershipTransferred(address,address)",
  "acceptOwnership()",
  "eip712Domain()",
  "owner()",
  "pendingOwner()",
  "transferOwnership(address)"
])

const canonical = ({ components, type }: Parameter): string =>
  components === undefined ? type : `(${components.map(canonical).join(",")})${type.slice("tuple".length)}`

const signatureOf = ({ inputs = [], name = "" }: Entry): string =>
  `${name}(${inputs.map(canonical).join(",")})`

const wordsOf = (entry: Entry, documents: Documents): Words => {
  const signature = signatureOf(entry)
  if (entry.type === "event") return documents.events?.[signature] ?? {}
  if (entry.type === "error") return documents.errors?.[signature]?.[0] ?? {}
  // A map: the key "constructor" of an object without one is a function of every object.
  const methods = new Map(Object.entries(documents.methods ?? {}))
  if (entry.type === "constructor") return methods.get("constructor") ?? {}
  return { ...documents.stateVariables?.[entry.name ?? ""], ...methods.get(signature) }
}

const constructorText = "Runs once, at the deployment."

const describe = (entry: Entry, user: Documents, dev: Documents): Described => {
  const { inputs = [], name, outputs = [], stateMutability, type } = entry
  const [notice, details] = [wordsOf(entry, user), wordsOf(entry, dev)]
  const standard = inherited[signatureOf(entry)]
  const own = [notice.notice, notice.notice === undefined ? undefined : details.details]
  const text = own.filter((part) => part !== undefined).join(" ")
  const kinds = [stateMutability === "nonpayable" ? undefined : stateMutability, type]
  const isForeign = text === "" && openZeppelin.has(signatureOf(entry))
  return {
    kind: type,
    isForeign,
    title:
      type === "receive"
        ? "receive()"
        : `${name ?? "constructor"}(${inputs.map((input) => `${canonical(input)}${input.name === "" ? "" : ` ${input.name}`}`).join(", ")})`,
    text: `${text || (standard?.text ?? (type === "constructor" ? constructorText : ""))}${
      type === "function" && kinds[0] !== undefined ? ` (${kinds[0]})` : ""
    }`,
    rows: [
      ...inputs.map((input, index) => ({
        role: input.indexed === true ? ("indexed" as const) : ("takes" as const),
        name: input.name || `#${index + 1}`,
        type: canonical(input),
        text: details.params?.[input.name] ?? standard?.inputs?.[index] ?? ""
      })),
      ...outputs.map((output, index) => ({
        role: "returns" as const,
        name: output.name || `#${index + 1}`,
        type: canonical(output),
        text:
          details.returns?.[output.name || `_${index}`] ?? details.return ?? standard?.outputs?.[index] ?? ""
      }))
    ]
  }
}

/** Documentation of a struct and its members, from the comment in front of it. */
const structs = (ast: Node): ReadonlyArray<Described> =>
  (ast.nodes ?? []).flatMap((node) => {
    if (node.nodeType !== "StructDefinition") return node.nodes === undefined ? [] : structs(node)
    const [notice = "", ...tags] = (node.documentation?.text ?? "").split(/(?:^|\s)@(?=\w)/).filter(Boolean)
    const clean = (text: string) => text.replaceAll(/\s+/g, " ").trim()
    const params = new Map(
      tags.flatMap((tag) => {
        const [, name = "", text = ""] = /^param\s+(\S+)\s+([\s\S]*)$/.exec(tag) ?? []
        return name === "" ? [] : [[name, clean(text)] as const]
      })
    )
    return [
      {
        kind: "struct",
        title: node.name ?? "",
        text: clean(notice.replace(/^(notice|dev)\s/, "")),
        rows: (node.members ?? []).map(({ name, typeDescriptions }) => ({
          role: "has" as const,
          name,
          type: typeDescriptions.typeString.replaceAll("struct ", ""),
          text: params.get(name) ?? ""
        }))
      }
    ]
  })

/** Structs that the page leaves out: those of storage slots, and the user operation that ERC-4337 defines. */
const inner = new Set(["Layout", "RecoveryLayout", "UserOperationV06"])

/** Every deployed contract with its documentation. */
export const contracts = (): ReadonlyArray<Contract> => {
  const sources = deployed.map((name) => `src/${name}.sol`)
  const outputSelection = { "*": { "": ["ast"], "*": ["abi", "devdoc", "userdoc"] } }
  const output: Output = JSON.parse(Solc.solve(sources, { outputSelection }))
  const failures = (output.errors ?? []).filter(({ severity }) => severity === "error")
  if (failures.length > 0)
    throw new Error(failures.map(({ formattedMessage }) => formattedMessage).join("\n"))
  const described = deployed.map((name) => {
    const contract = output.contracts[`src/${name}.sol`]?.[name]
    if (contract === undefined) throw new Error(`solc returned nothing for ${name}`)
    const { abi, devdoc, userdoc } = contract
    return {
      name,
      text: userdoc.notice ?? "",
      parts: abi.filter(({ type }) => type !== "fallback").map((entry) => describe(entry, userdoc, devdoc))
    }
  })
  const shared = Object.entries(output.sources)
    .filter(([name]) => name.startsWith("src/"))
    .flatMap(([, { ast }]) => structs(ast))
    .filter(({ title }) => !inner.has(title))
  const text =
    "Parameters of the functions, and signed structs. Types are Solidity's, encoding is `abi.encode`'s."
  return [...described, { name: "Structs", text, parts: shared }]
}

/** Names every undocumented item. */
export const missing = (of: ReadonlyArray<Contract>): ReadonlyArray<string> =>
  of.flatMap(({ name, parts, text }) => [
    ...(text === "" ? [name] : []),
    ...parts
      .filter(({ isForeign }) => isForeign !== true)
      .flatMap((part) => [
        ...(part.text.replace(/ \(\w+\)$/, "") === "" ? [`${name}: ${part.kind} ${part.title}`] : []),
        ...part.rows
          .filter((row) => row.text === "")
          .map((row) => `${name}: ${part.kind} ${part.title}: ${row.role} ${row.name}`)
      ])
  ])

const cell = (text: string): string => text.replaceAll(/\{(\w+(?:-\w+)?)\}/g, "`$1`")

const rowOf = ({ name, role, text, type }: Described["rows"][number]): string => {
  const head = { takes: "", indexed: "indexed ", returns: "returns ", has: "" }[role]
  const typed = role === "returns" || role === "has" ? ` (\`${type}\`)` : ""
  return `  - ${head}\`${name}\`${typed}: ${cell(text)}`
}

/** The ERC that an item's text begins with defines its many parameters and results. */
const isStandard = /^ERC-\d+: /

/** Most parameters and results of an item that stand in its line. */
const mostInLine = 4

const inLine = ({ name, role, text, type }: Described["rows"][number]): string =>
  role === "returns" ? `Returns \`${type}\`: ${cell(text)}` : `\`${name}\`: ${cell(text)}`

const section = ({ kind, rows, text, title }: Described): string => {
  const head = `- ${kind} \`${title}\`: ${cell(text)}`
  if (rows.length > mostInLine && isStandard.test(text)) return head
  return kind !== "struct" && rows.length <= mostInLine
    ? [head, ...rows.map(inLine)].join(" ")
    : [head, ...rows.map(rowOf)].join("\n")
}

const order = ["constructor", "receive", "function", "event", "error", "struct"]

/** The items of a contract; one line names those that an earlier contract has with the same text. */
const items = ({ name, parts }: Contract, of: ReadonlyArray<Contract>): string => {
  const earlier = of.slice(
    0,
    of.findIndex((contract) => contract.name === name)
  )
  const all = order.flatMap((kind) => parts.filter((part) => part.kind === kind))
  const [foreign, own] = [all.filter((part) => part.isForeign), all.filter((part) => !part.isForeign)]
  const homes = Map.groupBy(own, (part) =>
    earlier.find((contract) => contract.parts.some((other) => section(other) === section(part)))
  )
  const named = (items: ReadonlyArray<Described>) => `${items.map(({ title }) => `\`${title}\``).join(", ")}.`
  return [
    ...[...homes].map(([home, inherited]) =>
      home === undefined
        ? inherited.map(section).join("\n")
        : `- As in [${home.name}](#${home.name.toLowerCase()}): ${named(inherited)}`
    ),
    ...(foreign.length === 0 ? [] : [`- OpenZeppelin's Ownable2Step and EIP712: ${named(foreign)}`])
  ].join("\n")
}

/** The page as it should be. */
export const page = (of: ReadonlyArray<Contract> = contracts()): string =>
  `${[
    "# Reference of the contracts",
    "Generated by `npm run contracts` from the comments in `contracts/src`; do not edit. [contracts.md](contracts.md) describes how the parts work together.",
    ...of.flatMap((contract) => [`## ${contract.name}`, cell(contract.text), items(contract, of)])
  ].join("\n\n")}\n`
