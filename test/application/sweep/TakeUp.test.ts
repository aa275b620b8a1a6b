import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Engine } from "../../../src/application/lanes/Engine.js"
import { RemoteOps } from "../../../src/application/lanes/remote/RemoteOps.js"
import { BundlerRpc } from "../../../src/application/ports/chain/BundlerRpc.js"
import { ChainRpc, ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import type { RemoteSubmission } from "../../../src/application/ports/journal/RemoteSubmissions.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import { Networks } from "../../../src/application/ports/Networks.js"
import * as TakeUp from "../../../src/application/sweep/TakeUp.js"
import * as Make from "../../support/journal/Make.js"
import * as Landings from "../../support/lanes/Landings.js"

const hash = Make.word(0x0b)

/** Which nodes an op is watched at when it is taken up, for the first time or (`isWatched`) again. */
const nodesOf = (
  node: { readonly rpc: string | null; readonly trust: "caller" | "operator" },
  { isWatched = false, rpc }: { readonly isWatched?: boolean; readonly rpc: string | null }
) =>
  Effect.gen(function* () {
    const told: Array<string> = []
    const context = Context.make(BundlerRpc, {} as BundlerRpc["Type"]).pipe(
      Context.add(ChainRpc, {
        connect: (url, by) =>
          url.includes("forbidden")
            ? Effect.fail(
                new ChainRpcError({ reason: "forbidden", origin: url, message: "the address is not allowed" })
              )
            : Effect.succeed({ origin: `${url} of ${by === "operator" ? by : by.account}` } as never)
      }),
      Context.add(RemoteOps, {
        isWatched: () => isWatched,
        renew: ({ chain }) => Effect.sync(() => void told.push(`renewed: ${chain.origin}`)),
        watch: ({ chain }) => Effect.sync(() => void told.push(chain.origin) as never),
        offered: () => Effect.void,
        forget: () => Effect.void
      }),
      Context.add(Networks, {
        profile: () =>
          Effect.succeed(
            NetworkProfile.make({ chainId: Make.chainId, rpc: rpc === null ? null : Redacted.make(rpc) })
          ),
        chainIds: Effect.succeed([Make.chainId])
      })
    )
    const submission: RemoteSubmission = {
      requestId: "r",
      index: 0,
      accountId: Make.alice,
      space: { ...Make.space(1), entryPoint: Landings.entryPoint },
      userOpHash: hash,
      node: { rpc: node.rpc === null ? null : Redacted.make(node.rpc), trust: node.trust },
      since: 0n,
      signed: null,
      includedIn: null,
      landedAs: hash
    }
    yield* TakeUp.watchRemote(submission).pipe(
      Effect.catchAll(({ message }) => Effect.sync(() => void told.push(`obstacle: ${message}`))),
      // Of the engine it looks at these parts only.
      Effect.provide(context as Context.Context<ChainRpc | Networks | Engine>)
    )
    return told
  })

describe("an op at a remote bundler that is taken up", () => {
  const stored = { rpc: "http://replaced", trust: "operator" } as const
  const callers = { rpc: "http://caller", trust: "caller" } as const

  it.effect("is looked for at the node that the operator has now, not at the one that it was sent with", () =>
    Effect.gen(function* () {
      expect(yield* nodesOf(stored, { rpc: "http://present" })).toEqual(["http://present of operator"])
    })
  )

  it.effect("goes on there when it is watched already", () =>
    Effect.gen(function* () {
      expect(yield* nodesOf(stored, { isWatched: true, rpc: "http://present" })).toEqual([
        "renewed: http://present of operator"
      ])
    })
  )

  it.effect("waits for the operator to have a node for its chain again", () =>
    Effect.gen(function* () {
      expect(yield* nodesOf(stored, { rpc: null })).toEqual([
        "obstacle: the operator has no node for its chain any more"
      ])
    })
  )

  it.effect("is looked for at its caller's node", () =>
    Effect.gen(function* () {
      expect(yield* nodesOf(callers, { rpc: "http://present" })).toEqual([`http://caller of ${Make.alice}`])
    })
  )

  it.effect("is looked for at the operator's where its caller's is not allowed any more", () =>
    Effect.gen(function* () {
      const forbidden = { rpc: "http://forbidden", trust: "caller" } as const
      expect(yield* nodesOf(forbidden, { rpc: "http://present" })).toEqual(["http://present of operator"])
      expect(yield* nodesOf(forbidden, { rpc: null })).toEqual(["obstacle: the address is not allowed"])
    })
  )

  it.effect("waits where its caller's node cannot be read", () =>
    Effect.gen(function* () {
      expect(yield* nodesOf({ rpc: null, trust: "caller" }, { rpc: "http://present" })).toEqual([
        "obstacle: its node was sealed under another key, or changed"
      ])
    })
  )
})
