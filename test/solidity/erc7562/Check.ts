import type { EntryPointVersion } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { senderCreators } from "../../support/suite/Calls.js"
import type { Chain } from "../../support/suite/Chain.js"
import type { Op } from "../../support/suite/Ops.js"
import { findings } from "./Rules.js"
import type { Finding } from "./Scope.js"
import { type Event, traceOp } from "./Trace.js"

/** A valid signature by P-256: hash, r, s, x, y. The precompile of RIP-7212 answers it, an empty address does not. */
const validP256 = [
  "bb5a52f42f9c9261ed4361f59422a1e30036e7c32b270c8807a419feca605023",
  "05".padStart(64, "0"),
  "01".padStart(64, "0"),
  "a71af64de5126a4a4e02b7922d66ce9415ce88a4c9d25514d91082c8725ac957",
  "5d47723c8fbe580bb369fec9c2665d8e30a435b9932645482e7c9f11e872296b"
]

const hasP256 = async ({ provider }: Chain): Promise<boolean> =>
  (await provider.call({ to: `0x${"100".padStart(40, "0")}`, data: `0x${validP256.join("")}` })) !== "0x"

const contractIn = (bytes: string): string | null =>
  bytes === "0x" ? null : bytes.slice(0, 42).toLowerCase()

/** Every address whose code an instruction uses. */
const used = (event: Event): ReadonlyArray<string> => {
  if (event.kind !== "step") return []
  if (event.op.startsWith("EXTCODE")) return event.args.slice(0, 1)
  return event.op.endsWith("CALL") || event.op === "CALLCODE" ? event.args.slice(1, 2) : []
}

const withCode = async (chain: Chain, events: ReadonlyArray<Event>): Promise<ReadonlySet<string>> => {
  const addresses = new Set(
    events.flatMap(used).map((word) => `0x${BigInt(word).toString(16).padStart(40, "0")}`.slice(-42))
  )
  const found = new Set<string>()
  for (const address of addresses)
    if ((await chain.provider.getCode(address)) !== "0x") found.add(address.toLowerCase())
  for (const event of events)
    if (event.kind === "enter" && event.type.startsWith("CREATE")) found.add(event.to)
  return found
}

const nameIn = (chain: Chain, op: Op) => {
  const names = new Map<string, string>([
    ...Object.entries(chain.suite).map(([name, address]) => [address.toLowerCase(), `the ${name}`] as const),
    [op.sender.toLowerCase(), "the account"]
  ])
  return (address: string) => names.get(address) ?? "another contract"
}

/** Validates a signed op against ERC-7562, without stakes, and returns its findings. */
export const check = async (
  chain: Chain,
  version: EntryPointVersion,
  op: Op
): Promise<ReadonlyArray<Finding>> => {
  const events = await traceOp(chain, version, op)
  const code = await withCode(chain, events)
  return findings(events, {
    entryPoint: entryPoints[version].toLowerCase(),
    senderCreator: senderCreators[version].toLowerCase(),
    sender: op.sender.toLowerCase(),
    factory: contractIn(op.initCode),
    paymaster: contractIn(op.paymasterAndData),
    hasCode: (address) => code.has(address),
    p256: await hasP256(chain),
    name: nameIn(chain, op)
  })
}
