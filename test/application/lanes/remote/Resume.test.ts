import { describe, expect } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as Resume from "../../../../src/application/lanes/remote/Resume.js"
import { ChainRpcError } from "../../../../src/application/ports/chain/ChainRpc.js"
import type { RemoteSubmission } from "../../../../src/application/ports/journal/RemoteSubmissions.js"
import * as NetworkProfile from "../../../../src/application/ports/NetworkProfile.js"
import * as UserOperation from "../../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as Conditions from "../../../../src/domain/signature/Conditions.js"
import * as Make from "../../../support/journal/Make.js"
import * as Log from "../../../support/Log.js"
import * as Landings from "../../../support/lanes/Landings.js"
import { test } from "../../../support/Test.js"
import * as Time from "../../../support/Time.js"
import * as Site from "../../payers/Site.js"

const hash = Make.word(0x0b)

const submissionOf = (node: {
  readonly rpc: string | null
  readonly trust: "caller" | "operator"
  readonly signed?: Hex.Hex | null
}): RemoteSubmission => ({
  requestId: "r",
  index: 0,
  accountId: Make.alice,
  space: { ...Make.space(1), entryPoint: Landings.entryPoint },
  userOpHash: hash,
  node: { rpc: node.rpc === null ? null : Redacted.make(node.rpc), trust: node.trust },
  since: 0n,
  signed: node.signed ?? null,
  isRefused: false,
  includedIn: null,
  landedAs: hash
})

/** Reports of the followed ops, for an operator with this node. */
const surroundings = (rpc: string | null) => {
  const told: Array<string> = []
  return {
    told,
    bundlers: { connect: () => Effect.die(new Error("no bundler is named")) },
    nodes: {
      connect: (url: string, by: "operator" | { readonly account: string }) =>
        url.includes("forbidden")
          ? new ChainRpcError({ reason: "forbidden", origin: url, message: "the address is not allowed" })
          : Effect.succeed({ origin: `${url} of ${by === "operator" ? by : by.account}` } as never)
    },
    networks: {
      profile: () =>
        Effect.succeed(
          NetworkProfile.make({ chainId: Make.chainId, rpc: rpc === null ? null : Redacted.make(rpc) })
        ),
      chainIds: Effect.succeed([Make.chainId])
    },
    ops: {
      resume: ({ chain, offer, validUntil }) =>
        Effect.sync(() => {
          const until = offer === null ? "" : ` until ${validUntil}, as nonce ${offer.op.nonce}`
          told.push(`${chain.origin}${until}`)
        })
    }
  } satisfies Pick<Resume.Dependencies, "bundlers" | "networks" | "nodes" | "ops"> & {
    readonly told: ReadonlyArray<string>
  }
}

/** Node at which an op is watched, or why it is not. */
const resumed = (submission: RemoteSubmission, rpc: string | null) =>
  Effect.gen(function* () {
    const all = surroundings(rpc)
    yield* Effect.catch(Resume.resume(all, submission), ({ message }) =>
      Effect.sync(() => void all.told.push(`not followed: ${message}`))
    )
    return all.told
  })

describe("an op left at a remote bundler by an earlier process", () => {
  const stored = { rpc: "http://replaced", trust: "operator" } as const
  const callers = { rpc: "http://caller", trust: "caller" } as const
  const forbidden = { rpc: "http://forbidden", trust: "caller" } as const
  const present = "http://present"
  for (const [name, node, rpc, told] of [
    ["is watched at the operator's current node", stored, present, "http://present of operator"],
    [
      "waits for the operator to have a node for its chain",
      stored,
      null,
      "not followed: the operator has no node for its chain any more"
    ],
    ["is watched at its caller's node", callers, present, `http://caller of ${Make.alice}`],
    [
      "is watched at the operator's node if its caller's is forbidden",
      forbidden,
      present,
      "http://present of operator"
    ],
    ["waits where both are missing", forbidden, null, "not followed: the address is not allowed"],
    [
      "waits where its caller's node cannot be read",
      { rpc: null, trust: "caller" },
      present,
      "not followed: its node was sealed under another key, or changed"
    ]
  ] as const)
    test(name, function* () {
      expect(yield* resumed(submissionOf(node), rpc)).toEqual([told])
    })

  test("is followed as signed, no longer than its signature allows", function* () {
    const conditions = { ...Conditions.none, validUntil: 1_700_000_000 }
    const signature = Conditions.encodeSignature(conditions, Hex.unsafe(`0x${"11".repeat(65)}`))
    const signed = UserOperation.encode("v0.7", { ...Site.op, nonce: 9n, signature })
    expect(yield* resumed(submissionOf({ ...stored, signed }), present)).toEqual([
      "http://present of operator until 1700000000, as nonce 9"
    ])
    expect(yield* resumed(submissionOf({ ...stored, signed: Hex.unsafe("0x01") }), present)).toEqual([
      expect.stringContaining("not followed: a stored op cannot be read: ")
    ])
  })
})

describe("ops left at remote bundlers by earlier processes", () => {
  test("are resumed at intervals, on lanes that this process has", function* () {
    const lines = yield* Log.listen
    const all = surroundings("http://present")
    const own = submissionOf({ rpc: null, trust: "operator" })
    const broken = { ...own, userOpHash: Make.word(0x0c), signed: Hex.unsafe("0x01") }
    const others = { ...own, space: { ...own.space, authority: Make.address(0x99) } }
    const holds: Resume.Dependencies["holds"] = ({ signer }) => signer === own.space.authority
    const journal = { remoteSubmissions: Effect.succeed([broken, others, own]) }
    yield* Resume.make({ ...all, journal, holds })(yield* Effect.scope)
    yield* Time.adjust("12 seconds")
    expect(all.told).toEqual(Array.from({ length: 3 }, () => "http://present of operator"))
    expect(Log.told(lines, "remote op not followed")).toHaveLength(1)
  })
})
